//! Answers compared with what kube-apiserver 1.37.2 answers: every header, so that one too many fails as well.

use std::sync::Arc;

use http::Request;

use super::super::testing::{location, made};
use super::*;

const LAST_MODIFIED_AT: &str = "Mon, 30 Nov 2026 19:12:35 GMT";

fn held() -> Arc<Held> {
    let json = format!(r#"{{"openapi":"3.0.0","paths":{{"/a":"{}"}}}}"#, "x".repeat(2000));
    Arc::new(Held::new(json.as_bytes(), Some(b"protobuf"), made()))
}

fn v3() -> Page {
    let held = held();
    Page::V3(location("apis/apps/v1", &held.hash), held)
}

fn ask(page: &Page, method: &str, target: &str, headers: &[(&str, &str)]) -> Response<Bytes> {
    let request = Request::builder().method(method).uri(target);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let (head, ()) = request.body(()).unwrap().into_parts();
    serve(&Reader::of_test(), page, &head)
}

/// Status and headers, one a line.
fn shape(response: &Response<Bytes>) -> String {
    let mut lines: Vec<String> = response
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()))
        .filter(|line| !line.starts_with("expires: "))
        .collect();
    lines.sort();
    format!("{}\n{}", response.status().as_u16(), lines.concat())
}

fn check(page: &Page, request: (&str, &str, &[(&str, &str)]), expected: &str) {
    let (method, target, headers) = request;
    let response = ask(page, method, target, headers);
    let hash = held().hash.clone();
    let expected = expected.replace("HASH", &hash).replace("DATE", LAST_MODIFIED_AT);
    let expected: String = expected.lines().map(|line| format!("{}\n", line.trim())).collect();
    assert_eq!(shape(&response), expected, "{method} {target} {headers:?}");
}

const WHOLE: &str = "200
    accept-ranges: bytes
    cache-control: no-cache, private
    content-length: 2037
    content-type: application/json
    etag: \"HASH\"
    last-modified: DATE
    vary: Accept";

