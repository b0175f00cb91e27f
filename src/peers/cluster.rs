//! What is known of every server: events go in, and whatever is new makes the view due. No I/O, time is a parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use tokio::time::Instant;

use super::LOG;
use super::cache::{Memory, Remembered};
use super::changes::Changes;
use super::details::Details;
use super::exclusions::{Excluded, Problem};
use super::fetch::{Document, Reading};
use super::health::{Failure, Health, UNHEARD_LIMIT};
use super::poll::Report;
use crate::apimachinery::peer::Peer;
use crate::apimachinery::server_id::ServerId;
use crate::discovery::legacy::LegacyDocuments;
use crate::discovery::model::{ApiVersionDiscovery, Freshness};
use crate::routing::{Exclusions, ServedResources};
use crate::view::ServerVersion;

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
    /// Peers whose Lease has ended: one that has not been heard is not waited for.
    pub(super) ended: BTreeSet<ServerId>,
    /// Until when Leases are waited for that may name further peers; `None` once they are known.
    leases_awaited_until: Option<Instant>,
    /// Why what is known cannot be kept for the next start, or was not found at this one.
    pub(super) cache_problem: Option<String>,
    /// What an earlier run knew of servers that are not known yet.
    remembered: Memory,
    is_due: bool,
}

/// One server.
pub(super) struct Server {
    pub(super) id: ServerId,
    pub(super) hostname: String,
    /// How to forward to it; `None` for the local server.
    pub(super) peer: Option<Arc<Peer>>,
    pub(super) health: Health,
    pub(super) api: Option<Document>,
    pub(super) apis: Option<Document>,
    /// What the two list, in the words of routing.
    pub(super) served: Option<ServedResources>,
    /// Its legacy documents. They follow the two lists: what is new in these is missing here for a moment.
    pub(super) legacy: Arc<LegacyDocuments>,
    pub(super) version: Option<ServerVersion>,
    /// Whether it still gives clients of v2beta1 what they ask for.
    pub(super) gives_v2beta1: bool,
    /// Whether its version has been asked for.
    pub(super) is_detailed: bool,
    /// Whether its lists are those of an earlier run, and nothing has been read in this one.
    pub(super) is_remembered: bool,
    /// Why the last read failed.
    pub(super) error: Option<String>,
    /// When its documents were last known to be right.
    pub(super) confirmed: Instant,
}

impl Server {
    /// The co-located server.
    pub(super) fn local(hostname: &str, now: Instant) -> Self {
        Self::new(ServerId::from_hostname(hostname), hostname, None, now)
    }

    fn new(id: ServerId, hostname: &str, peer: Option<Arc<Peer>>, now: Instant) -> Self {
        Self {
            id,
            hostname: hostname.to_owned(),
            peer,
            health: Health::new(now),
            api: None,
            apis: None,
            served: None,
            legacy: Arc::default(),
            version: None,
            gives_v2beta1: false,
            is_detailed: false,
            is_remembered: false,
            error: None,
            confirmed: now,
        }
    }

    /// Takes what a read came to and says whether anything is new.
    fn apply(&mut self, reading: Reading, began: Instant, now: Instant) -> bool {
        let before = self.health.standing();
        if reading.api.is_some() && reading.apis.is_some() {
            self.is_remembered = false;
        }
        let is_document_new = [
            self.take("/api", reading.api, |server| &mut server.api),
            self.take("/apis", reading.apis, |server| &mut server.apis),
        ]
        .contains(&true);
        if is_document_new {
            self.served = self.documents_served();
        }
        let failure = reading.failure.as_ref().map(|(failure, _)| *failure);
        self.health.read(failure, began, now);
        if failure.is_none() {
            self.confirmed = began;
        }
        let is_error_new = self.take_error(reading.failure);
        is_document_new || is_error_new || before != self.health.standing()
    }

    /// Takes what a server says beside its lists and says whether anything is new.
    fn detail(&mut self, details: Details) -> bool {
        let Details { version, gives_v2beta1, legacy } = details;
        let is_same = self.version == version && self.gives_v2beta1 == gives_v2beta1 && self.legacy == legacy;
        let is_new = !is_same || !self.is_detailed;
        (self.version, self.gives_v2beta1, self.legacy, self.is_detailed) = (version, gives_v2beta1, legacy, true);
        is_new
    }

    /// Takes what an earlier run knew of it.
    fn restore(&mut self, remembered: Remembered) {
        let document = |list| Document { list, etag: None };
        self.api = remembered.api.map(document);
        self.apis = remembered.apis.map(document);
        self.served = self.documents_served();
        self.legacy = remembered.legacy;
        self.version = remembered.version;
        self.gives_v2beta1 = remembered.gives_v2beta1;
        self.is_remembered = true;
    }

