//! What is known of every server: events go in, and whatever is new makes the view due. No I/O, time is a parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::time::Instant;

use super::LOG;
use super::cache::{Memory, Remembered};
use super::details::Details;
use super::exclusions::{Excluded, Problem};
use super::health::UNHEARD_LIMIT;
use super::poll::Report;
use super::returning::Returning;
use crate::apimachinery::peer::Peer;
use crate::apimachinery::server_id::ServerId;
use crate::routing::Exclusions;
use crate::view::{Origin, Renewal};

mod server;

use server::News;
pub(super) use server::Server;

/// Everything that a view is built of.
pub(super) struct Cluster {
    /// The co-located server.
    pub(super) local: Server,
    /// The others. Ordered, as merging wants them.
    pub(super) peers: BTreeMap<ServerId, Server>,
    /// What is never taken from peers.
    pub(super) exclusions: Exclusions,
    /// Why these are not, or not any more, read from the cluster.
    pub(super) exclusion_problem: Option<Problem>,
    /// Why this front's Lease cannot be kept, or those of others not be watched.
    pub(super) lease_problem: Option<Problem>,
    /// Peers whose Lease has ended: one of which an earlier run knew what it serves is not waited for.
    pub(super) ended: BTreeSet<ServerId>,
    /// The peers of `--peers`.
    pub(super) static_peers: BTreeSet<ServerId>,
    /// The Leases that name peers.
    pub(super) leases: BTreeMap<ServerId, Renewal>,
    /// Until when Leases are waited for that may name further peers; `None` once they are known.
    leases_awaited_until: Option<Instant>,
    /// Why what is known cannot be kept for the next start, or was not found at this one.
    pub(super) cache_problem: Option<String>,
    /// How the local server gets its requests back.
    pub(super) returning: Returning,
    due: Due,
    /// When time alone changes what is listed or routed, as of the last sync.
    changes_at: Option<Instant>,
}

/// What has to be built anew.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Due {
    /// The view.
    pub(super) view: bool,
    /// The table of routes and the documents, since then.
    pub(super) routes: Option<Instant>,
}

impl Due {
    fn view(&mut self, is_due: bool) {
        self.view |= is_due;
    }

    fn routes(&mut self, is_due: bool, now: Instant) {
        self.view |= is_due;
        self.routes = self.routes.or(is_due.then_some(now));
    }
}

impl Cluster {
    /// A cluster of which only the local server's name is known.
    pub(super) fn new(local: Server) -> Self {
        Self {
            local,
            peers: BTreeMap::new(),
            exclusions: Exclusions::default(),
            exclusion_problem: None,
            lease_problem: None,
            ended: BTreeSet::new(),
            static_peers: BTreeSet::new(),
            leases: BTreeMap::new(),
            leases_awaited_until: None,
            cache_problem: None,
            returning: Returning::default(),
            due: Due { view: true, routes: None },
            changes_at: None,
        }
    }

    /// Takes a report. One of a server that has left is dropped.
    pub(super) fn report(&mut self, report: Report, now: Instant) -> Option<&Server> {
        let is_stopping = report.reading.is_stopping;
        let alike = self.servers().find(|server| server.id != report.server && server.lists_as(&report.reading));
        let alike = alike.and_then(|server| server.served.clone());
        let server = self.server_mut(&report.server)?;
        let news = server.apply(report.reading, alike, report.began, now);
        self.due.view(news != News::None);
        self.due.routes(news == News::Served, now);
        if report.server == self.local.id {
            let before = self.returning.share(now);
            self.returning.take(self.local.health.standing().is_available(), is_stopping, now);
            self.due.view(before != self.returning.share(now));
        }
        self.server_mut(&report.server).map(|server| &*server)
    }

    /// Takes what a server says beside its lists. One that has left is dropped.
    pub(super) fn detail(&mut self, id: &ServerId, details: Details, now: Instant) {
        let is_new = self.server_mut(id).is_some_and(|server| server.detail(details));
        self.due.routes(is_new, now);
    }

    /// Takes what an earlier run knew of the servers that are known, unless this one knows more.
    pub(super) fn restore(&mut self, memory: Memory, now: Instant) {
        for (id, remembered) in memory {
            if let Some(server) = self.server_mut(&id).filter(|server| server.served.is_none()) {
                server.restore(remembered);
                self.due.routes(true, now);
            }
        }
    }

