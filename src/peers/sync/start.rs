//! Which loops run: one pair for each server that is known.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::{Controller, Loop, Outlets, RememberedPeers};
use crate::apimachinery::peer::{Peer, PeerKind};
use crate::apimachinery::server_id::ServerId;
use crate::drain;
use crate::peers::cache::{Cache, Remembered};
use crate::peers::client::ServerClient;
use crate::peers::details::DetailsReader;
use crate::peers::fetch::{Limits, ServerReader};
use crate::peers::health::UNHEARD_LIMIT;
use crate::peers::leases::{Found, LeaseSetup, Leases};
use crate::peers::metrics::ServerMetrics;
use crate::peers::poll::{self, Signals};
use crate::peers::{Peering, Setup, openapi};

impl Controller {
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
            metrics: self.metrics.clone(),
        };
        let (found, leases_found) = watch::channel(Found::default());
        self.leases = leases_found;
        self.cluster.await_leases(Instant::now());
        self.tasks.spawn(leases.run(found, withdraw));
    }

    /// Takes what an earlier run knew, peers included: those that Leases do not name any more may have left while this
    /// front was away, or may be named only once the local server answers. Nothing is merged without peers, so nothing
    /// is kept either.
    pub(super) async fn remember(&mut self) {
        let Peering::On(_) = self.setup.peering else { return };
        let Some(path) = self.setup.cache_dir.clone() else { return };
        let (mut cache, memory) = Cache::open(path).await;
        let now = Instant::now();
        self.remembered.peers = memory.values().filter_map(|server| server.peer.clone()).collect();
        self.remembered.until = (!self.remembered.peers.is_empty()).then(|| now + UNHEARD_LIMIT);
        for peer in known_peers(&self.setup, &self.found, &self.remembered.peers) {
            self.cluster.add(&peer, now);
        }
        let openapi = |(id, server): (&ServerId, &Remembered)| Some((id.clone(), server.openapi.clone()?));
        let openapi = openapi::Published {
            memory: memory.iter().filter_map(openapi).collect(),
            ..self.openapi.1.borrow().clone()
        };
        self.openapi.1 = watch::Sender::new(openapi).subscribe();
        self.cluster.restore(memory, now);
        self.cluster.cache(cache.current_problem());
        self.cache = Some(cache);
    }

    /// Peers that nobody but an earlier run names.
    pub(super) fn remembered_only(&self) -> BTreeSet<ServerId> {
        let named: BTreeSet<ServerId> =
            known_peers(&self.setup, &self.found, &[]).into_iter().map(|peer| peer.id.clone()).collect();
        self.remembered.peers.iter().map(|peer| peer.id.clone()).filter(|id| !named.contains(id)).collect()
    }

    /// Peers that nobody else has named for so long have left.
    pub(super) fn forget(&mut self, outlets: &Outlets) {
        self.remembered = RememberedPeers::default();
        self.reconcile_peers(outlets);
    }

    pub(super) fn start_local(&mut self, outlets: &Outlets) {
        let client = ServerClient::new(
            Arc::clone(&self.setup.upstream),
            self.setup.upstream_address,
            Arc::clone(&self.identity),
        );
        let metrics = self.metrics.local(&self.setup.hostname);
        self.start(self.cluster.local.id.clone(), None, client, metrics, outlets);
    }

    /// OpenAPI is read by a task of its own, so that it never delays what is read here.
    pub(super) fn start_openapi(&mut self) {
        let Peering::On(peers) = &self.setup.peering else { return };
        let setup = openapi::Setup {
            upstream: (self.setup.upstream_address, Arc::clone(&self.setup.upstream)),
            peers: Arc::clone(peers),
            identity: Arc::clone(&self.identity),
            pace: self.pace.subscribe(),
            limits: openapi::Limits::default(),
            remembered: self.openapi.1.borrow().memory.clone(),
        };
        let published = watch::Sender::new(self.openapi.1.borrow().clone());
        self.openapi.1 = published.subscribe();
        self.tasks.spawn(openapi::run(setup, self.openapi.0.subscribe(), published));
    }

    /// Makes the loops fit the list of peers.
    pub(super) fn reconcile_peers(&mut self, outlets: &Outlets) {
        let Peering::On(connector) = &self.setup.peering else { return };
        let connector = Arc::clone(connector);
        let wanted = known_peers(&self.setup, &self.found, &self.remembered.peers);
        self.pace.send_replace(self.setup.intervals.of_peers(wanted.len()));
        let ids: BTreeSet<&ServerId> = wanted.iter().map(|peer| &peer.id).collect();
        for peer in &wanted {
            if self.loops.get(&peer.id).is_some_and(|known| known.peer.as_ref() == Some(peer)) {
                continue;
            }
            self.cluster.add(peer, Instant::now());
            let mut client = ServerClient::new(Arc::clone(&connector), peer.address, Arc::clone(&self.identity));
            if peer.kind == PeerKind::Front {
                client = client.expecting_front(&peer.hostname);
            }
            let metrics = self.metrics.peer(&peer.hostname);
            self.start(peer.id.clone(), Some(Arc::clone(peer)), client, metrics, outlets);
        }
        // Last, so that one at the same address takes over what is known.
        let gone: Vec<ServerId> = self.cluster.peers.keys().filter(|id| !ids.contains(id)).cloned().collect();
        for id in gone {
            self.cluster.remove(&id, Instant::now());
            if let Some(stopped) = self.loops.remove(&id) {
                stopped.metrics.left();
                stopped.abort();
            }
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
        let pace = match &peer {
            Some(_) => self.pace.subscribe(),
            None => watch::Sender::new(self.setup.intervals.local).subscribe(),
        };
        let pause = *pace.borrow();
        let signals = Arc::new(Signals::default());
        let limits = Limits::default();
        let lists = match &peer {
            Some(_) => ServerReader::new(client.clone(), limits, self.lists.clone()),
            None => ServerReader::local(client.clone(), limits, self.lists.clone()),
        };
        let details = DetailsReader { server: id.clone(), client, limits, pause };
        let details = details.run(lists.lists(), outlets.details.clone());
        let lists = poll::run(id.clone(), lists, pace, Arc::clone(&signals), outlets.lists.clone());
        let tasks = [self.tasks.spawn(lists), self.tasks.spawn(details)];
        if let Some(replaced) = self.loops.insert(id, Loop { signals, tasks, metrics, peer }) {
            replaced.abort();
        }
    }

    /// Reads the cluster's objects through the local server.
    pub(super) fn local_kube_client(&self) -> kube::Client {
        let server = ServerClient::new(
            Arc::clone(&self.setup.upstream),
            self.setup.upstream_address,
            Arc::clone(&self.identity),
        );
        kube::Client::new(server, "default")
    }
}

/// Static peers, those found through Leases and those of an earlier run, without this node and without doubles, of
/// which the first one counts; none while peering is off. At an address where another peer is now nobody is remembered.
pub(super) fn known_peers(setup: &Setup, found: &Found, remembered: &[Arc<Peer>]) -> Vec<Arc<Peer>> {
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
