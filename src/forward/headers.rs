//! Headers between the hops: what belongs to one connection goes, what claims an identity goes, the proven identity comes.

use std::net::SocketAddr;

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    SEC_WEBSOCKET_PROTOCOL, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, Version};
use http_body::Body;
use hyper::ext::ReasonPhrase;

use super::body::StreamedBody;
use crate::apimachinery::peer::PEER_PROXIED;
use crate::authn::{self, Caller, CallerKind, identity_headers};
use crate::settings::IdentityHeaderNames;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// What a client may claim about earlier hops; believed only from a front proxy.
const FORWARDED: [HeaderName; 5] = [
    X_FORWARDED_FOR,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-forwarded-uri"),
    HeaderName::from_static("x-real-ip"),
];

/// Headers that concern one connection only. Source: RFC 9110 section 7.6.1, and the obsolete ones still seen.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Whether forwarded requests bear the mark that keeps the next server from forwarding them again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    /// They do: peering is on here, so nobody else needs to forward.
    Set,
    /// They do not: peering is off, and an upstream that proxies by itself may go on doing so.
    Unset,
}

/// Edits a client's request head in place, for any destination.
pub(super) fn prepare(
    head: &mut Parts,
    caller: &Caller,
    client: SocketAddr,
    names: &IdentityHeaderNames,
    mark: Mark,
) -> Result<(), authn::Error> {
    if head.version == Version::HTTP_2 {
        join_cookies(&mut head.headers);
    }
    set_target(head);
    let headers = &mut head.headers;
    let chunked = headers.contains_key(TRANSFER_ENCODING);
    let web_socket = authn::has_subprotocol_token(headers).then(|| headers.get(UPGRADE).cloned()).flatten();
    remove_hop_by_hop(headers);
    if let Some(protocol) = web_socket {
        // Whether or not a tunnel can come of it: without these the server would not see the token.
        set_upgrade(headers, protocol);
    }
    if chunked {
        // Never both: a length beside chunks is how a request is smuggled.
        headers.remove(CONTENT_LENGTH);
    }
    if headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        headers.remove(EXPECT); // Answered on this hop.
    }
    set_forwarded_for(headers, caller, client);
    set_identity(headers, caller, names)?;
    headers.remove(PEER_PROXIED);
    if mark == Mark::Set {
        headers.insert(PEER_PROXIED, HeaderValue::from_static("true"));
    }
    Ok(())
}

/// Says that a body of unknown length comes: of a GET or HEAD nobody would expect one, and it would be left out.
pub(super) fn set_framing(headers: &mut HeaderMap, body: &impl Body) {
    if !body.is_end_stream() && !headers.contains_key(CONTENT_LENGTH) {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

/// Asks the server to switch to this protocol.
pub(super) fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// Origin form, HTTP/1.1, and the host that the client named: in the target, if it is there, else in `Host`; HTTP/1.0 need
/// not name one, HTTP/1.1 then says so.
fn set_target(head: &mut Parts) {
    if let Some(authority) = head.uri.authority() {
        let host = authority.as_str().rsplit_once('@').map_or(authority.as_str(), |(_, host)| host);
        if let Ok(host) = HeaderValue::from_str(host) {
            head.headers.insert(HOST, host);
        }
        head.uri = match head.uri.path_and_query() {
            Some(target) => Uri::from(target.clone()),
            None => Uri::from_static("/"),
        };
    }
    if head.version == Version::HTTP_10 && !head.headers.contains_key(HOST) {
        head.headers.insert(HOST, HeaderValue::from_static(""));
    }
    head.version = Version::HTTP_11;
    // What the connection put beside the request stays on this hop.
    head.extensions.clear();
}

/// HTTP/2 clients may send cookies apart; HTTP/1.1 knows one header only. Source: RFC 9113 section 8.2.3.
fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        headers.insert(COOKIE, joined);
    }
}

/// The one function that writes identity: everything claimed goes first.
fn set_identity(headers: &mut HeaderMap, caller: &Caller, names: &IdentityHeaderNames) -> Result<(), authn::Error> {
    identity_headers::strip(headers, names);
    match caller.kind() {
        CallerKind::User(user) => {
            headers.remove(AUTHORIZATION);
            identity_headers::set(headers, names, user)
        }
        CallerKind::Bearer | CallerKind::Anonymous => Ok(()),
    }
}

/// The client's address joins the list; what an untrusted client claimed of earlier hops goes.
fn set_forwarded_for(headers: &mut HeaderMap, caller: &Caller, client: SocketAddr) {
    let mut hops = String::new();
    if caller.is_front_proxy() {
        for earlier in headers.get_all(X_FORWARDED_FOR) {
            if let Ok(earlier) = earlier.to_str() {
                hops.push_str(earlier);
                hops.push_str(", ");
            }
        }
    } else {
        for name in FORWARDED {
            headers.remove(name);
        }
    }
    hops.push_str(&client.ip().to_canonical().to_string());
    if let Ok(value) = HeaderValue::from_str(&hops) {
        headers.insert(X_FORWARDED_FOR, value);
    }
}

/// The options named in every `Connection` line.
fn connection_options(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|option| !option.is_empty())
}

/// Headers that no `Connection` can take out: the caller was judged with them here, and whoever answers must judge alike.
fn is_for_the_server(name: &HeaderName) -> bool {
    [HOST, AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL].contains(name) || name.as_str().starts_with("impersonate-")
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = connection_options(headers)
        .filter_map(|option| option.parse().ok())
        .filter(|name| !is_for_the_server(name))
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    let trailers = headers.get_all(TE).iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"trailers"));
    headers.remove(TE);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Removes what belongs to the connection to the server; a 101 keeps the two headers that make it one.
pub(super) fn clean_response(response: &mut Response<StreamedBody>) {
    if response.headers().contains_key(TRANSFER_ENCODING) {
        // The body has been read by its chunks; a length beside them is not its length.
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    let switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let upgrade = response.headers().get(UPGRADE).cloned().filter(|_| switched);
    remove_hop_by_hop(response.headers_mut());
    if let Some(upgrade) = upgrade {
        set_upgrade(response.headers_mut(), upgrade);
    }
    *response.version_mut() = Version::HTTP_11;
    let reason = response.extensions_mut().remove::<ReasonPhrase>();
    response.extensions_mut().clear();
    // Where the server's words differ from the usual ones, such as Go's "Request Entity Too Large".
    if let Some(reason) = reason {
        response.extensions_mut().insert(reason);
    }
}