#[test]
fn v3_document_carries_the_headers_of_upstream() {
    let (page, path) = (v3(), "/openapi/v3/apis/apps/v1");
    let hash = held().hash.clone();
    let current = format!("{path}?hash={hash}");
    check(&page, ("GET", path, &[]), WHOLE);
    check(&page, ("HEAD", path, &[]), WHOLE);
    check(&page, ("GET", path, &[("accept-encoding", "gzip")]), WHOLE);
    check(&page, ("GET", "/openapi/v3/apis/apps/v1?hash=", &[]), WHOLE);
    let protobuf = WHOLE
        .replace("application/json", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf")
        .replace("2037", "8");
    check(&page, ("GET", path, &[("accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf")]), &protobuf);
    check(&page, ("GET", path, &[("accept", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf")]), &protobuf);
    check(&page, ("GET", &current, &[]), &WHOLE.replace("no-cache, private", "public, immutable"));
    let moved = "301
        cache-control: no-cache, private
        content-type: application/json
        etag: \"HASH\"
        location: /openapi/v3/apis/apps/v1?hash=HASH
        vary: Accept";
    for target in ["/openapi/v3/apis/apps/v1?hash=AB", "/openapi/v3/apis/apps/v1?hash=AB&hash=HASH"] {
        check(&page, ("GET", &target.replace("HASH", &hash), &[]), moved);
        check(&page, ("HEAD", &target.replace("HASH", &hash), &[]), moved);
    }
    let not_modified = "304
        cache-control: no-cache, private
        etag: \"HASH\"
        vary: Accept";
    let tag = format!("\"{hash}\"");
    check(&page, ("GET", path, &[("if-none-match", &tag)]), not_modified);
    check(&page, ("GET", path, &[("if-modified-since", LAST_MODIFIED_AT)]), not_modified);
    check(
        &page,
        ("GET", &current, &[("if-none-match", "*")]),
        &not_modified.replace("no-cache, private", "public, immutable"),
    );
    check(
        &page,
        ("GET", path, &[("accept", "text/html")]),
        "406
        cache-control: no-cache, private
        vary: Accept",
    );
    check(
        &page,
        ("GET", path, &[("accept", ",")]),
        "200
        cache-control: no-cache, private",
    );
    check(
        &page,
        ("GET", path, &[("range", "bytes=0-9")]),
        "206
        accept-ranges: bytes
        cache-control: no-cache, private
        content-length: 10
        content-range: bytes 0-9/2037
        content-type: application/json
        etag: \"HASH\"
        last-modified: DATE
        vary: Accept",
    );
    check(
        &page,
        ("GET", &current, &[("range", "bytes=9999-")]),
        "416
        cache-control: no-cache, private
        content-range: bytes */2037
        content-type: text/plain; charset=utf-8
        vary: Accept
        x-content-type-options: nosniff",
    );
    check(
        &page,
        ("GET", path, &[("if-match", "\"x\"")]),
        "412
        cache-control: no-cache, private
        content-type: application/json
        etag: \"HASH\"
        last-modified: DATE
        vary: Accept",
    );
}

#[test]
fn bodies_are_those_asked_for() {
    let (page, path, held) = (v3(), "/openapi/v3/apis/apps/v1", held());
    assert_eq!(ask(&page, "GET", path, &[]).into_body(), held.json.unpack());
    assert_eq!(ask(&page, "GET", path, &[("range", "bytes=1-9")]).into_body(), held.json.unpack().slice(1..10));
    for (method, headers) in [("HEAD", None), ("GET", Some(("if-none-match", "*")))] {
        let headers: Vec<_> = headers.into_iter().collect();
        assert!(ask(&page, method, path, &headers).body().is_empty());
    }
    let accept = ("accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf");
    assert_eq!(ask(&page, "GET", path, &[accept]).into_body(), "protobuf");
}

#[test]
fn immutable_documents_expire_in_a_year() {
    let response = ask(&v3(), "GET", &format!("/openapi/v3/apis/apps/v1?hash={}", held().hash), &[]);
    let expires = response.headers()[EXPIRES].to_str().unwrap();
    let date = httpdate::parse_http_date(&expires.replace(" UTC", " GMT")).unwrap();
    let left = date.duration_since(SystemTime::now()).unwrap();
    assert!(expires.ends_with(" UTC") && YEAR - left < Duration::from_secs(60), "{expires}");
}

#[test]
fn index_carries_the_headers_of_upstream() {
    let page = Page::Index(Bytes::from_static(b"{\"paths\":{}}"));
    let check = |headers: &[(&str, &str)], expected: &str| {
        let response = ask(&page, "GET", "/openapi/v3", headers);
        let lines: String = expected.lines().map(|line| format!("{}\n", line.trim())).collect();
        let shape: String = shape(&response)
            .lines()
            .filter(|line| !line.starts_with("last-modified"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(shape, lines, "{headers:?}");
        assert_eq!(response.headers().contains_key(LAST_MODIFIED), response.status() != 416, "{headers:?}");
    };
    let whole = "200
        accept-ranges: bytes
        cache-control: no-cache, private
        content-length: 12
        content-type: text/plain; charset=utf-8";
    for headers in
        [vec![], vec![("accept", "text/html")], vec![("accept-encoding", "gzip")], vec![("if-none-match", "\"x\"")]]
    {
        check(&headers, whole);
    }
    check(
        &[("if-modified-since", "Mon, 30 Nov 2076 19:12:35 GMT")],
        "304
        cache-control: no-cache, private",
    );
    check(
        &[("if-modified-since", LAST_MODIFIED_AT)],
        if SystemTime::now() < made() { "304\n cache-control: no-cache, private" } else { whole },
    );
    check(
        &[("if-none-match", "*")],
        "304
        cache-control: no-cache, private",
    );
    check(
        &[("if-match", "\"x\"")],
        "412
        cache-control: no-cache, private",
    );
    check(
        &[("range", "bytes=x")],
        "416
        cache-control: no-cache, private
        content-type: text/plain; charset=utf-8
        x-content-type-options: nosniff",
    );
}

#[test]
fn v2_carries_the_headers_of_upstream() {
    let (page, path) = (Page::V2(held()), "/openapi/v2");
    let whole = WHOLE.replace("vary: Accept", "vary: Accept\n    vary: Accept-Encoding");
    let packed = whole.replace("content-length: 2037\n", "content-encoding: gzip\n");
    check(&page, ("GET", path, &[]), &whole);
    check(&page, ("GET", path, &[("accept-encoding", "gzip;q=0")]), &whole);
    check(&page, ("HEAD", path, &[("accept-encoding", "gzip")]), &whole);
    for encodings in ["gzip", "br, GZIP;q=0.5", "gzip;x"] {
        check(&page, ("GET", path, &[("accept-encoding", encodings)]), &packed);
    }
    let protobuf = ("accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
    let of_protobuf = |text: &str| {
        text.replace("application/json", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
            .replace("2037", "8")
    };
    check(&page, ("GET", path, &[protobuf]), &of_protobuf(&whole));
    // Eight bytes are not worth it.
    check(&page, ("GET", path, &[protobuf, ("accept-encoding", "gzip")]), &of_protobuf(&whole));
    for accept in ["text/html", ","] {
        check(
            &page,
            ("GET", path, &[("accept", accept)]),
            "406
            cache-control: no-cache, private
            vary: Accept
            vary: Accept-Encoding",
        );
    }
    check(
        &page,
        ("GET", path, &[("if-none-match", "*"), ("accept-encoding", "gzip")]),
        "304
        cache-control: no-cache, private
        etag: \"HASH\"
        vary: Accept
        vary: Accept-Encoding",
    );
    check(
        &page,
        ("GET", path, &[("range", "bytes=0-1999"), ("accept-encoding", "gzip")]),
        "206
        accept-ranges: bytes
        cache-control: no-cache, private
        content-encoding: gzip
        content-range: bytes 0-1999/2037
        content-type: application/json
        etag: \"HASH\"
        last-modified: DATE
        vary: Accept
        vary: Accept-Encoding",
    );
    let body = ask(&page, "GET", path, &[("accept-encoding", "gzip")]).into_body();
    assert_eq!(body, held().json.gzip());
}

#[test]
fn server_is_asked_for_no_document_and_for_no_hash() {
    let ask = |target: &str| {
        let head = Request::get(target)
            .header(RANGE, "bytes=0-1")
            .header(IF_MATCH, "\"x\"")
            .header(IF_NONE_MATCH, "\"y\"")
            .header("accept", "a/b")
            .body(())
            .unwrap();
        let asked = conditional(&head.into_parts().0);
        assert_eq!(asked.headers.len(), 2);
        assert_eq!(
            (&asked.headers[IF_NONE_MATCH], &asked.headers["accept"]),
            (&"*".parse().unwrap(), &"a/b".parse().unwrap())
        );
        asked.uri.to_string()
    };
    assert_eq!(ask("/openapi/v3/api/v1?hash=A"), "/openapi/v3/api/v1");
    assert_eq!(ask("/openapi/v3/api/v1?timeout=x&ha%73h=A&%zz"), "/openapi/v3/api/v1?timeout=x&%zz");
    assert_eq!(ask("/openapi/v3"), "/openapi/v3");
}
