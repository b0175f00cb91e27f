//! The one task that knows everything: takes what the loops report, builds the view and publishes it if it is new.

mod start;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::build::Builder;
use super::cache::{Cache, Memory};
use super::client;
use super::cluster::{Cluster, Server};
use super::details::Details;
use super::exclusions::{self, Excluded};
use super::fetch::KnownLists;
use super::leases::Found;
use super::metrics::{Metrics, Published, ServerMetrics};
use super::openapi;
use super::poll::{Report, Signals};
use super::routes::Syncs;
use super::{Peering, Setup};
use crate::apimachinery::peer::{Peer, Trouble};
use crate::apimachinery::server_id::ServerId;
use crate::drain;
use crate::openapi::OpenApi;
use crate::view::{self, ClusterView, Discovery, ViewReader, ViewWriter};
use start::known_peers;

/// Reports that may wait for the publisher. It takes all that wait before it builds once, so the number only has to
/// cover a burst; a full channel makes loops wait, nothing else.
const REPORTS: usize = 64;

/// All control loops of one front.
pub struct Controller {
    setup: Setup,
    identity: Arc<[(HeaderName, HeaderValue)]>,
    metrics: Metrics,
    published: Published,
    cluster: Cluster,
    builder: Builder,
    syncs: Syncs,
    loops: BTreeMap<ServerId, Loop>,
    lists: KnownLists,
    /// How often each peer is read.
    pace: watch::Sender<Duration>,
    tasks: JoinSet<()>,
    cache: Option<Cache>,
    remembered: RememberedPeers,
    view: ViewWriter,
    /// Tells the loop of OpenAPI documents of the cluster, and takes what comes of it.
    openapi: (watch::Sender<openapi::Inputs>, watch::Receiver<openapi::Published>),
    leases: watch::Receiver<Found>,
    found: Found,
    served: watch::Sender<Option<String>>,
}

/// The peers of an earlier run.
#[derive(Default)]
struct RememberedPeers {
    peers: Vec<Arc<Peer>>,
    /// Until when they count as peers, whoever else names them.
    until: Option<Instant>,
}

/// Where the loops report.
#[derive(Clone)]
struct Outlets {
    lists: mpsc::Sender<Report>,
    details: mpsc::Sender<(ServerId, Details)>,
}

/// The loops of one server.
struct Loop {
    signals: Arc<Signals>,
    tasks: [AbortHandle; 2],
    metrics: ServerMetrics,
    peer: Option<Arc<Peer>>,
}

impl Controller {
    /// Makes the loops, none of which runs yet, and the view that they will write: of a cluster of which nothing is
    /// known.
    #[must_use]
    pub fn new(setup: Setup) -> (Self, ViewReader) {
        let now = Instant::now();
        let mut cluster = Cluster::new(Server::local(&setup.hostname, now));
        cluster.static_peers = setup.static_peers.iter().map(|peer| peer.id.clone()).collect();
        for peer in known_peers(&setup, &Found::default(), &[]) {
            cluster.add(&peer, now);
        }
        let mut builder = Builder::new(setup.peering.off_reason());
        let state = match setup.peering {
            Peering::On(_) => OpenApi::Awaited,
            Peering::Off(_) => OpenApi::LeftToUpstream,
        };
        let published = openapi::Published { state, ..openapi::Published::default() };
        builder.set_openapi(published.clone());
        builder.reconcile(&cluster, now);
        let syncs = Syncs::register(setup.route_sync, &setup.registry, now);
        let (view, reader) = view::channel(builder.build(&cluster, now));
        let metrics = Metrics::register(Arc::clone(&setup.registry));
        let controller = Self {
            identity: client::identity(&setup.identity_headers),
            published: Published::new(&metrics),
            metrics,
            cluster,
            builder,
            syncs,
            loops: BTreeMap::new(),
            lists: KnownLists::default(),
            pace: watch::Sender::new(setup.intervals.peer),
            tasks: JoinSet::new(),
            cache: None,
            remembered: RememberedPeers::default(),
            view,
            openapi: (watch::Sender::new(openapi::Inputs::default()), watch::Sender::new(published).subscribe()),
            leases: watch::channel(Found::default()).1,
            found: Found::default(),
            served: watch::Sender::new(None),
            setup,
        };
        (controller, reader)
    }

