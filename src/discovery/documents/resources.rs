//! The document of one group version: what the merged list says, in the words of the servers' own documents, which alone
//! have storage version hashes.

use std::collections::HashMap;
use std::sync::Arc;

use super::rendered;
use crate::apimachinery::gvr::GroupVersion;
use crate::discovery::legacy::{ApiResource, ApiResourceList};
use crate::discovery::model::{
    ApiResourceDiscovery, ApiSubresourceDiscovery, ApiVersionDiscovery, Freshness, GroupVersionKind, SCOPE_NAMESPACED,
    Unknown,
};
use crate::discovery::render::Rendered;

/// What becomes of a request for the document.
#[derive(Debug)]
pub(super) enum Resources {
    /// It is given.
    Listed(Box<Rendered<ApiResourceList>>),
    /// The local server gives its own, which lists the same or says why it cannot.
    LeftToLocal,
    /// It cannot be given: only lost servers serve the group version.
    Lost,
}

/// What one server says of the group version.
pub(super) struct Listing<'i> {
    pub(super) is_local: bool,
    pub(super) listed: &'i ApiVersionDiscovery,
    /// Its document of old, if that has been read.
    pub(super) document: Option<&'i Arc<ApiResourceList>>,
}

impl Resources {
    /// `listings` are those of the servers that list the group version, in the order in which they were merged.
    pub(super) fn of(group_version: &GroupVersion, merged: &ApiVersionDiscovery, listings: &[Listing<'_>]) -> Self {
        let local = listings.iter().find(|listing| listing.is_local);
        if merged.freshness == Freshness::Stale {
            return if local.is_some() { Self::LeftToLocal } else { Self::Lost };
        }
        let documents: Vec<&Arc<ApiResourceList>> = listings.iter().filter_map(|listing| listing.document).collect();
        let is_of_local = local.is_some_and(|local| local.listed.resources == merged.resources);
        if documents.is_empty() && is_of_local {
            return Self::LeftToLocal;
        }
        let expected = essences(&merged.resources, group_version);
        let whole = documents.iter().find(|document| {
            let resources: Vec<ApiResourceDiscovery> = ApiResourceList::clone(document).into();
            essences(&resources, group_version) == expected
        });
        let list = match whole {
            Some(document) => Arc::clone(document),
            None => Arc::new(assemble(group_version, merged, &documents)),
        };
        // Left out for clients of release 1.1.
        let is_unversioned = matches!(group_version.group.as_str(), "" | "extensions");
        Self::Listed(Box::new(rendered("APIResourceList", if is_unversioned { "" } else { "v1" }, list)))
    }
}

/// What the forms must agree on: names, kinds, scope, verbs, in no order.
fn essences(resources: &[ApiResourceDiscovery], group_version: &GroupVersion) -> Vec<ApiResourceDiscovery> {
    let mut essences: Vec<_> = resources.iter().map(|resource| essence(resource, group_version)).collect();
    essences.sort_by(|one, other| one.resource.cmp(&other.resource));
    essences
}

fn essence(resource: &ApiResourceDiscovery, group_version: &GroupVersion) -> ApiResourceDiscovery {
    let mut essence = resource.known();
    complete(&mut essence.response_kind, group_version);
    essence.verbs.iter_mut().for_each(|verbs| verbs.sort_unstable());
    for subresource in &mut essence.subresources {
        // The documents of old have no place for it.
        subresource.accepted_types.clear();
        complete(&mut subresource.response_kind, group_version);
        subresource.verbs.iter_mut().for_each(|verbs| verbs.sort_unstable());
    }
    essence.subresources.sort_by(|one, other| one.subresource.cmp(&other.subresource));
    essence
}

/// Names the group and version that are not named because they are those of the list.
fn complete(kind: &mut GroupVersionKind, group_version: &GroupVersion) {
    if kind.version.is_empty() && !kind.kind.is_empty() {
        kind.group.clone_from(&group_version.group);
        kind.version.clone_from(&group_version.version);
    }
}

/// The document of a group version that no server alone serves like this.
fn assemble(
    group_version: &GroupVersion,
    merged: &ApiVersionDiscovery,
    documents: &[&Arc<ApiResourceList>],
) -> ApiResourceList {
    let indexed: Vec<HashMap<&str, &ApiResource>> = documents
        .iter()
        .map(|document| document.resources.iter().map(|listed| (listed.name.as_str(), listed)).collect())
        .collect();
    let mut resources = Vec::new();
    for resource in &merged.resources {
        let entries = entries(resource, group_version);
        let chosen = entries.into_iter().map(|entry| in_owners_words(entry, group_version, &indexed));
        resources.extend(chosen);
    }
    let mut unknown = Unknown::new();
    for document in documents {
        crate::discovery::model::absorb(&mut unknown, &document.unknown);
    }
    ApiResourceList { group_version: group_version.to_string(), resources, unknown }
}

/// The entry as the first server has it that says the same. Where none does, as the first has it with what is merged in
/// its place; where none has it at all, as converted.
fn in_owners_words(
    entry: ApiResource,
    group_version: &GroupVersion,
    documents: &[HashMap<&str, &ApiResource>],
) -> ApiResource {
    let mut namesakes = documents.iter().filter_map(|document| document.get(entry.name.as_str()).copied()).peekable();
    let first = namesakes.peek().copied();
    let expected = comparable(&entry, group_version);
    match (namesakes.find(|namesake| comparable(namesake, group_version) == expected), first) {
        (Some(same), _) => same.clone(),
        (None, Some(first)) => ApiResource {
            storage_version_hash: first.storage_version_hash.clone(),
            unknown: first.unknown.clone(),
            ..entry
        },
        (None, None) => entry,
    }
}

fn comparable(entry: &ApiResource, group_version: &GroupVersion) -> ApiResource {
    let mut comparable = entry.clone();
    if comparable.version.is_empty() && !comparable.kind.is_empty() {
        comparable.group.clone_from(&group_version.group);
        comparable.version.clone_from(&group_version.version);
    }
    comparable.verbs.iter_mut().for_each(|verbs| verbs.sort_unstable());
    if comparable.name.contains('/') {
        // The aggregated form has no place for these.
        comparable.singular_name.clear();
        comparable.short_names.clear();
        comparable.categories.clear();
        comparable.namespaced = false;
    }
    comparable.storage_version_hash.clear();
    comparable.unknown.clear();
    comparable
}

/// A resource and its subresources as entries of a document of old. What stands only for its subresources has none.
fn entries(resource: &ApiResourceDiscovery, group_version: &GroupVersion) -> Vec<ApiResource> {
    let is_namespaced = resource.scope == SCOPE_NAMESPACED;
    let of_subresource = |subresource: &ApiSubresourceDiscovery| ApiResource {
        name: format!("{}/{}", resource.resource, subresource.subresource),
        namespaced: is_namespaced,
        verbs: subresource.verbs.clone(),
        unknown: subresource.unknown.clone(),
        ..of_kind(&subresource.response_kind, group_version)
    };
    let itself = ApiResource {
        name: resource.resource.clone(),
        singular_name: resource.singular_resource.clone(),
        namespaced: is_namespaced,
        verbs: resource.verbs.clone(),
        short_names: resource.short_names.clone(),
        categories: resource.categories.clone(),
        unknown: resource.unknown.clone(),
        ..of_kind(&resource.response_kind, group_version)
    };
    let is_made_up = resource.verbs.is_none() && resource.response_kind.kind.is_empty();
    let itself = Some(itself).filter(|_| !is_made_up || resource.subresources.is_empty());
    itself.into_iter().chain(resource.subresources.iter().map(of_subresource)).collect()
}

/// An entry of which only the kind is known; its group and version are left out where they are those of the list.
fn of_kind(kind: &GroupVersionKind, group_version: &GroupVersion) -> ApiResource {
    let is_own = kind.group == group_version.group && kind.version == group_version.version;
    let (group, version) =
        if is_own { (String::new(), String::new()) } else { (kind.group.clone(), kind.version.clone()) };
    ApiResource { group, version, kind: kind.kind.clone(), ..ApiResource::default() }
}
