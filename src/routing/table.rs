//! Who serves what: built aside from every server's documents, then read by requests without a lock.

mod counts;

use std::collections::HashMap;
use std::sync::Arc;

use super::exclusion::{Exclusion, Exclusions, is_built_in};
use super::served::{Served, ServedResources, Verb, Verbs};
use crate::apimachinery::gvr::{GroupVersion, GroupVersionResource};
use crate::apimachinery::peer::Peer;
use crate::request_info::RequestInfo;

/// Who serves what, at which address. Immutable; a change makes a new one.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Table {
    groups: HashMap<String, HashMap<String, GroupVersionRoutes>>,
    peers: Vec<Arc<Peer>>,
    /// Who serves any of a group version, or of a group, whose version is empty here.
    documents: HashMap<GroupVersion, Routes>,
    /// All peers, for what every server answers; its key is empty, as upstream counts what is for no resource.
    everything: (GroupVersionResource, Routes),
    local_read: bool,
    only_built_in: bool,
}

#[derive(Debug, Default, Eq, PartialEq)]
struct GroupVersionRoutes {
    /// Set if an APIService serves the whole of it.
    exclusion: Option<Exclusion>,
    /// Set if a server lists it and has not said yet what is in it.
    unread: bool,
    resources: HashMap<String, ResourceRoutes>,
}

#[derive(Debug, Eq, PartialEq)]
pub(super) struct ResourceRoutes {
    /// The resource as its servers spell it, for logs and metrics.
    pub(super) key: GroupVersionResource,
    /// Why only the local server counts.
    exclusion: Option<Exclusion>,
    pub(super) itself: Routes,
    subresources: HashMap<String, Routes>,
}

/// The servers of one resource or subresource, with the verbs that each of them knows.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Routes {
    pub(super) local: Option<Verbs>,
    pub(super) peers: Vec<(usize, Verbs)>,
}

/// What the table says of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'v> {
    pub(super) exclusion: Option<Exclusion>,
    /// Whether a server may have more in the group version than the table knows.
    pub(super) unread: bool,
    pub(super) resource: Option<&'v ResourceRoutes>,
    /// The servers of exactly the resource or subresource that is asked for.
    pub(super) routes: Option<&'v Routes>,
}

impl Table {
    /// Builds the table of what the local server serves, `None` if its documents have not been read yet, and of what
    /// each peer serves, if that is known. What is excluded stays in it, marked: peers never add it, but one that serves
    /// it may stand in for a local server that served it and is down.
    #[must_use]
    pub fn build(
        local: Option<&ServedResources>,
        peers: &[(Arc<Peer>, Option<&ServedResources>)],
        exclusions: &Exclusions,
    ) -> Self {
        let only_built_in = exclusions.only_built_in();
        let mut table = Self { local_read: local.is_some(), only_built_in, ..Self::default() };
        for served in local.into_iter().flat_map(ServedResources::iter) {
            table.routes(&served).local = Some(served.verbs);
        }
        for group_version in local.into_iter().flat_map(ServedResources::group_versions) {
            table.add_document(group_version, |routes| routes.local = Some(Verbs::default()));
        }
        for (index, (peer, serves)) in peers.iter().enumerate() {
            table.peers.push(Arc::clone(peer));
            table.everything.1.peers.push((index, Verbs::default()));
            for served in serves.iter().flat_map(|served| served.iter()) {
                table.routes(&served).peers.push((index, served.verbs));
                if exclusions.of_resource(served.group_version, served.resource).is_none() {
                    table.add_document(served.group_version, |routes| routes.add_peer(index));
                }
            }
        }
        let all = local.into_iter().chain(peers.iter().filter_map(|(_, serves)| *serves));
        for group_version in all.flat_map(ServedResources::unread) {
            table.group_version(group_version).unread = true;
        }
        table.mark(exclusions);
        table
    }

    /// All peers, under an empty key.
    pub(super) fn everything(&self) -> (&GroupVersionResource, &Routes) {
        (&self.everything.0, &self.everything.1)
    }

    /// Who serves any of a group version, or of a group, whose version is empty here; `None` if nobody does.
    pub(super) fn of_document(&self, group_version: &GroupVersion) -> Option<&Routes> {
        self.documents.get(group_version)
    }

    /// Whether the local server's documents have been read.
    pub(super) fn local_read(&self) -> bool {
        self.local_read
    }

    /// The peers, in the order of their numbers.
    #[must_use]
    pub fn peers(&self) -> &[Arc<Peer>] {
        &self.peers
    }

