//! The answers were taken from upstream's own code (`k8s.io/apiserver` v0.36.3: `ErrorNegotiated`).

use http::Uri;

use super::*;

/// Accept header, request target, user agent, and the form that upstream chooses.
const FORMS: &[(&str, &str, &str, Encoding)] = &[
    ("", "/a", "", Encoding::Json),
    ("", "/a?pretty", "", Encoding::Json),
    ("", "/a?pretty=1", "", Encoding::PrettyJson),
    ("", "/a?pretty=false", "curl/8", Encoding::Json),
    ("", "/a?pretty=", "curl/8", Encoding::PrettyJson),
    ("", "/a", "curl/8", Encoding::PrettyJson),
    ("", "/a", "Curl", Encoding::Json),
    ("", "/a", "Mozilla/5.0 (X", Encoding::PrettyJson),
    ("", "/a", "Mozilla/4.0", Encoding::Json),
    ("", "/a", "Wget/1", Encoding::PrettyJson),
    ("", "/a?pretty=yes", "Wget", Encoding::Json),
    ("", "/a?xpretty=1", "x", Encoding::Json),
    ("", "/a?pretty=T", "x", Encoding::PrettyJson),
    ("application/json", "/a", "", Encoding::Json),
    ("application/json;pretty=1", "/a", "", Encoding::PrettyJson),
    ("application/yaml", "/a", "", Encoding::Yaml),
    ("application/yaml", "/a?pretty=false", "curl/8", Encoding::Yaml),
    ("application/yaml", "/a?pretty=", "curl/8", Encoding::Yaml),
    ("application/yaml", "/a", "curl/8", Encoding::Yaml),
    ("application/vnd.kubernetes.protobuf", "/a", "", Encoding::Protobuf),
    ("text/html", "/a", "", Encoding::PrettyJson),
    ("text/html", "/a?pretty=false", "curl/8", Encoding::PrettyJson),
    ("text/html", "/a?pretty=", "curl/8", Encoding::PrettyJson),
    ("text/html", "/a", "curl/8", Encoding::PrettyJson),
    ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "/a", "", Encoding::Json),
    ("application/yaml;stream=watch,application/vnd.kubernetes.protobuf;stream=watch", "/a", "", Encoding::Protobuf),
    ("*/*", "/a", "", Encoding::Json),
    ("application/*;q=0.1,application/yaml;q=0.2", "/a", "", Encoding::Yaml),
    ("*/json", "/a", "", Encoding::PrettyJson),
    ("application/json;sv=x", "/a", "", Encoding::PrettyJson),
    ("application/json;as=Table", "/a", "", Encoding::PrettyJson),
    ("application/yaml;pretty=1", "/a", "", Encoding::Yaml),
    ("application/json;pretty=true", "/a", "", Encoding::Json),
    ("application/vnd.kubernetes.protobuf;stream=x,application/json;stream= ;profile=nopeer", "/a", "", Encoding::Json),
];

#[test]
fn form_is_the_one_upstream_chooses() {
    for (accept, target, agent, expected) in FORMS {
        let (headers, pretty) = asked(accept, target, agent);
        let found = encoding::negotiate(&headers, pretty).unwrap_or(Encoding::PrettyJson);
        assert_eq!(found, *expected, "{accept:?} {target} {agent:?}");
    }
}

fn asked(accept: &str, target: &str, agent: &str) -> (HeaderMap, Pretty) {
    let mut headers = HeaderMap::new();
    for (name, value) in [(header::ACCEPT, accept), (header::USER_AGENT, agent)] {
        if !value.is_empty() {
            headers.insert(name, value.parse().unwrap());
        }
    }
    let uri: Uri = target.parse().unwrap();
    let pretty = Pretty::of(&uri, &headers);
    (headers, pretty)
}

/// A message with everything that the encodings treat in a way of their own.
const QUOTED: &str = "no server that serves \"a\" <b> & c: yes\nü";

#[test]
fn unauthorized_is_encoded_as_upstream_does() {
    check(
        Status::unauthorized(),
        "application/json",
        "application/json",
        None,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"Unauthorized\",\"reason\":\"Unauthorized\",\"code\":401}\n".as_bytes(),
    );
    check(
        Status::unauthorized(),
        "application/yaml",
        "application/yaml",
        None,
        "apiVersion: v1\ncode: 401\nkind: Status\nmessage: Unauthorized\nmetadata: {}\nreason: Unauthorized\nstatus: Failure\n".as_bytes(),
    );
    check(
        Status::unauthorized(),
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf",
        None,
        b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x120\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x0cUnauthorized\"\x0cUnauthorized0\x91\x03\x1a\x00\"\x00",
    );
    check(
        Status::unauthorized(),
        "text/html",
        "application/json",
        None,
        "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \"message\": \"Unauthorized\",\n  \"reason\": \"Unauthorized\",\n  \"code\": 401\n}".as_bytes(),
    );
}

