//! Requests that a peer will not answer any more.

use std::time::Duration;

use crate::apimachinery::server_id::ServerId;
use crate::view::{ClusterView, ViewReader};

/// How long a request is left with a peer that does not even answer to a connection attempt: long enough for one that
/// was away for a moment.
const LOST_AFTER: Duration = Duration::from_secs(3);

/// Waits until attempts to connect to a peer were unanswered for so long that what was sent to it will not be answered:
/// without this a request on a connection to a node that vanished would wait until TCP gives up, for a quarter of an
/// hour. A peer that takes connections is never given up, however slow it is; nor is one that refuses them, whose node
/// lives: it may be stopping, and still answer what it has begun.
pub(super) async fn of(peer: &ServerId, mut view: ViewReader) {
    let is_gone = |view: &ClusterView| view.peers.iter().any(|state| state.peer.id == *peer && state.vanished);
    loop {
        if view.wait_for(is_gone).await.is_none() {
            return std::future::pending().await; // The front ends; so will the request.
        }
        let returned = tokio::time::timeout(LOST_AFTER, view.wait_for(|view| !is_gone(view))).await;
        if returned.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::apimachinery::peer::{Peer, PeerKind};
    use crate::openapi::OpenApi;
    use crate::routing::{Circuit, RoutingTable};
    use crate::view::{self, Discovery, LocalState, Origin, PeerState};

    fn view(circuit: Circuit, vanished: bool) -> ClusterView {
        let id = ServerId::from_hostname("node-b");
        let address = "127.0.0.1:1".parse().unwrap();
        let peer = Arc::new(Peer { id, hostname: "node-b".to_owned(), address, kind: PeerKind::Front });
        ClusterView {
            routes: RoutingTable::default(),
            discovery: Discovery::Awaited,
            openapi: OpenApi::LeftToUpstream,
            local: LocalState::default(),
            peers: vec![PeerState {
                peer,
                origin: Origin::Static,
                lease: None,
                circuit,
                vanished,
                heard: true,
                lost: vanished,
                error: None,
            }],
            readiness: Vec::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_peer_is_never_given_up_and_a_vanished_one_after_three_seconds() {
        let (writer, reader) = view::channel(view(Circuit::Open, false));
        let id = ServerId::from_hostname("node-b");
        let lost = of(&id, reader.clone());
        tokio::pin!(lost);
        assert!(timeout(LOST_AFTER * 100, lost.as_mut()).await.is_err(), "it answers slowly, or refuses connections");
        writer.publish(view(Circuit::Open, true));
        assert!(timeout(LOST_AFTER / 2, lost.as_mut()).await.is_err());
        writer.publish(view(Circuit::HalfOpen, false));
        assert!(timeout(LOST_AFTER * 100, lost.as_mut()).await.is_err(), "it came back in time");
        writer.publish(view(Circuit::Open, true));
        let began = Instant::now();
        lost.await;
        assert_eq!(began.elapsed(), LOST_AFTER);
        let other = ServerId::from_hostname("node-c");
        assert!(timeout(LOST_AFTER * 100, of(&other, reader)).await.is_err());
    }
}
