use http::header::ACCEPT;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::arbitrary::{server, servers};
use super::super::legacy::{ApiResource, ApiResourceList};
use super::super::model::ApiResourceDiscovery;
use super::super::serve;
use super::super::stale::settle;
use super::*;
use crate::authz::Reader;

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const V2_BETA1: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// What a snapshot answers: the JSON, or a word.
fn get(documents: &Documents, target: &str, accept: &'static str) -> Value {
    let uri: Uri = target.parse().unwrap();
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
    match documents.find(&DiscoveryPath::parse(uri.path()).unwrap(), &headers, &uri) {
        Found::Page(page) => {
            let response = serve(&Reader::of_test(), &page, &HeaderMap::new());
            serde_json::from_slice(response.body()).unwrap()
        }
        Found::Unavailable => "unavailable".into(),
        Found::Local => "local".into(),
        Found::LeftToUpstream => "left".into(),
    }
}

fn legacy(documents: &Documents, target: &str) -> Value {
    get(documents, target, "application/json")
}

fn resource(name: &str, verbs: &[&str]) -> Value {
    json!({
        "resource": name, "responseKind": { "group": "", "version": "", "kind": "Thing" }, "scope": "Namespaced",
        "singularResource": "", "verbs": verbs,
    })
}

/// A list with one version of group `g`.
fn list(version: &str, freshness: &str, resources: &[Value]) -> Arc<ApiGroupDiscoveryList> {
    let version = json!({ "version": version, "freshness": freshness, "resources": resources });
    Arc::new(
        serde_json::from_value(json!({ "items": [{ "metadata": { "name": "g" }, "versions": [version] }] })).unwrap(),
    )
}

fn entry(name: &str, verbs: &[&str], more: &Value) -> ApiResource {
    let mut entry = json!({
        "name": name, "singularName": "", "namespaced": true, "kind": "Thing", "verbs": verbs,
        "storageVersionHash": format!("hash of {name}"),
    });
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(entry).unwrap()
}

/// What one server says of `g/v1` in documents of old, if anything.
fn documents_of_old(resources: Option<Vec<ApiResource>>) -> Arc<LegacyDocuments> {
    let list = |resources| ApiResourceList { group_version: "g/v1".into(), resources, unknown: Unknown::new() };
    let group_version = GroupVersion::new("g", "v1");
    let resources = resources.map(|resources| (group_version, Arc::new(list(resources))));
    Arc::new(LegacyDocuments { api: None, resources: resources.into_iter().collect() })
}

/// A snapshot of servers 0, 1, ..., of which 0 is the local one.
fn snapshot(servers: Vec<(Arc<ApiGroupDiscoveryList>, Option<Vec<ApiResource>>)>) -> Documents {
    let (lists, legacy): (Vec<_>, Vec<_>) = servers.into_iter().unzip();
    let numbered = |index: usize| server(index);
    Documents::build(&Inputs {
        local: server(0),
        api: Lists::new(),
        apis: lists.into_iter().enumerate().map(|(index, list)| (numbered(index), list)).collect(),
        legacy: legacy.into_iter().enumerate().map(|(i, one)| (numbered(i), documents_of_old(one))).collect(),
        v2beta1: V2Beta1::Gone,
    })
}

/// Names of the entries of `/apis/g/v1`, each with its hash and `!` behind it if it has an unknown field.
fn entries(documents: &Documents) -> Vec<String> {
    let document: ApiResourceList = serde_json::from_value(legacy(documents, "/apis/g/v1")).unwrap();
    let entries = document.resources.into_iter().map(|entry| {
        let mark = if entry.unknown.is_empty() { "" } else { "!" };
        format!("{} {} {}{mark}", entry.name, entry.verbs.unwrap_or_default().join(","), entry.storage_version_hash)
    });
    entries.collect()
}

#[test]
fn document_of_a_version_that_one_server_serves_alike_is_that_servers() {
    let same = list("v1", "Current", &[resource("a", &["get"]), resource("b", &["get"])]);
    let one = vec![entry("b", &["get"], &json!({ "new": 1 })), entry("a", &["get"], &json!({}))];
    let other = vec![entry("a", &["get"], &json!({})), entry("b", &["get"], &json!({}))];
    let documents = snapshot(vec![(Arc::clone(&same), Some(one)), (same, Some(other))]);
    // The first server's, in its order and with what is unknown.
    let first = if server(0) < server(1) {
        ["b get hash of b!", "a get hash of a"]
    } else {
        ["a get hash of a", "b get hash of b"]
    };
    assert_eq!(entries(&documents), first);
}

