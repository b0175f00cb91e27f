//! A front in this process between a client, a server and a peer.

use std::collections::BTreeMap;

use peerfront::apimachinery::peer::PeerKind;
use peerfront::app::{self, Bound};
use peerfront::settings::{
    KeyPairFiles, LogFormat, LoggingSettings, Peering, PeeringSettings, Settings, StaticPeer, UpstreamSettings,
};
use peerfront::testing::pki::{ControlPlane, FRONT_PROXY_CLIENT, Identity};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::Raw;
use crate::soon;
use crate::stub::Stub;

/// Served by the local server.
pub(crate) const EXEC: &str = "/api/v1/namespaces/default/pods/pod/exec?command=ls&stdout=true";
/// Served by the peer only.
pub(crate) const ATTACH: &str = "/api/v1/namespaces/default/pods/pod/attach?stdout=true";

pub(crate) struct Fixture {
    pub(crate) upstream: Stub,
    pub(crate) peer: Stub,
    pub(crate) front: Bound,
    pub(crate) plane: ControlPlane,
    alice: Identity,
    _directory: TempDir,
}

impl Fixture {
    /// A front that has read server and peer.
    pub(crate) async fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let plane = ControlPlane::new(directory.path());
        let proxy_client = plane.front_proxy().write(directory.path(), FRONT_PROXY_CLIENT);
        let upstream = Stub::start(&plane, &["exec"]).await;
        let peer = Stub::start(&plane, &["exec", "attach"]).await;
        let front = app::start(&settings(&plane, proxy_client, &upstream, &peer), 1).await.unwrap();
        let alice = plane.user("alice", &["dev"]);
        let fixture = Self { upstream, peer, front, plane, alice, _directory: directory };
        let ready = async {
            while !fixture.admin_get("/readyz").await.starts_with("HTTP/1.1 200") {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        soon("the front's readiness", ready).await;
        fixture
    }

    /// A connection of a user with a certificate, in the group `dev`.
    pub(crate) async fn alice(&self) -> Raw {
        Raw::open(&self.plane, self.front.addresses[0], Some(&self.alice)).await
    }

    /// A connection without a certificate.
    pub(crate) async fn nobody(&self) -> Raw {
        Raw::open(&self.plane, self.front.addresses[0], None).await
    }

    /// What the admin port answers, head and body.
    pub(crate) async fn admin_get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.front.admin_address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        soon("an answer of the admin port", stream.read_to_string(&mut answer)).await.unwrap();
        answer
    }
}

fn settings(plane: &ControlPlane, proxy_client: KeyPairFiles, upstream: &Stub, peer: &Stub) -> Settings {
    Settings {
        serving: plane.serving_settings(),
        authentication: plane.authentication_settings(),
        upstream: UpstreamSettings {
            address: upstream.address,
            server_name: "kubernetes.default.svc".to_owned(),
            ca_file: plane.path("serving-ca.crt"),
        },
        proxy_client,
        peering: Peering::On(PeeringSettings {
            ca_file: plane.path("serving-ca.crt"),
            advertise_address: "127.0.0.1:1".parse().unwrap(),
            cidrs: Vec::new(),
            static_peers: vec![StaticPeer {
                hostname: "node-b".to_owned(),
                address: peer.address,
                kind: PeerKind::Front,
            }],
        }),
        admin_bind_address: "127.0.0.1:0".parse().unwrap(),
        hostname: "node-a".to_owned(),
        cache_dir: None,
        advertise_address: None,
        feature_gates: BTreeMap::new(),
        logging: LoggingSettings { format: LogFormat::Text, filter: "info".to_owned() },
        warnings: Vec::new(),
    }
}
