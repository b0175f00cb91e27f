//! A front in this process before a scripted server.

use std::net::SocketAddr;

use hyper::client::conn::http2::SendRequest;
use peerfront::app::{self, Bound};
use peerfront::settings::{Peering, Settings};
use peerfront::testing::front;
pub(crate) use peerfront::testing::front::{admin_get, until_ready};
use peerfront::testing::pki::ControlPlane;
use peerfront::testing::raw::Raw;
use peerfront::testing::stub::{Exchange, Served, Stub};
use tempfile::TempDir;

use crate::client::{self, Body};

/// Keys and certificates, and where they lie.
pub(crate) struct Place {
    pub(crate) plane: ControlPlane,
    _directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let plane = ControlPlane::new(directory.path());
        Self { plane, _directory: directory }
    }

    /// Settings of a front on free ports, without peers.
    pub(crate) fn settings(&self, upstream: SocketAddr) -> Settings {
        front::settings(&self.plane, upstream)
    }

    /// Peering with one front at this address.
    pub(crate) fn peering(&self, peer: SocketAddr) -> Peering {
        front::peering(&self.plane, "node-b", peer)
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
