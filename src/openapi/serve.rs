//! A document into a response, header for header as upstream answers.
//!
//! Sources: <https://github.com/kubernetes/kube-openapi/blob/43fb72c5454a/pkg/handler3/handler.go>,
//! <https://github.com/kubernetes/kube-openapi/blob/43fb72c5454a/pkg/handler/handler.go>,
//! <https://github.com/kubernetes/kube-aggregator/blob/v0.36.3/pkg/controllers/openapiv3/aggregator/aggregator.go>
//! (`handleDiscovery`), <https://github.com/NYTimes/gziphandler/blob/v1.1.1/gzip.go>

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    EXPIRES, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, LOCATION, RANGE,
    VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use hyper::ext::ReasonPhrase;

use super::content::{Content, Part};
use super::documents::Page;
use super::held::{Held, Packed};
use super::index::Location;
use super::merge::Kind;
use super::negotiate::{Form, Negotiated, negotiate};
use crate::apimachinery::query;
use crate::authz::Reader;

/// How long a document under its very hash may be kept.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Bodies of `/openapi/v2` below this are not compressed (`DefaultMinSize`).
const GZIP_FROM_BYTES: usize = 1400;

/// Answers a request for a document, whatever its method: upstream's handlers look at none but HEAD.
///
/// The reader proves that the caller may read it. What every response carries (`Audit-Id`, `Date`) is added by the
/// server.
#[must_use]
pub fn serve(_reader: &Reader, page: &Page, head: &Parts) -> Response<Bytes> {
    let now = SystemTime::now();
    let mut response = match page {
        Page::Index(index) => index_page(index, head, now),
        Page::V3(location, held) => v3_page(location, held, head, now),
        Page::V2(held) => v2_page(held, head),
    };
    // Source: https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/filters/cachecontrol.go
    let default = HeaderValue::from_static("no-cache, private");
    response.headers_mut().entry(CACHE_CONTROL).or_insert(default);
    response
}

/// The client's own request for a document, to be asked of the server only for whether the client may read it: the answer
/// is then a 304 (or a 412), whatever the server has, without the 301 and the ranges of a document that is another one here.
#[must_use]
pub fn conditional(head: &Parts) -> Parts {
    let mut head = head.clone();
    for name in [IF_MATCH, IF_MODIFIED_SINCE, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE] {
        head.headers.remove(name);
    }
    head.headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
    let is_kept = |pair: &&str| query::pairs(pair).all(|(key, _)| key != "hash");
    if let Some((path, asked)) = head.uri.path_and_query().and_then(|target| target.as_str().split_once('?')) {
        let kept: Vec<&str> = asked.split('&').filter(is_kept).collect();
        let target = if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) };
        let mut parts = head.uri.clone().into_parts();
        parts.path_and_query = target.try_into().ok();
        head.uri = Uri::from_parts(parts).unwrap_or(head.uri);
    }
    head
}

/// The index has no tag, and Go takes its form for text.
fn index_page(index: &Bytes, head: &Parts, now: SystemTime) -> Response<Bytes> {
    let content = Content { etag: "", modified: now, length: index.len() };
    let part = content.part(&head.method, &head.headers);
    let mut response = respond(Response::default(), part, &content, &|| index.clone(), &head.method);
    if response.status().is_success() {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    }
    response
}

fn v3_page(location: &Location, held: &Held, head: &Parts, now: SystemTime) -> Response<Bytes> {
    let mut response = Response::default();
    let form = match negotiate(&head.headers, Kind::V3, held.protobuf.is_some()) {
        Negotiated::Form(form) => form,
        Negotiated::Unreadable => return response,
        Negotiated::NotAcceptable => return not_acceptable(&[VARY_ACCEPT]),
    };
    let headers = response.headers_mut();
    headers.insert(VARY, VARY_ACCEPT);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.content_type(Kind::V3)));
    headers.insert(ETAG, held.etag.clone());
    let hash = head.uri.query().and_then(|query| query::first(query, "hash")).filter(|hash| !hash.is_empty());
    if let Some(hash) = hash {
        if *hash != *held.hash {
            *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
            if let Ok(url) = HeaderValue::try_from(&location.url) {
                response.headers_mut().insert(LOCATION, url);
            }
            return response;
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        if let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(now + YEAR).replace("GMT", "UTC")) {
            headers.insert(EXPIRES, date);
        }
    }
    let packed = packed(held, form);
    let content = content(held, packed);
    let part = content.part(&head.method, &head.headers);
    respond(response, part, &content, &|| packed.unpack(), &head.method)
}

