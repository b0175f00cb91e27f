//! Metric families of this room. All series of a server exist from the moment it is known.

use std::sync::Arc;

use metrics::{Counter, Gauge};

use crate::metrics::Registry;

/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/util/peerproxy/metrics/metrics.go>
const SYNC_ERRORS: &str = "apiserver_peer_discovery_sync_errors_total";
const DISCOVERY_AGE: &str = "peerfront_discovery_age_seconds";
const PEER_AVAILABLE: &str = "peerfront_peer_available";

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
    /// 1 while requests may be forwarded to it; none for the local server.
    available: Option<Gauge>,
}

impl ServerMetrics {
    pub(super) fn set_available(&self, available: bool) {
        if let Some(gauge) = &self.available {
            gauge.set(f64::from(u8::from(available)));
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
        // Upstream's other two types: no step of ours fails like them, yet dashboards find their series.
        for never in ["lease_list", "hostport_resolution"] {
            let _ = registry.counter(SYNC_ERRORS, &[("type", never)]);
        }
        let fetch_errors = registry.counter(SYNC_ERRORS, &[("type", "fetch_discovery")]);
        Self { registry, fetch_errors }
    }

    pub(super) fn local(&self, hostname: &str) -> ServerMetrics {
        ServerMetrics { discovery_age: self.age_of(hostname), available: None }
    }

    pub(super) fn peer(&self, hostname: &str) -> ServerMetrics {
        let available = self.registry.gauge(PEER_AVAILABLE, &[("peer", hostname)]);
        available.set(0.0);
        ServerMetrics { discovery_age: self.age_of(hostname), available: Some(available) }
    }

    fn age_of(&self, hostname: &str) -> Gauge {
        let age = self.registry.gauge(DISCOVERY_AGE, &[("server", hostname)]);
        age.set(0.0);
        age
    }
}
