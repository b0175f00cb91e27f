use serde_json::json;

use super::super::parse::parse_legacy_resources;
use super::*;

fn root(groups: &[(&str, &[&str])]) -> RootDocument {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    RootDocument { groups: groups.iter().map(|(group, versions)| ((*group).to_owned(), owned(versions))).collect() }
}

fn resources(group_version: &GroupVersion, resources: &serde_json::Value) -> Vec<ApiResourceDiscovery> {
    let document =
        json!({ "kind": "APIResourceList", "groupVersion": group_version.to_string(), "resources": resources });
    parse_legacy_resources(document.to_string().as_bytes(), None, group_version).unwrap().into()
}

fn as_json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn walk_asks_for_every_group_version_once() {
    let listed: [(&str, &[&str]); 3] = [("", &["v1"]), ("apps", &["v1", "v1beta1", "v1"]), ("apps", &["v1"])];
    let mut walk = LegacyWalk::new(root(&listed));
    let paths: Vec<String> = walk.pending().map(|(_, path)| path).collect();
    assert_eq!(paths, ["/api/v1", "/apis/apps/v1", "/apis/apps/v1beta1"]);
    walk.record(GroupVersion::new("apps", "v1"), Answer::Failed);
    let paths: Vec<String> = walk.pending().map(|(_, path)| path).collect();
    assert_eq!(paths, ["/api/v1", "/apis/apps/v1beta1"]);
}

#[test]
fn names_that_are_no_path_segment_are_never_asked_for() {
    let walk = LegacyWalk::new(root(&[
        ("..", &["v1"]),
        ("a/b", &["v1"]),
        ("a b\r\nX: y", &["v1"]),
        ("ok.k8s.io", &["", "v1?x", "v1%2f", "v1"]),
        ("none", &["/"]),
    ]));
    let paths: Vec<String> = walk.pending().map(|(_, path)| path).collect();
    assert_eq!(paths, ["/apis/ok.k8s.io/v1"]);
    assert_eq!(walk.finish(None).items.len(), 1);
}

#[test]
fn failed_is_stale_with_what_was_known_and_not_served_is_absent() {
    let known = GroupVersion::new("g", "v2");
    let last_known = json!({ "items": [{ "metadata": { "name": "g" }, "versions": [
        { "version": "v2", "resources": [{ "resource": "old" }], "freshness": "Current" }] }] });
    let mut walk = LegacyWalk::new(root(&[("g", &["v1", "v2", "v3", "v4"]), ("gone", &["v1"])]));
    walk.record(GroupVersion::new("g", "v1"), Answer::Resources(Vec::new()));
    walk.record(known, Answer::Failed);
    walk.record(GroupVersion::new("g", "v3"), Answer::NotServed);
    walk.record(GroupVersion::new("gone", "v1"), Answer::NotServed);
    let list = walk.finish(Some(&serde_json::from_value(last_known).unwrap()));
    let seen: Vec<_> = list
        .group_versions()
        .map(|(group, listed)| (group, listed.version.as_str(), &listed.freshness, listed.resources.len()))
        .collect();
    // v4 was never asked for.
    let expected =
        [("g", "v1", &Freshness::Current, 0), ("g", "v2", &Freshness::Stale, 1), ("g", "v4", &Freshness::Stale, 0)];
    assert_eq!(seen, expected);
    assert_eq!(list.items.len(), 1);
}

#[test]
fn resources_convert_as_upstream_converts_them() {
    let converted = resources(
        &GroupVersion::new("g", "v1"),
        &json!([
            { "name": "things/status", "singularName": "", "namespaced": true, "kind": "Thing", "verbs": ["get"] },
            { "name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["list"],
              "shortNames": ["th"], "categories": ["all"], "storageVersionHash": "abc=", "future": 1 },
            { "name": "things/scale", "singularName": "", "namespaced": true, "group": "autoscaling", "version": "v1",
              "kind": "Scale", "verbs": ["get", "update"], "future": 2 },
            { "name": "orphans/exec", "singularName": "", "namespaced": false, "kind": "", "verbs": ["create"] },
        ]),
    );
    let empty = json!({ "group": "", "version": "", "kind": "" });
    let thing = json!({ "group": "", "version": "", "kind": "Thing" });
    let scale = json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" });
    let expected = json!([
        { "resource": "things", "responseKind": thing, "scope": "Namespaced", "singularResource": "thing",
          "verbs": ["list"], "shortNames": ["th"], "categories": ["all"], "subresources": [
            { "subresource": "status", "responseKind": thing, "verbs": ["get"] },
            { "subresource": "scale", "responseKind": scale, "verbs": ["get", "update"], "future": 2 }],
          "future": 1 },
        { "resource": "orphans", "responseKind": empty, "scope": "Cluster", "singularResource": "", "verbs": null,
          "subresources": [{ "subresource": "exec", "responseKind": empty, "verbs": ["create"] }] },
    ]);
    assert_eq!(as_json(&converted), expected);
}
