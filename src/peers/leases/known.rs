//! What the watches of Leases have shown; pure, time is a parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::ResourceExt;
use kube::runtime::watcher::Event;
use tokio::time::Instant;

use super::own::{DURATION_SECONDS, name_of};
use super::trust::Trust;
use super::{Found, HOSTNAME, PEER_ADVERTISE_ADDRESS, SERVED_HASH};
use crate::apimachinery::peer::{Peer, PeerKind};
use crate::apimachinery::server_id::ServerId;
use crate::peers::LOG;
use crate::peers::exclusions::Problem;
use crate::view::Renewal;

/// How long the peer of a Lease that has ended is kept: a front that is replaced comes back within seconds, and what
/// vanishes from discovery makes clients forget. Meanwhile requests that only it could serve get 503.
pub(super) const GRACE: Duration = Duration::from_secs(5 * 60);

/// Longest gap between two sightings of the own Lease over which time counts: beyond it the watch may have stood still.
const WATCH_GAP: Duration = Duration::from_secs(DURATION_SECONDS as u64);

/// Which watch an event comes from.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Source {
    /// Leases of fronts.
    Front,
    /// Identity Leases of kube-apiservers.
    Plain,
}

/// Everything that is known from Leases.
pub(super) struct Known {
    id: ServerId,
    own_name: String,
    trust: Trust,
    clock: Clock,
    entries: BTreeMap<(Source, ServerId), Entry>,
    /// Names seen in a list that is not complete yet.
    listing: BTreeMap<Source, Vec<ServerId>>,
    problems: BTreeMap<Source, Problem>,
    /// Which have been listed once, or may not be.
    complete: BTreeSet<Source>,
    /// What has been said in the log already, by Lease.
    distrusted: BTreeMap<String, String>,
    /// How often something was.
    refusals: u64,
}

/// One server that a Lease names.
struct Entry {
    peer: Arc<Peer>,
    served: Option<String>,
    sign: Sign,
    /// When the sign last changed, on the clock.
    changed: Duration,
    /// The same by this machine's clock, for people.
    renewal: Renewal,
    duration: Duration,
    /// When the Lease was seen to be deleted, on the clock.
    deleted: Option<Duration>,
    metadata: ObjectMeta,
}

/// What changes at each renewal. Whoever writes something else into a Lease does not renew it.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Sign {
    holder: Option<String>,
    renewed: Option<MicroTime>,
}

/// Time during which this front's own renewals were seen to come back.
#[derive(Default)]
struct Clock {
    elapsed: Duration,
    seen: Option<Instant>,
}

impl Clock {
    fn own_lease_seen(&mut self, now: Instant) {
        let gap = self.seen.replace(now).map(|seen| now - seen);
        self.elapsed += gap.filter(|gap| *gap <= WATCH_GAP).unwrap_or_default();
    }
}

impl Entry {
    /// When the Lease ended, on the clock; `None` while it has not.
    fn ended(&self, clock: Duration) -> Option<Duration> {
        let expiry = self.changed + self.duration;
        self.deleted.or_else(|| (clock > expiry).then_some(expiry))
    }
}

impl Known {
    pub(super) fn new(id: ServerId, own_name: String, trust: Trust) -> Self {
        Self {
            id,
            own_name,
            trust,
            clock: Clock::default(),
            entries: BTreeMap::new(),
            listing: BTreeMap::new(),
            problems: BTreeMap::new(),
            complete: BTreeSet::new(),
            distrusted: BTreeMap::new(),
            refusals: 0,
        }
    }

    /// How many addresses in Leases were found to name no peer.
    pub(super) fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Takes what a watch reports, and gives back the Leases of fronts that are gone for good and still lie about: each
    /// start of a front would wait for them again.
    pub(super) fn take(
        &mut self,
        source: Source,
        event: Result<Event<Lease>, Problem>,
        now: Instant,
    ) -> Vec<ObjectMeta> {
        match event {
            Err(problem) => {
                if problem == Problem::Forbidden {
                    self.complete.insert(source);
                }
                self.problems.insert(source, problem);
                return Vec::new();
            }
            Ok(Event::Init) => {
                self.listing.insert(source, Vec::new());
            }
            Ok(Event::InitApply(lease)) => {
                let id = self.apply(source, &lease, now);
                self.listing.entry(source).or_default().extend(id);
            }
            Ok(Event::Apply(lease)) => {
                self.apply(source, &lease, now);
            }
            Ok(Event::Delete(lease)) => self.delete(source, |id| server_id(source, &lease).as_ref() == Some(id)),
            Ok(Event::InitDone) => {
                let listed = self.listing.remove(&source).unwrap_or_default();
                self.delete(source, |id| !listed.contains(id));
                self.complete.insert(source);
            }
        }
        self.problems.remove(&source);
        self.forget()
    }

    fn apply(&mut self, source: Source, lease: &Lease, now: Instant) -> Option<ServerId> {
        if source == Source::Front && lease.name_any() == self.own_name {
            self.clock.own_lease_seen(now);
            return None;
        }
        let id = server_id(source, lease).filter(|id| *id != self.id)?;
        let key = (source, id.clone());
        let Some(peer) = self.peer(source, &id, lease) else {
            self.delete(source, |known| *known == id);
            return Some(id);
        };
        let sign = sign(lease);
        let clock = self.clock.elapsed;
        let known = self.entries.get(&key);
        let changed = known.filter(|known| known.sign == sign && known.deleted.is_none()).map(|known| known.changed);
        let renewal = known.map_or_else(|| Renewal::new(now), |known| known.renewal.clone());
        if changed.is_none() {
            renewal.renewed(now);
        }
        let entry = Entry {
            peer: Arc::new(peer),
            served: lease.annotations().get(SERVED_HASH).cloned(),
            sign,
            changed: changed.unwrap_or(clock),
            renewal,
            duration: duration(lease),
            deleted: None,
            metadata: lease.metadata.clone(),
        };
        self.entries.insert(key, entry);
        Some(id)
    }