    /// What the next run may need to know.
    fn remember(&self) -> Option<Remembered> {
        let list = |document: &Document| Arc::clone(&document.list);
        self.served.as_ref()?;
        Some(Remembered {
            api: self.api.as_ref().map(list),
            apis: self.apis.as_ref().map(list),
            legacy: Arc::clone(&self.legacy),
            version: self.version.clone(),
            gives_v2beta1: self.gives_v2beta1,
        })
    }

    /// Whether requests may be forwarded to it. What it served in an earlier run may be another server's by now.
    pub(super) fn is_available(&self) -> bool {
        self.health.standing().available && !self.is_remembered
    }

    /// Whether its documents are those of a server that does not answer any more: it has failed, or has not been heard
    /// in all the time that it is waited for.
    pub(super) fn is_lost(&self, now: Instant) -> bool {
        self.health.standing().lost || (self.is_remembered && self.health.awaited_until(now).is_none())
    }

    fn take(
        &mut self,
        path: &'static str,
        new: Option<Document>,
        place: fn(&mut Self) -> &mut Option<Document>,
    ) -> bool {
        // What a loop has not read yet may be known of the server from an earlier one.
        let Some(new) = new else { return false };
        let hostname = self.hostname.clone();
        let known = place(self);
        let is_same_list = known.as_ref().is_some_and(|known| Arc::ptr_eq(&known.list, &new.list));
        if !is_same_list {
            let changes = Changes::between(known.as_ref().map(|known| known.list.as_ref()), &new.list);
            tracing::info!(target: LOG, server = hostname, path, %changes, "a server's document is new");
        }
        let is_etag_same = known.as_ref().is_some_and(|known| known.etag == new.etag);
        *known = Some(new);
        !is_same_list || !is_etag_same
    }

    fn documents_served(&self) -> Option<ServedResources> {
        let mut served = None;
        for document in self.api.iter().chain(&self.apis) {
            let served = served.get_or_insert_with(ServedResources::default);
            for (group, listed) in document.list.group_versions() {
                add_version(served, group, listed);
            }
        }
        served
    }

    /// Digest of what it serves, in upper-case hex; `None` until both documents have been read.
    pub(super) fn served_hash(&self) -> Option<String> {
        let mut digest = Context::new(&SHA256);
        for document in [self.api.as_ref()?, self.apis.as_ref()?] {
            digest.update(&serde_json::to_vec(document.list.as_ref()).ok()?);
        }
        Some(data_encoding::HEXUPPER.encode(&digest.finish().as_ref()[..16]))
    }

    /// Keeps the reason, and logs it once.
    fn take_error(&mut self, failure: Option<(Failure, String)>) -> bool {
        let error = failure.map(|(_, error)| error);
        if error == self.error {
            return false;
        }
        let server = self.hostname.as_str();
        match &error {
            Some(error) => tracing::warn!(
                target: LOG, server, error,
                "cannot read a server's documents; what it served last is kept"
            ),
            None => tracing::info!(target: LOG, server, "a server's documents can be read again"),
        }
        self.error = error;
        true
    }
}

