//! Many servers' lists into one, as upstream's peer-aggregated discovery merges them, extended to `/api`.
//!
//! For lists of kube-apiservers >= 1.34 the result equals upstream's byte for byte. Fields that upstream does not know
//! are kept on top of that: an equally named item takes over those that it lacks.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/discovery/aggregated/peer_aggregated_handler.go>

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::model::{
    ApiGroupDiscovery, ApiGroupDiscoveryList, ApiResourceDiscovery, ApiSubresourceDiscovery, ApiVersionDiscovery,
    absorb,
};
use super::sort::merge_preserving_relative_order;
use crate::apimachinery::server_id::ServerId;

/// Merges the lists of all servers, the local one among them.
///
/// Servers are folded in the order of their IDs, so that every node comes to the same result. One list alone is taken
/// as it is; none at all gives the empty list. Where all servers list the same, the local list itself comes back.
#[must_use]
pub fn merge(servers: &BTreeMap<ServerId, Arc<ApiGroupDiscoveryList>>, local: &ServerId) -> Arc<ApiGroupDiscoveryList> {
    if servers.len() <= 1 {
        return servers.values().next().map(Arc::clone).unwrap_or_default();
    }
    let local_list = servers.get(local);
    let local_names: Vec<&str> = local_list.map(|list| group_names(list)).unwrap_or_default();

    let mut merged = HashMap::new();
    let mut is_changed = false;
    for list in servers.values() {
        is_changed |= fold_groups(&mut merged, &list.items);
    }
    is_changed |= is_list_changed(servers);

    let orders: Vec<Vec<&str>> = servers.values().map(|list| group_names(list)).collect();
    let is_same_order = orders.iter().all(|order| *order == local_names);
    let order = match (local_list, is_changed, is_same_order) {
        (Some(list), false, true) => return Arc::clone(list),
        (_, _, true) => local_names,
        (_, _, false) => merge_preserving_relative_order(&orders),
    };
    let items = order.iter().filter_map(|name| merged.get(name)).map(|group| group.clone().into_owned()).collect();
    let mut result = ApiGroupDiscoveryList { items, ..ApiGroupDiscoveryList::default() };
    for list in servers.values() {
        absorb(&mut result.metadata, &list.metadata);
        absorb(&mut result.unknown, &list.unknown);
    }
    Arc::new(result)
}

fn group_names(list: &ApiGroupDiscoveryList) -> Vec<&str> {
    list.items.iter().map(ApiGroupDiscovery::name).collect()
}

/// Whether the lists differ beside their groups: never between kube-apiservers of today.
fn is_list_changed(servers: &BTreeMap<ServerId, Arc<ApiGroupDiscoveryList>>) -> bool {
    let mut lists = servers.values();
    let Some(first) = lists.next() else { return false };
    lists.any(|list| list.metadata != first.metadata || list.unknown != first.unknown)
}

/// Merges groups into those known so far and says whether that changed a known one.
fn fold_groups<'a>(known: &mut HashMap<&'a str, Cow<'a, ApiGroupDiscovery>>, groups: &'a [ApiGroupDiscovery]) -> bool {
    let mut is_changed = false;
    for group in groups {
        let merged = match known.get(group.name()) {
            None => Cow::Borrowed(group),
            Some(existing) => match merge_group(existing, group) {
                None => continue,
                Some(merged) => {
                    is_changed = true;
                    Cow::Owned(merged)
                }
            },
        };
        known.insert(group.name(), merged);
    }
    is_changed
}

/// `a` with what `b` adds to it; `None` if that is nothing. Metadata is `a`'s.
fn merge_group(a: &ApiGroupDiscovery, b: &ApiGroupDiscovery) -> Option<ApiGroupDiscovery> {
    let versions = merge_named(&a.versions, &b.versions, |version| &version.version, merge_version);
    let is_unknown_same = a.unknown == b.unknown && a.metadata.unknown == b.metadata.unknown;
    if versions.is_none() && is_unknown_same {
        return None;
    }
    let mut merged = ApiGroupDiscovery {
        kind: a.kind.clone(),
        api_version: a.api_version.clone(),
        metadata: a.metadata.clone(),
        versions: versions.unwrap_or_else(|| a.versions.clone()),
        unknown: a.unknown.clone(),
    };
    absorb(&mut merged.unknown, &b.unknown);
    absorb(&mut merged.metadata.unknown, &b.metadata.unknown);
    Some(merged)
}

