//! The one task that knows everything: takes what the loops report, builds the view and publishes it if it is new.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::build::Builder;
use super::cache::Cache;
use super::client::{self, ServerClient};
use super::cluster::{Cluster, Server};
use super::details::{Details, DetailsReader};
use super::exclusions::{self, Excluded};
use super::fetch::{Limits, ServerReader};
use super::health::UNHEARD_LIMIT;
use super::leases::{Found, LeaseSetup, Leases};
use super::metrics::{Metrics, ServerMetrics};
use super::openapi;
use super::poll::{self, Report, Signals};
use super::{Peering, Setup};
use crate::apimachinery::peer::{Peer, PeerKind};
use crate::apimachinery::server_id::ServerId;
use crate::drain;
use crate::openapi::OpenApi;
use crate::view::{self, Discovery, ViewReader, ViewWriter};

/// Reports that may wait for the publisher. It takes all that wait before it builds once, so the number only has to
/// cover a burst; a full channel makes loops wait, nothing else.
const REPORTS: usize = 64;

/// All control loops of one front.
pub struct Controller {
    setup: Setup,
    identity: Arc<[(HeaderName, HeaderValue)]>,
    metrics: Metrics,
    cluster: Cluster,
    builder: Builder,
    loops: BTreeMap<ServerId, Loop>,
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
        for peer in known_peers(&setup, &Found::default(), &[]) {
            cluster.add(&peer, now);
        }
        let mut builder = Builder::new(setup.peering.off_reason());
        let state = match setup.peering {
            Peering::On(_) => OpenApi::Awaited,
            Peering::Off(_) => OpenApi::LeftToUpstream,
        };
        let published = openapi::Published { state, missing: String::new() };
        builder.set_openapi(published.clone());
        let (view, reader) = view::channel(builder.build(&cluster, now));
        let controller = Self {
            identity: client::identity(&setup.identity_headers),
            metrics: Metrics::register(Arc::clone(&setup.registry)),
            cluster,
            builder,
            loops: BTreeMap::new(),
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

    /// Finds peers through Leases too, from now on. When `withdraw` starts, this front's own Lease is taken back.
    pub fn find_peers(&mut self, setup: LeaseSetup, withdraw: drain::Watcher) {
        if let Peering::Off(_) = self.setup.peering {
            return;
        }
        let leases = Leases {
            client: self.local_kube_client(),
            setup,
            hostname: self.setup.hostname.clone(),
            served: self.served.subscribe(),
            retry: self.setup.intervals.refused,
        };
        let (found, leases_found) = watch::channel(Found::default());
        self.leases = leases_found;
        self.cluster.await_leases(Instant::now());
        self.tasks.spawn(leases.run(found, withdraw));
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
            tokio::select! {
                Some(report) = reported.recv() => self.take_report(report),
                Some((id, details)) = detailed.recv() => self.cluster.detail(&id, details),
                () = objects_changed.notified() => self.expect_changes(),
                problem = cache_problem(&mut self.cache) => self.cluster.cache(problem),
                Some(id) = self.setup.failed_connects.recv() => self.take_failed_connect(&id),
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
                () = self.view.closed() => break,
                () = drain.draining() => break,
            }
            // A burst is one change.
            while let Ok(report) = reported.try_recv() {
                self.take_report(report);
            }
            while let Ok(id) = self.setup.failed_connects.try_recv() {
                self.take_failed_connect(&id);
            }
            while let Ok((id, details)) = detailed.try_recv() {
                self.cluster.detail(&id, details);
            }
        }
        if let Some(cache) = self.cache {
            cache.close().await;
        }
    }

