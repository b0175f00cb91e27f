//! Whether a request carries a token, in either form that kube-apiserver reads. The token itself is its business.
//!
//! A malformed subprotocol token counts as one: kube-apiserver then answers 401, as it would without a front.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/authentication/request/bearertoken/bearertoken.go>,
//! <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/authentication/request/websocket/protocol.go>

use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue};

use crate::apimachinery::upgrade::is_web_socket;

/// Start of the WebSocket subprotocol that holds a token.
const SUBPROTOCOL_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// Whether kube-apiserver would find a token here, good or bad.
pub(super) fn is_present(headers: &HeaderMap) -> bool {
    headers.get(AUTHORIZATION).is_some_and(is_bearer) || has_subprotocol_token(headers)
}

/// `Bearer`, exactly one space and something that is not a space; anything else is no credential at all.
fn is_bearer(value: &HeaderValue) -> bool {
    let value = String::from_utf8_lossy(value.as_bytes());
    let Some((scheme, rest)) = value.trim().split_once(' ') else { return false };
    scheme.eq_ignore_ascii_case("bearer") && !rest.starts_with(' ') && !rest.is_empty()
}

/// Whether kube-apiserver would find a token in a WebSocket subprotocol, good or bad. It looks only at what it takes for
/// a request for a WebSocket, so that what is sent to it must go on looking so.
#[must_use]
pub fn has_subprotocol_token(headers: &HeaderMap) -> bool {
    if !is_web_socket(headers) {
        return false;
    }
    let lines = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let lines = lines.map(|line| String::from_utf8_lossy(line.as_bytes()));
    let (mut count, mut empty) = (0, false);
    for line in lines {
        for token in line.split(',').filter_map(|protocol| protocol.trim().strip_prefix(SUBPROTOCOL_PREFIX)) {
            count += 1;
            empty = token.is_empty();
        }
    }
    // One empty token is no credential; two of any kind are an error.
    count > 1 || (count == 1 && !empty)
}

#[cfg(test)]
mod tests;
