//! Upstream itself as the judge: generated lists and those of real versions, merged and written by its own handlers and by
//! this crate, in every form.
//!
//! These tests need the Go toolchain and download Go modules:
//! `cargo test --lib discovery::oracle -- --ignored`.

mod legacy;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue, Response, Uri};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::arbitrary::{server, servers, written};
use super::legacy::{Answer, LegacyDocuments, LegacyWalk};
use super::model::{ApiGroupDiscoveryList, Freshness};
use super::parse::{Document, parse, parse_legacy_resources};
use super::stale::Lists;
use super::{Documents, Found, Inputs, V2Beta1, serve};
use crate::apimachinery::discovery_path::DiscoveryPath;
use crate::apimachinery::encoding::Encoding;
use crate::apimachinery::server_id::ServerId;
use crate::authz::Reader;

/// Clusters to compare. Each takes upstream's handler about a millisecond.
const CLUSTERS: usize = 400;

/// The program that asks upstream's own code, and the release whose code that is.
const ORACLE: &str = "merge-oracle@1.36.3";

/// Releases whose documents are compared. Each keeps what it serves with every API switched on beside its source.
const RELEASES: [&str; 4] = ["v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2"];

#[test]
#[ignore = "builds a Go program"]
fn merged_document_equals_that_of_upstream() {
    let mut runner = TestRunner::deterministic();
    let clusters = (0..CLUSTERS).map(|_| known_to_upstream(&servers().new_tree(&mut runner).unwrap().current()));
    let clusters: Vec<Lists> = clusters.collect();
    let alike: Vec<Lists> = clusters.iter().take(CLUSTERS / 4).map(differing_in_freshness).collect();
    check(&[clusters, alike].concat());
}

/// Two servers that list the same, of which one is all `Stale`: upstream lets the server that is asked decide.
fn differing_in_freshness(lists: &Lists) -> Lists {
    let list = lists.values().next().unwrap();
    let mut stale = ApiGroupDiscoveryList::clone(list);
    for version in stale.items.iter_mut().flat_map(|group| &mut group.versions) {
        version.freshness = Freshness::Stale;
    }
    [(server(0), Arc::clone(list)), (server(1), Arc::new(stale))].into()
}

#[test]
#[ignore = "builds a Go program and downloads Kubernetes releases as Go modules"]
fn merged_document_of_real_versions_equals_that_of_upstream() {
    let lists: Vec<Arc<ApiGroupDiscoveryList>> =
        RELEASES.iter().map(|release| Arc::new(aggregated(&release_folder(release)))).collect();
    // Every pair, all four in every turn, and a cluster so large that it is compressed.
    let pairs = (0..4).flat_map(|one| (0..4).map(move |other| vec![one, other]));
    let turns = (0..4).map(|turn| (0..4).map(|index| (index + turn) % 4).collect());
    let cluster = |picks: Vec<usize>| -> Lists {
        picks.iter().enumerate().map(|(index, &pick)| (server(index), Arc::clone(&lists[pick]))).collect()
    };
    let large = cluster(vec![0, 3]).into_iter().map(|(id, list)| (id, Arc::new(many_times(&list)))).collect();
    check(&pairs.chain(turns).map(cluster).chain([large]).collect::<Vec<_>>());
}

/// Every group ten times, each under a name of its own.
fn many_times(list: &ApiGroupDiscoveryList) -> ApiGroupDiscoveryList {
    let mut many = ApiGroupDiscoveryList::default();
    for copy in 0..10 {
        many.items.extend(list.items.iter().cloned().map(|mut group| {
            group.metadata.name = format!("{copy}.{}", group.metadata.name);
            group
        }));
    }
    many
}

#[test]
#[ignore = "downloads Kubernetes releases as Go modules"]
fn legacy_walk_of_a_real_version_comes_to_its_aggregated_document() {
    for release in RELEASES {
        let folder = release_folder(release);
        let Document::Legacy(root) = parse(&fs::read(folder.join("apis.json")).unwrap(), None).unwrap() else {
            panic!("{release} lists groups in another form");
        };
        let mut walk = LegacyWalk::new(root);
        let pending: Vec<_> = walk.pending().collect();
        for (group_version, path) in pending {
            let document = folder.join(format!("{}.json", path.trim_start_matches('/').replace('/', "__")));
            let resources = parse_legacy_resources(&fs::read(document).unwrap(), None, &group_version).unwrap();
            walk.record(group_version, Answer::Resources(resources.into()));
        }
        assert_eq!(walk.finish(None), aggregated(&folder), "{release}");
    }
}

fn aggregated(folder: &Path) -> ApiGroupDiscoveryList {
    match parse(&fs::read(folder.join("aggregated_v2.json")).unwrap(), None).unwrap() {
        Document::Aggregated(list) => list,
        Document::Legacy(root) => panic!("legacy: {root:?}"),
    }
}