    /// Takes what an earlier run knew, peers included: those that Leases do not name any more may have left while this
    /// front was away, or may be named only once the local server answers. Nothing is merged without peers, so nothing
    /// is kept either.
    async fn remember(&mut self) {
        let Peering::On(_) = self.setup.peering else { return };
        let Some(path) = self.setup.cache_dir.clone() else { return };
        let (mut cache, memory) = Cache::open(path).await;
        let now = Instant::now();
        self.remembered.peers = memory.values().filter_map(|server| server.peer.clone()).collect();
        self.remembered.until = (!self.remembered.peers.is_empty()).then(|| now + UNHEARD_LIMIT);
        for peer in known_peers(&self.setup, &self.found, &self.remembered.peers) {
            self.cluster.add(&peer, now);
        }
        self.cluster.restore(memory);
        self.cluster.cache(cache.current_problem());
        self.cache = Some(cache);
    }

    /// Peers that nobody but an earlier run names.
    fn remembered_only(&self) -> BTreeSet<ServerId> {
        let named: BTreeSet<ServerId> =
            known_peers(&self.setup, &self.found, &[]).into_iter().map(|peer| peer.id.clone()).collect();
        self.remembered.peers.iter().map(|peer| peer.id.clone()).filter(|id| !named.contains(id)).collect()
    }

    /// Peers that nobody else has named for so long have left.
    fn forget(&mut self, outlets: &Outlets) {
        self.remembered = RememberedPeers::default();
        self.reconcile_peers(outlets);
    }

    /// A server lists what an object declares a moment after it has told of the object, so all are asked soon.
    fn expect_changes(&self) {
        self.loops.values().for_each(|known| known.signals.change.notify_one());
    }

