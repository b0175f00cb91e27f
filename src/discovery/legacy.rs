//! The documents of old: `/api`, `/apis` and one list of resources per group version.
//!
//! A server that gives no aggregated document is read by a [`LegacyWalk`]: a plan of what to fetch that turns the
//! answers into an aggregated list. It does no I/O; whoever fetches feeds it.
//!
//! Sources: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/apis/meta/v1/types.go> (types),
//! <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/installer.go> (`ConvertGroupVersionIntoToDiscovery`)

mod model;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::model::{
    ApiGroupDiscovery, ApiGroupDiscoveryList, ApiResourceDiscovery, ApiSubresourceDiscovery, ApiVersionDiscovery,
    Freshness, GroupMetadata, GroupVersionKind, SCOPE_CLUSTER, SCOPE_NAMESPACED, Unknown,
};
use crate::apimachinery::gvr::GroupVersion;
pub use model::{
    ApiGroup, ApiGroupList, ApiResource, ApiResourceList, ApiVersions, GroupVersionForDiscovery, LegacyDocuments,
    ServerAddressByClientCidr,
};

/// What `/api` or `/apis` of the legacy form lists.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RootDocument {
    /// Groups in the order listed, each with its versions, the preferred one first.
    pub groups: Vec<(String, Vec<String>)>,
}

/// What came of fetching the document of one group version.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Its resources.
    Resources(Vec<ApiResourceDiscovery>),
    /// 404: the server lists the group version but does not serve it, as happens where an API service of another
    /// version is stored in the shared etcd (<https://github.com/kubernetes/kubernetes/issues/96486>).
    NotServed,
    /// Anything else: no answer, an error, a document that cannot be read.
    Failed,
}

/// The plan of a legacy walk: which paths to fetch, and the list that comes of the answers.
#[derive(Debug)]
pub struct LegacyWalk {
    root: RootDocument,
    answers: HashMap<GroupVersion, Answer>,
}

impl LegacyWalk {
    /// Starts from what the root document lists. Names that cannot stand in a path are left out, and so is a group
    /// version that is listed again.
    #[must_use]
    pub fn new(mut root: RootDocument) -> Self {
        let mut seen = HashSet::new();
        for (group, versions) in &mut root.groups {
            let is_group_usable = group.is_empty() || is_path_segment(group);
            versions.retain(|version| {
                is_group_usable && is_path_segment(version) && seen.insert(GroupVersion::new(group.as_str(), version))
            });
        }
        root.groups.retain(|(_, versions)| !versions.is_empty());
        Self { root, answers: HashMap::new() }
    }

    /// Every group version whose document is still to be fetched, with its path.
    pub fn pending(&self) -> impl Iterator<Item = (GroupVersion, String)> {
        self.group_versions()
            .filter(|group_version| !self.answers.contains_key(group_version))
            .map(|group_version| (group_version.clone(), path(&group_version)))
    }

    /// Takes the answer for one group version.
    pub fn record(&mut self, group_version: GroupVersion, answer: Answer) {
        self.answers.insert(group_version, answer);
    }

    /// The list that the answers make. A group version that failed, or was never asked for, is `Stale` and keeps the
    /// resources that `last_known` has of it; one that is not served is left out.
    #[must_use]
    pub fn finish(mut self, last_known: Option<&ApiGroupDiscoveryList>) -> ApiGroupDiscoveryList {
        let mut list = ApiGroupDiscoveryList::default();
        for (group, versions) in &self.root.groups {
            let versions: Vec<ApiVersionDiscovery> = versions
                .iter()
                .filter_map(|version| {
                    let answer = self.answers.remove(&GroupVersion::new(group, version)).unwrap_or(Answer::Failed);
                    version_discovery(group, version, answer, last_known)
                })
                .collect();
            if !versions.is_empty() {
                let metadata = GroupMetadata { name: group.clone(), ..GroupMetadata::default() };
                list.items.push(ApiGroupDiscovery { metadata, versions, ..ApiGroupDiscovery::default() });
            }
        }
        list
    }

    fn group_versions(&self) -> impl Iterator<Item = GroupVersion> {
        self.root
            .groups
            .iter()
            .flat_map(|(group, versions)| versions.iter().map(move |version| GroupVersion::new(group, version)))
    }
}