    /// Runs until the drain starts or nobody reads the view any more. The last view stays.
    pub async fn run(mut self, mut drain: drain::Watcher) {
        self.remember().await;
        let (lists, mut reported) = mpsc::channel(REPORTS);
        let (details, mut detailed) = mpsc::channel(REPORTS);
        let outlets = Outlets { lists, details };
        let (excluded, mut exclusions) = watch::channel(Excluded::default());
        let objects_changed = Arc::new(Notify::new());
        let mut found = self.leases.clone();
        self.start_local(&outlets);
        self.reconcile_peers(&outlets);
        if let Peering::On(_) = self.setup.peering {
            let refused = self.setup.intervals.refused;
            let changed = Arc::clone(&objects_changed);
            self.tasks.spawn(exclusions::run(self.local_kube_client(), refused, excluded, changed));
        }
        self.start_openapi();
        loop {
            self.publish();
            let wake = self.cluster.next_wake(Instant::now());
            let sync = self.syncs.next(self.cluster.due()).map(|(at, _)| at);
            tokio::select! {
                Some(report) = reported.recv() => self.take_report(report),
                Some((id, details)) = detailed.recv() => self.cluster.detail(&id, details, Instant::now()),
                () = objects_changed.notified() => self.expect_changes(),
                problem = cache_problem(&mut self.cache) => self.cluster.cache(problem),
                Some((id, trouble)) = self.setup.troubles.recv() => self.take_trouble(&id, trouble),
                Ok(()) = exclusions.changed() => {
                    let excluded = exclusions.borrow_and_update().clone();
                    self.cluster.exclude(excluded, Instant::now());
                }
                Ok(()) = self.openapi.1.changed() => {
                    self.builder.set_openapi(self.openapi.1.borrow_and_update().clone());
                    self.cluster.make_due();
                }
                Ok(()) = found.changed() => {
                    let now_found = found.borrow_and_update().clone();
                    self.take_found(now_found, &outlets);
                }
                () = sleep_until_some(self.remembered.until) => self.forget(&outlets),
                () = sleep_until_some(wake) => self.cluster.wake(Instant::now()),
                () = sleep_until_some(sync) => {}
                () = self.view.closed() => break,
                () = drain.draining() => break,
            }
            // A burst is one change.
            while let Ok(report) = reported.try_recv() {
                self.take_report(report);
            }
            while let Ok((id, trouble)) = self.setup.troubles.try_recv() {
                self.take_trouble(&id, trouble);
            }
            while let Ok((id, details)) = detailed.try_recv() {
                self.cluster.detail(&id, details, Instant::now());
            }
        }
        if let Some(cache) = self.cache {
            cache.close().await;
        }
    }

    /// A server lists what an object declares a moment after it has told of the object, so all are asked soon.
    fn expect_changes(&self) {
        self.loops.values().for_each(|known| known.signals.common_change.notify_one());
    }

    /// Publishes what is known if anything is new.
    fn publish(&mut self) {
        if let Some(view) = due_view(&mut self.cluster, &mut self.builder, &mut self.syncs, Instant::now()) {
            self.tell_others(&view);
            self.view.publish(view);
        }
    }

