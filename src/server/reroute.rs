//! Requests that go to a peer: the loop over candidates, the log line and the counters.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use http::header::USER_AGENT;
use http::{HeaderValue, Response};
use metrics::Counter;
use tokio::sync::mpsc;

use super::error::{Error, Repeatable};
use super::{Call, loss};
use crate::apimachinery::gvr::GroupVersionResource;
use crate::apimachinery::peer::Peer;
use crate::apimachinery::server_id::ServerId;
use crate::forward::{self, Destination, Failure, Prepared, StreamedBody};
use crate::metrics::Registry;
use crate::routing::{Candidates, Unavailable};
use crate::telemetry::{Chain, MIXED_VERSION_PROXY};

const REROUTED: &str = "apiserver_rerouted_request_total";
const PROXY_ERRORS: &str = "apiserver_peer_proxy_errors_total";

/// Code under which a request counts that no peer could be reached for, as upstream counts it.
const UNREACHABLE: u16 = 503;

/// Code under which a request counts whose body could not be read.
const UNREADABLE: u16 = 500;

type Series = HashMap<(GroupVersionResource, u16), Counter>;

/// Counts and reports what goes to peers; one per worker. Label values are those of the routing table, never a client's.
pub struct Reroutes {
    registry: Arc<Registry>,
    failed_connects: mpsc::Sender<ServerId>,
    // A lock without contention: it belongs to one single-threaded worker. It is never held over an await.
    #[allow(clippy::disallowed_types)]
    series: std::sync::Mutex<Series>,
}

impl Reroutes {
    /// Declares the families; peers that cannot be reached are reported to `failed_connects`.
    #[must_use]
    pub fn register(registry: Arc<Registry>, failed_connects: mpsc::Sender<ServerId>) -> Self {
        registry.describe_counter(REROUTED, "Requests sent to a peer, by resource and HTTP code.");
        registry.describe_counter(PROXY_ERRORS, "Peers that could not be reached for a request, by resource.");
        for kind in ["endpoint_resolution", "proxy_transport"] {
            let zero = [("type", kind), ("group", ""), ("version", ""), ("resource", "")];
            let _ = registry.counter(PROXY_ERRORS, &zero);
        }
        let zero = [("code", "200"), ("group", ""), ("version", ""), ("resource", "")];
        let _ = registry.counter(REROUTED, &zero);
        Self { registry, failed_connects, series: Default::default() }
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

    /// Counts and reports a request for which no peer that serves it is known to be reachable.
    pub(super) fn refused(&self, unavailable: &Unavailable<'_>) {
        let Unavailable { key, why } = unavailable;
        tracing::info!(target: MIXED_VERSION_PROXY, group = key.group_version.group, version = key.group_version.version,
            resource = key.resource, %why, code = UNREACHABLE, "no peer that serves it can be reached");
        self.count(key, UNREACHABLE);
    }

    fn unreachable(&self, peer: &Peer, gvr: &GroupVersionResource, cause: &dyn std::error::Error) {
        tracing::warn!(target: MIXED_VERSION_PROXY, peer = %peer.hostname, address = %peer.address,
            cause = %Chain(cause), "peer cannot be reached");
        self.registry.counter(PROXY_ERRORS, &labels("type", "proxy_transport", gvr)).increment(1);
        // A full channel means that reports are waiting already.
        let _ = self.failed_connects.try_send(peer.id.clone());
    }
}

fn labels<'a>(name: &'static str, value: &'a str, gvr: &'a GroupVersionResource) -> [(&'static str, &'a str); 4] {
    let GroupVersionResource { group_version, resource } = gvr;
    [(name, value), ("group", &group_version.group), ("version", &group_version.version), ("resource", resource)]
}

impl Call<'_> {
    /// Sends to the first candidate that can be reached.
    ///
    /// Safety of retry: the next one is tried only after [`Failure::Unsent`].
    pub(super) async fn to_peers(
        &self,
        candidates: Candidates<'_>,
        mut prepared: Prepared,
    ) -> Result<Response<StreamedBody>, Error> {
        let reroutes = &self.front.reroutes;
        let key = candidates.key();
        let repeatable = Repeatable::from(prepared.head().method());
        let user_agent = prepared.head().headers().get(USER_AGENT).cloned();
        for peer in candidates.shuffled(self.affinity()) {
            let sent = tokio::select! {
                sent = self.front.forwarder.send(self.caller, Destination::Peer(peer), prepared) => sent,
                () = loss::of(&peer.id, self.front.view.clone()) => Err(Failure::Interrupted(forward::Error::Lost)),
            };
            match sent {
                Ok(response) => {
                    let code = response.status().as_u16();
                    let user_agent = user_agent.as_ref().map(HeaderValue::as_bytes).map(String::from_utf8_lossy);
                    tracing::info!(target: MIXED_VERSION_PROXY, user_agent = user_agent.as_deref().unwrap_or_default(),
                        group = key.group_version.group, version = key.group_version.version, resource = key.resource,
                        peer = peer.hostname, address = %peer.address, why = %candidates.why(), code, "rerouted");
                    reroutes.count(key, code);
                    return self.found(response, candidates.not_found()).await;
                }
                Err(Failure::Unsent(unsent, cause)) => {
                    reroutes.unreachable(peer, key, &cause);
                    prepared = *unsent;
                }
                Err(Failure::Interrupted(cause @ forward::Error::Body(_))) => {
                    reroutes.count(key, UNREADABLE);
                    return Err(Error::Interrupted(cause, repeatable));
                }
                Err(Failure::Interrupted(cause)) => {
                    tracing::warn!(target: MIXED_VERSION_PROXY, group = key.group_version.group,
                        version = key.group_version.version, resource = key.resource, peer = peer.hostname,
                        cause = %Chain(&cause), "rerouted request got no answer");
                    reroutes.count(key, UNREACHABLE);
                    return Err(Error::Interrupted(cause, repeatable));
                }
            }
        }
        reroutes.count(key, UNREACHABLE);
        Err(Error::Unavailable("no server that serves this resource can be reached"))
    }

    /// The same for all requests of one client address: while the peers stay the same, a client's list and the watch
    /// that continues it go to the same one, whose cache has seen the resource version.
    fn affinity(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.context.client.ip().hash(&mut hasher);
        hasher.finish()
    }
}
