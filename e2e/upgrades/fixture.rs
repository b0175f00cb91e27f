//! A front in this process between a client, a server and a peer.

use peerfront::app::{self, Bound};
use peerfront::testing::front::{self, until_ready};
use peerfront::testing::pki::{ControlPlane, Identity};
use peerfront::testing::raw::Raw;
use tempfile::TempDir;

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
        let upstream = Stub::start(&plane, &["/v1=pods/exec"]).await;
        let peer = Stub::start_front(&plane, &["/v1=pods/exec+attach"]).await;
        let mut settings = front::settings(&plane, upstream.server.address);
        settings.peering = front::peering(&plane, "node-b", peer.server.address);
        let front = app::start(&settings, 1).await.unwrap();
        let alice = plane.user("alice", &["dev"]);
        until_ready(front.admin_address).await;
        Self { upstream, peer, front, plane, alice, _directory: directory }
    }

    /// A connection of a user with a certificate, in the group `dev`.
    pub(crate) async fn alice(&self) -> Raw {
        Raw::open(&self.plane, self.front.addresses[0], Some(&self.alice)).await
    }

    /// A connection without a certificate.
    pub(crate) async fn nobody(&self) -> Raw {
        Raw::open(&self.plane, self.front.addresses[0], None).await
    }
}
