//! Two fronts that are each other's peers, each with a stub of an upstream.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use peerfront::app::{self, Bound};
use peerfront::testing::front;
use peerfront::testing::pki::ControlPlane;
use peerfront_e2e::{Client, Identity, KeyPair};

use crate::upstream::Upstream;

const NAME: &str = "kubernetes.default.svc";
const PORT: u16 = 6443;

/// A front and its upstream.
pub(crate) struct Node {
    pub(crate) upstream: Upstream,
    address: SocketAddr,
    bound: Bound,
}

/// Node `a` and node `b`.
pub(crate) struct Pair {
    pub(crate) a: Node,
    pub(crate) b: Node,
    pub(crate) plane: ControlPlane,
    _directory: tempfile::TempDir,
}

impl Pair {
    /// Starts both. Each must know the other's address before that one listens, so both have addresses that no other
    /// program uses.
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let plane = ControlPlane::new(directory.path());
        let [a, b] = [1, 2].map(own_address);
        Self {
            a: Node::start(&plane, ("a", a), ("b", b)).await,
            b: Node::start(&plane, ("b", b), ("a", a)).await,
            plane,
            _directory: directory,
        }
    }

    /// A client of one of the fronts.
    pub(crate) fn client(&self, node: &Node, identity: &Identity) -> Client {
        let SocketAddr::V4(address) = node.address else { unreachable!("addresses of tests are IPv4") };
        let roots = std::fs::read_to_string(self.plane.path("serving-ca.crt")).unwrap();
        Client::new(address, &roots, identity).unwrap().with_server_name(NAME)
    }

    /// A user with a certificate.
    pub(crate) fn user(&self, name: &str, groups: &[&str]) -> Identity {
        let files = self.plane.user(name, groups).write(self._directory.path(), name);
        let read = |path| std::fs::read_to_string(path).unwrap();
        Identity::certificate(&KeyPair { certificate: read(files.certificate), key: read(files.private_key) })
    }

    /// Stops everything, and fails if a stub has.
    pub(crate) async fn stop(self) {
        for node in [self.a, self.b] {
            node.bound.stop().await;
            node.upstream.stop().await;
        }
    }
}

impl Node {
    async fn start(plane: &ControlPlane, (name, address): (&str, SocketAddr), (peer, at): (&str, SocketAddr)) -> Self {
        let upstream = Upstream::start(plane, IpAddr::from(Ipv4Addr::LOCALHOST)).await;
        let mut settings = front::settings(plane, upstream.address());
        settings.serving.bind_addresses = vec![address.ip()];
        settings.serving.secure_port = address.port();
        settings.peering = front::peering(plane, peer, at);
        settings.hostname = name.to_owned();
        Self { upstream, address, bound: app::start(&settings, 1).await.unwrap() }
    }
}

/// An address of this process and test program alone: its id stands in the middle of it.
fn own_address(last: u8) -> SocketAddr {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, 128 | high >> 1, low, last << 1 | high & 1], PORT))
}
