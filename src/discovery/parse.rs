//! A server's answer into the model: by media type, never by comparing text, and by what the body says of itself where
//! the header says nothing.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::legacy::{ApiGroupList, ApiResourceList, ApiVersions, RootDocument};
use super::model::{ApiGroupDiscoveryList, GROUP, KIND, Unknown, null_is_default};
use crate::apimachinery::gvr::GroupVersion;
use crate::apimachinery::media_type::MediaType;

/// Most JSON values that a document may hold. A large cluster's has some hundred thousand; a value takes up to about a
/// hundred times the memory of the shortest text for it, so that bytes alone are no bound.
const MAX_VALUES: usize = 1_000_000;

/// What a server answers at `/api` or `/apis`.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// An aggregated list, v2 or v2beta1.
    Aggregated(ApiGroupDiscoveryList),
    /// The legacy form, whatever was asked for: the server is to be walked.
    Legacy(RootDocument),
}

/// Why an answer cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is labeled as something else.
    #[error("content type {0:?} is not JSON")]
    NotJson(String),
    /// It would take too much memory.
    #[error("the document holds more than {MAX_VALUES} values")]
    TooManyValues,
    /// It is not what its label says.
    #[error("the document cannot be decoded")]
    Decode(#[from] serde_json::Error),
    /// It is some other object.
    #[error("kind {kind:?} of {api_version:?} is no discovery document")]
    UnknownKind {
        /// Kind that the document gives itself.
        kind: String,
        /// Version that the document gives itself.
        api_version: String,
    },
    /// It lists the resources of another group version than was asked for.
    #[error("the document lists group version {0:?}")]
    OtherGroupVersion(String),
}

/// Reads what a server answers at `/api` or `/apis`. `content_type` is its header, if it has one. The caller bounds
/// the size of the body.
///
/// # Errors
/// If the answer is no discovery document or cannot be decoded.
pub fn parse(body: &[u8], content_type: Option<&str>) -> Result<Document, Error> {
    let is_labeled = check_content_type(content_type)?.is_some();
    let meta: TypeMeta = decode(body)?;
    let is_aggregated =
        meta.kind == KIND && matches!(meta.api_version.split_once('/'), Some((GROUP, "v2" | "v2beta1")));
    match meta.kind.as_str() {
        _ if is_aggregated || (is_labeled && meta.kind.is_empty()) => {
            let mut list: ApiGroupDiscoveryList = decode(body)?;
            list.normalize();
            Ok(Document::Aggregated(list))
        }
        "APIVersions" => Ok(Document::Legacy(decode::<ApiVersions>(body)?.into())),
        "APIGroupList" => Ok(Document::Legacy(decode::<ApiGroupList>(body)?.into())),
        _ => Err(Error::UnknownKind { kind: meta.kind, api_version: meta.api_version }),
    }
}

/// Reads the legacy form of `/api`.
///
/// # Errors
/// If the answer is no such document or cannot be decoded.
pub fn parse_api_versions(body: &[u8], content_type: Option<&str>) -> Result<ApiVersions, Error> {
    let mut versions: ApiVersions = decode_kind(body, content_type, "APIVersions")?;
    strip_type_meta(&mut versions.unknown);
    Ok(versions)
}

/// Reads the legacy document of one group version.
///
/// # Errors
/// If the answer is no such document, is one of another group version, or cannot be decoded.
pub fn parse_legacy_resources(
    body: &[u8],
    content_type: Option<&str>,
    group_version: &GroupVersion,
) -> Result<ApiResourceList, Error> {
    let mut list: ApiResourceList = decode_kind(body, content_type, "APIResourceList")?;
    if !list.group_version.is_empty() && list.group_version != group_version.to_string() {
        return Err(Error::OtherGroupVersion(list.group_version));
    }
    strip_type_meta(&mut list.unknown);
    Ok(list)
}

/// Whether an answer is an aggregated list in the v2beta1 form, by its label or, where that says less, by the body.
#[must_use]
pub fn is_v2beta1(body: &[u8], content_type: Option<&str>) -> bool {
    let is_list = |meta: TypeMeta| meta.kind == KIND && meta.api_version.split_once('/') == Some((GROUP, "v2beta1"));
    match check_content_type(content_type) {
        Ok(Some(label)) => label == Label::V2Beta1,
        Ok(None) => decode(body).is_ok_and(is_list),
        Err(_) => false,
    }
}

/// Decodes an object that says of itself that it is of this kind.
fn decode_kind<T: DeserializeOwned>(body: &[u8], content_type: Option<&str>, kind: &str) -> Result<T, Error> {
    check_content_type(content_type)?;
    let meta: TypeMeta = decode(body)?;
    if meta.kind != kind {
        return Err(Error::UnknownKind { kind: meta.kind, api_version: meta.api_version });
    }
    decode(body)
}

