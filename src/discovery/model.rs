//! The types of `apidiscovery.k8s.io`, v2 and v2beta1 alike: the two differ in name only.
//!
//! Fields stand in upstream's order and are left out where upstream leaves them out, so that what is written equals
//! what a kube-apiserver writes. A field that this version does not know is kept at every level and written after
//! the known ones.
//!
//! Source: <https://github.com/kubernetes/api/blob/v0.36.3/apidiscovery/v2/types.go>

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Group of these types.
pub const GROUP: &str = "apidiscovery.k8s.io";
/// Kind of an aggregated document.
pub const KIND: &str = "APIGroupDiscoveryList";
/// Scope of a resource whose objects live in a namespace.
pub const SCOPE_NAMESPACED: &str = "Namespaced";
/// Scope of a resource whose objects belong to the cluster.
pub const SCOPE_CLUSTER: &str = "Cluster";

/// Fields that this version has no name for, by name.
pub type Unknown = BTreeMap<String, Value>;

/// Everything one server, or the whole cluster, serves under `/api` or `/apis`, without `kind` and `apiVersion`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ApiGroupDiscoveryList {
    /// List metadata; empty in practice, but always written.
    #[serde(default, deserialize_with = "null_is_default")]
    pub metadata: Unknown,
    /// Groups, in the order in which clients prefer them.
    #[serde(default, deserialize_with = "null_is_default")]
    pub items: Vec<ApiGroupDiscovery>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// One API group; the core group has the empty name.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ApiGroupDiscovery {
    /// Empty in practice.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Empty in practice.
    #[serde(
        default,
        rename = "apiVersion",
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub api_version: String,
    /// Holds the name of the group.
    #[serde(default, deserialize_with = "null_is_default")]
    pub metadata: GroupMetadata,
    /// Versions; clients prefer the first.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ApiVersionDiscovery>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// Metadata of a group.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct GroupMetadata {
    /// Name of the group; empty for the core group.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// All other metadata; none in practice.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// One version of a group.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ApiVersionDiscovery {
    /// Name of the version, such as `v1`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub version: String,
    /// Its resources.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ApiResourceDiscovery>,
    /// Whether the resources are known to be right now.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Freshness::is_unset")]
    pub freshness: Freshness,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// One resource of a version.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiResourceDiscovery {
    /// Plural, lower-case name, such as `pods`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub resource: String,
    /// Kind of its objects. Never null when written: client-go 0.26.0 to 0.26.3 crash on null
    /// (<https://github.com/kubernetes/kubernetes/issues/118361>).
    #[serde(default, deserialize_with = "null_is_default")]
    pub response_kind: GroupVersionKind,
    /// [`SCOPE_CLUSTER`] or [`SCOPE_NAMESPACED`].
    #[serde(default, deserialize_with = "null_is_default")]
    pub scope: String,
    /// Singular name, such as `pod`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub singular_resource: String,
    /// Kubernetes verbs; `None` where the document says null, which only a resource known by its subresources does.
    #[serde(default)]
    pub verbs: Option<Vec<String>>,
    /// Short names, such as `po`.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Subresources, such as `status`.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub subresources: Vec<ApiSubresourceDiscovery>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// One subresource of a resource.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiSubresourceDiscovery {
    /// Name, such as `status`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub subresource: String,
    /// Kind that it answers with; never null when written.
    #[serde(default, deserialize_with = "null_is_default")]
    pub response_kind: GroupVersionKind,
    /// Kinds that it takes, where they differ from what it answers with.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub accepted_types: Vec<GroupVersionKind>,
    /// Kubernetes verbs.
    #[serde(default)]
    pub verbs: Option<Vec<String>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// A kind; an empty group or version means that of the surrounding group version.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct GroupVersionKind {
    /// API group.
    #[serde(default, deserialize_with = "null_is_default")]
    pub group: String,
    /// API version.
    #[serde(default, deserialize_with = "null_is_default")]
    pub version: String,
    /// Kind, such as `Pod`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub kind: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// Whether a group version's resources are known to be right now.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "String", into = "String")]
pub enum Freshness {
    /// Nothing is said; clients take it as current.
    #[default]
    Unset,
    /// Read from a server that answers.
    Current,
    /// The server that serves it does not answer. client-go drops every resource of such a group version.
    Stale,
    /// A word that this version does not know.
    Other(String),
}

