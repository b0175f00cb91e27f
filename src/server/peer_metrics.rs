//! What rerouted requests cost at each peer. The series of a peer exist soon after it is known.

use std::collections::HashMap;
use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram};
use tokio::time::Instant;

use crate::metrics::Registry;
use crate::view::PeerState;

const DURATION: &str = "peerfront_peer_request_duration_seconds";
const IN_FLIGHT: &str = "peerfront_peer_inflight_requests";
const RETRIES: &str = "peerfront_retry_total";

/// Counters of one worker; the series are those of the front.
pub(super) struct PeerMetrics {
    registry: Arc<Registry>,
    // A lock without contention: it belongs to one single-threaded worker. It is never held over an await.
    #[allow(clippy::disallowed_types)]
    by_peer: std::sync::Mutex<HashMap<String, Series>>,
}

/// Handles of one peer.
#[derive(Clone)]
struct Series {
    duration: Histogram,
    in_flight: Gauge,
    retries: Counter,
}

/// Whether another server was asked before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    /// None was.
    First,
    /// One was, and nothing could be sent to it.
    Next,
}

impl PeerMetrics {
    pub(super) fn register(registry: Arc<Registry>) -> Self {
        registry.describe_histogram(DURATION, "Time from sending a request to a peer to the head of its answer.");
        registry.describe_gauge(IN_FLIGHT, "Requests that were sent to a peer and have no answer yet.");
        registry.describe_counter(
            RETRIES,
            "Requests that were sent to the peer because nothing of them could be sent to the server asked before.",
        );
        Self { registry, by_peer: Default::default() }
    }

    /// A request goes to a peer; it has an answer, or will get none, when the value is dropped.
    pub(super) fn begin(&self, peer: &str, turn: Turn) -> Waiting {
        let series = self.series(peer);
        series.in_flight.increment(1.0);
        series.retries.increment(u64::from(turn == Turn::Next));
        Waiting { series, since: Instant::now() }
    }

    /// Makes the series of these peers, and forgets those of others.
    pub(super) fn keep(&self, peers: &[PeerState]) {
        let is_known = |hostname: &String| peers.iter().any(|state| state.peer.hostname == *hostname);
        self.with(|by_peer| by_peer.retain(|hostname, _| is_known(hostname)));
        for state in peers {
            self.series(&state.peer.hostname);
        }
    }

    fn series(&self, peer: &str) -> Series {
        let make = || {
            let labels = [("peer", peer)];
            let series = Series {
                duration: self.registry.histogram(DURATION, &labels),
                in_flight: self.registry.gauge(IN_FLIGHT, &labels),
                retries: self.registry.counter(RETRIES, &labels),
            };
            series.in_flight.increment(0.0);
            series
        };
        self.with(|by_peer| match by_peer.get(peer) {
            Some(series) => series.clone(),
            None => by_peer.entry(peer.to_owned()).or_insert_with(make).clone(),
        })
    }

    #[allow(clippy::unwrap_used)] // Nothing panics while the lock is held.
    fn with<R>(&self, edit: impl FnOnce(&mut HashMap<String, Series>) -> R) -> R {
        edit(&mut self.by_peer.lock().unwrap())
    }
}

/// A request without an answer.
pub(super) struct Waiting {
    series: Series,
    since: Instant,
}

impl Waiting {
    /// The head of the answer is there.
    pub(super) fn answered(self) {
        self.series.duration.record(self.since.elapsed());
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.series.in_flight.decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;
    use crate::apimachinery::peer::{Peer, PeerKind};
    use crate::apimachinery::server_id::ServerId;
    use crate::routing::Circuit;
    use crate::view::Origin;

    fn known(hostname: &str) -> PeerState {
        let address = "192.0.2.1:6443".parse().unwrap();
        let id = ServerId::from_hostname(hostname);
        PeerState {
            peer: Arc::new(Peer { id, hostname: hostname.to_owned(), address, kind: PeerKind::Front }),
            origin: Origin::Static,
            lease: None,
            circuit: Circuit::Closed,
            vanished: false,
            heard: true,
            lost: false,
            error: None,
        }
    }

    /// Requests without an answer, answered ones, their seconds, and retries.
    fn counted(registry: &Registry) -> [Option<f64>; 4] {
        let text = registry.render();
        let value = |family: &str| {
            let series = format!("{family}{{peer=\"node-b\"}} ");
            text.lines().find_map(|line| line.strip_prefix(&series)).map(|value| value.parse().unwrap())
        };
        [IN_FLIGHT, &format!("{DURATION}_count"), &format!("{DURATION}_sum"), RETRIES].map(value)
    }

    #[tokio::test(start_paused = true)]
    async fn time_until_an_answer_is_recorded_and_workers_add_up() {
        let registry = Arc::new(Registry::new());
        let [one, other] = [0, 1].map(|_| PeerMetrics::register(Arc::clone(&registry)));
        assert_eq!(counted(&registry), [None; 4]);
        one.keep(&[known("node-b")]);
        assert_eq!(counted(&registry), [Some(0.0); 4], "before any request");
        let (answered, broken) = (one.begin("node-b", Turn::First), other.begin("node-b", Turn::Next));
        one.keep(&[known("node-b")]);
        assert_eq!(counted(&registry)[0], Some(2.0));
        advance(Duration::from_secs(2)).await;
        answered.answered();
        one.keep(&[]);
        drop(broken);
        assert_eq!(counted(&registry), [Some(0.0), Some(1.0), Some(2.0), Some(1.0)], "one has no answer to be timed");
    }
}
