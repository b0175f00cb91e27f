//! Metric families of this room. All series of a server exist from the moment it is known.

use std::sync::Arc;

use metrics::{Counter, Gauge};

use crate::metrics::Registry;
use crate::routing::Circuit;

/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/util/peerproxy/metrics/metrics.go>
const SYNC_ERRORS: &str = "apiserver_peer_discovery_sync_errors_total";
const DISCOVERY_AGE: &str = "peerfront_discovery_age_seconds";
const PEER_AVAILABLE: &str = "peerfront_peer_available";
const CIRCUIT: &str = "peerfront_peer_circuit";
const EJECTIONS: &str = "peerfront_peer_ejections_total";
const ROUTES: &str = "peerfront_routes";
const CIRCUITS: [Circuit; 3] = [Circuit::Closed, Circuit::HalfOpen, Circuit::Open];

/// Makes the handles of each server.
#[derive(Clone)]
pub(super) struct Metrics {
    registry: Arc<Registry>,
    /// Failed reads of a peer's documents.
    pub(super) fetch_errors: Counter,
}

/// Handles of one server.
pub(super) struct ServerMetrics {
    /// Seconds since its documents were last read or confirmed; since it became known, before the first read.
    pub(super) discovery_age: Gauge,
    /// None for the local server.
    peer: Option<PeerMetrics>,
}

struct PeerMetrics {
    /// 1 while requests may be forwarded to it.
    available: Gauge,
    /// 1 for the state that it is in.
    circuit: [Gauge; 3],
    ejections: Counter,
    /// Resources and subresources that it serves.
    routes: Gauge,
}

impl ServerMetrics {
    /// It stands so, after so many ejections.
    pub(super) fn stands(&self, circuit: Circuit, ejections: u64) {
        let Some(peer) = &self.peer else { return };
        peer.available.set(f64::from(u8::from(circuit != Circuit::Open)));
        for (state, gauge) in CIRCUITS.iter().zip(&peer.circuit) {
            gauge.set(f64::from(u8::from(*state == circuit)));
        }
        peer.ejections.absolute(ejections);
    }

    /// It serves so many resources and subresources.
    pub(super) fn serves(&self, routes: usize) {
        if let Some(peer) = &self.peer {
            peer.routes.set(f64::from(u32::try_from(routes).unwrap_or(u32::MAX)));
        }
    }

    /// It has left.
    pub(super) fn left(&self) {
        if let Some(peer) = &self.peer {
            [&peer.available, &peer.routes].into_iter().chain(&peer.circuit).for_each(|gauge| gauge.set(0.0));
        }
    }
}

impl Metrics {
    pub(super) fn register(registry: Arc<Registry>) -> Self {
        registry.describe_counter(SYNC_ERRORS, "Failures to learn what a peer serves, by the step that failed.");
        registry.describe_gauge(
            DISCOVERY_AGE,
            "Seconds since the discovery documents of a server were last read or confirmed as unchanged.",
        );
        registry.describe_gauge(PEER_AVAILABLE, "Whether requests may be forwarded to the peer: 1 or 0.");
        registry.describe_gauge(CIRCUIT, "State of the peer's circuit: 1 for the one that it is in.");
        registry
            .describe_counter(EJECTIONS, "Times that the peer began to fail, so that nothing was sent to it any more.");
        registry.describe_gauge(ROUTES, "Resources and subresources that the peer serves.");
        // Upstream's other two types: no step of ours fails like them, yet dashboards find their series.
        for never in ["lease_list", "hostport_resolution"] {
            let _ = registry.counter(SYNC_ERRORS, &[("type", never)]);
        }
        let fetch_errors = registry.counter(SYNC_ERRORS, &[("type", "fetch_discovery")]);
        Self { registry, fetch_errors }
    }

    pub(super) fn local(&self, hostname: &str) -> ServerMetrics {
        ServerMetrics { discovery_age: self.age_of(hostname), peer: None }
    }

    pub(super) fn peer(&self, hostname: &str) -> ServerMetrics {
        let peer = ("peer", hostname);
        let metrics = PeerMetrics {
            available: self.zero(PEER_AVAILABLE, &[peer]),
            circuit: CIRCUITS.map(|circuit| self.zero(CIRCUIT, &[peer, ("state", &circuit.to_string())])),
            ejections: self.registry.counter(EJECTIONS, &[peer]),
            routes: self.zero(ROUTES, &[peer]),
        };
        ServerMetrics { discovery_age: self.age_of(hostname), peer: Some(metrics) }
    }

    fn age_of(&self, hostname: &str) -> Gauge {
        self.zero(DISCOVERY_AGE, &[("server", hostname)])
    }

    fn zero(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Gauge {
        let gauge = self.registry.gauge(name, labels);
        gauge.set(0.0);
        gauge
    }
}