impl Freshness {
    fn is_unset(&self) -> bool {
        *self == Self::Unset
    }
}

impl From<String> for Freshness {
    fn from(text: String) -> Self {
        match text.as_str() {
            "" => Self::Unset,
            "Current" => Self::Current,
            "Stale" => Self::Stale,
            _ => Self::Other(text),
        }
    }
}

impl From<Freshness> for String {
    fn from(freshness: Freshness) -> Self {
        match freshness {
            Freshness::Unset => Self::new(),
            Freshness::Current => "Current".to_owned(),
            Freshness::Stale => "Stale".to_owned(),
            Freshness::Other(text) => text,
        }
    }
}

impl ApiGroupDiscoveryList {
    /// Every group and version of the list, in its order.
    pub fn group_versions(&self) -> impl Iterator<Item = (&str, &ApiVersionDiscovery)> {
        self.items.iter().flat_map(|group| group.versions.iter().map(|version| (group.name(), version)))
    }

    /// The version of that name in the group of that name; the first if it is listed twice.
    #[must_use]
    pub fn version(&self, group: &str, version: &str) -> Option<&ApiVersionDiscovery> {
        self.group_versions()
            .find(|(name, listed)| *name == group && listed.version == version)
            .map(|(_, listed)| listed)
    }

    /// The list without the group versions for which `is_excluded` holds; a group that loses all of them goes too.
    #[must_use]
    pub fn without(&self, is_excluded: impl Fn(&str, &str) -> bool) -> Self {
        let mut rest = self.clone();
        rest.items.retain_mut(|group| {
            let name = group.metadata.name.clone();
            let before = group.versions.len();
            group.versions.retain(|version| !is_excluded(&name, &version.version));
            before == 0 || !group.versions.is_empty()
        });
        rest
    }

    /// Brings a list just read into the form in which it is kept: what every list says of itself is left out, and so
    /// is the empty timestamp that servers before 1.34 write.
    pub(super) fn normalize(&mut self) {
        self.unknown.remove("kind");
        self.unknown.remove("apiVersion");
        for group in &mut self.items {
            if group.metadata.unknown.get("creationTimestamp") == Some(&Value::Null) {
                group.metadata.unknown.remove("creationTimestamp");
            }
        }
    }
}

impl ApiGroupDiscovery {
    /// Name of the group; empty for the core group.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }
}

impl ApiResourceDiscovery {
    /// Whether the two are equal in every field that upstream knows.
    pub(super) fn is_same_to_upstream(&self, other: &Self) -> bool {
        self == other || self.known() == other.known()
    }

    /// The resource without fields that upstream does not know.
    pub(super) fn known(&self) -> Self {
        let mut known = self.clone();
        known.unknown.clear();
        known.response_kind.unknown.clear();
        for subresource in &mut known.subresources {
            subresource.unknown.clear();
            subresource.response_kind.unknown.clear();
            subresource.accepted_types.iter_mut().for_each(|kind| kind.unknown.clear());
        }
        known
    }

    /// Takes over the unknown fields of an equally named resource, save those that it has itself.
    pub(super) fn absorb_unknown(&mut self, other: &Self) {
        absorb(&mut self.unknown, &other.unknown);
        absorb(&mut self.response_kind.unknown, &other.response_kind.unknown);
        for subresource in &mut self.subresources {
            let namesake = other.subresources.iter().find(|candidate| candidate.subresource == subresource.subresource);
            if let Some(namesake) = namesake {
                subresource.absorb_unknown(namesake);
            }
        }
    }
}

impl ApiSubresourceDiscovery {
    /// Takes over the unknown fields of an equally named subresource, save those that it has itself.
    pub(super) fn absorb_unknown(&mut self, other: &Self) {
        absorb(&mut self.unknown, &other.unknown);
        absorb(&mut self.response_kind.unknown, &other.response_kind.unknown);
        for (mine, theirs) in self.accepted_types.iter_mut().zip(&other.accepted_types) {
            absorb(&mut mine.unknown, &theirs.unknown);
        }
    }
}

/// Adds the fields of `from` that `into` lacks.
pub(super) fn absorb(into: &mut Unknown, from: &Unknown) {
    for (name, value) in from {
        if !into.contains_key(name) {
            into.insert(name.clone(), value.clone());
        }
    }
}

/// Reads null as if the field were absent, as Go does.
pub(super) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
