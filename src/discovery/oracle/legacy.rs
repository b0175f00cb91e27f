//! The documents of old, and YAML of anything.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::legacy::{ApiResourceList, ApiVersions};
use super::*;
use crate::apimachinery::encoding::yaml;
use crate::apimachinery::gvr::GroupVersion;

/// Generated clusters of whose documents each is compared.
const FEW_CLUSTERS: usize = 40;

/// Values of which the YAML is compared.
const VALUES: usize = 4000;

#[test]
#[ignore = "builds a Go program"]
fn documents_of_old_equal_those_of_upstream() {
    let mut runner = TestRunner::deterministic();
    let clusters = (0..FEW_CLUSTERS).map(|_| known_to_upstream(&servers().new_tree(&mut runner).unwrap().current()));
    let snapshots: Vec<Documents> = clusters.map(|lists| Documents::build(&with_core(&lists))).collect();
    check(&snapshots);
}

#[test]
#[ignore = "builds a Go program and downloads Kubernetes releases as Go modules"]
fn documents_of_old_of_real_versions_equal_those_of_upstream() {
    let servers: Vec<(ServerId, Arc<ApiGroupDiscoveryList>, Arc<LegacyDocuments>)> = RELEASES
        .iter()
        .enumerate()
        .map(|(index, release)| {
            let folder = release_folder(release);
            (server(index), Arc::new(aggregated(&folder)), Arc::new(read(&folder)))
        })
        .collect();
    for (id, list, documents) in &servers {
        let alone = [(id.clone(), Arc::clone(list))].into();
        let snapshot = Documents::build(&inputs(id.clone(), alone, [(id.clone(), Arc::clone(documents))].into()));
        let mut compared = 0;
        for (group_version, document) in documents.resources.iter().filter(|(of, _)| !of.group.is_empty()) {
            let response = get(&snapshot, &format!("/apis/{group_version}"), "application/json", "");
            let mut found: Value = serde_json::from_slice(response.body()).unwrap();
            found.as_object_mut().unwrap().retain(|name, _| name != "kind" && name != "apiVersion");
            assert_eq!(found, serde_json::to_value(&**document).unwrap(), "{group_version}");
            compared += 1;
        }
        assert!(compared > 30, "{compared}");
    }
    let all: Lists = servers.iter().map(|(id, list, _)| (id.clone(), Arc::clone(list))).collect();
    let legacy = servers.iter().map(|(id, _, documents)| (id.clone(), Arc::clone(documents))).collect();
    check(&[Documents::build(&inputs(server(0), all, legacy))]);
}

#[test]
#[ignore = "builds a Go program"]
fn yaml_equals_that_of_upstream() {
    let mut runner = TestRunner::deterministic();
    let mut values: Vec<Value> = WORDS.iter().map(|word| json!({ *word: word })).collect();
    values.extend((0..VALUES).map(|_| value().new_tree(&mut runner).unwrap().current()));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("values.json");
    fs::write(&file, escaped(&crate::apimachinery::encoding::json(&values))).unwrap();
    ask_upstream("yaml", &file);
    let written = fs::read_to_string(directory.path().join("values.json.yaml")).unwrap();
    let documents: Vec<&str> = written.split_terminator('\0').collect();
    assert_eq!(documents.len(), values.len());
    let pairs: Vec<_> = values.iter().zip(documents).filter(|(_, expected)| !expected.is_empty()).collect();
    let written_by_chance = values.len() - pairs.len();
    assert!(written_by_chance < values.len() / 100, "{written_by_chance}");
    for (value, expected) in pairs {
        assert_eq!(yaml(value), expected, "{value}");
    }
}

/// JSON with escapes where go-yaml, which reads it, takes no plain characters; of pairs of surrogates it takes none.
fn escaped(json: &str) -> String {
    let escape = |c: char| match u32::from(c) {
        code @ 0x7f..=0xffff => format!("\\u{code:04x}"),
        _ => c.to_string(),
    };
    json.chars().map(escape).collect()
}

/// Texts that mean something in YAML, or nearly.
const WORDS: [&str; 60] = [
    "",
    "y",
    "No",
    "oN",
    "true",
    "True",
    "tRue",
    "~",
    "null",
    "nULL",
    ".nan",
    ".inf",
    "+.INF",
    "-.inf",
    "<<",
    "=",
    "1",
    "-1",
    "+1",
    "1_000",
    "0x1F",
    "0o17",
    "017",
    "0b101",
    "-0b1",
    "0b2",
    "1.5",
    ".5",
    "5.",
    "1e3",
    "1e",
    "1e999",
    "._",
    "0x",
    "99999999999999999999",
    "0xFFFFFFFFFFFFFFFF",
    "0x1FFFFFFFFFFFFFFFF",
    "-0x8000000000000000",
    "1:30",
    "1:60",
    "190:20:30.15",
    "v1",
    "v1beta1",
    "-",
    "- a",
    "-a",
    "?",
    "? a",
    "?a",
    ":",
    "a:",
    "a: b",
    "a:b",
    "a #b",
    "a#b",
    "---",
    "--- a",
    "...",
    "@a",
    "'\"'",
];