    /// What the next run may need to know.
    pub(super) fn remember(&self) -> Memory {
        self.servers().filter_map(|server| Some((server.id.clone(), server.remember()?))).collect()
    }

    /// Takes what the cache directory is like.
    pub(super) fn cache(&mut self, problem: Option<String>) {
        self.due.view(self.cache_problem != problem);
        self.cache_problem = problem;
    }

    /// Takes a failed connect of the data path and says whether it is news of a server that is known.
    pub(super) fn connect_failed(&mut self, id: &ServerId, now: Instant) -> bool {
        let Some(server) = self.server_mut(id) else { return false };
        let is_news = server.health.standing().is_available();
        server.health.connect_failed(now);
        if is_news {
            let server = server.hostname.as_str();
            tracing::warn!(target: "mixed_version_proxy", server, "no connection to a server: nothing is sent to it for now");
        }
        self.due.view(is_news);
        is_news
    }

    /// Adds a peer. One that was known under the same ID, but reached otherwise, keeps what is known of it. Of one that is
    /// where another was, the last known is what that one served: it may be the same server under a new name.
    pub(super) fn add(&mut self, peer: &Arc<Peer>, now: Instant) {
        let known = self.peers.remove(&peer.id);
        let is_new = known.as_ref().and_then(|server| server.peer.as_ref()) != Some(peer);
        if is_new {
            let server = peer.hostname.as_str();
            tracing::info!(target: LOG, server, address = %peer.address, id = %peer.id, "a peer is known");
        }
        let server = match known {
            Some(known) => Server { hostname: peer.hostname.clone(), peer: Some(Arc::clone(peer)), ..known },
            None => {
                let mut server = Server::new(peer.id.clone(), &peer.hostname, Some(Arc::clone(peer)), now);
                self.at(peer.address).into_iter().for_each(|remembered| server.restore(remembered));
                server
            }
        };
        self.peers.insert(peer.id.clone(), server);
        self.due.routes(is_new, now);
    }

    /// What is known of the peer that is reached at an address.
    fn at(&self, address: SocketAddr) -> Option<Remembered> {
        let is_there = |server: &&Server| server.peer.as_ref().is_some_and(|peer| peer.address == address);
        self.peers.values().find(is_there)?.remember()
    }

    /// Forgets a peer that has left for good.
    pub(super) fn remove(&mut self, id: &ServerId, now: Instant) {
        if let Some(server) = self.peers.remove(id) {
            tracing::info!(target: LOG, server = server.hostname, id = %id, "a peer has left");
            self.due.routes(true, now);
        }
    }

    /// Takes what the watches of CRDs and APIServices have found.
    pub(super) fn exclude(&mut self, excluded: Excluded, now: Instant) {
        if self.exclusion_problem != excluded.problem {
            if let Some(problem) = &excluded.problem {
                tracing::warn!(target: LOG, ?problem, "cannot watch CRDs and APIServices; readiness says what helps");
            }
            self.exclusion_problem = excluded.problem;
            self.due.view(true);
        }
        if let Some(defined) = excluded.custom_resources {
            self.due.routes(self.exclusions.set_custom_resources(defined, now), now);
        }
        if let Some(group_versions) = excluded.api_services {
            self.due.routes(self.exclusions.set_api_services(group_versions, now), now);
        }
    }

    /// Peers are found through Leases, which have not been listed yet.
    pub(super) fn await_leases(&mut self, now: Instant) {
        self.leases_awaited_until = Some(now + UNHEARD_LIMIT);
    }

    /// Leases have been listed, or may not be.
    pub(super) fn leases_known(&mut self, now: Instant) {
        self.due.routes(self.leases_awaited_until.take().is_some(), now);
    }

    /// Takes whose Lease has ended.
    pub(super) fn take_ended(&mut self, ended: BTreeSet<ServerId>, now: Instant) {
        self.due.routes(self.ended != ended, now);
        self.ended = ended;
    }

    /// Takes which peers have a Lease.
    pub(super) fn take_leases(&mut self, leases: BTreeMap<ServerId, Renewal>) {
        self.due.view(self.leases != leases);
        self.leases = leases;
    }