    /// The peer that a Lease names, if it names one that may be.
    fn peer(&mut self, source: Source, id: &ServerId, lease: &Lease) -> Option<Peer> {
        let text = lease.annotations().get(PEER_ADVERTISE_ADDRESS)?;
        let judged = match text.parse::<SocketAddr>() {
            Ok(address) => self.trust.judge(address).map(|()| address).map_err(|reason| reason.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let name = lease.name_any();
        match judged {
            Ok(address) => {
                self.distrusted.remove(&name);
                let kind = match source {
                    Source::Front => PeerKind::Front,
                    Source::Plain => PeerKind::Plain,
                };
                let hostname = lease.labels().get(HOSTNAME).cloned().unwrap_or_else(|| id.to_string());
                Some(Peer { id: id.clone(), hostname, address, kind })
            }
            Err(reason) => {
                if self.distrusted.insert(name.clone(), text.clone()).as_ref() != Some(text) {
                    self.refusals += 1;
                    tracing::warn!(target: LOG, lease = name, address = text, reason, "a Lease names no peer");
                }
                None
            }
        }
    }

    fn delete(&mut self, source: Source, is_gone: impl Fn(&ServerId) -> bool) {
        let clock = self.clock.elapsed;
        for ((of, id), entry) in &mut self.entries {
            if *of == source && is_gone(id) {
                entry.deleted.get_or_insert(clock);
            }
        }
    }

    /// Forgets those whose Lease ended long enough ago.
    fn forget(&mut self) -> Vec<ObjectMeta> {
        let clock = self.clock.elapsed;
        let is_over = |entry: &Entry| entry.ended(clock).is_some_and(|ended| clock >= ended + GRACE);
        let forgotten = self.entries.extract_if(.., |_, entry| is_over(entry));
        forgotten
            .filter(|((source, _), entry)| *source == Source::Front && entry.deleted.is_none())
            .map(|(_, entry)| entry.metadata)
            .collect()
    }

    /// What all of it comes to. A front's Lease goes before the identity Lease of the server behind it, and at one
    /// address there is one server: whose Lease has not ended, else whose ended last.
    pub(super) fn found(&self, own: Option<Problem>) -> Found {
        let clock = self.clock.elapsed;
        let mut by_id: BTreeMap<&ServerId, &Entry> = BTreeMap::new();
        for ((_, id), entry) in &self.entries {
            by_id.entry(id).or_insert(entry); // Fronts come first.
        }
        let mut by_address: BTreeMap<SocketAddr, &Entry> = BTreeMap::new();
        let rank = |entry: &Entry| entry.ended(clock).unwrap_or(Duration::MAX);
        for entry in by_id.values() {
            let place = by_address.entry(entry.peer.address).or_insert(entry);
            if rank(entry) > rank(place) {
                *place = entry;
            }
        }
        let mut peers: Vec<Arc<Peer>> = by_address.values().map(|entry| Arc::clone(&entry.peer)).collect();
        peers.sort_by(|one, other| one.id.cmp(&other.id));
        let announced = by_address.values().filter_map(|entry| {
            let holder = entry.sign.holder.as_deref().unwrap_or_default();
            Some((entry.peer.id.clone(), format!("{holder} {}", entry.served.as_deref()?)))
        });
        let announced = announced.collect();
        let is_complete = [Source::Front, Source::Plain].iter().all(|source| self.complete.contains(source));
        let ended = by_address.values().filter(|entry| entry.ended(clock).is_some());
        let ended = ended.map(|entry| entry.peer.id.clone()).collect();
        let leases = by_address.values().map(|entry| (entry.peer.id.clone(), entry.renewal.clone())).collect();
        let problem = own.or_else(|| self.problems.values().next().cloned());
        Found { peers, announced, leases, ended, is_complete, problem }
    }
}

fn server_id(source: Source, lease: &Lease) -> Option<ServerId> {
    let name = lease.name_any();
    match source {
        Source::Plain => ServerId::parse(&name),
        Source::Front => {
            let id = ServerId::parse(&format!("apiserver-{}", name.strip_prefix("kube-peerfront-")?))?;
            (name_of(&id) == name).then_some(id)
        }
    }
}

fn sign(lease: &Lease) -> Sign {
    let spec = lease.spec.as_ref();
    Sign {
        holder: spec.and_then(|spec| spec.holder_identity.clone()),
        renewed: spec.and_then(|spec| spec.renew_time.clone()),
    }
}

/// What the Lease gives itself, but no more than an identity Lease, which is renewed every 10 s and lasts an hour, needs
/// to be seen as ended within a minute.
fn duration(lease: &Lease) -> Duration {
    const LONGEST: u64 = 60;
    let given = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    let seconds = given.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    Duration::from_secs(seconds.unwrap_or(u64::from(DURATION_SECONDS)).min(LONGEST))
}

#[cfg(test)]
mod tests;
