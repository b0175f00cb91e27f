use std::fmt;
use std::net::SocketAddrV4;
use std::path::PathBuf;

use super::{Addresses, Context, Flags, cache_directory};
use crate::client::Client;
use crate::process::{Process, Ready};
use crate::topology::NodeTopology;

/// Another node as a front knows it.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// Behind a front of its own.
    Front { name: String, address: SocketAddrV4 },
    /// A kube-apiserver that runs upstream's own proxy.
    Plain { name: String, address: SocketAddrV4 },
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Front { name, address } => write!(f, "{name}={address}"),
            Self::Plain { name, address } => write!(f, "{name}=plain:{address}"),
        }
    }
}

/// A node's peerfront.
pub(crate) fn front(
    context: &Context<'_>,
    program: PathBuf,
    node: &NodeTopology,
    addresses: &Addresses,
    peers: &[Peer],
) -> Process {
    let mut process_flags = flags(context, addresses, peers).extend(&node.peerfront_flags);
    process_flags.0.insert(0, "serve".into());
    let ready = Ready::Answers { client: Client::plain(addresses.admin), path: "/readyz".to_owned() };
    context.process(format!("{}-front", node.name), program, None, process_flags, ready)
}

fn flags(context: &Context<'_>, addresses: &Addresses, peers: &[Peer]) -> Flags {
    let pki = |name: &str| context.pki.file(name);
    let ip = addresses.front.ip().to_string();
    let port = addresses.front.port().to_string();
    let peers: Vec<String> = peers.iter().map(ToString::to_string).collect();
    let mut flags = Flags::default()
        .set("bind-address", &ip)
        .set("secure-port", &port)
        .set("advertise-address", &ip)
        .set("tls-cert-file", pki("apiserver.crt"))
        .set("tls-private-key-file", pki("apiserver.key"))
        .set("client-ca-file", pki("ca.crt"))
        .set("requestheader-client-ca-file", pki("front-proxy-ca.crt"))
        .set("requestheader-allowed-names", "front-proxy-client")
        .set("requestheader-username-headers", "X-Remote-User")
        .set("requestheader-group-headers", "X-Remote-Group")
        .set("requestheader-extra-headers-prefix", "X-Remote-Extra-")
        .set("proxy-client-cert-file", pki("front-proxy-client.crt"))
        .set("proxy-client-key-file", pki("front-proxy-client.key"))
        .set("peer-ca-file", pki("ca.crt"))
        .set("peer-advertise-ip", &ip)
        .set("peer-advertise-port", &port)
        // All nodes are on loopback, where else no Lease may say that a peer is.
        .set("peer-cidrs", "127.0.0.0/8")
        .set("upstream", format!("https://{}", addresses.upstream))
        .set("upstream-ca-file", pki("ca.crt"))
        .set("admin-bind-address", addresses.admin.to_string())
        .set("hostname-override", &addresses.name)
        .set("cache-dir", cache_directory(context.directory, &addresses.name));
    if !peers.is_empty() {
        flags = flags.set("peers", peers.join(","));
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_written_as_the_flag_reads_them() {
        let address = "127.0.0.3:6443".parse().unwrap();
        let name = "node-b".to_owned();
        assert_eq!(Peer::Front { name: name.clone(), address }.to_string(), "node-b=127.0.0.3:6443");
        assert_eq!(Peer::Plain { name, address }.to_string(), "node-b=plain:127.0.0.3:6443");
    }
}
