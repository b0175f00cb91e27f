//! What kube-apiserver takes for a request to switch protocols. Whoever judges callers and whoever forwards must agree
//! with it, and with each other.
//!
//! Source: <https://github.com/kubernetes/streaming/blob/v0.36.3/pkg/httpstream/httpstream.go> (`IsUpgradeRequest`),
//! <https://github.com/kubernetes/streaming/blob/v0.36.3/pkg/httpstream/wsstream/conn.go> (`IsWebSocketRequest`)

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue};

/// `Upgrade` of a WebSocket.
pub const WEB_SOCKET: &str = "websocket";

/// Whether any `Connection` line contains `upgrade`, as a whole option or not.
#[must_use]
pub fn is_upgrade(headers: &HeaderMap) -> bool {
    const WORD: &[u8] = b"upgrade";
    headers
        .get_all(CONNECTION)
        .iter()
        .any(|value| value.as_bytes().windows(WORD.len()).any(|part| part.eq_ignore_ascii_case(WORD)))
}

/// Whether an upgrade to a WebSocket is asked for: of several `Upgrade` lines the first counts.
#[must_use]
pub fn is_web_socket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| is_protocol(value, WEB_SOCKET)) && is_upgrade(headers)
}

/// Whether a value names this protocol, written in lower case, in whatever case Go takes for the same.
#[must_use]
pub fn is_protocol(value: &HeaderValue, protocol: &str) -> bool {
    std::str::from_utf8(value.as_bytes()).is_ok_and(|text| text.chars().map(folded).eq(protocol.chars()))
}

/// As Go's `strings.EqualFold`: two letters outside of ASCII fold into it.
fn folded(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn web_socket_is_what_upstream_takes_for_one() {
        for (lines, expected) in [
            (&[("connection", "Upgrade"), ("upgrade", "websocket")][..], true),
            (&[("connection", "keep-alive, uPGRADE"), ("upgrade", "WebSocket")], true),
            (&[("connection", "x-upgraded"), ("upgrade", "websocket")], true),
            (&[("connection", "close"), ("connection", "upgrade"), ("upgrade", "websocket")], true),
            (&[("connection", "upgrade"), ("upgrade", "web\u{17f}oc\u{212a}et")], true),
            (&[("connection", "upgrade"), ("upgrade", "websocket"), ("upgrade", "h2c")], true),
            (&[("connection", "upgrade"), ("upgrade", "h2c"), ("upgrade", "websocket")], false),
            (&[("connection", "upgrade"), ("upgrade", "websocket, h2c")], false),
            (&[("connection", "up grade"), ("upgrade", "websocket")], false),
            (&[("upgrade", "websocket")], false),
            (&[("connection", "upgrade")], false),
            (&[("connection", "upgrade"), ("upgrade", "SPDY/3.1")], false),
        ] {
            assert_eq!(is_web_socket(&headers(lines)), expected, "{lines:?}");
        }
    }
}