    /// How a peer came to be known.
    pub(super) fn origin(&self, id: &ServerId) -> Origin {
        if self.static_peers.contains(id) {
            Origin::Static
        } else if self.leases.contains_key(id) {
            Origin::Lease
        } else {
            Origin::Remembered
        }
    }

    /// Takes why Leases do not work, or that they do.
    pub(super) fn take_lease_problem(&mut self, problem: Option<Problem>) {
        if self.lease_problem == problem {
            return;
        }
        if let Some(problem) = &problem {
            tracing::warn!(target: LOG, ?problem, "cannot find peers through Leases; readiness says what helps");
        }
        self.lease_problem = problem;
        self.due.view(true);
    }

    fn server_mut(&mut self, id: &ServerId) -> Option<&mut Server> {
        if *id == self.local.id { Some(&mut self.local) } else { self.peers.get_mut(id) }
    }

    /// Every server, the local one first.
    pub(super) fn servers(&self) -> impl Iterator<Item = &Server> {
        std::iter::once(&self.local).chain(self.peers.values())
    }

    /// What is due.
    pub(super) fn due(&self) -> Due {
        self.due
    }

    /// Notes that everything has been built anew, or the view alone.
    pub(super) fn done(&mut self, are_routes_done: bool, now: Instant) {
        self.due.view = false;
        if are_routes_done {
            self.due.routes = None;
            self.changes_at = self.next_change(now);
        }
    }

    /// Whether a peer may still be going to say what it serves. Until it has, nothing is known to be missing, so no
    /// merged document is given out: clients delete what a document does not list. One of which an earlier run knew
    /// what it serves is not waited for: that is listed.
    pub(super) fn awaits_peers(&self, now: Instant) -> bool {
        let are_leases_awaited = self.leases_awaited(now).is_some() && !self.is_local_missing(now);
        let is_awaited = |server: &Server| !server.is_remembered && self.awaited_until(server, now).is_some();
        are_leases_awaited || self.peers.values().any(is_awaited)
    }

    /// Whether the local server has not come back since this front's start and is listed as it was before. Leases are
    /// read through it.
    pub(super) fn is_local_missing(&self, now: Instant) -> bool {
        self.local.is_remembered && self.is_lost(&self.local, now)
    }

    /// Whether a server's documents are those of one that does not answer any more: it has failed, or has not been heard
    /// in this run and is not waited for any more.
    pub(super) fn is_lost(&self, server: &Server, now: Instant) -> bool {
        server.health.standing().lost || (server.is_remembered && self.awaited_until(server, now).is_none())
    }

    /// Until when a server may still be going to say what it serves; `None` once it has, or is not waited for. That its
    /// Lease has ended is reason enough only where its last documents are known: the server may be alive, and the front
    /// before it hang.
    pub(super) fn awaited_until(&self, server: &Server, now: Instant) -> Option<Instant> {
        let is_listed_as_ended = server.is_remembered && self.ended.contains(&server.id);
        server.health.awaited_until(now).filter(|_| !is_listed_as_ended)
    }

    /// Until when Leases are waited for, if they are.
    pub(super) fn leases_awaited(&self, now: Instant) -> Option<Instant> {
        self.leases_awaited_until.filter(|until| now < *until)
    }

    /// Notes that something else which a view is built of is new.
    pub(super) fn make_due(&mut self) {
        self.due.view(true);
    }

    /// When time alone changes something: a server that was waited for is given up, an exclusion ends; a server that
    /// came back counts more.
    pub(super) fn next_wake(&self, now: Instant) -> Option<Instant> {
        let settles = self.servers().filter_map(|server| server.health.settles_at());
        self.next_change(now).into_iter().chain(settles).chain(self.returning.next_step(now)).min()
    }

    /// When time alone changes what is listed or routed.
    fn next_change(&self, now: Instant) -> Option<Instant> {
        let given_up = self.servers().filter_map(|server| self.awaited_until(server, now)).min();
        given_up.into_iter().chain(self.leases_awaited(now)).chain(self.exclusions.next_expiry()).min()
    }

    /// Notes that such a time has come.
    pub(super) fn wake(&mut self, now: Instant) {
        self.due.routes(self.changes_at.is_some_and(|at| at <= now), now);
        self.due.view(true);
        self.exclusions.expire(now);
        std::iter::once(&mut self.local).chain(self.peers.values_mut()).for_each(|server| server.health.settle(now));
    }
}
