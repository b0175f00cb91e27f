use http::header::{CONNECTION, UPGRADE};

use super::*;

fn headers(lines: &[(&'static str, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_bytes(value).unwrap());
    }
    headers
}

#[test]
fn authorization_is_read_as_upstream_reads_it() {
    for (value, expected) in [
        (&b"Bearer token"[..], true),
        (b"bearer token", true),
        (b"BEARER token", true),
        (b"Bearer token and more", true),
        (b"  Bearer token  ", true),
        ("\u{a0}Bearer token".as_bytes(), true),
        (b"Bearer \xff", true),
        (b"", false),
        (b"Bearer", false),
        (b"Bearer ", false),
        (b"Bearer  token", false),
        (b"Bearer\ttoken", false),
        (b"Bearertoken", false),
        (b"Basic dXNlcjpwYXNz", false),
        (b"token", false),
    ] {
        assert_eq!(is_present(&headers(&[("authorization", value)])), expected, "{}", value.escape_ascii());
    }
}

#[test]
fn only_the_first_authorization_line_counts() {
    assert!(!is_present(&headers(&[("authorization", b"Basic x"), ("authorization", b"Bearer token")])));
    assert!(is_present(&headers(&[("authorization", b"Bearer token"), ("authorization", b"Basic x")])));
}

fn websocket(protocols: &[&'static str]) -> HeaderMap {
    let mut headers = headers(&[("connection", b"keep-alive, Upgrade"), ("upgrade", b"WebSocket")]);
    for line in protocols {
        headers.append(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(line));
    }
    headers
}

#[test]
fn subprotocol_token_is_found_good_or_bad() {
    for (protocols, expected) in [
        (&["base64url.bearer.authorization.k8s.io.dG9r, v5.channel.k8s.io"][..], true),
        (&["v5.channel.k8s.io", "base64url.bearer.authorization.k8s.io.dG9r"], true),
        (&["base64url.bearer.authorization.k8s.io.dG9r"], true), // No other protocol: an error upstream.
        (&["base64url.bearer.authorization.k8s.io.!!!, v5.channel.k8s.io"], true), // Bad base64: likewise.
        (&["base64url.bearer.authorization.k8s.io.dG9r=, v5.channel.k8s.io"], true), // Padded: likewise.
        (&["base64url.bearer.authorization.k8s.io.a, base64url.bearer.authorization.k8s.io.b"], true),
        (&["base64url.bearer.authorization.k8s.io.", "base64url.bearer.authorization.k8s.io."], true),
        (&["base64url.bearer.authorization.k8s.io., v5.channel.k8s.io"], false), // Empty: no credential.
        (&["v5.channel.k8s.io"], false),
        (&["BASE64URL.bearer.authorization.k8s.io.dG9r, v5.channel.k8s.io"], false),
        (&[], false),
    ] {
        assert_eq!(is_present(&websocket(protocols)), expected, "{protocols:?}");
    }
}

#[test]
fn subprotocol_counts_in_websocket_upgrades_only() {
    let mut plain = websocket(&["base64url.bearer.authorization.k8s.io.dG9r, v5.channel.k8s.io"]);
    plain.remove(CONNECTION);
    assert!(!is_present(&plain));
    let mut spdy = websocket(&["base64url.bearer.authorization.k8s.io.dG9r, v5.channel.k8s.io"]);
    spdy.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
    assert!(!is_present(&spdy));
}
