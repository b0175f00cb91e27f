//! A rendered document into a response, header for header as upstream answers.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/discovery/aggregated/etag.go>
//! (`ServeHTTPWithETag`)

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::render::Rendered;
use crate::authz::Reader;
use crate::apimachinery::status::Pretty;

/// Type of the v2 JSON form. `profile` is never echoed.
const CONTENT_TYPE_V2_JSON: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a request for a document: 200 with the body, or 304 if the client has it.
///
/// The reader proves that the caller may read the document. What every response carries (`Audit-Id`,
/// `Date`) is added by the server.
#[must_use]
pub fn serve(_reader: &Reader, rendered: &Rendered, pretty: Pretty, request_headers: &HeaderMap) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(ETAG, rendered.etag.clone());
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    // Only the very tag counts: upstream compares text and knows neither lists nor weak tags nor `*`.
    if request_headers.get(IF_NONE_MATCH) == Some(&rendered.etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE_V2_JSON));
    let body = match pretty {
        Pretty::No => &rendered.json,
        Pretty::Yes => &rendered.pretty,
    };
    *response.body_mut() = match &body.gzip {
        Some(gzip) if takes_gzip(request_headers) => {
            let headers = response.headers_mut();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            // A second header, as upstream writes it.
            headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
            gzip.clone()
        }
        _ => body.plain.clone(),
    };
    response
}

/// Whether gzip is named, without a quality, in the first `Accept-Encoding` header: upstream reads no more of it.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/handlers/responsewriters/writers.go>
/// (`negotiateContentEncoding`)
fn takes_gzip(request_headers: &HeaderMap) -> bool {
    let value = request_headers.get(ACCEPT_ENCODING).map(HeaderValue::as_bytes).unwrap_or_default();
    value.split(|byte| *byte == b',').any(|encoding| encoding.trim_ascii() == b"gzip")
}

#[cfg(test)]
mod tests {
    use super::super::model::ApiGroupDiscoveryList;
    use super::*;

    fn answer(pretty: Pretty, tags: &[&str]) -> Response<Bytes> {
        let mut headers = HeaderMap::new();
        for tag in tags {
            headers.append(IF_NONE_MATCH, HeaderValue::from_str(tag).unwrap());
        }
        serve(&Reader::of_test(), &rendered(), pretty, &headers)
    }

    fn rendered() -> Rendered {
        Rendered::new(&ApiGroupDiscoveryList::default())
    }

    fn tag() -> String {
        rendered().etag.to_str().unwrap().to_owned()
    }

    /// Every header, so that one too many fails as one too few does.
    fn headers(response: &Response<Bytes>) -> Vec<(String, String)> {
        let mut all: Vec<_> = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        all.sort();
        all
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn document_carries_the_headers_of_upstream() {
        let response = answer(Pretty::No, &[]);
        assert_eq!(response.status(), 200);
        assert_eq!(*response.body(), rendered().json.plain);
        let expected = [
            pair("cache-control", "public"),
            pair("content-type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
            pair("etag", &tag()),
            pair("vary", "Accept"),
        ];
        assert_eq!(headers(&response), expected);
        let indented = answer(Pretty::Yes, &[]);
        assert_eq!(*indented.body(), rendered().pretty.plain);
        assert_eq!(headers(&indented), expected);
    }

    #[test]
    fn known_document_is_not_sent_again() {
        let response = answer(Pretty::Yes, &[&tag()]);
        assert_eq!(response.status(), 304);
        assert!(response.body().is_empty());
        let expected = [pair("cache-control", "public"), pair("etag", &tag()), pair("vary", "Accept")];
        assert_eq!(headers(&response), expected);
    }

    #[test]
    fn large_document_is_compressed_for_those_who_ask() {
        let list = serde_json::json!({ "items": [{ "metadata": { "name": "g".repeat(200_000) } }] });
        let large = Rendered::new(&serde_json::from_value(list).unwrap());
        let ask = |rendered: &Rendered, encodings: &'static str| {
            let sent = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(encodings))]);
            serve(&Reader::of_test(), rendered, Pretty::No, &sent)
        };
        let compressed = ask(&large, "br, gzip");
        assert_eq!(Some(compressed.body()), large.json.gzip.as_ref());
        assert_eq!(compressed.headers()[CONTENT_ENCODING], "gzip");
        let vary: Vec<_> = compressed.headers().get_all(VARY).iter().collect();
        assert_eq!(vary, ["Accept", "Accept-Encoding"]);
        for encodings in ["", "identity", "gzip;q=1", "xgzip"] {
            assert_eq!(*ask(&large, encodings).body(), large.json.plain, "{encodings}");
            assert!(!ask(&large, encodings).headers().contains_key(CONTENT_ENCODING));
        }
        assert_eq!(*ask(&rendered(), "gzip").body(), rendered().json.plain);
    }

    #[test]
    fn only_the_very_tag_counts() {
        let tag = tag();
        for sent in ["*", "", tag.trim_matches('"'), &format!("W/{tag}"), &format!("{tag}, \"x\""), &tag.to_lowercase()]
        {
            assert_eq!(answer(Pretty::No, &[sent]).status(), 200, "{sent}");
        }
        assert_eq!(answer(Pretty::No, &["\"x\"", &tag]).status(), 200);
    }
}
