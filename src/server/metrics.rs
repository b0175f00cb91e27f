//! What the data path counts. Handles are made once per verb and code; a request looks up no label string.

use std::sync::{Arc, OnceLock};

use metrics::{Counter, Gauge, Histogram};
use tokio::time::Instant;

use crate::metrics::Registry;

const REQUESTS: &str = "peerfront_request_total";
const DURATION: &str = "peerfront_request_duration_seconds";
const IN_FLIGHT: &str = "peerfront_current_inflight_requests";

/// Upstream's names and meaning.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/discovery/aggregated/metrics.go>
const MERGED_DISCOVERY: &str = "aggregator_discovery_peer_aggregated_cache_hits_total";
const LOCAL_DISCOVERY: &str = "aggregator_discovery_nopeer_requests_total";

/// Kubernetes verbs that are told apart; everything else counts as the last one.
const VERBS: [&str; 11] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy", "post", "other"];

/// HTTP codes 100 to 599.
const FIRST_CODE: u16 = 100;
const CODES: usize = 500;

/// Codes whose series exist at zero from the start, for every verb.
const KNOWN_CODES: [u16; 6] = [200, 401, 403, 404, 500, 503];

struct Verb {
    name: &'static str,
    by_code: Box<[OnceLock<Counter>]>,
    duration: Histogram,
}

/// Request counters of one front, shared by its workers.
pub struct Metrics {
    registry: Arc<Registry>,
    verbs: Vec<Verb>,
    short: Gauge,
    long_running: Gauge,
    pub(super) discovery: DiscoveryMetrics,
}

/// Requests for aggregated discovery, by what they get.
pub(super) struct DiscoveryMetrics {
    /// Those answered with the merged list, as it lay ready.
    pub(super) merged: Counter,
    /// Those for the local server's own list.
    pub(super) local: Counter,
}

impl DiscoveryMetrics {
    fn register(registry: &Registry) -> Self {
        registry.describe_counter(MERGED_DISCOVERY, "Times that discovery merged across all servers was served.");
        registry.describe_counter(LOCAL_DISCOVERY, "Times that discovery of the local server alone was requested.");
        Self { merged: registry.counter(MERGED_DISCOVERY, &[]), local: registry.counter(LOCAL_DISCOVERY, &[]) }
    }
}

impl Metrics {
    /// Declares the families and their known series.
    #[must_use]
    pub fn register(registry: Arc<Registry>) -> Self {
        registry.describe_counter(REQUESTS, "Requests answered, by verb and HTTP code.");
        registry.describe_histogram(
            DURATION,
            "Time from the request head to the end of the answer, long-running ones left out.",
        );
        registry.describe_gauge(IN_FLIGHT, "Requests being answered now.");
        let verbs = VERBS.iter().map(|name| Verb::register(&registry, name)).collect();
        let short = registry.gauge(IN_FLIGHT, &[("request_kind", "short")]);
        let long_running = registry.gauge(IN_FLIGHT, &[("request_kind", "longRunning")]);
        short.set(0.0);
        long_running.set(0.0);
        Self { discovery: DiscoveryMetrics::register(&registry), registry, verbs, short, long_running }
    }

    /// All metrics of this front in the Prometheus text format, written on another thread than that of requests.
    pub(super) async fn render(&self) -> Result<String, tokio::task::JoinError> {
        let registry = Arc::clone(&self.registry);
        tokio::task::spawn_blocking(move || registry.render()).await
    }

    /// Starts counting a request; it counts as ended when the returned value is dropped.
    #[must_use]
    pub(super) fn begin(self: &Arc<Self>, verb: &str, is_long_running: bool) -> InFlight {
        let verb = VERBS.iter().position(|known| *known == verb).unwrap_or(VERBS.len() - 1);
        let gauge = if is_long_running { &self.long_running } else { &self.short };
        gauge.increment(1.0);
        InFlight { metrics: Arc::clone(self), verb, is_long_running, since: Instant::now() }
    }
}

impl Verb {
    fn register(registry: &Registry, name: &'static str) -> Self {
        let verb = Self {
            name,
            by_code: (0..CODES).map(|_| OnceLock::new()).collect(),
            duration: registry.histogram(DURATION, &[("verb", name)]),
        };
        for code in KNOWN_CODES {
            verb.count(registry, code, 0);
        }
        verb
    }

    fn count(&self, registry: &Registry, code: u16, by: u64) {
        let index = usize::from(code.saturating_sub(FIRST_CODE)).min(CODES - 1);
        let make = || registry.counter(REQUESTS, &[("verb", self.name), ("code", &code.to_string())]);
        self.by_code[index].get_or_init(make).increment(by);
    }
}

/// A request being answered; dropping it records that it ended.
pub(super) struct InFlight {
    metrics: Arc<Metrics>,
    verb: usize,
    is_long_running: bool,
    since: Instant,
}

impl InFlight {
    /// Whatever was asked for, a tunnel lasts as long as its ends like.
    pub(super) fn into_long_running(mut self) -> Self {
        if !std::mem::replace(&mut self.is_long_running, true) {
            self.metrics.short.decrement(1.0);
            self.metrics.long_running.increment(1.0);
        }
        self
    }

    /// Records the answer's code.
    pub(super) fn answered(&self, code: u16) {
        self.metrics.verbs[self.verb].count(&self.metrics.registry, code, 1);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.is_long_running {
            self.metrics.long_running.decrement(1.0);
        } else {
            self.metrics.short.decrement(1.0);
            self.metrics.verbs[self.verb].duration.record(self.since.elapsed());
        }
    }
}
