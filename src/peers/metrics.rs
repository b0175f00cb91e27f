//! Metric families of this room. All series of a server exist from the moment it is known until it has left.

use std::collections::BTreeMap;
use std::sync::Arc;

use metrics::{Counter, Gauge};
use tokio::time::Instant;

use super::cluster::Server;
use super::fetch::Document;
use super::leases::Found;
use crate::apimachinery::gvr::GroupVersion;
use crate::discovery::{ApiGroupDiscoveryList, Documents};
use crate::metrics::Registry;
use crate::routing::Circuit;
use crate::view::{ClusterView, Discovery};

/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/util/peerproxy/metrics/metrics.go>
const SYNC_ERRORS: &str = "apiserver_peer_discovery_sync_errors_total";
const DISCOVERY_AGE: &str = "peerfront_discovery_age_seconds";
const PEER_AVAILABLE: &str = "peerfront_peer_available";
const LEASE_AGE: &str = "peerfront_peer_lease_age_seconds";
const SKEWED: &str = "peerfront_skewed_resources";
/// Upstream counts what its own handlers merge; here one task does, and requests find it done.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/discovery/aggregated/metrics.go>
const AGGREGATIONS: &str = "aggregator_discovery_aggregation_count_total";
const MERGES: &str = "aggregator_discovery_peer_aggregated_cache_misses_total";
const CIRCUIT: &str = "peerfront_peer_circuit";
const EJECTIONS: &str = "peerfront_peer_ejections_total";
const ROUTES: &str = "peerfront_routes";
const CIRCUITS: [Circuit; 3] = [Circuit::Closed, Circuit::HalfOpen, Circuit::Open];

/// Labels whose value is the host name of a server.
const LABELS: [&str; 2] = ["peer", "server"];

/// Makes the handles of each server.
#[derive(Clone)]
pub(super) struct Metrics {
    registry: Arc<Registry>,
    /// Failed reads of a peer's documents.
    pub(super) fetch_errors: Counter,
    /// Failed lists and watches of Leases.
    pub(super) lease_errors: Counter,
    /// Leases whose address names no peer, each address once.
    pub(super) address_errors: Counter,
}

/// Handles of one server.
pub(super) struct ServerMetrics {
    /// Seconds since its documents were last read or confirmed; since it became known, before the first read.
    pub(super) discovery_age: Gauge,
    registry: Arc<Registry>,
    hostname: String,
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

    /// The peer has left: its series are not shown until it is back.
    pub(super) fn left(&self) {
        if let Some(peer) = &self.peer {
            [&peer.available, &peer.routes].into_iter().chain(&peer.circuit).for_each(|gauge| gauge.set(0.0));
        }
        LABELS.iter().for_each(|label| self.registry.hide(label, &self.hostname));
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
        registry.describe_gauge(
            LEASE_AGE,
            "Seconds since the Lease of the peer was last seen to be renewed; 0 without one.",
        );
        registry.describe_gauge(
            SKEWED,
            "Resources that some of the live servers serve and others do not, subresources counted with them.",
        );
        registry.describe_gauge(CIRCUIT, "State of the peer's circuit: 1 for the one that it is in.");
        registry
            .describe_counter(EJECTIONS, "Times that the peer began to fail, so that nothing was sent to it any more.");
        registry.describe_gauge(ROUTES, "Resources and subresources that the peer serves.");
        let failed = |step| registry.counter(SYNC_ERRORS, &[("type", step)]);
        let fetch_errors = failed("fetch_discovery");
        let (lease_errors, address_errors) = (failed("lease_list"), failed("hostport_resolution"));
        Self { registry, fetch_errors, lease_errors, address_errors }
    }

    pub(super) fn local(&self, hostname: &str) -> ServerMetrics {
        ServerMetrics {
            discovery_age: self.age_of(hostname),
            registry: Arc::clone(&self.registry),
            hostname: hostname.to_owned(),
            peer: None,
        }
    }

