//! The cluster as this front sees it: one value that a request loads once.
//!
//! Routing table, merged documents and peer states are built from the same inputs and replaced together, so that what
//! discovery lists and what routing knows agree. `peers` writes, everyone else reads; this room does no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use http::HeaderValue;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::apimachinery::gvr::GroupVersion;
use crate::apimachinery::peer::Peer;
use crate::apimachinery::server_id::ServerId;
use crate::discovery::Documents;
use crate::openapi::OpenApi;
use crate::routing::{Circuit, RoutingTable};

/// Everything the data path and the admin listener need to know about the cluster.
#[derive(Debug)]
pub struct ClusterView {
    /// Who serves what.
    pub routes: RoutingTable,
    /// What discovery says.
    pub discovery: Discovery,
    /// What `/openapi/v3` and `/openapi/v2` publish.
    pub openapi: OpenApi,
    /// The co-located kube-apiserver.
    pub local: LocalState,
    /// The other servers, by server ID.
    pub peers: Vec<PeerState>,
    /// What is awaited before this front should get traffic, and what is missing though it may.
    pub readiness: Vec<Condition>,
}

/// What a front has to say in discovery documents.
#[derive(Clone, Debug)]
pub enum Discovery {
    /// Nothing: peering is off, and the local server's own documents are the right ones.
    LeftToUpstream,
    /// Nothing yet: the local server or a peer has not been heard, and a document without its groups would say that
    /// they are gone.
    Awaited,
    /// The merged documents. Once there are some, they never go away again.
    Merged(Arc<Documents>),
}

/// What is known of the co-located kube-apiserver.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LocalState {
    /// Whether its documents have been read at least once.
    pub heard: bool,
    /// Whether it answered of late.
    pub available: bool,
    /// Its version, once read.
    pub version: Option<ServerVersion>,
    /// `ETag` of its own `/api` (`profile=nopeer`), for conditional requests; `None` if it sends none.
    pub api_etag: Option<HeaderValue>,
    /// `ETag` of its own `/apis` (`profile=nopeer`).
    pub apis_etag: Option<HeaderValue>,
    /// Why its documents could not be read at the last attempt.
    pub error: Option<String>,
}

/// What a kube-apiserver answers at `/version`, as far as peerfront needs it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerVersion {
    /// Minor version, such as 35 of 1.35.
    pub minor: u32,
    /// The whole version, such as `v1.35.4`.
    pub git_version: String,
}

/// What is known of a peer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PeerState {
    /// Who it is.
    pub peer: Arc<Peer>,
    /// How it came to be known.
    pub origin: Origin,
    /// When its Lease was last renewed; `None` if it has none.
    pub lease: Option<Renewal>,
    /// Whether requests are forwarded to it.
    pub circuit: Circuit,
    /// Whether attempts to connect to it are not even refused: its node is gone, or it hangs.
    pub vanished: bool,
    /// Whether its documents have been read at least once since start.
    pub heard: bool,
    /// Whether it has not answered for so long that group versions which only it serves are listed as `Stale`.
    pub lost: bool,
    /// Why its documents could not be read at the last attempt.
    pub error: Option<String>,
}

impl PeerState {
    /// Whether requests are forwarded to it.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.circuit != Circuit::Open
    }
}

/// How a peer came to be known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// It is one of `--peers`.
    Static,
    /// A Lease names it.
    Lease,
    /// Nobody names it now; it was known before this front's start.
    Remembered,
}

/// When a Lease was last seen to be renewed. Goes on changing while the view stays the same; equal only to itself.
#[derive(Clone, Debug)]
pub struct Renewal(Arc<watch::Sender<Instant>>);

impl Renewal {
    /// A Lease that was renewed at `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self(Arc::new(watch::Sender::new(now)))
    }

    /// Notes that it was renewed at `now`.
    pub fn renewed(&self, now: Instant) {
        self.0.send_replace(now);
    }

    /// How long ago that was.
    #[must_use]
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.0.borrow())
    }
}

impl PartialEq for Renewal {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Renewal {}

/// One named line of readiness.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Condition {
    /// What it is about, such as `local-discovery`.
    pub name: &'static str,
    /// How it stands.
    pub state: ConditionState,
    /// What is awaited or missing and what helps; empty when there is nothing to say.
    pub message: String,
}

/// How a condition stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConditionState {
    /// As it should be.
    Met,
    /// Not as it should be, but requests can be served: said, not waited for.
    Degraded,
    /// To be waited for.
    Waiting,
}

impl ClusterView {
    /// The merged documents, if there are some.
    #[must_use]
    pub fn documents(&self) -> Option<&Documents> {
        match &self.discovery {
            Discovery::Merged(documents) => Some(documents),
            Discovery::LeftToUpstream | Discovery::Awaited => None,
        }
    }

    /// Of each group version, the number of resources that only some of the servers serve which are there and have said
    /// what they serve: see [`Table::skew`](crate::routing::Table::skew).
    #[must_use]
    pub fn skew(&self) -> BTreeMap<GroupVersion, usize> {
        let live = self.peers.iter().filter(|state| state.heard && !state.lost);
        let live: BTreeSet<&ServerId> = live.map(|state| &state.peer.id).collect();
        self.routes.skew(self.local.heard && self.local.available, |peer| live.contains(&peer.id))
    }

    /// Whether nothing is awaited any more.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.readiness.iter().all(|condition| condition.state != ConditionState::Waiting)
    }
}

/// Makes the two halves, which start with `view`.
#[must_use]
pub fn channel(view: ClusterView) -> (ViewWriter, ViewReader) {
    let current = Arc::new(ArcSwap::from_pointee(view));
    let (changed, changes) = watch::channel(());
    (ViewWriter { current: Arc::clone(&current), changed }, ViewReader { current, changes })
}

/// The half that replaces the view. There is one, so it cannot be cloned.
#[derive(Debug)]
pub struct ViewWriter {
    current: Arc<ArcSwap<ClusterView>>,
    changed: watch::Sender<()>,
}

impl ViewWriter {
    /// Replaces the view for every request that begins from now on.
    pub fn publish(&self, view: ClusterView) {
        self.current.store(Arc::new(view));
        self.changed.send_replace(());
    }

    /// Waits until nobody reads the view any more.
    pub async fn closed(&self) {
        self.changed.closed().await;
    }
}

/// The half that reads the view.
#[derive(Clone, Debug)]
pub struct ViewReader {
    current: Arc<ArcSwap<ClusterView>>,
    changes: watch::Receiver<()>,
}

impl ViewReader {
    /// The view as it stands. To be loaded once per request.
    #[must_use]
    pub fn load(&self) -> Guard<Arc<ClusterView>> {
        self.current.load()
    }

    /// The view as it stands, to be kept across an `.await`.
    #[must_use]
    pub fn load_full(&self) -> Arc<ClusterView> {
        self.current.load_full()
    }

    /// Waits for the next replacement; `false` when there will be none, because the writer is gone.
    pub async fn changed(&mut self) -> bool {
        self.changes.changed().await.is_ok()
    }

    /// Waits until the view is as `wanted` says; `None` when it never will be, because the writer is gone.
    pub async fn wait_for(&mut self, wanted: impl Fn(&ClusterView) -> bool) -> Option<Arc<ClusterView>> {
        loop {
            self.changes.mark_unchanged();
            let view = self.load_full();
            if wanted(&view) {
                return Some(view);
            }
            if !self.changed().await {
                return None;
            }
        }
    }
}
