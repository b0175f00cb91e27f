//! Two fronts that are each other's peers, each with a stub of an upstream.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use peerfront::apimachinery::peer::PeerKind;
use peerfront::app::{self, Bound};
use peerfront::settings::{
    LogFormat, LoggingSettings, Peering, PeeringSettings, Settings, StaticPeer, UpstreamSettings,
};
use peerfront::testing::pki::{self, ControlPlane};
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
        let mut serving = plane.serving_settings();
        serving.bind_addresses = vec![address.ip()];
        serving.secure_port = address.port();
        let ca_file = plane.path("serving-ca.crt");
        let settings = Settings {
            serving,
            authentication: plane.authentication_settings(),
            upstream: UpstreamSettings {
                address: upstream.address(),
                server_name: NAME.to_owned(),
                ca_file: ca_file.clone(),
            },
            proxy_client: plane.front_proxy().write(&plane.path(""), pki::FRONT_PROXY_CLIENT),
            peering: Peering::On(PeeringSettings {
                ca_file,
                advertise_address: address,
                cidrs: Vec::new(),
                static_peers: vec![StaticPeer { hostname: peer.to_owned(), address: at, kind: PeerKind::Front }],
            }),
            admin_bind_address: SocketAddr::new(address.ip(), 0),
            hostname: name.to_owned(),
            cache_dir: None,
            advertise_address: None,
            feature_gates: BTreeMap::new(),
            logging: LoggingSettings { format: LogFormat::Text, filter: String::new() },
            warnings: Vec::new(),
        };
        Self { upstream, address, bound: app::start(&settings, 1).await.unwrap() }
    }
}

/// An address of this process and test program alone: its id stands in the middle of it.
fn own_address(last: u8) -> SocketAddr {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, 128 | high >> 1, low, last << 1 | high & 1], PORT))
}