fn v2_page(held: &Held, head: &Parts) -> Response<Bytes> {
    let vary = [HeaderValue::from_static("Accept-Encoding"), VARY_ACCEPT];
    let form = match negotiate(&head.headers, Kind::V2, held.protobuf.is_some()) {
        Negotiated::Form(form) => form,
        Negotiated::Unreadable | Negotiated::NotAcceptable => return not_acceptable(&vary),
    };
    let mut response = Response::default();
    let headers = response.headers_mut();
    for value in vary {
        headers.append(VARY, value);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.content_type(Kind::V2)));
    headers.insert(ETAG, held.etag.clone());
    let packed = packed(held, form);
    let content = content(held, packed);
    let part = content.part(&head.method, &head.headers);
    let is_packed = head.method != Method::HEAD && takes_gzip(&head.headers);
    match &part {
        Part::Whole if is_packed && content.length >= GZIP_FROM_BYTES => {
            compressed(respond(response, part, &content, &|| packed.gzip(), &head.method))
        }
        Part::Range(range) if is_packed && range.len() >= GZIP_FROM_BYTES => {
            let plain = respond(response, part, &content, &|| packed.unpack(), &head.method);
            compressed(plain.map(|bytes| Packed::new(&bytes).gzip()))
        }
        _ => respond(response, part, &content, &|| packed.unpack(), &head.method),
    }
}

const VARY_ACCEPT: HeaderValue = HeaderValue::from_static("Accept");

fn packed(held: &Held, form: Form) -> &Packed {
    match (form, &held.protobuf) {
        (Form::Protobuf, Some(packed)) => packed,
        _ => &held.json,
    }
}

fn content<'a>(held: &'a Held, packed: &Packed) -> Content<'a> {
    Content { etag: held.etag.to_str().unwrap_or_default(), modified: held.modified, length: packed.len() }
}

fn not_acceptable(vary: &[HeaderValue]) -> Response<Bytes> {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
    for value in vary {
        response.headers_mut().append(VARY, value.clone());
    }
    response
}

/// Completes a response as `http.ServeContent` does.
fn respond(
    mut response: Response<Bytes>,
    part: Part,
    content: &Content<'_>,
    bytes: &dyn Fn() -> Bytes,
    method: &Method,
) -> Response<Bytes> {
    let headers = response.headers_mut();
    if let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(content.modified)) {
        headers.insert(LAST_MODIFIED, date);
    }
    let (status, range) = match part {
        Part::Whole => (StatusCode::OK, 0..content.length),
        Part::Range(range) => (StatusCode::PARTIAL_CONTENT, range),
        Part::NotModified => {
            headers.remove(CONTENT_TYPE);
            if headers.contains_key(ETAG) {
                headers.remove(LAST_MODIFIED);
            }
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        Part::ConditionFailed => {
            *response.status_mut() = StatusCode::PRECONDITION_FAILED;
            return response;
        }
        Part::NoOverlap => {
            headers.insert(CONTENT_RANGE, range_header(&format!("*/{}", content.length)));
            return no_range(response, "invalid range: failed to overlap\n");
        }
        Part::InvalidRange => return no_range(response, "invalid range\n"),
    };
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(range.len()));
    if status == StatusCode::PARTIAL_CONTENT {
        let last = range.end.saturating_sub(1);
        headers.insert(CONTENT_RANGE, range_header(&format!("{}-{last}/{}", range.start, content.length)));
    }
    *response.status_mut() = status;
    if method != Method::HEAD {
        let whole = bytes();
        *response.body_mut() = if status == StatusCode::OK { whole } else { whole.slice(range) };
    }
    response
}

fn range_header(range: &str) -> HeaderValue {
    HeaderValue::try_from(format!("bytes {range}")).expect("digits make a header value")
}

/// 416, with what says something of the content taken out.
fn no_range(mut response: Response<Bytes>, message: &'static str) -> Response<Bytes> {
    let headers = response.headers_mut();
    for name in [CACHE_CONTROL, ETAG, LAST_MODIFIED] {
        headers.remove(name);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    response.extensions_mut().insert(ReasonPhrase::from_static(b"Requested Range Not Satisfiable"));
    *response.body_mut() = Bytes::from_static(message.as_bytes());
    response
}

/// Marks a body that is compressed; its length is not said.
fn compressed(mut response: Response<Bytes>) -> Response<Bytes> {
    response.headers_mut().remove(CONTENT_LENGTH);
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

/// Whether the first `Accept-Encoding` header names gzip with a quality above zero (`acceptsGzip`).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let header = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut quality = 0.0;
    for coding in header.split(',') {
        let mut parts = coding.split(';').map(str::trim);
        if parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip")) {
            // The last parameter has the last word, one that is no quality says 1, and of two codings the later counts.
            let of_parameter = |part: &str| part.strip_prefix("q=").map_or(1.0, |q| q.parse().unwrap_or(0.0));
            quality = parts.next_back().map_or(1.0, of_parameter);
        }
    }
    quality > 0.0
}

#[cfg(test)]
mod tests;