    pub(super) fn peer(&self, hostname: &str) -> ServerMetrics {
        let peer = ("peer", hostname);
        let metrics = PeerMetrics {
            available: self.zero(PEER_AVAILABLE, &[peer]),
            circuit: CIRCUITS.map(|circuit| self.zero(CIRCUIT, &[peer, ("state", &circuit.to_string())])),
            ejections: self.registry.counter(EJECTIONS, &[peer]),
            routes: self.zero(ROUTES, &[peer]),
        };
        LABELS.iter().for_each(|label| self.registry.show(label, hostname));
        ServerMetrics { peer: Some(metrics), ..self.local(hostname) }
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

/// How long ago the Leases of peers were renewed.
pub(super) struct LeaseAges {
    metrics: Metrics,
    gauges: BTreeMap<String, Gauge>,
}

impl LeaseAges {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self { metrics, gauges: BTreeMap::new() }
    }

    /// Takes how it stands at `now`.
    pub(super) fn show(&mut self, found: &Found, now: Instant) {
        self.gauges.retain(|hostname, gauge| {
            let is_kept = found.peers.iter().any(|peer| peer.hostname == *hostname);
            if !is_kept {
                gauge.set(0.0);
            }
            is_kept
        });
        for peer in &found.peers {
            let Some(renewal) = found.leases.get(&peer.id) else { continue };
            let make = || self.metrics.registry.gauge(LEASE_AGE, &[("peer", &peer.hostname)]);
            let gauge = self.gauges.entry(peer.hostname.clone()).or_insert_with(make);
            gauge.set(renewal.age(now).as_secs_f64());
        }
    }
}

/// Counts what is new in each view that is published.
pub(super) struct Published {
    registry: Arc<Registry>,
    aggregations: Counter,
    merges: Counter,
    skewed: BTreeMap<GroupVersion, Gauge>,
    documents: Option<Arc<Documents>>,
    local: [Option<Arc<ApiGroupDiscoveryList>>; 2],
}

impl Published {
    pub(super) fn new(metrics: &Metrics) -> Self {
        let registry = Arc::clone(&metrics.registry);
        registry.describe_counter(AGGREGATIONS, "New lists of what the local server serves.");
        registry.describe_counter(MERGES, "Times that discovery was merged across all servers.");
        Self {
            aggregations: registry.counter(AGGREGATIONS, &[]),
            merges: registry.counter(MERGES, &[]),
            registry,
            skewed: BTreeMap::new(),
            documents: None,
            local: [None, None],
        }
    }

    /// Takes a view that is about to be published, and the local server as it was built of.
    pub(super) fn count(&mut self, view: &ClusterView, local: &Server) {
        for (known, read) in self.local.iter_mut().zip([&local.api, &local.apis]) {
            let list = read.as_ref().map(|Document { list, .. }| list);
            self.aggregations.increment(replace_if_new(known, list));
        }
        if let Discovery::Merged(documents) = &view.discovery {
            self.merges.increment(replace_if_new(&mut self.documents, Some(documents)));
        }
        self.show_skew(&view.skew());
    }

    /// What was skewed once stays in sight, at zero.
    fn show_skew(&mut self, skew: &BTreeMap<GroupVersion, usize>) {
        for (group_version, gauge) in &self.skewed {
            if !skew.contains_key(group_version) {
                gauge.set(0.0);
            }
        }
        for (group_version, count) in skew {
            let GroupVersion { group, version } = group_version;
            let make = || self.registry.gauge(SKEWED, &[("group", group), ("version", version)]);
            let gauge = self.skewed.entry(group_version.clone()).or_insert_with(make);
            gauge.set(u32::try_from(*count).map_or(f64::INFINITY, f64::from));
        }
    }
}

/// Keeps what is new, and counts it: 1, or 0 if it is what is known.
fn replace_if_new<T>(known: &mut Option<Arc<T>>, new: Option<&Arc<T>>) -> u64 {
    let Some(new) = new else { return 0 };
    let is_new = known.as_ref().is_none_or(|known| !Arc::ptr_eq(known, new));
    *known = Some(Arc::clone(new));
    u64::from(is_new)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::apimachinery::peer::{Peer, PeerKind};
    use crate::apimachinery::server_id::ServerId;
    use crate::view::Renewal;

    #[test]
    fn age_of_a_lease_is_shown_until_there_is_none() {
        let registry = Arc::new(Registry::new());
        let mut ages = LeaseAges::new(Metrics::register(Arc::clone(&registry)));
        let now = Instant::now();
        let peer = |name: &str| {
            let address = "192.0.2.1:6443".parse().unwrap();
            let id = ServerId::from_hostname(name);
            Arc::new(Peer { id, hostname: name.to_owned(), address, kind: PeerKind::Front })
        };
        let leased = ServerId::from_hostname("node-b");
        let found = Found {
            peers: vec![peer("node-b"), peer("node-c")],
            leases: [(leased, Renewal::new(now))].into(),
            ..Found::default()
        };
        let age = |registry: &Registry| {
            let metrics = registry.render();
            let lines = metrics.lines().filter_map(|line| line.strip_prefix("peerfront_peer_lease_age_seconds"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        ages.show(&found, now + Duration::from_secs(3));
        assert_eq!(age(&registry), [r#"{peer="node-b"} 3"#]);
        ages.show(&Found::default(), now + Duration::from_secs(4));
        assert_eq!(age(&registry), [r#"{peer="node-b"} 0"#]);
    }
}
