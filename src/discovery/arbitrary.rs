//! Generated lists for the properties of this room, small enough that names collide often.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;

use super::model::*;
use super::render::{Rendered, TypeMeta};
use super::stale::Lists;
use crate::apimachinery::encoding::Encoding;
use crate::apimachinery::server_id::ServerId;

/// Lists of one to four servers.
pub(super) fn servers() -> impl Strategy<Value = Lists> {
    prop::collection::vec(list(), 1..5)
        .prop_map(|lists| lists.into_iter().enumerate().map(|(index, list)| (server(index), Arc::new(list))).collect())
}

/// ID of the server of that number.
pub(super) fn server(index: usize) -> ServerId {
    ServerId::from_hostname(&format!("node-{index}"))
}

/// A list in which every name stands once among its siblings.
pub(super) fn list() -> impl Strategy<Value = ApiGroupDiscoveryList> {
    (items(&["", "apps", "batch", "z.example.com", "storage.k8s.io"], group), unknown())
        .prop_map(|(items, unknown)| ApiGroupDiscoveryList { items, unknown, ..ApiGroupDiscoveryList::default() })
}

/// A list as a kube-apiserver writes it in the v2 form.
pub(super) fn written(list: &ApiGroupDiscoveryList, encoding: Encoding) -> Bytes {
    let meta = TypeMeta { kind: KIND, api_version: "apidiscovery.k8s.io/v2" };
    Rendered::new(meta, Arc::new(list.clone())).body(encoding).plain.clone()
}

fn group(name: String) -> impl Strategy<Value = ApiGroupDiscovery> {
    (items(&["v1", "v2", "v1beta1"], version), unknown()).prop_map(move |(versions, unknown)| ApiGroupDiscovery {
        metadata: GroupMetadata { name: name.clone(), unknown: Unknown::new() },
        versions,
        unknown,
        ..ApiGroupDiscovery::default()
    })
}

fn version(name: String) -> impl Strategy<Value = ApiVersionDiscovery> {
    let freshness = select(vec![Freshness::Current, Freshness::Stale]);
    (items(&["pods", "nodes", "leases"], resource), freshness, unknown()).prop_map(
        move |(resources, freshness, unknown)| ApiVersionDiscovery {
            version: name.clone(),
            resources,
            freshness,
            unknown,
        },
    )
}

fn resource(name: String) -> impl Strategy<Value = ApiResourceDiscovery> {
    let texts = (select(vec!["Pod", "<Odd & \u{2028}>"]), select(vec![SCOPE_CLUSTER, SCOPE_NAMESPACED]));
    let lists = (strings(&["po", "x"]), strings(&["all"]), items(&["status", "scale", "exec"], subresource));
    (texts, verbs(), lists, unknown()).prop_map(
        move |((kind, scope), verbs, (short_names, categories, subresources), unknown)| ApiResourceDiscovery {
            resource: name.clone(),
            response_kind: GroupVersionKind { kind: kind.to_owned(), ..GroupVersionKind::default() },
            scope: scope.to_owned(),
            singular_resource: String::new(),
            verbs,
            short_names,
            categories,
            subresources,
            unknown,
        },
    )
}

fn subresource(name: String) -> impl Strategy<Value = ApiSubresourceDiscovery> {
    (verbs(), unknown(), prop::bool::ANY).prop_map(move |(verbs, unknown, accepts)| ApiSubresourceDiscovery {
        subresource: name.clone(),
        accepted_types: if accepts { vec![GroupVersionKind::default()] } else { Vec::new() },
        verbs,
        unknown,
        ..ApiSubresourceDiscovery::default()
    })
}

fn verbs() -> impl Strategy<Value = Option<Vec<String>>> {
    prop::option::weighted(0.9, strings(&["get", "list", "create", "watch"]))
}

/// Mostly nothing.
fn unknown() -> impl Strategy<Value = Unknown> {
    prop::option::weighted(0.1, (select(vec!["new", "newer"]), select(vec![json!(1), json!({"a": [null]})])))
        .prop_map(|field| field.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<BTreeMap<_, _>>())
}

fn strings(pool: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    subsequence(pool.to_vec(), 0..=pool.len())
        .prop_shuffle()
        .prop_map(|names| names.into_iter().map(str::to_owned).collect())
}

/// Some of the pool's names, in any order, each made into an item.
fn items<T: std::fmt::Debug, S>(
    pool: &'static [&'static str],
    item: impl Fn(String) -> S + Copy,
) -> impl Strategy<Value = Vec<T>>
where
    S: Strategy<Value = T>,
{
    strings(pool).prop_flat_map(move |names| names.into_iter().map(item).collect::<Vec<_>>())
}
