//! What is known of every server's documents: events go in, work and the outcome come out. No I/O, time is a parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::LOG;
use super::fetch::{Document, Fetched, Wanted};
use super::read::{Report, Version};
use crate::apimachinery::gvr::GroupVersion;
use crate::apimachinery::server_id::ServerId;
use crate::openapi::index::{Location, Publications, group_version};
use crate::openapi::plan::{Planned, Published};
use crate::openapi::{Held, plan};
use crate::routing::Exclusions;

pub(in crate::peers) use self::memory::{Memory, Remembered};
pub(super) use self::merging::{Merging, Outcome};
use self::merging::{Standing, V2Merging, V2Sources};
use self::progress::{GIVEN_UP_AFTER, Progress};
use self::publish::Last;

mod memory;
mod merging;
mod progress;
mod publish;
#[cfg(test)]
mod tests;

/// `/openapi/v2` is asked for no sooner after it was read: a server makes its megabytes anew after each change of a CRD.
const V2_PAUSE: Duration = Duration::from_secs(10);

/// Bytes that all documents together may take, packed: some ten times those of three versions with a thousand CRDs.
const MAX_BYTES: usize = 256 << 20;

/// Everything that is known.
#[derive(Default)]
pub(super) struct Known {
    servers: BTreeMap<ServerId, Server>,
    exclusions: Exclusions,
    /// CRDs and aggregated APIs: of these there is what the local server has.
    left: BTreeSet<GroupVersion>,
    plan: BTreeMap<String, Planned>,
    documents: BTreeMap<Location, Progress>,
    /// What was made for a key, and of which documents.
    merged: BTreeMap<String, (Vec<Location>, Arc<Held>)>,
    /// The same of `/openapi/v2`.
    v2: Option<(V2Sources, Arc<Held>)>,
    /// Whether the plan has to be made anew.
    is_dirty: bool,
    /// Set once everything was known at a time. Later changes replace document by document.
    is_complete: bool,
    /// What was published last.
    last: Option<Last>,
    /// What an earlier run knew of servers that have not been named in this one.
    remembered: Memory,
}

#[derive(Default)]
struct Server {
    is_local: bool,
    is_heard: bool,
    hostname: String,
    publications: Option<Publications>,
    version: Version,
    error: Option<String>,
    failures: u32,
    v2: Progress,
    /// Whether `v2` is older than the index.
    is_v2_due: bool,
    /// Whether all this is of an earlier run, and the index has not been read in this one.
    is_remembered: bool,
}

impl Server {
    fn published(&self) -> Option<Published<'_>> {
        let publications = self.publications.as_ref()?;
        let Standing { is_local, is_live } = self.standing();
        Some(Published { publications, version: &self.version, is_local, is_live })
    }

    fn standing(&self) -> Standing {
        Standing { is_local: self.is_local, is_live: self.is_heard && self.failures < GIVEN_UP_AFTER }
    }
}

