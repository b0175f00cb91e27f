//! Another server of the same control plane.

use std::net::SocketAddr;

use http::HeaderName;

use super::server_id::ServerId;

/// What is configured to answer at a peer's address. What does not prove there that it is a front is treated as none.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum PeerKind {
    /// Another peerfront.
    Front,
    /// A kube-apiserver >= 1.36 that runs upstream's own proxy (`name=plain:ip:port`).
    Plain,
}

/// A server that requests can be forwarded to.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Peer {
    /// Identity of the kube-apiserver that answers there.
    pub id: ServerId,
    /// Its host name, for people.
    pub hostname: String,
    /// Where it is reached.
    pub address: SocketAddr,
    /// What answers at that address.
    pub kind: PeerKind,
}

/// What a request has met at a peer that says something about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trouble {
    /// No connection could be made.
    NoConnection,
    /// A connection broke before the answer.
    BrokenOff,
}

/// Header by which a front proxy marks a request that it has forwarded already; its value is `true`.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/util/peerproxy/peerproxy_handler.go> (`PeerProxiedHeader`)
pub const PEER_PROXIED: HeaderName = HeaderName::from_static("x-kubernetes-peer-proxied");

/// Whether a request may still be forwarded to a peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hop {
    /// It comes from a client: one hop is left.
    First,
    /// A front proxy marked it as forwarded already: the local server answers, or nobody does.
    Last,
}