fn release_folder(release: &str) -> PathBuf {
    let module = format!("k8s.io/kubernetes@{release}");
    let output = run(Command::new("go").args(["mod", "download", "-json", &module]).current_dir("/"));
    let download: serde_json::Value = serde_json::from_str(&output).unwrap();
    Path::new(download["Dir"].as_str().unwrap()).join("api/discovery")
}

/// Asks upstream for what each cluster serves, from one of its servers, the next one each time.
fn check(clusters: &[Lists]) {
    let directory = tempfile::tempdir().unwrap();
    let folder = |index: usize| directory.path().join(index.to_string());
    let local = |index: usize, lists: &Lists| lists.keys().nth(index % lists.len()).unwrap().clone();
    for (index, lists) in clusters.iter().enumerate() {
        write(&folder(index), lists, &local(index, lists));
    }
    ask_upstream("merge", directory.path());
    for (index, lists) in clusters.iter().enumerate() {
        let documents = Documents::build(&inputs(local(index, lists), lists.clone(), BTreeMap::new()));
        compare(&folder(index), &documents, "/apis", ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    }
}

fn inputs(local: ServerId, apis: Lists, legacy: BTreeMap<ServerId, Arc<LegacyDocuments>>) -> Inputs {
    Inputs { local, api: Lists::new(), apis, legacy, v2beta1: V2Beta1::Gone }
}

/// Runs the Go program over a folder or file.
fn ask_upstream(command: &str, path: &Path) {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/kubernetes/build");
    let built = run(Command::new(build).arg(ORACLE));
    let (_, program) = built.trim().split_once(' ').unwrap();
    run(Command::new(program).arg(command).arg(path));
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Without what upstream drops when it reads a list, and without empty groups, which its local server cannot have.
fn known_to_upstream(lists: &Lists) -> Lists {
    let strip = |list: &ApiGroupDiscoveryList| {
        let mut list = list.clone();
        list.unknown.clear();
        list.items.retain(|group| !group.versions.is_empty());
        for group in &mut list.items {
            group.unknown.clear();
            for version in &mut group.versions {
                version.unknown.clear();
                for resource in &mut version.resources {
                    *resource = resource.known();
                }
            }
        }
        list
    };
    lists.iter().map(|(id, list)| (id.clone(), Arc::new(strip(list)))).collect()
}

fn write(folder: &Path, lists: &Lists, local: &ServerId) {
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("local"), local.as_str()).unwrap();
    for (id, list) in lists {
        fs::write(folder.join(format!("{id}.json")), written(list, Encoding::Json)).unwrap();
    }
}

/// Compares a document in every encoding with what upstream made of it; `parameters` are those of the media type.
fn compare(folder: &Path, documents: &Documents, path: &str, parameters: &str) {
    for (form, query, media_type, encodings) in [
        ("json", "", "application/json", ""),
        ("pretty", "?pretty=1", "application/json", ""),
        ("yaml", "", "application/yaml", ""),
        ("protobuf", "", "application/vnd.kubernetes.protobuf", ""),
        ("gzip", "", "application/json", "gzip"),
    ] {
        let accept = format!("{media_type}{parameters}");
        let response = get(documents, &format!("{path}{query}"), &accept, encodings);
        let expected = |part: &str| fs::read(folder.join(format!("{form}.{part}"))).unwrap();
        let is_readable = form != "protobuf";
        let shown = |bytes: &[u8]| {
            if is_readable { String::from_utf8_lossy(bytes).into_owned() } else { bytes.escape_ascii().to_string() }
        };
        let place = || format!("{} {path} {form}", folder.display());
        assert_eq!(head_of(&response), String::from_utf8(expected("head")).unwrap(), "{}", place());
        if form != "gzip" {
            assert_eq!(shown(response.body()), shown(&expected("body")), "{}", place());
        }
    }
}

fn get(documents: &Documents, target: &str, accept: &str, encodings: &'static str) -> Response<Bytes> {
    let uri: Uri = target.parse().unwrap();
    let mut headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(encodings))]);
    headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
    match documents.find(&DiscoveryPath::parse(uri.path()).unwrap(), &headers, &uri) {
        Found::Page(page) => serve(&Reader::of_test(), &page, &headers),
        other => panic!("{target}: {other:?}"),
    }
}

/// The headers as Go writes them, sorted by name.
fn head_of(response: &Response<Bytes>) -> String {
    let spelled = [
        (CACHE_CONTROL, "Cache-Control"),
        (CONTENT_ENCODING, "Content-Encoding"),
        (CONTENT_TYPE, "Content-Type"),
        (ETAG, "Etag"),
        (VARY, "Vary"),
    ];
    let lines = spelled.iter().flat_map(|(name, spelled)| {
        response.headers().get_all(name).iter().map(move |value| format!("{spelled}: {}\r\n", value.to_str().unwrap()))
    });
    let head: String = lines.collect();
    assert_eq!(head.lines().count(), response.headers().len(), "{:?}", response.headers());
    head
}
