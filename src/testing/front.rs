//! Fronts in this process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::pki::{ControlPlane, FRONT_PROXY_CLIENT};
use super::soon;
use crate::apimachinery::peer::PeerKind;
use crate::settings::{
    LogFormat, LoggingSettings, Peering, PeeringSettings, RouteSync, Settings, StaticPeer, UpstreamSettings,
};

/// Settings of a front of node-a on free ports, without peers. It proves itself with a certificate that is written now.
#[must_use]
pub fn settings(plane: &ControlPlane, upstream: SocketAddr) -> Settings {
    Settings {
        serving: plane.serving_settings(),
        authentication: plane.authentication_settings(),
        upstream: UpstreamSettings {
            address: upstream,
            server_name: "kubernetes.default.svc".to_owned(),
            ca_file: plane.path("serving-ca.crt"),
        },
        proxy_client: plane.front_proxy().write(&plane.path(""), FRONT_PROXY_CLIENT),
        peering: Peering::Off("this test needs no peers".to_owned()),
        admin_bind_address: "127.0.0.1:0".parse().unwrap(),
        hostname: "node-a".to_owned(),
        cache_dir: None,
        advertise_address: None,
        feature_gates: BTreeMap::new(),
        route_sync: RouteSync::WatchBased,
        logging: LoggingSettings { format: LogFormat::Text, filter: "info".to_owned() },
        warnings: Vec::new(),
    }
}

/// Peering with the front of one node.
#[must_use]
pub fn peering(plane: &ControlPlane, hostname: &str, address: SocketAddr) -> Peering {
    Peering::On(PeeringSettings {
        ca_file: plane.path("serving-ca.crt"),
        advertise_address: "127.0.0.1:1".parse().unwrap(),
        cidrs: Vec::new(),
        static_peers: vec![StaticPeer { hostname: hostname.to_owned(), address, kind: PeerKind::Front }],
    })
}

/// Waits until a front has read what it needs.
pub async fn until_ready(admin: SocketAddr) {
    let ready = async {
        while !admin_get(admin, "/readyz").await.starts_with("HTTP/1.1 200") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon("readiness", ready).await;
}

/// The whole answer of the admin listener.
pub async fn admin_get(admin: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(admin).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon("an answer of the admin port", stream.read_to_string(&mut answer)).await.unwrap();
    answer
}