#[test]
fn unavailable_is_encoded_as_upstream_does() {
    check(
        Status::service_unavailable(QUOTED, 5),
        "application/json",
        "application/json",
        Some("5"),
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"no server that serves \\\"a\\\" \\u003cb\\u003e \\u0026 c: yes\\nü\",\"reason\":\"ServiceUnavailable\",\"details\":{\"retryAfterSeconds\":5},\"code\":503}\n".as_bytes(),
    );
    check(
        Status::service_unavailable(QUOTED, 5),
        "application/yaml",
        "application/yaml",
        Some("5"),
        "apiVersion: v1\ncode: 503\ndetails:\n  retryAfterSeconds: 5\nkind: Status\nmessage: |-\n  no server that serves \"a\" <b> & c: yes\n  ü\nmetadata: {}\nreason: ServiceUnavailable\nstatus: Failure\n".as_bytes(),
    );
    check(
        Status::service_unavailable(QUOTED, 5),
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf",
        Some("5"),
        b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12_\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a)no server that serves \"a\" <b> & c: yes\n\xc3\xbc\"\x12ServiceUnavailable*\n\n\x00\x12\x00\x1a\x00(\x052\x000\xf7\x03\x1a\x00\"\x00",
    );
    check(
        Status::service_unavailable(QUOTED, 5),
        "text/html",
        "application/json",
        Some("5"),
        "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \"message\": \"no server that serves \\\"a\\\" \\u003cb\\u003e \\u0026 c: yes\\nü\",\n  \"reason\": \"ServiceUnavailable\",\n  \"details\": {\n    \"retryAfterSeconds\": 5\n  },\n  \"code\": 503\n}".as_bytes(),
    );
}

#[test]
fn internal_is_encoded_as_upstream_does() {
    check(
        Status::internal_error("boom"),
        "application/json",
        "application/json",
        None,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"Internal error occurred: boom\",\"reason\":\"InternalError\",\"details\":{\"causes\":[{\"message\":\"boom\"}]},\"code\":500}\n".as_bytes(),
    );
    check(
        Status::internal_error("boom"),
        "application/yaml",
        "application/yaml",
        None,
        "apiVersion: v1\ncode: 500\ndetails:\n  causes:\n  - message: boom\nkind: Status\nmessage: 'Internal error occurred: boom'\nmetadata: {}\nreason: InternalError\nstatus: Failure\n".as_bytes(),
    );
    check(
        Status::internal_error("boom"),
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf",
        None,
        b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12Z\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x1dInternal error occurred: boom\"\rInternalError*\x16\n\x00\x12\x00\x1a\x00\"\n\n\x00\x12\x04boom\x1a\x00(\x002\x000\xf4\x03\x1a\x00\"\x00",
    );
    check(
        Status::internal_error("boom"),
        "text/html",
        "application/json",
        None,
        "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \"message\": \"Internal error occurred: boom\",\n  \"reason\": \"InternalError\",\n  \"details\": {\n    \"causes\": [\n      {\n        \"message\": \"boom\"\n      }\n    ]\n  },\n  \"code\": 500\n}".as_bytes(),
    );
}

#[test]
fn timeout_is_encoded_as_upstream_does() {
    check(
        Status::timeout("late", 0),
        "application/json",
        "application/json",
        None,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: late\",\"reason\":\"Timeout\",\"details\":{},\"code\":504}\n".as_bytes(),
    );
    check(
        Status::timeout("late", 0),
        "application/yaml",
        "application/yaml",
        None,
        "apiVersion: v1\ncode: 504\ndetails: {}\nkind: Status\nmessage: 'Timeout: late'\nmetadata: {}\nreason: Timeout\nstatus: Failure\n".as_bytes(),
    );
    check(
        Status::timeout("late", 0),
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf",
        None,
        b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x128\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\rTimeout: late\"\x07Timeout*\n\n\x00\x12\x00\x1a\x00(\x002\x000\xf8\x03\x1a\x00\"\x00",
    );
    check(
        Status::timeout("late", 0),
        "text/html",
        "application/json",
        None,
        "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \"message\": \"Timeout: late\",\n  \"reason\": \"Timeout\",\n  \"details\": {},\n  \"code\": 504\n}".as_bytes(),
    );
}

fn check(status: Status, accept: &str, content_type: &str, retry_after: Option<&str>, body: &[u8]) {
    let code = status.code;
    let (headers, pretty) = asked(accept, "/", "");
    let response = status.into_response(&headers, pretty);
    assert_eq!(response.status().as_u16(), code);
    assert_eq!(response.headers()[header::CONTENT_TYPE], content_type);
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache, private");
    assert_eq!(response.headers().get(header::RETRY_AFTER).map(|value| value.to_str().unwrap()), retry_after);
    assert_eq!(response.headers().len(), if retry_after.is_some() { 3 } else { 2 });
    assert_eq!(response.body(), body, "{:?}", String::from_utf8_lossy(response.body()));
}
