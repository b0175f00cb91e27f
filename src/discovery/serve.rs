//! A rendered document into a response, header for header as upstream answers.
//!
//! Sources: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/discovery/aggregated/etag.go>
//! (`ServeHTTPWithETag`), <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/filters/cachecontrol.go>

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::render::Body;
use crate::authz::Reader;

/// A document in the form that was asked for.
#[derive(Debug)]
pub struct Page<'d> {
    pub(super) body: &'d Body,
    /// `Content-Type`.
    pub(super) content_type: &'static str,
    /// Set for the aggregated forms: only they may be kept by caches.
    pub(super) etag: Option<&'d HeaderValue>,
}

impl Page<'_> {
    /// Whether it is one of the aggregated forms, and not a document of old.
    #[must_use]
    pub fn is_aggregated(&self) -> bool {
        self.etag.is_some()
    }
}

/// Answers a request for a document: 200 with the body, or 304 if the client has it.
///
/// The reader proves that the caller may read the document. What every response carries (`Audit-Id`,
/// `Date`) is added by the server.
#[must_use]
pub fn serve(_reader: &Reader, page: &Page<'_>, request_headers: &HeaderMap) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    if let Some(etag) = page.etag {
        headers.insert(ETAG, etag.clone());
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        // Only the very tag counts: upstream compares text and knows neither lists nor weak tags nor `*`.
        if request_headers.get(IF_NONE_MATCH) == Some(etag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
    } else {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    *response.body_mut() = match &page.body.gzip {
        Some(gzip) if takes_gzip(request_headers) => {
            let headers = response.headers_mut();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            // A second header, as upstream writes it.
            headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
            gzip.clone()
        }
        _ => page.body.plain.clone(),
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
    use super::*;

    const TAG: &str = "\"ABC\"";

    /// Answers with a document, an aggregated one if it has a tag.
    fn answer(body: &Body, tag: Option<&HeaderValue>, sent: &[(http::HeaderName, &str)]) -> Response<Bytes> {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        serve(&Reader::of_test(), &Page { body, content_type: "application/yaml", etag: tag }, &headers)
    }

    fn tag() -> Option<HeaderValue> {
        Some(HeaderValue::from_static(TAG))
    }

    fn small() -> Body {
        Body { plain: Bytes::from_static(b"small"), gzip: None }
    }

    /// Every header, so that one too many fails as one too few does.
    fn headers(response: &Response<Bytes>) -> Vec<(&str, &str)> {
        let mut all: Vec<_> =
            response.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn document_carries_the_headers_of_upstream() {
        let aggregated = answer(&small(), tag().as_ref(), &[]);
        assert_eq!((aggregated.status(), &aggregated.body()[..]), (StatusCode::OK, &b"small"[..]));
        let expected =
            [("cache-control", "public"), ("content-type", "application/yaml"), ("etag", TAG), ("vary", "Accept")];
        assert_eq!(headers(&aggregated), expected);
        let legacy = answer(&small(), None, &[(IF_NONE_MATCH, TAG)]);
        assert_eq!((legacy.status(), &legacy.body()[..]), (StatusCode::OK, &b"small"[..]));
        assert_eq!(headers(&legacy), [("cache-control", "no-cache, private"), ("content-type", "application/yaml")]);
    }

    #[test]
    fn known_document_is_not_sent_again() {
        let response = answer(&small(), tag().as_ref(), &[(IF_NONE_MATCH, TAG)]);
        assert_eq!(response.status(), 304);
        assert!(response.body().is_empty());
        assert_eq!(headers(&response), [("cache-control", "public"), ("etag", TAG), ("vary", "Accept")]);
    }

    #[test]
    fn large_document_is_compressed_for_those_who_ask() {
        let large = Body { plain: Bytes::from_static(b"large"), gzip: Some(Bytes::from_static(b"compressed")) };
        for tag in [tag(), None] {
            let compressed = answer(&large, tag.as_ref(), &[(ACCEPT_ENCODING, "br, gzip")]);
            assert_eq!(Some(compressed.body()), large.gzip.as_ref());
            assert_eq!(compressed.headers()[CONTENT_ENCODING], "gzip");
            let vary: Vec<_> = compressed.headers().get_all(VARY).iter().collect();
            assert_eq!(vary, if tag.is_some() { vec!["Accept", "Accept-Encoding"] } else { vec!["Accept-Encoding"] });
        }
        for encodings in ["", "identity", "gzip;q=1", "xgzip"] {
            let response = answer(&large, None, &[(ACCEPT_ENCODING, encodings)]);
            assert_eq!(*response.body(), large.plain, "{encodings}");
            assert!(!response.headers().contains_key(CONTENT_ENCODING));
        }
        assert_eq!(*answer(&small(), None, &[(ACCEPT_ENCODING, "gzip")]).body(), small().plain);
    }

    #[test]
    fn only_the_very_tag_counts() {
        for sent in ["*", "", "ABC", "W/\"ABC\"", "\"ABC\", \"x\"", "\"abc\""] {
            assert_eq!(answer(&small(), tag().as_ref(), &[(IF_NONE_MATCH, sent)]).status(), 200, "{sent}");
        }
        let two = [(IF_NONE_MATCH, "\"x\""), (IF_NONE_MATCH, TAG)];
        assert_eq!(answer(&small(), tag().as_ref(), &two).status(), 200);
    }
}
