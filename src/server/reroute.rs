//! Requests that go to a peer: the loop over candidates, the log line and the counters.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use http::header::USER_AGENT;
use http::{HeaderValue, Response};
use metrics::Counter;
use tokio::sync::mpsc;

use super::error::{Error, Repeatable};
use super::loads::Loads;
use super::peer_metrics::{PeerMetrics, Turn};
use super::{Call, loss};
use crate::apimachinery::gvr::GroupVersionResource;
use crate::apimachinery::peer::{Peer, Trouble};
use crate::apimachinery::server_id::ServerId;
use crate::forward::{self, Destination, Failure, Prepared, StreamedBody};
use crate::metrics::Registry;
use crate::routing::{Candidates, NotFound, Unavailable};
use crate::telemetry::{Chain, MIXED_VERSION_PROXY};

const REROUTED: &str = "apiserver_rerouted_request_total";
const PROXY_ERRORS: &str = "apiserver_peer_proxy_errors_total";

/// No peer that serves the resource is known to be reachable: nothing was tried.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/util/peerproxy/metrics/metrics.go>
const ENDPOINT_RESOLUTION: &str = "endpoint_resolution";

/// A peer could not be reached.
const PROXY_TRANSPORT: &str = "proxy_transport";

/// Code under which a request counts that no peer could be reached for, as upstream counts it.
const UNREACHABLE: u16 = 503;

/// Code under which a request counts whose body could not be read.
const UNREADABLE: u16 = 500;

type Series = HashMap<(GroupVersionResource, u16), Counter>;

/// Counts and reports what goes to peers; one per worker. Label values are those of the routing table, never a client's.
pub struct Reroutes {
    registry: Arc<Registry>,
    troubles: mpsc::Sender<(ServerId, Trouble)>,
    pub(super) loads: Arc<Loads>,
    pub(super) by_peer: PeerMetrics,
    // A lock without contention: it belongs to one single-threaded worker. It is never held over an await.
    #[allow(clippy::disallowed_types)]
    series: std::sync::Mutex<Series>,
}

impl Reroutes {
    /// Declares the families; what requests meet at peers is reported to `troubles`.
    #[must_use]
    pub fn register(registry: Arc<Registry>, troubles: mpsc::Sender<(ServerId, Trouble)>) -> Self {
        registry.describe_counter(REROUTED, "Requests sent to a peer, by resource and HTTP code.");
        registry.describe_counter(
            PROXY_ERRORS,
            "Requests for which no peer was known to be reachable, and peers that could not be reached for one.",
        );
        for kind in [ENDPOINT_RESOLUTION, PROXY_TRANSPORT] {
            let zero = [("type", kind), ("group", ""), ("version", ""), ("resource", "")];
            let _ = registry.counter(PROXY_ERRORS, &zero);
        }
        let zero = [("code", "200"), ("group", ""), ("version", ""), ("resource", "")];
        let _ = registry.counter(REROUTED, &zero);
        let by_peer = PeerMetrics::register(Arc::clone(&registry));
        Self { registry, troubles, loads: Arc::default(), by_peer, series: Default::default() }
    }

    #[allow(clippy::unwrap_used)] // Nothing panics while the lock is held.
    fn count(&self, gvr: &GroupVersionResource, code: u16) {
        let mut series = self.series.lock().unwrap();
        if let Some(counter) = series.get(&(gvr.clone(), code)) {
            return counter.increment(1);
        }
        let text = code.to_string();
        let counter = self.registry.counter(REROUTED, &labels("code", &text, gvr));
        counter.increment(1);
        series.insert((gvr.clone(), code), counter);
    }

    fn answered(&self, candidates: Candidates<'_>, peer: &Peer, user_agent: Option<&HeaderValue>, code: u16) {
        let key = candidates.key();
        let user_agent = user_agent.map(HeaderValue::as_bytes).map(String::from_utf8_lossy);
        tracing::info!(target: MIXED_VERSION_PROXY, user_agent = user_agent.as_deref().unwrap_or_default(),
            group = key.group_version.group, version = key.group_version.version, resource = key.resource,
            peer = peer.hostname, address = %peer.address, why = %candidates.why(), code, "rerouted");
        self.count(key, code);
    }

    fn interrupted(&self, candidates: Candidates<'_>, peer: &Peer, cause: &forward::Error) {
        let key = candidates.key();
        if matches!(cause, forward::Error::Body(_)) {
            return self.count(key, UNREADABLE);
        }
        tracing::warn!(target: MIXED_VERSION_PROXY, group = key.group_version.group,
            version = key.group_version.version, resource = key.resource, peer = peer.hostname,
            cause = %Chain(cause), "rerouted request got no answer");
        self.report(peer, Trouble::BrokenOff);
        self.count(key, UNREACHABLE);
    }

    /// Counts and reports a request for which no peer that serves it is known to be reachable.
    pub(super) fn refused(&self, unavailable: &Unavailable<'_>) {
        let Unavailable { key, why } = unavailable;
        tracing::info!(target: MIXED_VERSION_PROXY, group = key.group_version.group, version = key.group_version.version,
            resource = key.resource, %why, code = UNREACHABLE, "no peer that serves it can be reached");
        self.registry.counter(PROXY_ERRORS, &labels("type", ENDPOINT_RESOLUTION, key)).increment(1);
        self.count(key, UNREACHABLE);
    }