    /// The cache, the metrics, the loop of OpenAPI documents and this front's Lease follow the view.
    fn tell_others(&mut self, view: &ClusterView) {
        if let Some(cache) = &self.cache {
            cache.offer(self.memory());
        }
        for (state, server) in view.peers.iter().zip(self.cluster.peers.values()) {
            if let Some(known) = self.loops.get(&state.peer.id) {
                known.metrics.stands(state.circuit, server.health.ejections());
            }
        }
        for (peer, routes) in view.routes.routes_by_peer() {
            if let Some(known) = self.loops.get(&peer.id) {
                known.metrics.serves(routes);
            }
        }
        self.published.count(view, &self.cluster.local);
        let is_started = !matches!(view.discovery, Discovery::Awaited);
        self.openapi.0.send_replace(openapi::Inputs::of(&self.cluster, is_started));
        let served = self.cluster.local.served_hash();
        self.served.send_if_modified(|known| {
            let is_new = served.is_some() && *known != served;
            if is_new {
                known.clone_from(&served);
            }
            is_new
        });
    }

    /// What the next run may need to know.
    fn memory(&self) -> Memory {
        let mut memory = self.cluster.remember();
        for (id, published) in &self.openapi.1.borrow().memory {
            if let Some(server) = memory.get_mut(id) {
                server.openapi = Some(Arc::clone(published));
            }
        }
        memory
    }

    fn take_report(&mut self, report: Report) {
        let now = Instant::now();
        let is_failed = report.reading.failure.is_some();
        let Some(server) = self.cluster.report(report, now) else { return };
        if is_failed && server.peer.is_some() {
            self.metrics.fetch_errors.increment(1);
        }
        if let Some(known) = self.loops.get(&server.id) {
            known.metrics.discovery_age.set((now - server.confirmed).as_secs_f64());
        }
    }

    /// What a request has met at a peer puts that in doubt; without a connection nothing more is sent to it until a read
    /// succeeds.
    fn take_trouble(&mut self, id: &ServerId, trouble: Trouble) {
        let is_in_doubt = match trouble {
            Trouble::NoConnection => self.cluster.connect_failed(id, Instant::now()),
            Trouble::BrokenOff => true,
        };
        if let Some(known) = self.loops.get(id).filter(|_| is_in_doubt) {
            known.signals.doubt.notify_one();
        }
    }

    /// Takes what Leases say: who the peers are, and whose server serves something new.
    fn take_found(&mut self, found: Found, outlets: &Outlets) {
        let now = Instant::now();
        self.cluster.take_lease_problem(found.problem.clone());
        let known = std::mem::replace(&mut self.found, found);
        if known.peers != self.found.peers {
            self.reconcile_peers(outlets);
        }
        let mut ended = self.found.ended.clone();
        if self.found.is_complete {
            ended.extend(self.remembered_only());
            self.cluster.leases_known(now);
        }
        self.cluster.take_ended(ended, now);
        self.cluster.take_leases(self.found.leases.clone());
        for (id, news) in &self.found.announced {
            let before = known.announced.get(id);
            if before != Some(news)
                && let Some(peer) = self.loops.get(id)
            {
                peer.signals.announced(before, news);
            }
        }
    }
}

impl Loop {
    fn abort(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// The view to be published if anything is new, or if it is time. Routes and documents are computed in it as the gate
/// says, and nowhere else.
pub(super) fn due_view(
    cluster: &mut Cluster,
    builder: &mut Builder,
    syncs: &mut Syncs,
    now: Instant,
) -> Option<ClusterView> {
    let due = cluster.due();
    let sync = syncs.next(due).filter(|(at, _)| *at <= now);
    if !due.view && sync.is_none() {
        return None;
    }
    if let Some((_, trigger)) = sync {
        let outcome = builder.reconcile(cluster, now);
        syncs.done(trigger, outcome, due.routes, now);
    }
    cluster.done(sync.is_some(), now);
    Some(builder.build(cluster, now))
}

/// Waits for news of the cache, for ever if there is none.
async fn cache_problem(cache: &mut Option<Cache>) -> Option<String> {
    match cache {
        Some(cache) => cache.problem().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until_some(wake: Option<Instant>) {
    match wake {
        Some(wake) => sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
