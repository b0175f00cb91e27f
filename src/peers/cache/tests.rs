use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use http::HeaderValue;
use serde_json::json;

use super::file::{Error, decode, encode};
use super::*;
use crate::apimachinery::gvr::GroupVersion;
use crate::apimachinery::peer::PeerKind;
use crate::discovery::legacy::{ApiResourceList, ApiVersions};
use crate::openapi::Held;
use crate::openapi::held::Packed;
use crate::openapi::index::Location;

fn id(name: &str) -> ServerId {
    ServerId::from_hostname(name)
}

/// What a server said, with fields that this version does not know.
fn remembered(group: &str) -> Remembered {
    let list = |group: &str| -> ApiGroupDiscoveryList {
        serde_json::from_value(json!({"metadata": {}, "items": [{"metadata": {"name": group, "future": 1},
            "versions": [{"version": "v1", "freshness": "Stale", "resources": [{"resource": "things", "verbs": null,
                "responseKind": {"kind": "Thing"}, "scope": "Cluster", "future": [2]}]}]}]}))
        .unwrap()
    };
    let resources: ApiResourceList = serde_json::from_value(json!({"groupVersion": format!("{group}/v1"),
        "resources": [{"name": "things", "kind": "Thing", "verbs": ["get"], "storageVersionHash": "abc="}]}))
    .unwrap();
    let versions: ApiVersions = serde_json::from_value(json!({"versions": ["v1"]})).unwrap();
    let (hostname, address) = ("node-b".to_owned(), "[::1]:6443".parse().unwrap());
    Remembered {
        peer: Some(Arc::new(Peer { id: id("node-a"), hostname, address, kind: PeerKind::Plain })),
        api: Some(Arc::new(list(""))),
        apis: Some(Arc::new(list(group))),
        legacy: Arc::new(LegacyDocuments {
            api: Some(Arc::new(versions)),
            resources: [(GroupVersion::new(group, "v1"), Arc::new(resources))].into(),
        }),
        version: Some(ServerVersion { minor: 36, git_version: "v1.36.3".to_owned() }),
        gives_v2beta1: true,
        openapi: Some(Arc::new(published())),
    }
}

/// What a server published of OpenAPI.
fn published() -> openapi::Remembered {
    let held = |hash: &str, json: &[u8], protobuf| {
        let etag = HeaderValue::try_from(format!("\"{hash}\"")).unwrap();
        Arc::new(Held::of_server(&etag, json, protobuf, SystemTime::UNIX_EPOCH + Duration::from_secs(7)).unwrap())
    };
    let location = Location { url: "/openapi/v3/api/v1?hash=A1".to_owned() };
    openapi::Remembered {
        publications: [("api/v1".to_owned(), [location.clone()].into())].into(),
        version: vec![1, 36, 3],
        documents: [(location, held("A1", b"{}", Some(b"protobuf")))].into(),
        v2: Some(held("B2", b"[]", None)),
    }
}

fn memory(groups: &[(&str, &str)]) -> Memory {
    groups.iter().map(|(name, group)| (id(name), Remembered { peer: None, ..remembered(group) })).collect()
}

async fn open(path: &Path) -> (Cache, Memory) {
    Cache::open(path.to_owned()).await
}

fn file(path: &Path, name: &str) -> PathBuf {
    path.join(format!("{}.json", id(name)))
}

#[test]
fn everything_reads_back_the_same() {
    for one in [remembered("apps"), Remembered::default()] {
        let bytes = encode(&id("node-a"), &one).unwrap();
        assert_eq!(decode(&id("node-a"), &bytes).unwrap(), one);
    }
}

#[test]
fn openapi_documents_read_back_to_the_byte() {
    let bytes = encode(&id("node-a"), &remembered("apps")).unwrap();
    let (known, read) = (published(), decode(&id("node-a"), &bytes).unwrap().openapi.unwrap());
    let pairs = known.documents.values().chain(&known.v2).zip(read.documents.values().chain(&read.v2));
    for (one, other) in pairs {
        let protobuf = |held: &Held| held.protobuf.as_ref().map(Packed::unpack);
        assert_eq!((&one.hash, &one.etag, one.modified), (&other.hash, &other.etag, other.modified));
        assert_eq!((one.json.unpack(), protobuf(one)), (other.json.unpack(), protobuf(other)));
    }
    let wrong = Location { url: "/openapi/v3/api/v1?hash=A2".to_owned() };
    let documents = [(wrong, Arc::clone(known.documents.values().next().unwrap()))].into();
    let wrong =
        Remembered { openapi: Some(Arc::new(openapi::Remembered { documents, ..known })), ..remembered("apps") };
    let bytes = encode(&id("node-a"), &wrong).unwrap();
    assert!(matches!(decode(&id("node-a"), &bytes).unwrap_err(), Error::Document));
}

