//! A list into the bytes that are served: built once per change, so that a request is a lookup and a write.

use std::io::Write as _;

use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use serde::Serialize;

use super::model::{ApiGroupDiscoveryList, KIND};

const V2: &str = "apidiscovery.k8s.io/v2";

/// Bodies larger than this are compressed for clients that take gzip.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/handlers/responsewriters/writers.go>
/// (`defaultGzipThresholdBytes`)
const GZIP_ABOVE_BYTES: usize = 128 * 1024;

/// One document as it is served in the v2 JSON form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rendered {
    /// The body on one line, with a newline at its end.
    pub json: Body,
    /// The body for people: indented by two spaces, without a newline at its end.
    pub pretty: Body,
    /// Strong entity tag, quoted: the SHA-512 in upper-case hex of the list without kind and apiVersion. Every form and
    /// layout of the document has the same, as upstream's.
    /// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/discovery/aggregated/etag.go>
    pub etag: HeaderValue,
}

/// A body, plain and compressed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Body {
    /// As it is.
    pub plain: Bytes,
    /// Compressed by gzip; only if the body is larger than 128 KiB, as upstream compresses no smaller one.
    pub gzip: Option<Bytes>,
}

impl Rendered {
    /// Renders a list.
    #[must_use]
    pub fn new(list: &ApiGroupDiscoveryList) -> Self {
        let typed = Typed { kind: KIND, api_version: V2, list };
        let mut json = go_json(serde_json::to_string(&typed));
        json.push('\n');
        let pretty = go_json(serde_json::to_string_pretty(&typed));
        Self { json: Body::new(json), pretty: Body::new(pretty), etag: etag(list) }
    }
}

impl Body {
    fn new(text: String) -> Self {
        let gzip = (text.len() > GZIP_ABOVE_BYTES).then(|| compress(text.as_bytes()));
        Self { plain: text.into(), gzip }
    }
}

fn compress(text: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    written.expect("memory takes every write").into()
}

#[derive(Serialize)]
struct Typed<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    #[serde(flatten)]
    list: &'a ApiGroupDiscoveryList,
}

fn etag(list: &ApiGroupDiscoveryList) -> HeaderValue {
    let hash = digest(&SHA512, go_json(serde_json::to_string(list)).as_bytes());
    let quoted = format!("\"{}\"", data_encoding::HEXUPPER.encode(hash.as_ref()));
    HeaderValue::try_from(quoted).expect("hex digits and quotes make a header value")
}

/// JSON with the characters escaped that Go escapes. They can only stand inside of strings.
/// Source: <https://pkg.go.dev/encoding/json#Marshal>
fn go_json(written: serde_json::Result<String>) -> String {
    let json = written.expect("the model has string keys only and writes to memory");
    if !json.contains(escape_needed) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + json.len() / 8);
    for character in json.chars() {
        match character {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            _ => escaped.push(character),
        }
    }
    escaped
}

fn escape_needed(character: char) -> bool {
    matches!(character, '<' | '>' | '&' | '\u{2028}' | '\u{2029}')
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

    #[test]
    fn bytes_are_those_of_upstream() {
        let rendered = Rendered::new(&serde_json::from_str(UPSTREAM).unwrap());
        let typed =
            format!(r#"{{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2",{}"#, &UPSTREAM[1..]);
        assert_eq!(rendered.json.plain, format!("{typed}\n"));
        assert!(rendered.pretty.plain.starts_with(b"{\n  \"kind\": \"APIGroupDiscoveryList\",\n  \"apiVersion\""));
        assert!(rendered.pretty.plain.ends_with(b"\n      \"metadata\": {}\n    }\n  ]\n}"));
    }

    #[test]
    fn only_large_bodies_are_compressed() {
        let large = |bytes: usize| {
            let list = json!({ "items": [{ "metadata": { "name": "g".repeat(bytes) } }] });
            Rendered::new(&serde_json::from_value(list).unwrap()).json
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
        let rendered = Rendered::new(&ApiGroupDiscoveryList::default());
        // printf '{"metadata":{},"items":[]}' | sha512sum | tr a-f A-F
        assert_eq!(
            rendered.etag,
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
        let tag = |list: &serde_json::Value| Rendered::new(&serde_json::from_value(list.clone()).unwrap()).etag;
        let mut stale = base.clone();
        stale["items"][0]["versions"][0]["freshness"] = json!("Stale");
        let mut newer = base.clone();
        newer["items"][0]["versions"][0]["future"] = json!(1);
        assert_ne!(tag(&base), tag(&stale));
        assert_ne!(tag(&base), tag(&newer));
        assert_eq!(tag(&base), tag(&base.clone()));
    }
}
