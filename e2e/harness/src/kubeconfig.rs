//! Kubeconfigs with everything inside, so that they work from anywhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::pki::KeyPair;

/// As whom kubectl calls.
#[derive(Clone, Copy, Debug)]
pub enum User<'a> {
    /// With a client certificate.
    Certificate(&'a KeyPair),
    /// With a bearer token.
    Token(&'a str),
}

impl<'a> From<&'a KeyPair> for User<'a> {
    fn from(pair: &'a KeyPair) -> Self {
        Self::Certificate(pair)
    }
}

/// A kubeconfig of one user on one server. JSON is YAML, and kubectl reads either.
pub(crate) fn render(server: &str, roots: &str, user: User<'_>) -> String {
    let user = match user {
        User::Certificate(pair) => json!({
            "client-certificate-data": STANDARD.encode(&pair.certificate),
            "client-key-data": STANDARD.encode(&pair.key),
        }),
        User::Token(token) => json!({ "token": token }),
    };
    let config: Value = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "peerfront",
        "clusters": [{
            "name": "peerfront",
            "cluster": { "server": server, "certificate-authority-data": STANDARD.encode(roots) },
        }],
        "users": [{ "name": "user", "user": user }],
        "contexts": [{ "name": "peerfront", "context": { "cluster": "peerfront", "user": "user" } }],
    });
    format!("{config:#}\n")
}
