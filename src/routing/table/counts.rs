//! What the table comes to in numbers, for metrics and people. Never asked by a request.

use std::collections::BTreeMap;

use super::{GroupVersionRoutes, ResourceRoutes, Routes, Table};
use crate::apimachinery::gvr::GroupVersion;
use crate::apimachinery::peer::Peer;

/// The servers that are there and of which it is known what they serve, by the table's peers.
struct Live {
    local: bool,
    peers: Vec<bool>,
}

impl Live {
    fn count(&self) -> usize {
        usize::from(self.local) + self.peers.iter().filter(|is_live| **is_live).count()
    }

    fn serving(&self, routes: &Routes) -> usize {
        let peers = routes.peers.iter().filter(|(index, _)| self.peers[*index]).count();
        usize::from(self.local && routes.local.is_some()) + peers
    }

    /// Whether some of them serve it and some do not.
    fn is_skewed(&self, routes: &Routes) -> bool {
        let serving = self.serving(routes);
        serving > 0 && serving < self.count()
    }

    fn skewed(&self, routes: &GroupVersionRoutes) -> usize {
        let is_skewed = |resource: &&ResourceRoutes| {
            self.is_skewed(&resource.itself) || resource.subresources.values().any(|part| self.is_skewed(part))
        };
        let counted = routes.resources.values().filter(|resource| resource.exclusion.is_none());
        counted.filter(is_skewed).count()
    }
}

impl Table {
    /// Of each group version that is taken from peers, the number of resources that only some of the live servers serve,
    /// themselves or with one of their subresources; 0 where all serve the same. A group version in which a server may
    /// have more than is known is left out.
    #[must_use]
    pub fn skew(&self, is_local_live: bool, is_live: impl Fn(&Peer) -> bool) -> BTreeMap<GroupVersion, usize> {
        let peers = self.peers.iter().map(|peer| is_live(peer)).collect();
        let live = Live { local: is_local_live, peers };
        let all = self.groups.iter().flat_map(|(group, versions)| {
            versions.iter().map(move |(version, routes)| (GroupVersion::new(group, version), routes))
        });
        let counted = all.filter(|(_, routes)| routes.exclusion.is_none() && !routes.unread);
        counted.map(|(group_version, routes)| (group_version, live.skewed(routes))).collect()
    }
}
