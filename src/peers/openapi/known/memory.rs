//! What every server published last, for the next start.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::progress::Progress;
use super::{Known, Server};
use crate::apimachinery::server_id::ServerId;
use crate::openapi::Held;
use crate::openapi::index::{Location, Publications};

/// What one server published last.
#[derive(Clone, Debug)]
pub(in crate::peers) struct Remembered {
    /// What its index listed.
    pub(in crate::peers) publications: Publications,
    /// The numbers of its version.
    pub(in crate::peers) version: Vec<u64>,
    /// Those of its documents that were needed here.
    pub(in crate::peers) documents: BTreeMap<Location, Arc<Held>>,
    /// Its `/openapi/v2`, if that was needed.
    pub(in crate::peers) v2: Option<Arc<Held>>,
}

/// Of all servers.
pub(in crate::peers) type Memory = BTreeMap<ServerId, Arc<Remembered>>;

impl PartialEq for Remembered {
    /// A document is as its hash, which its location has.
    fn eq(&self, other: &Self) -> bool {
        let v2 = |one: &Self| one.v2.as_ref().map(|held| held.hash.clone());
        self.publications == other.publications
            && self.version == other.version
            && self.documents.keys().eq(other.documents.keys())
            && v2(self) == v2(other)
    }
}

impl Eq for Remembered {}

impl Known {
    /// Begins with what an earlier run knew.
    pub(in crate::peers::openapi) fn remembering(remembered: Memory) -> Self {
        Self { remembered, ..Self::default() }
    }

    /// A server that is new: as it was in an earlier run, until it is heard and its index is read.
    pub(super) fn restored(&mut self, id: &ServerId) -> Server {
        let Some(remembered) = self.remembered.remove(id) else { return Server::default() };
        for (location, held) in &remembered.documents {
            self.documents.entry(location.clone()).or_insert_with(|| Progress::of(held));
        }
        self.is_dirty = true;
        Server {
            publications: Some(remembered.publications.clone()),
            version: remembered.version.clone(),
            v2: remembered.v2.as_ref().map(Progress::of).unwrap_or_default(),
            is_v2_due: remembered.v2.is_none(),
            is_remembered: true,
            ..Server::default()
        }
    }

    /// What the next run may need to know.
    pub(super) fn memory(&self) -> Memory {
        let mut memory = self.remembered.clone();
        for (id, server) in &self.servers {
            let Some(publications) = &server.publications else { continue };
            let held = |location: &Location| self.documents.get(location)?.held.clone();
            let documents = publications.values().flatten();
            let remembered = Remembered {
                publications: publications.clone(),
                version: server.version.clone(),
                documents: documents.filter_map(|one| Some((one.clone(), held(one)?))).collect(),
                v2: server.v2.held.clone(),
            };
            memory.insert(id.clone(), Arc::new(remembered));
        }
        memory
    }
}