#[test]
fn document_that_no_server_has_is_put_together_of_their_entries() {
    let mine = list("v1", "Current", &[resource("a", &["get"]), resource("c", &["get"])]);
    let theirs = list("v1", "Current", &[resource("b", &["get"]), resource("c", &["list"]), resource("d", &["get"])]);
    let documents = snapshot(vec![
        (mine, Some(vec![entry("a", &["get"], &json!({})), entry("c", &["get"], &json!({ "new": 1 }))])),
        (theirs, Some(vec![entry("b", &["get"], &json!({})), entry("c", &["list"], &json!({ "new": 1 }))])),
    ]);
    let expected = ["a get hash of a", "b get hash of b", "c get,list hash of c!", "d get "];
    assert_eq!(entries(&documents), expected);
}

#[test]
fn document_that_is_out_of_date_does_not_count() {
    let documents = snapshot(vec![(
        list("v1", "Current", &[resource("a", &["get", "list"]), resource("b", &["get"])]),
        Some(vec![entry("a", &["get"], &json!({ "kind": "Old" })), entry("gone", &["get"], &json!({}))]),
    )]);
    assert_eq!(entries(&documents), ["a get,list hash of a", "b get "]);
}

#[test]
fn local_server_answers_where_nothing_is_read_and_its_list_is_the_merged_one() {
    let same = || list("v1", "Current", &[resource("a", &["get"])]);
    let other = list("v1", "Current", &[resource("b", &["get"])]);
    assert_eq!(legacy(&snapshot(vec![(same(), None), (same(), None)]), "/apis/g/v1"), "left");
    assert_eq!(entries(&snapshot(vec![(same(), None), (other, None)])), ["a get ", "b get "]);
}

#[test]
fn version_that_only_lost_servers_serve_is_listed_and_unavailable() {
    let lost = list("v2", "Stale", &[resource("b", &["get"])]);
    let documents = snapshot(vec![(list("v1", "Current", &[]), None), (lost, None)]);
    assert_eq!(legacy(&documents, "/apis/g/v2"), "unavailable");
    assert_eq!(legacy(&documents, "/apis/g")["versions"].as_array().unwrap().len(), 2);
    // The local server says why it has no document of what it lists itself.
    let documents = snapshot(vec![(list("v1", "Stale", &[]), None)]);
    assert_eq!(legacy(&documents, "/apis/g/v1"), "left");
}

#[test]
fn what_nobody_lists_is_left_to_the_local_server() {
    let documents = snapshot(vec![(list("v1", "Current", &[]), None)]);
    for target in ["/apis/h", "/apis/h/v1", "/apis/g/v2", "/api/v1", "/api"] {
        assert_eq!(legacy(&documents, target), "left", "{target}");
    }
    assert_eq!(get(&documents, "/apis/g", V2), "left");
}

#[test]
fn core_versions_come_with_the_address_of_the_local_server() {
    let core = json!({ "items": [{ "metadata": {}, "versions": [{ "version": "v1" }, { "version": "v2" }] }] });
    let of = |address: &str| {
        let versions = json!({ "versions": ["v1"], "serverAddressByClientCIDRs": [{ "serverAddress": address }] });
        let api = Some(Arc::new(serde_json::from_value(versions).unwrap()));
        Arc::new(LegacyDocuments { api, ..LegacyDocuments::default() })
    };
    let documents = Documents::build(&Inputs {
        local: server(1),
        api: [(server(0), Arc::new(serde_json::from_value(core).unwrap()))].into(),
        apis: Lists::new(),
        legacy: [(server(0), of("zero")), (server(1), of("one"))].into(),
        v2beta1: V2Beta1::Given,
    });
    let versions = legacy(&documents, "/api");
    assert_eq!(versions["versions"], json!(["v1", "v2"]));
    assert_eq!(versions["serverAddressByClientCIDRs"][0]["serverAddress"], "one");
    assert_eq!(versions.get("apiVersion"), None);
    assert_eq!(get(&documents, "/api", V2_BETA1)["apiVersion"], "apidiscovery.k8s.io/v2beta1");
}

/// `group/version` of every version that an aggregated document lists, each once.
fn listed(document: &Value) -> Vec<String> {
    let list: ApiGroupDiscoveryList = serde_json::from_value(document.clone()).unwrap();
    let mut all: Vec<String> = list.group_versions().map(|(group, of)| format!("{group}/{}", of.version)).collect();
    all.sort();
    all
}

