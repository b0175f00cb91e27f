//! From what is known to what requests look into.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Published;
use super::progress::GIVEN_UP_AFTER;
use super::{Known, Server};
use crate::openapi::index::{Location, group_version};
use crate::openapi::plan::Planned;
use crate::openapi::{Documents, Entry, OpenApi};

/// What was published last.
pub(super) struct Last {
    entries: BTreeMap<String, Entry>,
    kind: std::mem::Discriminant<OpenApi>,
    v2: Option<String>,
    missing: String,
}

impl Known {
    /// What requests are to look into from now on; `None` if that is what they look into already.
    pub(in crate::peers::openapi) fn publish(&mut self, is_started: bool, is_overdue: bool) -> Option<Published> {
        self.is_complete |= is_started && self.is_everything_known();
        let entries = self.entries();
        let state = match () {
            () if self.servers.len() < 2 && is_started => OpenApi::LeftToUpstream,
            () if !self.is_complete && is_overdue => OpenApi::LeftToUpstream,
            () if !self.is_complete => OpenApi::Awaited,
            () if !self.differs() => OpenApi::LeftToUpstream,
            () => OpenApi::Merged(Arc::new(Documents::new(entries.clone(), self.v2_entry()))),
        };
        let missing = self.missing();
        let last = Last {
            entries,
            kind: std::mem::discriminant(&state),
            v2: self.v2.as_ref().map(|(_, held)| held.hash.clone()),
            missing: missing.clone(),
        };
        if self.last.as_ref().is_some_and(|known| known.is_same(&last)) {
            return None;
        }
        self.last = Some(last);
        Some(Published { state, missing, memory: self.memory() })
    }

    fn is_everything_known(&self) -> bool {
        let is_read = |server: &Server| server.publications.is_some() && !server.is_remembered;
        let is_settled = |server: &Server| !server.is_heard || is_read(server) || server.failures >= GIVEN_UP_AFTER;
        let is_made = |(key, planned): (&String, &Planned)| match planned {
            Planned::Local(_) => true,
            // The local server's document will do until then.
            Planned::Merged(_) if self.is_custom(key) && self.local(key).is_some() => true,
            Planned::Merged(locations) => self.settled(locations).is_some_and(|sources| {
                sources.is_empty()
                    || self
                        .merged
                        .get(key)
                        .is_some_and(|(of, _)| of.iter().eq(sources.iter().map(|(location, _)| *location)))
            }),
        };
        self.servers.values().all(is_settled)
            && self.plan.iter().all(is_made)
            && (!self.differs() || self.v2.is_some() || self.v2_merging().is_some_and(|v2| v2.held.is_empty()))
    }

    /// What is known of each key. What is awaited anew stays as it was, or as the local server has it, and what has never
    /// been there is not listed before it is.
    fn entries(&self) -> BTreeMap<String, Entry> {
        let entry = |(key, planned): (&String, &Planned)| {
            let locations = match planned {
                Planned::Local(location) => return Some((key.clone(), Entry::Local(location.clone()))),
                Planned::Merged(locations) => locations,
            };
            let sources = self.settled(locations);
            let before =
                || self.last.as_ref().and_then(|last| last.entries.get(key)).cloned().or_else(|| self.local(key));
            let newest = locations.first()?;
            let entry = match (sources, self.merged.get(key)) {
                (Some(sources), None) if sources.is_empty() => {
                    before().unwrap_or_else(|| Entry::Missing(newest.clone()))
                }
                (_, None) => before()?,
                (_, Some((_, held))) => Entry::Held(newest.with_hash(&held.hash), Arc::clone(held)),
            };
            Some((key.clone(), entry))
        };
        self.plan.iter().filter_map(entry).collect()
    }

    fn is_custom(&self, key: &str) -> bool {
        group_version(key).is_some_and(|one| self.left.contains(&one))
    }

    fn local(&self, key: &str) -> Option<Entry> {
        let local = self.servers.values().find(|server| server.is_local)?;
        Some(Entry::Local(local.publications.as_ref()?.get(key)?.first()?.clone()))
    }

    fn v2_entry(&self) -> Entry {
        let location = Location { url: "/openapi/v2".to_owned() };
        match &self.v2 {
            Some((_, held)) => Entry::Held(location, Arc::clone(held)),
            None => Entry::Local(location),
        }
    }

    /// Which servers' documents are missing, and why.
    fn missing(&self) -> String {
        let missing = self.servers.values().filter(|server| self.servers.len() > 1 && server.is_heard);
        let reasons = missing.filter_map(|server| match (&server.error, &server.publications) {
            (Some(error), _) => Some(format!("{}: {error}", server.hostname)),
            (None, Some(_)) if !server.is_remembered => None,
            (None, _) => Some(format!("{}: not asked yet", server.hostname)),
        });
        reasons.collect::<Vec<_>>().join("; ")
    }
}

impl Last {
    fn is_same(&self, other: &Self) -> bool {
        let is_same_entry = |pair: (&Entry, &Entry)| match pair {
            (Entry::Held(one, one_held), Entry::Held(other, other_held)) => {
                one == other && Arc::ptr_eq(one_held, other_held)
            }
            (Entry::Local(one), Entry::Local(other)) | (Entry::Missing(one), Entry::Missing(other)) => one == other,
            _ => false,
        };
        self.kind == other.kind
            && self.v2 == other.v2
            && self.missing == other.missing
            && self.entries.keys().eq(other.entries.keys())
            && self.entries.values().zip(other.entries.values()).all(is_same_entry)
    }
}
