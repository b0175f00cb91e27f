//! A front in this process before a scripted server.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hyper::client::conn::http2::SendRequest;
use peerfront::apimachinery::peer::PeerKind;
use peerfront::app::{self, Bound};
use peerfront::settings::{
    LogFormat, LoggingSettings, Peering, PeeringSettings, Settings, StaticPeer, UpstreamSettings,
};
use peerfront::testing::pki::{ControlPlane, FRONT_PROXY_CLIENT};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{self, Body, Raw};
use crate::soon;
use crate::stub::{Exchange, Served, Stub};

/// Keys and certificates, and where they lie.
pub(crate) struct Place {
    pub(crate) plane: ControlPlane,
    _directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let plane = ControlPlane::new(directory.path());
        plane.front_proxy().write(directory.path(), FRONT_PROXY_CLIENT);
        Self { plane, _directory: directory }
    }

    /// Settings of a front on free ports, without peers.
    pub(crate) fn settings(&self, upstream: SocketAddr) -> Settings {
        let plane = &self.plane;
        Settings {
            serving: plane.serving_settings(),
            authentication: plane.authentication_settings(),
            upstream: UpstreamSettings {
                address: upstream,
                server_name: "kubernetes.default.svc".to_owned(),
                ca_file: plane.path("serving-ca.crt"),
            },
            proxy_client: peerfront::settings::KeyPairFiles {
                certificate: plane.path(&format!("{FRONT_PROXY_CLIENT}.crt")),
                private_key: plane.path(&format!("{FRONT_PROXY_CLIENT}.key")),
            },
            peering: Peering::Off("this test needs no peers".to_owned()),
            admin_bind_address: "127.0.0.1:0".parse().unwrap(),
            hostname: "node-a".to_owned(),
            cache_dir: None,
            advertise_address: None,
            feature_gates: BTreeMap::new(),
            logging: LoggingSettings { format: LogFormat::Text, filter: "info".to_owned() },
            warnings: Vec::new(),
        }
    }

    /// Peering with one front at this address.
    pub(crate) fn peering(&self, peer: SocketAddr) -> Peering {
        self.peering_with("node-b", peer.port())
    }

    /// Peering with this node, at this port of the loopback address.
    pub(crate) fn peering_with(&self, hostname: &str, port: u16) -> Peering {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Peering::On(PeeringSettings {
            ca_file: self.plane.path("serving-ca.crt"),
            advertise_address: "127.0.0.1:1".parse().unwrap(),
            cidrs: Vec::new(),
            static_peers: vec![StaticPeer { hostname: hostname.to_owned(), address, kind: PeerKind::Front }],
        })
    }
}

/// A front with its server.
pub(crate) struct Fixture {
    pub(crate) place: Place,
    pub(crate) stub: Stub,
    pub(crate) address: SocketAddr,
    pub(crate) front: Bound,
}

impl Fixture {
    /// A front without peers.
    pub(crate) async fn start<F>(script: F) -> Self
    where
        F: Fn(Exchange) -> Served + Send + Sync + 'static,
    {
        Self::start_with(script, |_, settings| settings).await
    }

    /// A front with these settings.
    pub(crate) async fn start_with<F>(script: F, edit: impl FnOnce(&Place, Settings) -> Settings) -> Self
    where
        F: Fn(Exchange) -> Served + Send + Sync + 'static,
    {
        let place = Place::new();
        let stub = Stub::start(&place.plane, &["apps/v1=deployments"], script).await;
        let settings = edit(&place, place.settings(stub.address));
        let front = app::start(&settings, 1).await.unwrap();
        until_ready(front.admin_address).await;
        let address = front.addresses[0];
        Self { place, stub, address, front }
    }

    /// A connection that writes what it is told, as nobody.
    pub(crate) async fn raw(&self) -> Raw {
        Raw::open(&self.place.plane, self.address, None).await
    }

    /// An HTTP/2 connection of alice: nobody may keep one for a second request.
    pub(crate) async fn h2(&self) -> SendRequest<Body> {
        let alice = self.place.plane.user("alice", &["dev"]);
        client::h2(&self.place.plane, self.address, Some(&alice)).await
    }
}

/// A script that answers every request with 200 and a short body.
pub(crate) fn ok(exchange: Exchange) -> Served {
    Box::pin(exchange.ok("Content-Type: application/json\r\n", "{}"))
}

/// Waits until a front has read what it needs.
pub(crate) async fn until_ready(admin: SocketAddr) {
    let ready = async {
        while !admin_get(admin, "/readyz").await.starts_with("HTTP/1.1 200") {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    soon("readiness", ready).await;
}

/// The whole answer of the admin listener.
pub(crate) async fn admin_get(admin: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(admin).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