/// `resource verb,verb` and `resource/subresource verb,verb` of a version, sorted.
fn facts(resources: &[ApiResourceDiscovery]) -> Vec<String> {
    let line = |name: &str, kind: &str, verbs: &Option<Vec<String>>| {
        let mut verbs = verbs.clone().unwrap_or_default();
        verbs.sort();
        format!("{name} {kind} {}", verbs.join(","))
    };
    let mut all: Vec<String> = Vec::new();
    for resource in resources {
        let name = &resource.resource;
        let is_made_up = resource.verbs.is_none() && !resource.subresources.is_empty();
        if !is_made_up || !resource.response_kind.kind.is_empty() {
            all.push(line(name, &resource.response_kind.kind, &resource.verbs));
        }
        all.extend(
            resource
                .subresources
                .iter()
                .map(|of| line(&format!("{name}/{}", of.subresource), &of.response_kind.kind, &of.verbs)),
        );
    }
    all.sort();
    all
}

/// What the servers would say in documents of old, as far as they tell more than the aggregated ones: hashes.
fn written_by(list: &ApiGroupDiscoveryList) -> LegacyDocuments {
    let alone: Lists = [(server(0), Arc::new(list.clone()))].into();
    let inputs =
        Inputs { local: server(9), api: Lists::new(), apis: alone, legacy: BTreeMap::new(), v2beta1: V2Beta1::Gone };
    let snapshot = Documents::build(&inputs);
    let mut documents = LegacyDocuments::default();
    for (group, of) in list.group_versions() {
        let group_version = GroupVersion::new(group, &of.version);
        let target = if group.is_empty() { continue } else { format!("/apis/{group_version}") };
        if let Ok(mut list) = serde_json::from_value::<ApiResourceList>(legacy(&snapshot, &target)) {
            list.unknown.clear();
            list.resources.iter_mut().for_each(|one| one.storage_version_hash = format!("{group_version}{}", one.name));
            documents.resources.insert(group_version, Arc::new(list));
        }
    }
    documents
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_form_lists_the_same(lists in servers(), lost in 0usize..2, read in prop::collection::vec(any::<bool>(), 4)) {
        let (gone, live): (Lists, Lists) = lists.clone().into_iter().partition(|(id, _)| (1..=lost).any(|n| *id == server(n)));
        let read = lists.iter().zip(read).filter(|(_, is_read)| *is_read);
        let legacy_documents = read.map(|((id, list), _)| (id.clone(), Arc::new(written_by(list)))).collect();
        let documents = Documents::build(&Inputs {
            local: server(0), api: Lists::new(), apis: settle(&live, &gone), legacy: legacy_documents, v2beta1: V2Beta1::Given,
        });
        let merged = get(&documents, "/apis", V2);
        let expected = listed(&merged);
        prop_assert_eq!(listed(&get(&documents, "/apis", V2_BETA1)), &expected[..]);
        let groups: ApiGroupList = serde_json::from_value(legacy(&documents, "/apis")).unwrap();
        let mut of_groups: Vec<String> = groups.groups.iter().flat_map(|group| {
            group.versions.iter().map(|of| format!("{}/{}", group.name, of.version))
        }).collect();
        of_groups.sort();
        prop_assert_eq!(&of_groups, &expected);
        let list: ApiGroupDiscoveryList = serde_json::from_value(merged).unwrap();
        for (group, of) in list.group_versions().filter(|(group, _)| !group.is_empty()) {
            let alone: ApiGroup = serde_json::from_value(legacy(&documents, &format!("/apis/{group}"))).unwrap();
            prop_assert!(alone.versions.iter().any(|one| one.version == of.version));
            let document = legacy(&documents, &format!("/apis/{group}/{}", of.version));
            match document.as_str() {
                Some("unavailable") => prop_assert_eq!(String::from(of.freshness.clone()), "Stale"),
                // The local server's own list is the merged one, or it says itself that it is stale.
                Some(other) => {
                    let own = lists[&server(0)].version(group, &of.version).unwrap();
                    prop_assert!(own.resources == of.resources || String::from(of.freshness.clone()) == "Stale", "{}", other);
                }
                None => {
                    let document: ApiResourceList = serde_json::from_value(document).unwrap();
                    let resources: Vec<ApiResourceDiscovery> = document.into();
                    prop_assert_eq!(facts(&resources), facts(&of.resources));
                }
            }
        }
    }
}
