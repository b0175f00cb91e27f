use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::super::arbitrary::{list, server, servers, written};
use super::super::stale::{Lists, settle};
use super::*;
use crate::apimachinery::encoding::Encoding;

/// Merges lists given as JSON, the first being that of the local server, in the order of the servers' IDs.
fn check(items: &[serde_json::Value], expected: &serde_json::Value) {
    let mut ids: Vec<ServerId> = (0..items.len()).map(server).collect();
    ids.sort();
    let lists: Lists = ids
        .iter()
        .zip(items)
        .map(|(id, items)| (id.clone(), Arc::new(serde_json::from_value(json!({ "items": items })).unwrap())))
        .collect();
    let merged = merge(&lists, &ids[0]);
    assert_eq!(serde_json::to_value(&merged.items).unwrap(), *expected);
}

fn group(name: &str, versions: &serde_json::Value) -> serde_json::Value {
    json!({ "metadata": { "name": name }, "versions": versions })
}

fn resource(name: &str, verbs: &[&str], subresources: &[&str]) -> serde_json::Value {
    let kind = json!({ "group": "", "version": "", "kind": "" });
    let subresources: Vec<_> = subresources
        .iter()
        .map(|name| json!({ "subresource": name, "responseKind": kind, "verbs": ["get"] }))
        .collect();
    let mut resource =
        json!({ "resource": name, "responseKind": kind, "scope": "", "singularResource": "", "verbs": verbs });
    if !subresources.is_empty() {
        resource["subresources"] = json!(subresources);
    }
    resource
}

#[test]
fn groups_of_all_servers_keep_their_relative_order() {
    let groups =
        |names: &[&str]| json!(names.iter().map(|name| group(name, &json!([{ "version": "v1" }]))).collect::<Vec<_>>());
    check(&[groups(&["r", "a"]), groups(&["r", "z", "a"])], &groups(&["r", "z", "a"]));
    check(&[groups(&["r", "a"]), groups(&["r", "z"])], &groups(&["r", "a", "z"]));
    // A contradiction does not matter where one list is complete, and otherwise gives up all order.
    check(&[groups(&["r", "z", "a"]), groups(&["a", "z"])], &groups(&["r", "z", "a"]));
    check(&[groups(&["r", "z", "a"]), groups(&["a", "z", "q"])], &groups(&["a", "q", "r", "z"]));
}

#[test]
fn versions_take_freshness_from_the_earlier_server() {
    let stale = json!([{ "version": "v1", "freshness": "Stale" }]);
    let current =
        json!([{ "version": "v1", "freshness": "Current" }, { "version": "v1beta1", "freshness": "Current" }]);
    let expected = json!([{ "version": "v1", "freshness": "Stale" }, { "version": "v1beta1", "freshness": "Current" }]);
    check(&[json!([group("g", &stale)]), json!([group("g", &current)])], &json!([group("g", &expected)]));
}

#[test]
fn differing_resources_get_sorted_unions() {
    let version =
        |resources: serde_json::Value| json!([group("g", &json!([{ "version": "v1", "resources": resources }]))]);
    let old = version(json!([resource("b", &["watch", "get"], &["z", "a"]), resource("a", &["list", "get"], &[])]));
    let new = version(json!([resource("b", &["list", "get"], &["m"]), resource("a", &["list", "get"], &[])]));
    // The equal one keeps the order of its verbs.
    let merged = version(json!([
        resource("b", &["get", "list", "watch"], &["a", "m", "z"]),
        resource("a", &["list", "get"], &[])
    ]));
    check(&[old, new], &merged);
}

#[test]
fn unknown_fields_alone_reorder_nothing() {
    let version =
        |resource: serde_json::Value| json!([group("g", &json!([{ "version": "v1", "resources": [resource] }]))]);
    let old = resource("b", &["watch", "get"], &["z", "a"]);
    let mut new = old.clone();
    new["future"] = json!(true);
    new["subresources"][1]["future"] = json!([1]);
    check(&[version(old), version(new.clone())], &version(new));
}

