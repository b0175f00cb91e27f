//! An object into the bytes that are served: built once, so that a request is a lookup and a write. One line of JSON is
//! what nearly everybody asks for; the other encodings are made when somebody first asks for them.

use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use serde::Serialize;

use super::model::ApiGroupDiscoveryList;
use crate::apimachinery::encoding::{self, Encoding};

/// Bodies larger than this are compressed for clients that take gzip.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/handlers/responsewriters/writers.go>
/// (`defaultGzipThresholdBytes`)
const GZIP_ABOVE_BYTES: usize = 128 * 1024;

/// What can be served as a document.
pub(super) trait Object: Serialize {
    /// Its form in protobuf.
    type Message: prost::Message;

    /// Brings it into that form.
    fn message(&self) -> Self::Message;
}

/// What an object says that it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TypeMeta {
    pub(super) kind: &'static str,
    /// Empty for documents that clients of release 1.1 read.
    pub(super) api_version: &'static str,
}

/// One object in every encoding.
#[derive(Debug)]
pub(super) struct Rendered<T> {
    meta: TypeMeta,
    object: Arc<T>,
    bodies: [OnceLock<Body>; 4],
}

/// A body, plain and compressed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Body {
    /// As it is.
    pub(super) plain: Bytes,
    /// Compressed by gzip; only if the body is larger than 128 KiB, as upstream compresses no smaller one.
    pub(super) gzip: Option<Bytes>,
}

impl<T: Object> Rendered<T> {
    /// Makes what renders an object when asked.
    pub(super) fn new(meta: TypeMeta, object: Arc<T>) -> Self {
        Self { meta, object, bodies: Default::default() }
    }

    /// Its bytes in an encoding.
    pub(super) fn body(&self, encoding: Encoding) -> &Body {
        let place = match encoding {
            Encoding::Json => &self.bodies[0],
            Encoding::PrettyJson => &self.bodies[1],
            Encoding::Yaml => &self.bodies[2],
            Encoding::Protobuf => &self.bodies[3],
        };
        place.get_or_init(|| Body::new(self.encode(encoding)))
    }

    fn encode(&self, encoding: Encoding) -> Vec<u8> {
        let TypeMeta { kind, api_version } = self.meta;
        let typed = Typed { kind, api_version, object: &*self.object };
        match encoding {
            Encoding::Json => (encoding::json(&typed) + "\n").into_bytes(),
            Encoding::PrettyJson => encoding::pretty_json(&typed).into_bytes(),
            Encoding::Yaml => encoding::yaml(&typed).into_bytes(),
            Encoding::Protobuf => encoding::protobuf(api_version, kind, &self.object.message()),
        }
    }
}

impl Body {
    fn new(plain: Vec<u8>) -> Self {
        let gzip = (plain.len() > GZIP_ABOVE_BYTES).then(|| compress(&plain));
        Self { plain: plain.into(), gzip }
    }
}

fn compress(text: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    written.expect("memory takes every write").into()
}

#[derive(Serialize)]
struct Typed<'a, T> {
    kind: &'static str,
    #[serde(rename = "apiVersion", skip_serializing_if = "str::is_empty")]
    api_version: &'static str,
    #[serde(flatten)]
    object: &'a T,
}

/// Strong entity tag of an aggregated document, quoted: the SHA-512 in upper-case hex of the list without kind and
/// apiVersion. Every form and encoding of the document has the same, as upstream's.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/discovery/aggregated/etag.go>
pub(super) fn etag(list: &ApiGroupDiscoveryList) -> HeaderValue {
    let hash = digest(&SHA512, encoding::json(list).as_bytes());
    let quoted = format!("\"{}\"", data_encoding::HEXUPPER.encode(hash.as_ref()));
    HeaderValue::try_from(quoted).expect("hex digits and quotes make a header value")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use serde_json::json;

    use super::*;

    /// A list in upstream's own words, with characters that only Go escapes.
    const UPSTREAM: &str = concat!(
        r#"{"metadata":{},"items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":["#,
        r#"{"resource":"a","responseKind":{"group":"","version":"","kind":"\u003cA\u0026B\u003e"},"scope":"Namespaced","#,
        r#""singularResource":"","verbs":null,"shortNames":["x"],"subresources":[{"subresource":"status","#,
        r#""responseKind":{"group":"","version":"","kind":""},"acceptedTypes":[{"group":"g","version":"v","kind":"k"}],"#,
        r#""verbs":["get"]}]}],"freshness":"Current"}]},{"metadata":{}}]}"#
    );

    fn rendered(list: ApiGroupDiscoveryList) -> Rendered<ApiGroupDiscoveryList> {
        let meta = TypeMeta { kind: "APIGroupDiscoveryList", api_version: "apidiscovery.k8s.io/v2" };
        Rendered::new(meta, Arc::new(list))
    }

    #[test]
    fn bytes_are_those_of_upstream() {
        let rendered = rendered(serde_json::from_str(UPSTREAM).unwrap());
        let typed =
            format!(r#"{{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2",{}"#, &UPSTREAM[1..]);
        assert_eq!(rendered.body(Encoding::Json).plain, format!("{typed}\n"));
        assert!(
            rendered
                .body(Encoding::PrettyJson)
                .plain
                .starts_with(b"{\n  \"kind\": \"APIGroupDiscoveryList\",\n  \"apiVersion\"")
        );
        assert!(rendered.body(Encoding::PrettyJson).plain.ends_with(b"\n      \"metadata\": {}\n    }\n  ]\n}"));
    }

    #[test]
    fn only_large_bodies_are_compressed() {
        let large = |bytes: usize| {
            let list = json!({ "items": [{ "metadata": { "name": "g".repeat(bytes) } }] });
            rendered(serde_json::from_value(list).unwrap()).body(Encoding::Json).clone()
        };
        let frame = large(1).plain.len() - 1;
        assert_eq!(large(GZIP_ABOVE_BYTES - frame).plain.len(), GZIP_ABOVE_BYTES);
        assert_eq!(large(GZIP_ABOVE_BYTES - frame).gzip, None);
        let body = large(GZIP_ABOVE_BYTES - frame + 1);
        let mut read = Vec::new();
        flate2::read::GzDecoder::new(&*body.gzip.unwrap()).read_to_end(&mut read).unwrap();
        assert_eq!(read, body.plain);
    }

    #[test]
    fn empty_list_is_tagged_as_upstream_tags_it() {
        // printf '{"metadata":{},"items":[]}' | sha512sum | tr a-f A-F
        assert_eq!(
            etag(&ApiGroupDiscoveryList::default()),
            concat!(
                "\"",
                "E31D92F2F415F58D79E51A08706C00FE868ED961736AD66A944AC75AA3682B33",
                "24F1787C9AF1250F28E111EEF86B2C3CD65FC48D3A283E0598FFA800177D68C1",
                "\""
            )
        );
    }

    #[test]
    fn tag_changes_with_unknown_fields_and_freshness() {
        let base = json!({ "items": [{ "metadata": { "name": "g" }, "versions": [{ "version": "v1" }] }] });
        let tag = |list: &serde_json::Value| etag(&serde_json::from_value(list.clone()).unwrap());
        let mut stale = base.clone();
        stale["items"][0]["versions"][0]["freshness"] = json!("Stale");
        let mut newer = base.clone();
        newer["items"][0]["versions"][0]["future"] = json!(1);
        assert_ne!(tag(&base), tag(&stale));
        assert_ne!(tag(&base), tag(&newer));
        assert_eq!(tag(&base), tag(&base.clone()));
    }
}