/// Takes out what every object says of itself.
fn strip_type_meta(unknown: &mut Unknown) {
    unknown.remove("kind");
    unknown.remove("apiVersion");
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta {
    #[serde(default, deserialize_with = "null_is_default")]
    kind: String,
    #[serde(default, deserialize_with = "null_is_default")]
    api_version: String,
}

/// What a header says that a body is.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Label {
    V2,
    V2Beta1,
}

/// Which aggregated list the header names, if it does; parameters may come in any order and case, and with others.
fn check_content_type(content_type: Option<&str>) -> Result<Option<Label>, Error> {
    let Some(text) = content_type.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let not_json = || Error::NotJson(text.chars().take(100).collect());
    let media_type = MediaType::parse(text).ok_or_else(not_json)?;
    if !media_type.main.eq_ignore_ascii_case("application") || !media_type.sub.eq_ignore_ascii_case("json") {
        return Err(not_json());
    }
    let has = |name: &str, wanted: &str| {
        let mut parameters = media_type.parameters.iter();
        parameters.any(|(found, value)| found.eq_ignore_ascii_case(name) && value.eq_ignore_ascii_case(wanted))
    };
    if !has("g", GROUP) || !has("as", KIND) {
        return Ok(None);
    }
    let labels = [("v2", Label::V2), ("v2beta1", Label::V2Beta1)];
    Ok(labels.into_iter().find(|(version, _)| has("v", version)).map(|(_, label)| label))
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    // Every value follows one of these, or is the first.
    let separators = body.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    if separators >= MAX_VALUES {
        return Err(Error::TooManyValues);
    }
    Ok(serde_json::from_slice(body)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::arbitrary;
    use super::super::model::{ApiVersionDiscovery, Freshness};
    use super::*;
    use crate::apimachinery::encoding::Encoding;

    const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const LIST: &str = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2beta1","metadata":{},
        "items":[{"metadata":{"name":"apps","creationTimestamp":null},"versions":[{"version":"v1","resources":null,"freshness":"Current"}]}]}"#;

    fn aggregated(body: &str, content_type: Option<&str>) -> ApiGroupDiscoveryList {
        match parse(body.as_bytes(), content_type).unwrap() {
            Document::Aggregated(list) => list,
            Document::Legacy(root) => panic!("legacy: {root:?}"),
        }
    }

    #[test]
    fn label_is_read_as_a_media_type() {
        let bare = LIST.replace(r#""kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2beta1","#, "");
        for label in [
            V2,
            "Application/JSON; AS=apigroupdiscoverylist; charset=utf-8; V=V2; G=APIDISCOVERY.K8S.IO",
            "application/json;v=v2beta1;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io",
        ] {
            assert_eq!(aggregated(LIST, Some(label)).items.len(), 1, "{label}");
            assert_eq!(aggregated(&bare, Some(label)).items.len(), 1, "{label}");
        }
        // A label that says less than the body, or nothing.
        for label in [None, Some(""), Some("application/json"), Some("application/json; charset=utf-8")] {
            assert_eq!(aggregated(LIST, label).items.len(), 1, "{label:?}");
            assert!(matches!(parse(bare.as_bytes(), label), Err(Error::UnknownKind { .. })), "{label:?}");
        }
        for label in ["text/html", "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "json"] {
            assert!(matches!(parse(LIST.as_bytes(), Some(label)), Err(Error::NotJson(_))), "{label}");
        }
    }

    #[test]
    fn what_older_servers_write_is_brought_into_form() {
        let list = aggregated(LIST, None);
        assert_eq!(list.items[0].name(), "apps");
        assert!(list.items[0].metadata.unknown.is_empty());
        let expected = ApiVersionDiscovery {
            version: "v1".into(),
            freshness: Freshness::Current,
            ..ApiVersionDiscovery::default()
        };
        assert_eq!(list.items[0].versions, [expected]);
    }

    #[test]
    fn legacy_answer_to_any_question_is_known_as_such() {
        let groups = r#"{"kind":"APIGroupList","groups":[{"name":"g","versions":[{"groupVersion":"g/v2","version":"v2"},
            {"groupVersion":"g/v1","version":"v1"}],"preferredVersion":{"groupVersion":"g/v1","version":"v1"}}]}"#;
        let expected = RootDocument { groups: vec![("g".into(), vec!["v1".into(), "v2".into()])] };
        for label in [Some("application/json"), None, Some(V2)] {
            assert_eq!(parse(groups.as_bytes(), label).unwrap(), Document::Legacy(expected.clone()));
        }
        let versions = br#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{}]}"#;
        let expected = RootDocument { groups: vec![(String::new(), vec!["v1".into()])] };
        assert_eq!(parse(versions, None).unwrap(), Document::Legacy(expected));
    }

    #[test]
    fn other_answers_are_errors() {
        let check = |body: &[u8]| parse(body, None).unwrap_err().to_string();
        assert_eq!(
            check(br#"{"kind":"Status","apiVersion":"v1"}"#),
            r#"kind "Status" of "v1" is no discovery document"#
        );
        assert_eq!(check(b"<html>"), "the document cannot be decoded");
        assert_eq!(check(&LIST.as_bytes()[..40]), "the document cannot be decoded");
        assert_eq!(check(&vec![b'['; 100_000]), "the document cannot be decoded");
        let flood = format!(r#"{{"items":[{}{{}}]}}"#, "{},".repeat(MAX_VALUES));
        assert_eq!(check(flood.as_bytes()), "the document holds more than 1000000 values");
        let twice = LIST.replace(r#""items":"#, r#""items":[],"items":"#);
        assert_eq!(check(twice.as_bytes()), "the document cannot be decoded");
        let nested = format!(r#"{{"kind":"{KIND}","future":{}}}"#, "[".repeat(100_000));
        assert_eq!(check(nested.as_bytes()), "the document cannot be decoded");
        let resources = br#"{"kind":"APIResourceList","groupVersion":"g/v1","resources":[]}"#;
        assert!(parse_legacy_resources(resources, None, &GroupVersion::new("g", "v1")).is_ok());
        assert!(matches!(
            parse_legacy_resources(resources, None, &GroupVersion::new("g", "v2")),
            Err(Error::OtherGroupVersion(_))
        ));
        assert!(matches!(parse_api_versions(resources, None), Err(Error::UnknownKind { .. })));
    }

    #[test]
    fn legacy_documents_keep_what_they_say_beside_their_kind() {
        let api = br#"{"kind":"APIVersions","apiVersion":"v1","versions":["v1"],"future":1,
            "serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}]}"#;
        let api = parse_api_versions(api, Some("application/json; charset=utf-8")).unwrap();
        assert_eq!(api.server_address_by_client_cidrs[0].server_address, "10.0.0.1:6443");
        assert_eq!(api.unknown.keys().collect::<Vec<_>>(), ["future"]);
        let list = br#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"g/v1",
            "resources":[{"name":"things","kind":"Thing","verbs":["get"],"storageVersionHash":"abc="}]}"#;
        let list = parse_legacy_resources(list, None, &GroupVersion::new("g", "v1")).unwrap();
        assert_eq!(list.resources[0].storage_version_hash, "abc=");
        assert!(list.unknown.is_empty(), "{list:?}");
    }

    #[test]
    fn v2beta1_is_known_by_its_label_or_by_the_body() {
        let label =
            |version: &str| format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
        assert!(is_v2beta1(b"{}", Some(&label("V2beta1"))));
        assert!(is_v2beta1(LIST.as_bytes(), Some("application/json")));
        assert!(is_v2beta1(LIST.as_bytes(), None));
        assert!(!is_v2beta1(LIST.as_bytes(), Some(V2)), "the label says more");
        assert!(!is_v2beta1(LIST.as_bytes(), Some("text/html")));
        assert!(!is_v2beta1(LIST.replace("v2beta1", "v2").as_bytes(), None));
        assert!(!is_v2beta1(br#"{"kind":"APIVersions","versions":["v1"]}"#, Some("application/json")));
        assert!(!is_v2beta1(b"<html>", None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_rendered_reads_back_the_same(list in arbitrary::list()) {
            for encoding in [Encoding::Json, Encoding::PrettyJson] {
                let body = arbitrary::written(&list, encoding);
                prop_assert_eq!(parse(&body, Some(V2)).unwrap(), Document::Aggregated(list.clone()));
            }
        }

        #[test]
        fn damaged_documents_never_panic(list in arbitrary::list(), at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 0..4)) {
            let mut body = arbitrary::written(&list, Encoding::Json).to_vec();
            let at = at.index(body.len());
            body.splice(at..at + 1, bytes);
            let _ = parse(&body, Some(V2));
            let _ = parse_legacy_resources(&body, None, &GroupVersion::default());
        }

        #[test]
        fn garbage_never_panics(body in prop::collection::vec(any::<u8>(), 0..64), label in ".{0,40}") {
            let _ = parse(&body, Some(&label));
            let _ = parse(&body, None);
            let _ = parse_api_versions(&body, None);
            let _ = is_v2beta1(&body, Some(&label));
        }
    }
}
