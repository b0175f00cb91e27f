//! What is never taken from peers: resources of CRDs, and group versions that an APIService sends elsewhere.
//!
//! Their definitions live in storage that all servers share, so the local server knows them as well as any peer, and
//! after a deletion a peer's documents may still list what is gone. Upstream leaves out whole group versions; here a
//! CRD hides its own resource only, so that one in a built-in group does not hide the built-in part.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/util/peerproxy/gv_exclusion_manager.go>

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use crate::apimachinery::gvr::{GroupVersion, GroupVersionResource};

/// How long a deleted definition still counts: as long as upstream lets it.
/// Source: <https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controlplane/apiserver/peer.go>
pub const GRACE_PERIOD: Duration = Duration::from_secs(5 * 60);

/// Groups built into some kube-apiserver that do not end in `.k8s.io`.
const BUILT_IN: [&str; 6] = ["", "apps", "autoscaling", "batch", "extensions", "policy"];
/// Parents of built-in groups with more than one label before `.k8s.io`; other such groups belong to CRDs.
const BUILT_IN_PARENTS: [&str; 2] = ["apiserver", "authorization"];
/// Groups with one label before `.k8s.io` that are no part of kube-apiserver.
const NOT_BUILT_IN: [&str; 1] = ["metrics.k8s.io"];

/// Why something is left to the local server alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exclusion {
    /// A CRD defines it, or did within the last [`GRACE_PERIOD`].
    CustomResource,
    /// An APIService sends it elsewhere, or did within the last [`GRACE_PERIOD`].
    ApiService,
    /// Its group is no built-in one, and CRDs and APIServices cannot be read.
    NotBuiltIn,
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CustomResource => "a CRD defines it",
            Self::ApiService => "an APIService serves it",
            Self::NotBuiltIn => "CRDs and APIServices cannot be read and its group is not built in",
        })
    }
}

/// What is left to the local server alone. Starts with neither CRDs nor APIServices read.
#[derive(Clone, Debug, Default)]
pub struct Exclusions {
    custom_resources: Option<Declared<GroupVersionResource>>,
    api_services: Option<Declared<GroupVersion>>,
}

/// What is declared now, and when the rest was last seen declared.
#[derive(Clone, Debug)]
struct Declared<T> {
    active: BTreeSet<T>,
    deleted: BTreeMap<T, Instant>,
}

impl Exclusions {
    /// Takes in what all CRDs define, in all their versions, served or not. Returns whether anything changed.
    pub fn set_custom_resources(&mut self, defined: BTreeSet<GroupVersionResource>, now: Instant) -> bool {
        Declared::replace(&mut self.custom_resources, defined, now)
    }

    /// Takes in the group versions of all APIServices with a service. Returns whether anything changed.
    pub fn set_api_services(&mut self, group_versions: BTreeSet<GroupVersion>, now: Instant) -> bool {
        Declared::replace(&mut self.api_services, group_versions, now)
    }

    /// Forgets what was deleted [`GRACE_PERIOD`] ago. Returns whether anything changed.
    pub fn expire(&mut self, now: Instant) -> bool {
        let resources = self.custom_resources.as_mut().is_some_and(|declared| declared.expire(now));
        let services = self.api_services.as_mut().is_some_and(|declared| declared.expire(now));
        resources || services
    }

    /// When [`Self::expire`] has something to do next; `None` if nothing was deleted.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        let resources = self.custom_resources.iter().flat_map(|declared| declared.deleted.values());
        let services = self.api_services.iter().flat_map(|declared| declared.deleted.values());
        resources.chain(services).min().map(|deleted| *deleted + GRACE_PERIOD)
    }

    /// Why a resource is left to the local server; `None` if peers may serve it.
    #[must_use]
    pub fn of_resource(&self, group_version: &GroupVersion, resource: &str) -> Option<Exclusion> {
        self.of_group_version(group_version).or_else(|| {
            let resource = GroupVersionResource { group_version: group_version.clone(), resource: resource.to_owned() };
            let defined = self.custom_resources.as_ref().is_some_and(|declared| declared.contains(&resource));
            defined.then_some(Exclusion::CustomResource)
        })
    }

    /// Why a whole group version is left to the local server.
    #[must_use]
    pub fn of_group_version(&self, group_version: &GroupVersion) -> Option<Exclusion> {
        if self.api_services.as_ref().is_some_and(|declared| declared.contains(group_version)) {
            return Some(Exclusion::ApiService);
        }
        (self.only_built_in() && !is_built_in(&group_version.group)).then_some(Exclusion::NotBuiltIn)
    }

    /// Why of a group version's OpenAPI there is only what the local server publishes: it is one that is left to it, or a
    /// CRD's outside of the built-in groups.
    #[must_use]
    pub fn of_document(&self, group_version: &GroupVersion) -> Option<Exclusion> {
        self.of_group_version(group_version).or_else(|| {
            let is_defined = !is_built_in(&group_version.group)
                && self.custom_resources().any(|resource| resource.group_version == *group_version);
            is_defined.then_some(Exclusion::CustomResource)
        })
    }

    /// Whether peers serve built-in groups only, because one kind of definition has not been read.
    #[must_use]
    pub fn only_built_in(&self) -> bool {
        self.custom_resources.is_none() || self.api_services.is_none()
    }

    /// What CRDs define, the recently deleted included.
    pub(super) fn custom_resources(&self) -> impl Iterator<Item = &GroupVersionResource> {
        self.custom_resources.iter().flat_map(Declared::iter)
    }

    /// What APIServices send elsewhere, the recently deleted included.
    pub(super) fn api_services(&self) -> impl Iterator<Item = &GroupVersion> {
        self.api_services.iter().flat_map(Declared::iter)
    }
}

impl<T: Clone + Ord> Declared<T> {
    fn replace(slot: &mut Option<Self>, active: BTreeSet<T>, now: Instant) -> bool {
        let Some(known) = slot else {
            *slot = Some(Self { active, deleted: BTreeMap::new() });
            return true;
        };
        if known.active == active {
            return false;
        }
        for gone in known.active.difference(&active) {
            known.deleted.insert(gone.clone(), now);
        }
        known.deleted.retain(|declared, _| !active.contains(declared));
        known.active = active;
        true
    }

    fn expire(&mut self, now: Instant) -> bool {
        let before = self.deleted.len();
        self.deleted.retain(|_, deleted| now.duration_since(*deleted) < GRACE_PERIOD);
        self.deleted.len() < before
    }

    fn contains(&self, declared: &T) -> bool {
        self.active.contains(declared) || self.deleted.contains_key(declared)
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.active.iter().chain(self.deleted.keys())
    }
}

/// Whether a group belongs to kube-apiserver itself, in any version, as far as its name can tell.
pub(super) fn is_built_in(group: &str) -> bool {
    if BUILT_IN.contains(&group) {
        return true;
    }
    let Some(name) = group.strip_suffix(".k8s.io").filter(|_| !NOT_BUILT_IN.contains(&group)) else {
        return false;
    };
    name.split_once('.').is_none_or(|(_, parent)| BUILT_IN_PARENTS.contains(&parent))
}