impl Known {
    /// Takes which servers there are: ID, whether it is the local one, whether it has been heard, and its name.
    pub(super) fn set_servers<'a>(&mut self, servers: impl Iterator<Item = (&'a ServerId, bool, bool, &'a str)>) {
        let mut known = std::mem::take(&mut self.servers);
        for (id, is_local, is_heard, hostname) in servers {
            let mut server = known.remove(id).unwrap_or_else(|| self.restored(id));
            self.is_dirty |= server.is_heard != is_heard;
            (server.is_local, server.is_heard) = (is_local, is_heard);
            hostname.clone_into(&mut server.hostname);
            self.servers.insert(id.clone(), server);
        }
        self.is_dirty |= !known.is_empty();
    }

    /// Takes what is left to the local server.
    pub(super) fn set_exclusions(&mut self, exclusions: &Exclusions) {
        self.exclusions.clone_from(exclusions);
        self.is_dirty = true;
    }

    /// Takes a reader's report.
    pub(super) fn reported(&mut self, report: Report) {
        let Some(server) = self.servers.get_mut(&report.server) else { return };
        let name = server.hostname.as_str();
        match report.outcome {
            Ok((publications, version)) => {
                let is_new = server.publications.as_ref() != Some(&publications);
                if is_new {
                    tracing::info!(target: LOG, server = name, documents = publications.len(), "a server's index is new");
                }
                // No index names the content of `/openapi/v2`: what an earlier run had of it may be older than its index.
                server.is_v2_due |= is_new || server.is_remembered;
                // What failed while it could not be read is worth another try.
                server.v2.not_before.take_if(|_| server.error.is_some());
                (server.publications, server.version) = (Some(publications), version);
                (server.error, server.failures, server.is_remembered) = (None, 0, false);
                self.is_dirty = true;
            }
            Err(error) => {
                if server.error.as_ref() != Some(&error) {
                    tracing::warn!(target: LOG, server = name, error, "cannot read a server's index of OpenAPI documents");
                }
                server.failures = server.failures.saturating_add(1);
                server.error = Some(error);
                self.is_dirty |= server.failures == GIVEN_UP_AFTER;
            }
        }
    }

    /// Makes the plan anew if anything it is made of has changed, and forgets what it has no use for.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.is_dirty) {
            return;
        }
        let publications = self.servers.values().filter_map(|server| server.publications.as_ref());
        let keys: BTreeSet<GroupVersion> =
            publications.flat_map(BTreeMap::keys).filter_map(|key| group_version(key)).collect();
        self.left = keys.into_iter().filter(|one| self.exclusions.of_document(one).is_some()).collect();
        let published: Vec<_> = self.newest_first().filter_map(|(_, server)| server.published()).collect();
        self.plan = plan(&published, &|one| self.left.contains(one));
        let mut wanted = BTreeSet::new();
        for planned in self.plan.values() {
            if let Planned::Merged(locations) = planned {
                wanted.extend(locations);
            }
        }
        self.documents.retain(|location, _| wanted.contains(location));
        self.merged.retain(|key, _| matches!(self.plan.get(key), Some(Planned::Merged(_))));
        if !self.differs() {
            self.v2 = None;
            for server in self.servers.values_mut() {
                (server.v2, server.is_v2_due) = (Progress::default(), true);
            }
        }
    }

    /// Servers from the newest to the oldest.
    fn newest_first(&self) -> impl Iterator<Item = (&ServerId, &Server)> {
        let mut servers: Vec<_> = self.servers.iter().collect();
        servers.sort_by(|(one_id, one), (other_id, other)| (&other.version, other_id).cmp(&(&one.version, one_id)));
        servers.into_iter()
    }

    /// Whether servers publish different documents, so that there is something to merge.
    fn differs(&self) -> bool {
        self.plan.values().any(|planned| matches!(planned, Planned::Merged(_)))
    }

    /// What is to be fetched now. It is under way from then on.
    pub(super) fn take_wanted(&mut self, now: Instant) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for planned in self.plan.values() {
            let Planned::Merged(locations) = planned else { continue };
            for location in locations {
                let progress = self.documents.entry(location.clone()).or_default();
                if progress.held.is_some() || !progress.may_start(now) {
                    continue;
                }
                let beside = |server: &Server| {
                    let all = server.publications.as_ref()?;
                    all.values().find(|found| found.contains(location)).map(BTreeSet::len)
                };
                let publishers: Vec<(&ServerId, usize)> =
                    self.servers.iter().filter_map(|(id, server)| Some((id, beside(server)?))).collect();
                let turn = progress.failures as usize % publishers.len().max(1);
                match publishers.get(turn).filter(|_| location.is_document()) {
                    Some((server, documents)) => {
                        progress.is_under_way = true;
                        let document = Document::V3(location.clone());
                        wanted.push(Wanted { server: (*server).clone(), document, comes_by_turns: *documents > 1 });
                    }
                    None => progress.failures = GIVEN_UP_AFTER,
                }
            }
        }
        let differs = self.differs();
        for (id, server) in self.servers.iter_mut().filter(|(_, server)| differs && server.publications.is_some()) {
            if server.is_v2_due && server.v2.may_start(now) {
                server.is_v2_due = false;
                server.v2.is_under_way = true;
                wanted.push(Wanted { server: id.clone(), document: Document::V2, comes_by_turns: false });
            }
        }
        wanted
    }

    /// Takes what was fetched.
    pub(super) fn fetched(&mut self, fetched: Fetched, now: Instant) {
        let Wanted { server: id, document, .. } = fetched.wanted;
        let is_full = self.packed_bytes() > MAX_BYTES;
        let server = self.servers.get_mut(&id);
        let name = server.as_ref().map_or_else(String::new, |server| server.hostname.clone());
        let progress = match &document {
            Document::V3(location) => self.documents.get_mut(location),
            Document::V2 => server.map(|server| {
                server.is_v2_due |= fetched.outcome.is_err();
                &mut server.v2
            }),
        };
        let Some(progress) = progress else { return };
        progress.is_under_way = false;
        match fetched.outcome {
            Ok(held) if !is_full => {
                let pause = if document == Document::V2 { V2_PAUSE } else { Duration::ZERO };
                *progress =
                    Progress { held: Some(Arc::new(held)), not_before: Some(now + pause), ..Progress::default() };
            }
            Ok(_) => {
                tracing::warn!(target: LOG, server = name, ?document, "OpenAPI documents take too much memory");
                progress.failed(now);
            }
            Err(error) => {
                if progress.failures == 0 {
                    tracing::warn!(target: LOG, server = name, ?document, error, "cannot read an OpenAPI document");
                }
                progress.failed(now);
            }
        }
    }

    fn packed_bytes(&self) -> usize {
        let v2 = self.servers.values().map(|server| &server.v2);
        self.documents
            .values()
            .chain(v2)
            .filter_map(|progress| progress.held.as_ref())
            .map(|held| held.packed_bytes())
            .sum()
    }

    /// What can be merged now and is not yet.
    pub(super) fn next_merging(&self) -> Option<Merging> {
        let mut merging = Merging { keys: Vec::new(), v2: None };
        for (key, planned) in &self.plan {
            let Planned::Merged(locations) = planned else { continue };
            let Some(sources) = self.settled(locations).filter(|sources| !sources.is_empty()) else { continue };
            let made_of: Vec<Location> = sources.iter().map(|(location, _)| (*location).clone()).collect();
            if self.merged.get(key).is_none_or(|(of, _)| *of != made_of) {
                let held = sources.into_iter().map(|(_, held)| Arc::clone(held)).collect();
                merging.keys.push((key.clone(), made_of, held));
            }
        }
        let is_new = |v2: &V2Merging| self.v2.as_ref().is_none_or(|(of, _)| *of != v2.made_of);
        merging.v2 = self.v2_merging().filter(|v2| !v2.held.is_empty() && is_new(v2));
        (!merging.keys.is_empty() || merging.v2.is_some()).then_some(merging)
    }

    /// The documents that are held of these; `None` while one of them is awaited.
    fn settled<'k>(&'k self, locations: &'k [Location]) -> Option<Vec<(&'k Location, &'k Arc<Held>)>> {
        let progress = locations.iter().map(|location| Some((location, self.documents.get(location)?)));
        let progress =
            progress.collect::<Option<Vec<_>>>().filter(|all| all.iter().all(|(_, one)| one.is_settled()))?;
        Some(progress.into_iter().filter_map(|(location, one)| Some((location, one.held.as_ref()?))).collect())
    }

    /// Of what `/openapi/v2` is to be made; `None` while anything is awaited or all servers agree.
    fn v2_merging(&self) -> Option<V2Merging> {
        let servers: Vec<&Server> =
            self.newest_first().map(|(_, server)| server).filter(|server| server.publications.is_some()).collect();
        if !self.differs() || !servers.iter().all(|server| server.v2.is_settled()) {
            return None;
        }
        let given = servers.into_iter().filter_map(|server| Some((server.v2.held.as_ref()?, server.standing())));
        let held: Vec<_> = given.map(|(held, standing)| (Arc::clone(held), standing)).collect();
        let documents = held.iter().map(|(held, standing)| (held.hash.clone(), *standing)).collect();
        Some(V2Merging { made_of: V2Sources { documents, left: self.left.clone() }, held })
    }

    /// Takes what was merged.
    pub(super) fn merged(&mut self, outcome: Outcome) {
        for (key, made_of, held) in outcome.keys {
            if self.plan.contains_key(&key) {
                self.merged.insert(key, (made_of, held));
            }
        }
        if let Some(v2) = outcome.v2 {
            self.v2 = Some(v2);
        }
    }
}