    /// How many resources and subresources the peer of this number serves.
    pub(super) fn served_by(&self, index: usize) -> usize {
        let serves = |routes: &&Routes| routes.peers.iter().any(|(peer, _)| *peer == index);
        let resources = self.groups.values().flat_map(HashMap::values).flat_map(|routes| routes.resources.values());
        let all =
            resources.flat_map(|resource| std::iter::once(&resource.itself).chain(resource.subresources.values()));
        all.filter(serves).count()
    }

    /// What is known of the resource or subresource that a request is for.
    pub(super) fn find(&self, info: &RequestInfo<'_>) -> Entry<'_> {
        let group_version =
            self.groups.get(info.api_group.as_ref()).and_then(|versions| versions.get(info.api_version.as_ref()));
        let resource = group_version.and_then(|routes| routes.resources.get(info.resource.as_ref()));
        let routes = resource.and_then(|resource| match info.subresource.as_ref() {
            "" => Some(&resource.itself),
            subresource => resource.subresources.get(subresource),
        });
        let exclusion = match (resource, group_version) {
            (Some(resource), _) => resource.exclusion,
            (None, Some(group_version)) => group_version.exclusion,
            (None, None) => self.unknown_group(&info.api_group),
        };
        let unread = group_version.is_some_and(|group_version| group_version.unread);
        Entry { exclusion, unread, resource, routes }
    }

    /// Whether a server lists a group version, or one of a group if the version is empty, and has not said what is in it.
    pub(super) fn is_unread(&self, group: &str, version: &str) -> bool {
        let is_meant = |name: &String| version.is_empty() || name == version;
        let mut versions = self.groups.get(group).into_iter().flatten();
        versions.any(|(name, routes)| is_meant(name) && routes.unread)
    }

    /// Why a group version of which no resource is meant, or a group if the version is empty, is left to the local
    /// server.
    pub(super) fn exclusion_of(&self, group: &str, version: &str) -> Option<Exclusion> {
        let known = self.groups.get(group).and_then(|versions| versions.get(version));
        known.map_or_else(|| self.unknown_group(group), |routes| routes.exclusion)
    }

    fn unknown_group(&self, group: &str) -> Option<Exclusion> {
        (self.only_built_in && !is_built_in(group)).then_some(Exclusion::NotBuiltIn)
    }

    fn add_document(&mut self, group_version: &GroupVersion, add: impl Fn(&mut Routes)) {
        add(self.documents.entry(group_version.clone()).or_default());
        add(self.documents.entry(GroupVersion::new(&group_version.group, "")).or_default());
    }

    fn routes(&mut self, served: &Served<'_>) -> &mut Routes {
        let resource = self.resource(served.group_version, served.resource);
        match served.subresource {
            None => &mut resource.itself,
            Some(part) => resource.subresources.entry(part.to_owned()).or_default(),
        }
    }

    fn resource(&mut self, group_version: &GroupVersion, resource: &str) -> &mut ResourceRoutes {
        self.group_version(group_version).resources.entry(resource.to_owned()).or_insert_with(|| ResourceRoutes {
            key: GroupVersionResource { group_version: group_version.clone(), resource: resource.to_owned() },
            exclusion: None,
            itself: Routes::default(),
            subresources: HashMap::new(),
        })
    }

    fn group_version(&mut self, group_version: &GroupVersion) -> &mut GroupVersionRoutes {
        let versions = self.groups.entry(group_version.group.clone()).or_default();
        versions.entry(group_version.version.clone()).or_default()
    }

    /// Notes at everything that is excluded why it is, also at what nobody serves.
    fn mark(&mut self, exclusions: &Exclusions) {
        for defined in exclusions.custom_resources() {
            self.resource(&defined.group_version, &defined.resource);
        }
        for group_version in exclusions.api_services() {
            self.group_version(group_version);
        }
        for (group, versions) in &mut self.groups {
            for (version, routes) in versions {
                let group_version = GroupVersion::new(group, version);
                routes.exclusion = exclusions.of_group_version(&group_version);
                for (name, resource) in &mut routes.resources {
                    resource.exclusion = exclusions.of_resource(&group_version, name);
                }
            }
        }
    }
}

impl Routes {
    /// Adds a peer once, whatever verbs it knows.
    fn add_peer(&mut self, index: usize) {
        if self.peers.last().is_none_or(|(last, _)| *last != index) {
            self.peers.push((index, Verbs::default()));
        }
    }

    /// Whether some peer, available or not, serves it and knows the verb.
    pub(super) fn has_peer(&self, verb: Option<Verb>) -> bool {
        self.peers.iter().any(|(_, verbs)| verbs.allow(verb))
    }
}