#[test]
fn one_list_is_taken_as_it_is_and_none_is_empty() {
    let lists: Lists = [(server(1), Arc::default())].into();
    assert!(Arc::ptr_eq(&merge(&lists, &server(0)), &lists[&server(1)]));
    assert_eq!(*merge(&Lists::new(), &server(0)), ApiGroupDiscoveryList::default());
}

/// What a list lists, level by level, and where it has unknown fields.
fn facts(list: &ApiGroupDiscoveryList) -> BTreeSet<String> {
    let mut facts = BTreeSet::new();
    let mut note = |path: String, unknown: &super::super::model::Unknown| {
        facts.extend(unknown.keys().map(|name| format!("{path} has {name}")));
        facts.insert(path);
    };
    note(String::new(), &list.unknown);
    for group in &list.items {
        note(group.name().to_owned(), &group.unknown);
        for version in &group.versions {
            let path = format!("{}/{}", group.name(), version.version);
            note(path.clone(), &version.unknown);
            for resource in &version.resources {
                let path = format!("{path}/{}", resource.resource);
                note(path.clone(), &resource.unknown);
                for verb in resource.verbs.iter().flatten() {
                    note(format!("{path} {verb}"), &Default::default());
                }
                for subresource in &resource.subresources {
                    note(format!("{path}/{}", subresource.subresource), &subresource.unknown);
                }
            }
        }
    }
    facts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merged_list_has_what_the_inputs_have_and_nothing_else(lists in servers()) {
        let merged = merge(&lists, &server(0));
        let expected: BTreeSet<String> = lists.values().flat_map(|list| facts(list)).collect();
        prop_assert_eq!(facts(&merged), expected);
    }

    #[test]
    fn equal_lists_merge_to_themselves(list in list(), count in 1usize..5) {
        let list = Arc::new(list);
        let lists: Lists = (0..count).map(|index| (server(index), Arc::clone(&list))).collect();
        prop_assert!(Arc::ptr_eq(&merge(&lists, &server(0)), &list));
    }

    #[test]
    fn merged_list_added_as_a_server_brings_nothing_new(lists in servers()) {
        let merged = merge(&lists, &server(0));
        let mut again = lists.clone();
        again.insert(server(9), Arc::clone(&merged));
        prop_assert_eq!(facts(&merge(&again, &server(0))), facts(&merged));
    }

    #[test]
    fn every_node_comes_to_the_same_bytes_in_whatever_order_lists_arrive(lists in servers(), local in 0usize..4, seed in Just(()).prop_perturb(|(), mut rng| rng.next_u64())) {
        let settled = settle(&lists, &Lists::new());
        let mut arrivals: Vec<_> = settled.clone().into_iter().collect();
        let turn = usize::try_from(seed % 4).unwrap() % arrivals.len();
        arrivals.rotate_left(turn);
        arrivals.reverse();
        let arrived: Lists = arrivals.into_iter().collect();
        let here = written(&merge(&settled, &server(0)), Encoding::Json);
        let there = written(&merge(&arrived, &server(local % lists.len())), Encoding::Json);
        prop_assert_eq!(here, there);
    }

    #[test]
    fn names_twice_and_other_nonsense_do_no_harm(lists in servers(), copies in 1usize..3) {
        let broken: Lists = lists.iter().map(|(id, list)| {
            let mut list = ApiGroupDiscoveryList::clone(list);
            for _ in 0..copies {
                let twice = list.items.clone();
                list.items.extend(twice);
                for group in &mut list.items {
                    let twice = group.versions.clone();
                    group.versions.extend(twice);
                }
            }
            (id.clone(), Arc::new(list))
        }).collect();
        let merged = merge(&settle(&broken, &lists), &server(0));
        let expected: BTreeSet<String> = lists.values().flat_map(|list| facts(list)).collect();
        prop_assert_eq!(facts(&merged), expected);
    }
}