/// `a` with what `b` adds to it; `None` if that is nothing. Freshness is `a`'s.
fn merge_version(a: &ApiVersionDiscovery, b: &ApiVersionDiscovery) -> Option<ApiVersionDiscovery> {
    let resources = merge_named(&a.resources, &b.resources, |resource| &resource.resource, merge_resource);
    if resources.is_none() && a.unknown == b.unknown {
        return None;
    }
    let mut merged = ApiVersionDiscovery {
        version: a.version.clone(),
        resources: resources.unwrap_or_else(|| a.resources.clone()),
        freshness: a.freshness.clone(),
        unknown: a.unknown.clone(),
    };
    absorb(&mut merged.unknown, &b.unknown);
    Some(merged)
}

/// `a` with what `b` adds to it; `None` if the two are equal.
///
/// Of resources that differ to upstream, verbs become the sorted union, and so do subresources, of which the later
/// wins. All other fields are `a`'s.
fn merge_resource(a: &ApiResourceDiscovery, b: &ApiResourceDiscovery) -> Option<ApiResourceDiscovery> {
    if a == b {
        return None;
    }
    // Upstream falls back to `b` where `a` has no name.
    let (base, other) = if a.resource.is_empty() { (b, a) } else { (a, b) };
    let mut merged = base.clone();
    if !a.is_same_to_upstream(b) {
        merged.verbs = union_of_verbs(a, b);
        merged.subresources = union_of_subresources(a, b);
    }
    merged.absorb_unknown(other);
    Some(merged)
}

fn union_of_verbs(a: &ApiResourceDiscovery, b: &ApiResourceDiscovery) -> Option<Vec<String>> {
    let verbs: BTreeSet<&String> = a.verbs.iter().chain(&b.verbs).flatten().collect();
    (!verbs.is_empty()).then(|| verbs.into_iter().cloned().collect())
}

fn union_of_subresources(a: &ApiResourceDiscovery, b: &ApiResourceDiscovery) -> Vec<ApiSubresourceDiscovery> {
    let mut union: BTreeMap<&str, ApiSubresourceDiscovery> = BTreeMap::new();
    for subresource in a.subresources.iter().chain(&b.subresources) {
        let mut later = subresource.clone();
        if let Some(earlier) = union.get(subresource.subresource.as_str()) {
            later.absorb_unknown(earlier);
        }
        union.insert(&subresource.subresource, later);
    }
    union.into_values().collect()
}

/// Merges two lists of named items pairwise; `None` if `b` changes nothing in `a`, its order included.
fn merge_named<'a, T: Clone>(
    a: &'a [T],
    b: &'a [T],
    name: impl Fn(&T) -> &str,
    merge_item: impl Fn(&T, &T) -> Option<T>,
) -> Option<Vec<T>> {
    let mut known: HashMap<&str, Cow<'a, T>> = a.iter().map(|item| (name(item), Cow::Borrowed(item))).collect();
    let mut is_changed = false;
    for item in b {
        match known.get(name(item)) {
            None => {
                known.insert(name(item), Cow::Borrowed(item));
            }
            Some(existing) => {
                if let Some(merged) = merge_item(existing, item) {
                    is_changed = true;
                    known.insert(name(item), Cow::Owned(merged));
                }
            }
        }
    }
    let orders: Vec<Vec<&str>> = [a, b].iter().map(|list| list.iter().map(&name).collect()).collect();
    let order = match (is_changed, orders[0] == orders[1]) {
        (false, true) => return None,
        (true, true) => orders[0].clone(),
        (_, false) => merge_preserving_relative_order(&orders),
    };
    // A name that a broken list holds twice is listed once: the first occurrence takes it.
    Some(order.iter().filter_map(|name| known.remove(name)).map(Cow::into_owned).collect())
}

#[cfg(test)]
mod tests;