    fn publish(&mut self) {
        if !self.cluster.take_due() {
            return;
        }
        if let Some(cache) = &self.cache {
            cache.offer(self.cluster.remember());
        }
        let view = self.builder.build(&self.cluster, Instant::now());
        for state in &view.peers {
            if let Some(known) = self.loops.get(&state.peer.id) {
                known.metrics.set_available(state.available);
            }
        }
        let is_started = !matches!(view.discovery, Discovery::Awaited);
        self.openapi.0.send_replace(openapi::Inputs::of(&self.cluster, is_started));
        self.view.publish(view);
        let served = self.cluster.local.served_hash();
        self.served.send_if_modified(|known| {
            let is_new = served.is_some() && *known != served;
            if is_new {
                known.clone_from(&served);
            }
            is_new
        });
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

    fn take_failed_connect(&mut self, id: &ServerId) {
        if self.cluster.connect_failed(id, Instant::now())
            && let Some(known) = self.loops.get(id)
        {
            known.signals.doubt.notify_one();
        }
    }

    /// Takes what Leases say: who the peers are, and whose server serves something new.
    fn take_found(&mut self, found: Found, outlets: &Outlets) {
        self.cluster.take_lease_problem(found.problem.clone());
        let known = std::mem::replace(&mut self.found, found);
        if known.peers != self.found.peers {
            self.reconcile_peers(outlets);
        }
        let mut ended = self.found.ended.clone();
        if self.found.is_complete {
            ended.extend(self.remembered_only());
            self.cluster.leases_known();
        }
        self.cluster.take_ended(ended);
        for (id, news) in &self.found.announced {
            let before = known.announced.get(id);
            if before != Some(news)
                && let Some(peer) = self.loops.get(id)
            {
                peer.signals.announced(before, news);
            }
        }
    }

    fn start_local(&mut self, outlets: &Outlets) {
        let client = ServerClient::new(
            Arc::clone(&self.setup.upstream),
            self.setup.upstream_address,
            Arc::clone(&self.identity),
        );
        let metrics = self.metrics.local(&self.setup.hostname);
        self.start(self.cluster.local.id.clone(), None, client, metrics, outlets);
    }

    /// OpenAPI is read by a task of its own, so that it never delays what is read here.
    fn start_openapi(&mut self) {
        let Peering::On(peers) = &self.setup.peering else { return };
        let setup = openapi::Setup {
            upstream: (self.setup.upstream_address, Arc::clone(&self.setup.upstream)),
            peers: Arc::clone(peers),
            identity: Arc::clone(&self.identity),
            every: self.setup.intervals.peer,
            limits: openapi::Limits::default(),
        };
        let published = watch::Sender::new(self.openapi.1.borrow().clone());
        self.openapi.1 = published.subscribe();
        self.tasks.spawn(openapi::run(setup, self.openapi.0.subscribe(), published));
    }

    /// Makes the loops fit the list of peers.
    fn reconcile_peers(&mut self, outlets: &Outlets) {
        let Peering::On(connector) = &self.setup.peering else { return };
        let connector = Arc::clone(connector);
        let wanted = known_peers(&self.setup, &self.found, &self.remembered.peers);
        let ids: BTreeSet<&ServerId> = wanted.iter().map(|peer| &peer.id).collect();
        let gone: Vec<ServerId> = self.cluster.peers.keys().filter(|id| !ids.contains(id)).cloned().collect();
        for id in gone {
            self.cluster.remove(&id);
            if let Some(stopped) = self.loops.remove(&id) {
                stopped.metrics.set_available(false);
                stopped.abort();
            }
        }
        for peer in wanted {
            if self.loops.get(&peer.id).is_some_and(|known| known.peer.as_ref() == Some(&peer)) {
                continue;
            }
            self.cluster.add(&peer, Instant::now());
            let mut client = ServerClient::new(Arc::clone(&connector), peer.address, Arc::clone(&self.identity));
            if peer.kind == PeerKind::Front {
                client = client.expecting_front(&peer.hostname);
            }
            let metrics = self.metrics.peer(&peer.hostname);
            self.start(peer.id.clone(), Some(peer), client, metrics, outlets);
        }
    }

    fn start(
        &mut self,
        id: ServerId,
        peer: Option<Arc<Peer>>,
        client: ServerClient,
        metrics: ServerMetrics,
        outlets: &Outlets,
    ) {
        let every = if peer.is_some() { self.setup.intervals.peer } else { self.setup.intervals.local };
        let signals = Arc::new(Signals::default());
        let limits = Limits::default();
        let lists = ServerReader::new(client.clone(), limits);
        let details = DetailsReader { server: id.clone(), client, limits, pause: every };
        let details = details.run(lists.lists(), outlets.details.clone());
        let lists = poll::run(id.clone(), lists, every, Arc::clone(&signals), outlets.lists.clone());
        let tasks = [self.tasks.spawn(lists), self.tasks.spawn(details)];
        if let Some(replaced) = self.loops.insert(id, Loop { signals, tasks, metrics, peer }) {
            replaced.abort();
        }
    }

    /// Reads the cluster's objects through the local server.
    fn local_kube_client(&self) -> kube::Client {
        let server = ServerClient::new(
            Arc::clone(&self.setup.upstream),
            self.setup.upstream_address,
            Arc::clone(&self.identity),
        );
        kube::Client::new(server, "default")
    }
}

impl Loop {
    fn abort(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// Waits for news of the cache, for ever if there is none.
async fn cache_problem(cache: &mut Option<Cache>) -> Option<String> {
    match cache {
        Some(cache) => cache.problem().await,
        None => std::future::pending().await,
    }
}

/// Static peers, those found through Leases and those of an earlier run, without this node and without doubles, of
/// which the first one counts; none while peering is off. At an address where another peer is now nobody is remembered.
fn known_peers(setup: &Setup, found: &Found, remembered: &[Arc<Peer>]) -> Vec<Arc<Peer>> {
    let mut seen = BTreeSet::from([ServerId::from_hostname(&setup.hostname)]);
    match setup.peering {
        Peering::Off(_) => Vec::new(),
        Peering::On(_) => {
            let now: Vec<&Arc<Peer>> = setup.static_peers.iter().chain(&found.peers).collect();
            let addresses: BTreeSet<SocketAddr> = now.iter().map(|peer| peer.address).collect();
            let before = remembered.iter().filter(|peer| !addresses.contains(&peer.address));
            let all = now.iter().copied().chain(before);
            all.filter(|peer| seen.insert(peer.id.clone())).cloned().collect()
        }
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
