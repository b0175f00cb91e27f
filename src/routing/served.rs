//! What one server serves, as its discovery documents say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::apimachinery::gvr::GroupVersion;

/// A verb of discovery documents.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verb {
    /// `create`
    Create,
    /// `delete`
    Delete,
    /// `deletecollection`
    DeleteCollection,
    /// `get`
    Get,
    /// `list`
    List,
    /// `patch`
    Patch,
    /// `update`
    Update,
    /// `watch`
    Watch,
}

impl Verb {
    const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// Reads a verb; `None` for one that no discovery document speaks of, such as `proxy` or the empty one.
    #[must_use]
    pub fn parse(verb: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == verb)
    }

    /// The verb as Kubernetes spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

/// A set of verbs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Verbs(u8);

impl Verbs {
    /// Whether the verb is in the set.
    #[must_use]
    pub fn contains(self, verb: Verb) -> bool {
        self.0 & (1 << verb as u8) != 0
    }

    /// Whether a request with this verb is served; one without a known verb is not judged by it.
    pub(super) fn allow(self, verb: Option<Verb>) -> bool {
        verb.is_none_or(|verb| self.contains(verb))
    }

    /// The verbs of the set, in alphabetical order.
    pub fn iter(self) -> impl Iterator<Item = Verb> {
        Verb::ALL.into_iter().filter(move |verb| self.contains(*verb))
    }
}

impl FromIterator<Verb> for Verbs {
    fn from_iter<I: IntoIterator<Item = Verb>>(verbs: I) -> Self {
        Self(verbs.into_iter().fold(0, |set, verb| set | 1 << verb as u8))
    }
}

impl fmt::Display for Verbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs: Vec<_> = self.iter().map(Verb::as_str).collect();
        f.write_str(&verbs.join(","))
    }
}

/// Everything that one server serves.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServedResources {
    group_versions: BTreeMap<GroupVersion, BTreeMap<String, Resource>>,
    unread: BTreeSet<GroupVersion>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Resource {
    /// `None` if only subresources of it are served, as of a few virtual parents.
    verbs: Option<Verbs>,
    subresources: BTreeMap<String, Verbs>,
}

/// One resource or subresource that a server serves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Served<'s> {
    /// Its group and version.
    pub group_version: &'s GroupVersion,
    /// The resource.
    pub resource: &'s str,
    /// The subresource; `None` for the resource itself.
    pub subresource: Option<&'s str>,
    /// What can be done with it, as far as the verbs are known ones.
    pub verbs: Verbs,
}

impl ServedResources {
    /// Makes an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a group version, which may stay without resources.
    pub fn insert_group_version(&mut self, group: &str, version: &str) {
        self.resources(group, version);
    }

    /// Adds a group version that the server lists without having said yet what is in it.
    pub fn insert_unread_group_version(&mut self, group: &str, version: &str) {
        self.unread.insert(GroupVersion::new(group, version));
    }

    /// Group versions of which it is not known what is in them.
    pub fn unread(&self) -> impl Iterator<Item = &GroupVersion> {
        self.unread.iter()
    }

    /// Adds a resource or one of its subresources. Verbs that are not known are left out.
    pub fn insert(
        &mut self,
        group: &str,
        version: &str,
        resource: &str,
        subresource: Option<&str>,
        verbs: &[impl AsRef<str>],
    ) {
        let verbs = verbs.iter().filter_map(|verb| Verb::parse(verb.as_ref())).collect();
        let served = self.resources(group, version).entry(resource.to_owned()).or_default();
        match subresource {
            Some(subresource) => {
                served.subresources.insert(subresource.to_owned(), verbs);
            }
            None => served.verbs = Some(verbs),
        }
    }

    /// The group versions, also those without resources, in order.
    pub fn group_versions(&self) -> impl Iterator<Item = &GroupVersion> {
        self.group_versions.keys()
    }

    /// Resources and subresources, in order.
    pub fn iter(&self) -> impl Iterator<Item = Served<'_>> {
        self.group_versions.iter().flat_map(|(group_version, resources)| {
            resources.iter().flat_map(move |(name, resource)| {
                let of = move |subresource, verbs| Served { group_version, resource: name, subresource, verbs };
                let itself = resource.verbs.map(|verbs| of(None, verbs));
                let parts = resource.subresources.iter().map(move |(part, verbs)| of(Some(part.as_str()), *verbs));
                itself.into_iter().chain(parts)
            })
        })
    }

    fn resources(&mut self, group: &str, version: &str) -> &mut BTreeMap<String, Resource> {
        self.group_versions.entry(GroupVersion::new(group, version)).or_default()
    }
}