#[test]
fn file_with_anything_changed_is_not_believed() {
    let good = encode(&id("node-a"), &remembered("apps")).unwrap();
    let check = |bytes: &[u8]| decode(&id("node-a"), bytes).unwrap_err();
    for end in 0..good.len() {
        check(&good[..end]);
    }
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        check(&bad);
    }
    let other = [b"peerfront-cache/2".as_slice(), &good["peerfront-cache/1".len()..]].concat();
    assert!(matches!(check(&other), Error::Format));
    assert!(matches!(check(&good[..good.len() - 1]), Error::Checksum));
    assert!(matches!(decode(&id("node-b"), &good), Err(Error::OtherServer(_))));
}

#[tokio::test]
async fn what_was_offered_is_there_at_the_next_start_for_peerfront_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/cache");
    let (mut cache, known) = open(&path).await;
    assert_eq!((known, cache.current_problem()), (Memory::new(), None));
    let all = memory(&[("node-a", "apps"), ("node-b", "batch")]);
    cache.offer(all.clone());
    cache.close().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert_eq!(mode(&file(&path, "node-a")), 0o600);
    let (cache, known) = open(&path).await;
    assert_eq!(known, all);

    let before = fs::metadata(file(&path, "node-a")).unwrap().ino();
    cache.offer(memory(&[("node-a", "apps"), ("node-b", "policy")]));
    cache.offer(memory(&[("node-a", "apps")]));
    cache.close().await;
    assert_eq!(fs::metadata(file(&path, "node-a")).unwrap().ino(), before, "what is the same is not written again");
    let names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names, [file(&path, "node-a")], "nothing is left of a server that has left");
}

#[tokio::test]
async fn damaged_file_is_ignored_and_said_until_it_is_written_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (cache, _) = open(path).await;
    cache.offer(memory(&[("node-a", "apps"), ("node-b", "batch")]));
    cache.close().await;
    let whole = fs::read(file(path, "node-b")).unwrap();
    fs::write(file(path, "node-b"), &whole[..whole.len() / 2]).unwrap();

    let (mut cache, known) = open(path).await;
    assert_eq!(known, memory(&[("node-a", "apps")]));
    let problem = cache.current_problem().unwrap();
    assert!(problem.ends_with("json is ignored: its checksum is wrong"), "{problem}");
    cache.offer(memory(&[("node-a", "apps"), ("node-b", "batch")]));
    assert_eq!(cache.problem().await, None);
    cache.close().await;
    assert_eq!(fs::read(file(path, "node-b")).unwrap(), whole);
}

#[tokio::test]
async fn directory_that_cannot_be_used_is_said_with_what_helps() {
    let directory = tempfile::tempdir().unwrap();
    let obstacle = directory.path().join("obstacle");
    fs::write(&obstacle, "").unwrap();
    let (mut cache, known) = open(&obstacle.join("cache")).await;
    assert!(known.is_empty());
    let problem = cache.current_problem().unwrap();
    assert!(problem.contains("cannot be written to") && problem.contains("--cache-dir"), "{problem}");
    cache.offer(memory(&[("node-a", "apps")]));
    cache.close().await;
}

#[tokio::test]
async fn more_that_is_wanted_meanwhile_is_no_failure() {
    let directory = tempfile::tempdir().unwrap();
    let (_offered, wanted) = watch::channel(memory(&[("node-a", "batch")]));
    let mut writer = Writer {
        directory: Arc::new(Directory::new(directory.path().to_owned())),
        wanted,
        written: Memory::new(),
        problems: Problems::default(),
        said: watch::Sender::default(),
    };
    assert!(writer.write(memory(&[("node-a", "apps")])).await, "the next write would come late");
    assert_eq!(writer.written, memory(&[("node-a", "apps")]));
}

#[tokio::test(start_paused = true)]
async fn directory_that_can_be_used_again_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("obstacle");
    fs::write(&path, "").unwrap();
    let (mut cache, _) = open(&path).await;
    assert!(cache.current_problem().is_some());
    cache.offer(memory(&[("node-a", "apps")]));
    fs::remove_file(&path).unwrap();
    assert_eq!(cache.problem().await, None);
    assert!(file(&path, "node-a").is_file());
}
