//! Kubeconfigs with everything inside, so that they work from anywhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::pki::KeyPair;

/// A kubeconfig of one user on one server. JSON is YAML, and kubectl reads either.
pub(crate) fn render(server: &str, roots: &str, user: &KeyPair) -> String {
    let config: Value = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "peerfront",
        "clusters": [{
            "name": "peerfront",
            "cluster": { "server": server, "certificate-authority-data": STANDARD.encode(roots) },
        }],
        "users": [{
            "name": "user",
            "user": {
                "client-certificate-data": STANDARD.encode(&user.certificate),
                "client-key-data": STANDARD.encode(&user.key),
            },
        }],
        "contexts": [{ "name": "peerfront", "context": { "cluster": "peerfront", "user": "user" } }],
    });
    format!("{config:#}\n")
}