/// JSON as documents may hold it: objects below objects, texts with everything that YAML treats in a way of its own.
fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-c0-9 :#'\"&*!|>%@`,\\[\\]{}?=~<._+-]{0,12}",
        "[ab\\n ]{0,8}",
        "([a-z]{1,12} ){8,14}[a-z]",
        "[\\u{0}-\\u{1f}\\u{a0}-\\u{b0}\\u{2027}-\\u{202a}\\u{fffc}-\\u{ffff}\\u{1f600}a ]{0,4}",
        "[A-Za-z/+]{8,11}=",
    ];
    let leaf = prop_oneof![
        4 => text.prop_map(Value::from),
        1 => any::<i32>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-c0-3/. _-]{1,5}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// What servers list at `/api` and at `/apis`, told apart.
fn with_core(lists: &Lists) -> Inputs {
    let (core, rest): (Vec<_>, Vec<_>) = lists
        .iter()
        .map(|(id, list)| {
            let (core, rest) = list.items.iter().cloned().partition(|group| group.name().is_empty());
            let list = |items| Arc::new(ApiGroupDiscoveryList { items, ..ApiGroupDiscoveryList::default() });
            ((id.clone(), list(core)), (id.clone(), list(rest)))
        })
        .unzip();
    let versions =
        json!({ "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "[::1]:6443" }] });
    let api = Some(Arc::new(serde_json::from_value::<ApiVersions>(versions).unwrap()));
    let documents = Arc::new(LegacyDocuments { api, ..LegacyDocuments::default() });
    // A local server that lists nothing, so that nothing is left to it.
    let local = server(9);
    let legacy = BTreeMap::from([(local.clone(), documents)]);
    Inputs { api: core.into_iter().collect(), ..inputs(local, rest.into_iter().collect(), legacy) }
}

/// Has upstream read and write every document of old.
fn check(snapshots: &[Documents]) {
    let directory = tempfile::tempdir().unwrap();
    let mut all: Vec<(PathBuf, &Documents, String)> = Vec::new();
    for documents in snapshots {
        for path in paths(documents) {
            let folder = directory.path().join(all.len().to_string());
            fs::create_dir(&folder).unwrap();
            let response = get(documents, &path, "application/json", "");
            fs::write(folder.join("document.json"), response.body()).unwrap();
            all.push((folder, documents, path));
        }
    }
    assert!(all.len() > 50, "{}", all.len());
    ask_upstream("encode", directory.path());
    for (folder, documents, path) in all {
        compare(&folder, documents, &path, "");
    }
}

/// Every path of which the snapshot itself has the document. Upstream knows one core version.
fn paths(documents: &Documents) -> Vec<String> {
    let listed = get(documents, "/apis", "application/json", "");
    let listed: Value = serde_json::from_slice(listed.body()).unwrap();
    let names = |value: &Value, name: &str| value[name].as_str().unwrap().to_owned();
    let groups = listed["groups"].as_array().unwrap();
    let of_groups = groups.iter().map(|group| format!("/apis/{}", names(group, "name")));
    let versions = groups.iter().flat_map(|group| group["versions"].as_array().unwrap());
    let of_versions = versions.map(|version| format!("/apis/{}", names(version, "groupVersion")));
    let fixed = ["/apis", "/api", "/api/v1", "/api/v2"].map(str::to_owned);
    fixed.into_iter().chain(of_groups).chain(of_versions).filter(|path| is_given(documents, path)).collect()
}

fn is_given(documents: &Documents, path: &str) -> bool {
    let found = documents.find(&DiscoveryPath::parse(path).unwrap(), &HeaderMap::new(), &path.parse().unwrap());
    match found {
        Found::Page(page) => {
            let body = serve(&Reader::of_test(), &page, &HeaderMap::new()).into_body();
            let document: Value = serde_json::from_slice(&body).unwrap();
            document["kind"] != "APIVersions" || document["versions"] == json!(["v1"])
        }
        _ => false,
    }
}

/// The documents of old that a release keeps beside its source.
fn read(folder: &Path) -> LegacyDocuments {
    let mut documents = LegacyDocuments::default();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        if document["kind"] == "APIResourceList" {
            document.as_object_mut().unwrap().retain(|name, _| name != "kind" && name != "apiVersion");
            let list: ApiResourceList = serde_json::from_value(document).unwrap();
            documents.resources.insert(GroupVersion::parse(&list.group_version), Arc::new(list));
        }
    }
    documents
}