fn version_discovery(
    group: &str,
    version: &str,
    answer: Answer,
    last_known: Option<&ApiGroupDiscoveryList>,
) -> Option<ApiVersionDiscovery> {
    let (resources, freshness) = match answer {
        Answer::NotServed => return None,
        Answer::Resources(resources) => (resources, Freshness::Current),
        Answer::Failed => {
            let known = last_known.and_then(|list| list.version(group, version));
            (known.map(|listed| listed.resources.clone()).unwrap_or_default(), Freshness::Stale)
        }
    };
    Some(ApiVersionDiscovery { version: version.to_owned(), resources, freshness, unknown: Unknown::new() })
}

/// Path of the document of one group version; `None` if its names cannot stand in a path.
#[must_use]
pub fn resources_path(group_version: &GroupVersion) -> Option<String> {
    let GroupVersion { group, version } = group_version;
    let is_usable = (group.is_empty() || is_path_segment(group)) && is_path_segment(version);
    is_usable.then(|| path(group_version))
}

/// Path of the document of a group version whose names can stand in one.
fn path(group_version: &GroupVersion) -> String {
    let GroupVersion { group, version } = group_version;
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// Whether a name that a server gave may stand in a path that it is asked for: letters, digits, dots and dashes.
fn is_path_segment(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    !name.is_empty() && name.bytes().all(is_plain) && name.bytes().any(|byte| byte != b'.')
}

impl From<ApiVersions> for RootDocument {
    fn from(document: ApiVersions) -> Self {
        Self { groups: vec![(String::new(), document.versions)] }
    }
}

impl From<ApiGroupList> for RootDocument {
    fn from(document: ApiGroupList) -> Self {
        Self { groups: document.groups.into_iter().map(|group| (group.name.clone(), group.into_versions())).collect() }
    }
}

impl ApiGroup {
    /// Names of the versions, the preferred one first: aggregated discovery tells preference by order alone.
    fn into_versions(self) -> Vec<String> {
        let mut versions: Vec<String> = self.versions.into_iter().map(|listed| listed.version).collect();
        let preferred = versions.iter().position(|version| *version == self.preferred_version.version);
        if let Some(index) = preferred {
            versions[..=index].rotate_right(1);
        }
        versions
    }
}

impl From<ApiResourceList> for Vec<ApiResourceDiscovery> {
    /// Resources first, then each subresource into its parent, as upstream converts. A parent that is not listed is
    /// made up, with no verbs of its own.
    fn from(list: ApiResourceList) -> Self {
        let (subresources, resources): (Vec<ApiResource>, Vec<ApiResource>) =
            list.resources.into_iter().partition(|listed| listed.name.contains('/'));
        let mut converted: Self = resources.into_iter().map(ApiResource::into_resource).collect();
        let mut positions: BTreeMap<String, usize> =
            converted.iter().enumerate().map(|(index, resource)| (resource.resource.clone(), index)).collect();
        for listed in subresources {
            let Some((parent, name)) = listed.name.split_once('/') else { continue };
            let (parent, name) = (parent.to_owned(), name.to_owned());
            let index = *positions.entry(parent.clone()).or_insert_with(|| {
                converted.push(ApiResourceDiscovery {
                    resource: parent,
                    scope: scope(listed.namespaced),
                    ..ApiResourceDiscovery::default()
                });
                converted.len() - 1
            });
            converted[index].subresources.push(listed.into_subresource(name));
        }
        converted
    }
}

impl ApiResource {
    fn response_kind(&self) -> GroupVersionKind {
        GroupVersionKind {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
            unknown: Unknown::new(),
        }
    }

    fn into_resource(self) -> ApiResourceDiscovery {
        ApiResourceDiscovery {
            response_kind: self.response_kind(),
            resource: self.name,
            scope: scope(self.namespaced),
            singular_resource: self.singular_name,
            verbs: self.verbs,
            short_names: self.short_names,
            categories: self.categories,
            subresources: Vec::new(),
            unknown: self.unknown,
        }
    }

    fn into_subresource(self, name: String) -> ApiSubresourceDiscovery {
        let response_kind = if self.kind.is_empty() { GroupVersionKind::default() } else { self.response_kind() };
        ApiSubresourceDiscovery {
            subresource: name,
            response_kind,
            accepted_types: Vec::new(),
            verbs: self.verbs,
            unknown: self.unknown,
        }
    }
}

fn scope(namespaced: bool) -> String {
    if namespaced { SCOPE_NAMESPACED.to_owned() } else { SCOPE_CLUSTER.to_owned() }
}

#[cfg(test)]
mod tests;