    fn unreachable(&self, peer: &Peer, gvr: &GroupVersionResource, cause: &dyn std::error::Error) {
        tracing::warn!(target: MIXED_VERSION_PROXY, peer = %peer.hostname, address = %peer.address,
            cause = %Chain(cause), "peer cannot be reached");
        self.registry.counter(PROXY_ERRORS, &labels("type", PROXY_TRANSPORT, gvr)).increment(1);
        self.report(peer, Trouble::NoConnection);
    }

    fn report(&self, peer: &Peer, trouble: Trouble) {
        // A full channel means that reports are waiting already.
        let _ = self.troubles.try_send((peer.id.clone(), trouble));
    }
}

fn labels<'a>(name: &'static str, value: &'a str, gvr: &'a GroupVersionResource) -> [(&'static str, &'a str); 4] {
    let GroupVersionResource { group_version, resource } = gvr;
    [(name, value), ("group", &group_version.group), ("version", &group_version.version), ("resource", resource)]
}

/// Why no peer has answered.
enum Unanswered {
    /// Nothing was sent to any of them: it may be sent elsewhere.
    Unsent(Box<Prepared>),
    /// It may not.
    Failed(Error),
}

impl Call<'_> {
    /// Sends to the first candidate that can be reached.
    pub(super) async fn to_peers(
        &self,
        candidates: Candidates<'_>,
        prepared: Prepared,
        turn: Turn,
    ) -> Result<Response<StreamedBody>, Error> {
        match self.try_peers(candidates, prepared, turn).await {
            Ok(response) => Ok(response),
            Err(Unanswered::Failed(error)) => Err(error),
            Err(Unanswered::Unsent(_)) => {
                self.front.reroutes.count(candidates.key(), UNREACHABLE);
                Err(Error::Unavailable("no server that serves this resource can be reached"))
            }
        }
    }

    /// Sends to a peer, and if none can be reached to the local server, which is not down.
    pub(super) async fn sparing_local(
        &self,
        candidates: Candidates<'_>,
        prepared: Prepared,
        not_found: NotFound,
    ) -> Result<Response<StreamedBody>, Error> {
        match self.try_peers(candidates.sparing_local(), prepared, Turn::First).await {
            Ok(response) => Ok(response),
            Err(Unanswered::Failed(error)) => Err(error),
            Err(Unanswered::Unsent(unsent)) => self.to_upstream(*unsent, not_found, None).await,
        }
    }

    /// Asks one peer after the other.
    ///
    /// Safety of retry: the next one is tried only after [`Failure::Unsent`].
    async fn try_peers(
        &self,
        candidates: Candidates<'_>,
        mut prepared: Prepared,
        mut turn: Turn,
    ) -> Result<Response<StreamedBody>, Unanswered> {
        let reroutes = &self.front.reroutes;
        let repeatable = Repeatable::from(prepared.head().method());
        let user_agent = prepared.head().headers().get(USER_AGENT).cloned();
        for peer in self.order(candidates, user_agent.as_ref()) {
            let (pending, waiting) = (reroutes.loads.begin(&peer.id), reroutes.by_peer.begin(&peer.hostname, turn));
            let sent = tokio::select! {
                sent = self.front.forwarder.send(self.caller, Destination::Peer(peer), prepared) => sent,
                () = loss::of(&peer.id, self.front.view.clone()) => Err(Failure::Interrupted(forward::Error::Lost)),
            };
            drop(pending);
            match sent {
                Ok(response) => {
                    waiting.answered();
                    reroutes.answered(candidates, peer, user_agent.as_ref(), response.status().as_u16());
                    return self.found(response, candidates.not_found()).await.map_err(Unanswered::Failed);
                }
                Err(Failure::Unsent(unsent, cause)) => {
                    reroutes.unreachable(peer, candidates.key(), &cause);
                    prepared = *unsent;
                    turn = Turn::Next;
                }
                Err(Failure::Interrupted(cause)) => {
                    reroutes.interrupted(candidates, peer, &cause);
                    return Err(Unanswered::Failed(Error::Interrupted(cause, repeatable)));
                }
            }
        }
        Err(Unanswered::Unsent(Box::new(prepared)))
    }

    /// The peers in the order in which they are asked. A client's list and the watch that continues it go to the same
    /// one as long as it is well, whose cache has seen the resource version; everything else to the least busy.
    fn order<'v>(&self, candidates: Candidates<'v>, user_agent: Option<&HeaderValue>) -> Vec<&'v Arc<Peer>> {
        let is_continued = self.info.is_some_and(|info| matches!(info.verb.as_ref(), "list" | "watch"));
        let client = self.client_number(user_agent);
        let loads = &self.front.reroutes.loads;
        candidates.ranked(|peer| {
            let cost = if is_continued { 0 } else { loads.cost(&peer.id) };
            (cost, hash(&(client, &peer.id)))
        })
    }

    /// A number that is evenly spread and the same for all requests of one client.
    pub(super) fn client_number(&self, user_agent: Option<&HeaderValue>) -> u64 {
        hash(&(self.context.client.ip(), user_agent.map(HeaderValue::as_bytes)))
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