fn add_version(served: &mut ServedResources, group: &str, listed: &ApiVersionDiscovery) {
    let version = listed.version.as_str();
    if listed.freshness == Freshness::Stale && listed.resources.is_empty() {
        served.insert_unread_group_version(group, version);
        return;
    }
    served.insert_group_version(group, version);
    for resource in &listed.resources {
        // Without verbs it only stands for its subresources.
        if let Some(verbs) = &resource.verbs {
            served.insert(group, version, &resource.resource, None, verbs);
        }
        for subresource in &resource.subresources {
            let verbs = subresource.verbs.as_deref().unwrap_or_default();
            served.insert(group, version, &resource.resource, Some(&subresource.subresource), verbs);
        }
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
            leases_awaited_until: None,
            cache_problem: None,
            remembered: Memory::new(),
            is_due: true,
        }
    }

    /// Takes a report. One of a server that has left is dropped.
    pub(super) fn report(&mut self, report: Report, now: Instant) -> Option<&Server> {
        let server = self.server_mut(&report.server)?;
        let is_new = server.apply(report.reading, report.began, now);
        self.is_due |= is_new;
        self.server_mut(&report.server).map(|server| &*server)
    }

    /// Takes what a server says beside its lists. One that has left is dropped.
    pub(super) fn detail(&mut self, id: &ServerId, details: Details) {
        self.is_due |= self.server_mut(id).is_some_and(|server| server.detail(details));
    }

    /// Takes what an earlier run knew of servers, unless this one knows more; of those that are not known, for the time
    /// when they are.
    pub(super) fn restore(&mut self, memory: Memory) {
        for (id, remembered) in memory {
            match self.server_mut(&id) {
                Some(server) if server.served.is_none() => server.restore(remembered),
                Some(_) => continue,
                None => drop(self.remembered.insert(id, remembered)),
            }
            self.is_due = true;
        }
    }

    /// What the next run may need to know.
    pub(super) fn remember(&self) -> Memory {
        let known = self.servers().filter_map(|server| Some((server.id.clone(), server.remember()?)));
        self.remembered.clone().into_iter().chain(known).collect()
    }

    /// Takes what the cache directory is like.
    pub(super) fn cache(&mut self, problem: Option<String>) {
        self.is_due |= self.cache_problem != problem;
        self.cache_problem = problem;
    }

    /// Takes a failed connect of the data path and says whether it is news of a server that is known.
    pub(super) fn connect_failed(&mut self, id: &ServerId, now: Instant) -> bool {
        let Some(server) = self.server_mut(id) else { return false };
        let is_news = server.health.standing().available;
        server.health.connect_failed(now);
        if is_news {
            let server = server.hostname.as_str();
            tracing::warn!(target: "mixed_version_proxy", server, "no connection to a server: nothing is sent to it for now");
        }
        self.is_due |= is_news;
        is_news
    }

    /// Adds a peer. One that was known under the same ID, but reached otherwise, keeps what is known of it.
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
                if let Some(remembered) = self.remembered.remove(&peer.id) {
                    server.restore(remembered);
                }
                server
            }
        };
        self.peers.insert(peer.id.clone(), server);
        self.is_due |= is_new;
    }

    /// Forgets a peer that has left for good.
    pub(super) fn remove(&mut self, id: &ServerId) {
        if let Some(server) = self.peers.remove(id) {
            tracing::info!(target: LOG, server = server.hostname, id = %id, "a peer has left");
            self.is_due = true;
        }
    }

    /// Takes what the watches of CRDs and APIServices have found.
    pub(super) fn exclude(&mut self, excluded: Excluded, now: Instant) {
        if self.exclusion_problem != excluded.problem {
            if let Some(problem) = &excluded.problem {
                tracing::warn!(target: LOG, ?problem, "cannot watch CRDs and APIServices; readiness says what helps");
            }
            self.exclusion_problem = excluded.problem;
            self.is_due = true;
        }
        if let Some(defined) = excluded.custom_resources {
            self.is_due |= self.exclusions.set_custom_resources(defined, now);
        }
        if let Some(group_versions) = excluded.api_services {
            self.is_due |= self.exclusions.set_api_services(group_versions, now);
        }
    }

    /// Peers are found through Leases, which have not been listed yet.
    pub(super) fn await_leases(&mut self, now: Instant) {
        self.leases_awaited_until = Some(now + UNHEARD_LIMIT);
    }

    /// Leases have been listed, or may not be.
    pub(super) fn leases_known(&mut self) {
        self.remembered.clear();
        self.is_due |= self.leases_awaited_until.take().is_some();
    }

    /// Takes whose Lease has ended.
    pub(super) fn take_ended(&mut self, ended: BTreeSet<ServerId>) {
        self.is_due |= self.ended != ended;
        self.ended = ended;
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
        self.is_due = true;
    }

    fn server_mut(&mut self, id: &ServerId) -> Option<&mut Server> {
        if *id == self.local.id { Some(&mut self.local) } else { self.peers.get_mut(id) }
    }

    /// Every server, the local one first.
    pub(super) fn servers(&self) -> impl Iterator<Item = &Server> {
        std::iter::once(&self.local).chain(self.peers.values())
    }

    /// Whether anything is new since this was last asked.
    pub(super) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }

    /// Whether a peer may still be going to say what it serves. Until it has, nothing is known to be missing, so no
    /// merged document is given out: clients delete what a document does not list. One of which an earlier run knew
    /// what it serves is not waited for: that is listed.
    pub(super) fn awaits_peers(&self, now: Instant) -> bool {
        self.leases_awaited(now).is_some()
            || self.peers.values().any(|server| !server.is_remembered && self.awaited_until(server, now).is_some())
    }

    /// Until when a server may still be going to say what it serves; `None` once it has, or is not waited for.
    pub(super) fn awaited_until(&self, server: &Server, now: Instant) -> Option<Instant> {
        server.health.awaited_until(now).filter(|_| !self.ended.contains(&server.id))
    }

    /// Until when Leases are waited for, if they are.
    pub(super) fn leases_awaited(&self, now: Instant) -> Option<Instant> {
        self.leases_awaited_until.filter(|until| now < *until)
    }

    /// When time alone changes something: a server that was waited for is given up, an exclusion ends.
    pub(super) fn next_wake(&self, now: Instant) -> Option<Instant> {
        let given_up = self.servers().filter_map(|server| self.awaited_until(server, now)).min();
        given_up.into_iter().chain(self.leases_awaited(now)).chain(self.exclusions.next_expiry()).min()
    }

    /// Notes that such a time has come.
    pub(super) fn wake(&mut self, now: Instant) {
        self.exclusions.expire(now);
        self.is_due = true;
    }
}
