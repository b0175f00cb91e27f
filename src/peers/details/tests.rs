//! Against real servers on loopback. A log of what was asked for tells what is read again and what is not.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::peers::fetch::tests::{Fixture, JSON, SHORT, V2, V2BETA1, header, json_reply, not_found};
use crate::peers::fetch::{Reading, ServerReader};
use crate::peers::poll::Source as _;
use crate::testing::api_server::{ApiServer, Reply, endless, reply};

/// Longer than anything here takes, so that a hang fails with what was awaited.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// What a server answers at the moment.
#[derive(Clone, Debug, Default)]
struct State {
    /// `group/version=resource` of `/apis`, `!` before what is stale.
    apis: Vec<&'static str>,
    /// Paths that are answered otherwise.
    bad: Vec<(&'static str, Bad)>,
    gives_v2beta1: bool,
    minor: u32,
}

#[derive(Clone, Copy, Debug)]
enum Bad {
    NotFound,
    Busy,
    Html,
    Redirect,
    Half,
    WrongType,
    Nested,
    Twice,
    Flood,
    Drip,
    Silence,
}

impl Bad {
    const HOSTILE: [Self; 9] = [
        Self::Busy,
        Self::Html,
        Self::Redirect,
        Self::Half,
        Self::WrongType,
        Self::Nested,
        Self::Twice,
        Self::Flood,
        Self::Drip,
    ];

    fn reply(self) -> Reply {
        let ok = |content_type, body: String| reply(StatusCode::OK, content_type, body);
        match self {
            Self::NotFound => not_found(),
            Self::Busy => reply(StatusCode::TOO_MANY_REQUESTS, "text/plain", ""),
            Self::Html => ok("text/html", "<html>sign in</html>".to_owned()),
            Self::Redirect => {
                let mut reply = reply(StatusCode::FOUND, "text/plain", "");
                reply.headers_mut().insert(http::header::LOCATION, HeaderValue::from_static("/elsewhere"));
                reply
            }
            Self::Half => ok(JSON, r#"{"kind":"APIResourceList","resources":[{"#.to_owned()),
            Self::WrongType => ok("application/yaml", legacy("apps/v1", "deployments").to_string()),
            Self::Nested => ok(JSON, format!(r#"{{"kind":"APIResourceList","resources":{}}}"#, "[".repeat(100_000))),
            Self::Twice => {
                ok(JSON, r#"{"kind":"APIResourceList","minor":"1","resources":[],"resources":[]}"#.to_owned())
            }
            Self::Flood => endless(JSON, Bytes::from(vec![b' '; 1 << 16]), Duration::ZERO),
            Self::Drip => endless(JSON, Bytes::from_static(b" "), Duration::from_millis(20)),
            Self::Silence => unreachable!("not answered"),
        }
    }
}

fn legacy(group_version: &str, resource: &str) -> Value {
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": [
        {"name": resource, "kind": "Thing", "verbs": ["get"], "storageVersionHash": format!("{group_version}=")}]})
}

fn parts(text: &str) -> (&str, &str) {
    text.trim_start_matches('!').split_once('=').unwrap()
}

fn list(listed: &[&str]) -> String {
    let item = |text: &&str| {
        let (group_version, resource) = parts(text);
        let (group, version) = group_version.split_once('/').unwrap();
        let freshness = if text.starts_with('!') { "Stale" } else { "Current" };
        json!({"metadata": {"name": group}, "versions": [{"version": version, "freshness": freshness,
            "resources": [{"resource": resource, "verbs": ["get"], "responseKind": {"kind": "Thing"}}]}]})
    };
    let items: Vec<Value> = listed.iter().map(item).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}).to_string()
}

/// The answer as it should be; the key of the log.
fn answer(path: &str, accept: &str, state: &State) -> (String, Reply) {
    let is_v2 = accept.contains("v=v2;");
    let is_beta = accept == V2BETA1;
    let v2 = |listed: &[&str]| reply(StatusCode::OK, V2, list(listed));
    let good = match path {
        "/api" if is_v2 => v2(&["/v1=pods"]),
        "/api" if is_beta && state.gives_v2beta1 => reply(StatusCode::OK, V2BETA1, list(&[])),
        "/api" => json_reply(&json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        "/apis" => v2(&state.apis),
        "/version" => json_reply(&json!({"minor": format!("{}+", state.minor), "gitVersion": "v1"})),
        "/api/v1" => json_reply(&legacy("v1", "pods")),
        path => {
            let found = state.apis.iter().map(|text| parts(text)).find(|(name, _)| path == format!("/apis/{name}"));
            found.map_or_else(not_found, |(group_version, resource)| json_reply(&legacy(group_version, resource)))
        }
    };
    let key = if is_beta { "v2beta1".to_owned() } else { path.to_owned() };
    (key, good)
}

/// One server, and what is read of it.
struct Scene {
    _fixture: Fixture,
    state: watch::Sender<State>,
    asked: mpsc::UnboundedReceiver<String>,
    server: ApiServer,
    lists: ServerReader,
    reports: mpsc::Receiver<(ServerId, Details)>,
    task: JoinHandle<()>,
}

impl Scene {
    async fn start(state: State) -> Self {
        let fixture = Fixture::new();
        let state = watch::Sender::new(state);
        let (log, asked) = mpsc::unbounded_channel();
        let states = state.subscribe();
        let server = fixture
            .server(move |request: Request<Incoming>| {
                let (state, path) = (states.borrow().clone(), request.uri().path().to_owned());
                let accept = header(&request, "accept").unwrap_or_default().to_owned();
                let (key, good) = answer(&path, &accept, &state);
                let bad = state.bad.iter().find(|(bad, _)| *bad == key).map(|(_, bad)| *bad);
                if !accept.contains("v=v2;") {
                    log.send(key).unwrap();
                }
                async move {
                    match bad {
                        Some(Bad::Silence) => std::future::pending().await,
                        Some(bad) => bad.reply(),
                        None => good,
                    }
                }
            })
            .await;
        let lists = fixture.reader(&server, Limits::default());
        let (sender, reports) = mpsc::channel(8);
        let details = DetailsReader {
            server: ServerId::from_hostname("node-b"),
            client: fixture.client(server.address()),
            limits: SHORT,
            pause: PAUSE,
        };
        let task = tokio::spawn(details.run(lists.lists(), sender));
        Self { _fixture: fixture, state, asked, server, lists, reports, task }
    }

    async fn read(&mut self) -> Reading {
        self.lists.read().await
    }

    /// Waits for details that are as wanted.
    async fn until(&mut self, what: &str, wanted: impl Fn(&Details) -> bool) -> Details {
        let mut last = None;
        let found = async {
            loop {
                let (_, details) = self.reports.recv().await.unwrap();
                if wanted(&details) {
                    return details;
                }
                last = Some(details);
            }
        };
        match timeout(PATIENCE, found).await {
            Ok(details) => details,
            Err(_) => panic!("{what}: {last:#?}"),
        }
    }

    /// What was asked for since this was called last, save for the lists.
    fn asked(&mut self) -> BTreeSet<String> {
        let mut asked = BTreeSet::new();
        while let Ok(path) = self.asked.try_recv() {
            assert!(asked.insert(path.clone()), "{path} was asked for twice");
        }
        asked
    }

    async fn finish(self) {
        drop(self.lists);
        timeout(PATIENCE, self.task).await.unwrap().unwrap();
        self.server.stop().await;
    }
}

/// `group/version=storageVersionHash` of the first resource of each document.
fn hashes(details: &Details) -> Vec<String> {
    let documents = details.legacy.resources.iter();
    documents
        .map(|(group_version, list)| format!("{group_version}={}", list.resources[0].storage_version_hash))
        .collect()
}

fn paths(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

fn state(apis: &[&'static str]) -> State {
    State { apis: apis.to_vec(), minor: 35, ..State::default() }
}

#[tokio::test]
async fn documents_are_read_once_and_again_if_their_entry_changes_or_the_server_was_away() {
    let mut scene =
        Scene::start(State { gives_v2beta1: true, ..state(&["apps/v1=deployments", "batch/v1=jobs"]) }).await;
    scene.read().await;
    let all = |details: &Details| hashes(details).len() == 3 && details.legacy.api.is_some();
    let details = scene.until("everything", all).await;
    assert_eq!(hashes(&details), ["v1=v1=", "apps/v1=apps/v1=", "batch/v1=batch/v1="]);
    assert_eq!(details.legacy.api.as_ref().unwrap().versions, ["v1"]);
    assert_eq!((details.version.unwrap().minor, details.gives_v2beta1), (35, true));
    let everything = paths(&["/version", "v2beta1", "/api", "/api/v1", "/apis/apps/v1", "/apis/batch/v1"]);
    assert_eq!(scene.asked(), everything);

    scene.read().await;
    scene.state.send_modify(|state| state.apis = vec!["apps/v1=deployments", "batch/v1=cronjobs", "g/v1=things"]);
    scene.read().await;
    let details = scene.until("what is new", |details| details.legacy.resources.len() == 4).await;
    assert!(details.legacy.resources[&GroupVersion::new("batch", "v1")].resources[0].name == "cronjobs");
    assert_eq!(scene.asked(), paths(&["/version", "v2beta1", "/apis/batch/v1", "/apis/g/v1"]));

    scene.state.send_modify(|state| (state.minor, state.apis) = (36, vec!["apps/v1=deployments", "batch/v1=cronjobs"]));
    scene.lists.forget_connections();
    scene.read().await;
    scene.until("what is gone", |details| details.legacy.resources.len() == 3).await;
    // The last of all that is read again.
    let mut asked = BTreeSet::new();
    while asked.len() < everything.len() {
        asked.insert(timeout(PATIENCE, scene.asked.recv()).await.unwrap().unwrap());
    }
    assert_eq!(asked, everything, "a server that was away may be another one");
    scene.finish().await;
}

#[tokio::test]
async fn what_fails_is_kept_and_asked_for_again_and_what_is_denied_is_left_out() {
    let bad = vec![("/apis/denied/v1", Bad::NotFound), ("/apis/late/v1", Bad::Busy), ("/version", Bad::Busy)];
    let listed = ["apps/v1=deployments", "denied/v1=things", "late/v1=things", "!stale/v1=things"];
    let mut scene = Scene::start(State { bad, ..state(&listed) }).await;
    scene.read().await;
    let details = scene.until("what can be read", |details| hashes(details).len() == 2).await;
    assert_eq!(hashes(&details), ["v1=v1=", "apps/v1=apps/v1="]);
    assert_eq!(details.version, None);
    scene.state.send_modify(|state| state.bad.retain(|(path, _)| *path == "/apis/denied/v1"));
    let details = scene.until("what failed", |details| hashes(details).len() == 3 && details.version.is_some()).await;
    assert_eq!(hashes(&details), ["v1=v1=", "apps/v1=apps/v1=", "late/v1=late/v1="]);

    scene.state.send_modify(|state| {
        state.apis = vec!["!apps/v1=deployments", "late/v1=changed", "next/v1=things"];
        state.bad = vec![("/apis/late/v1", Bad::Busy)];
    });
    scene.read().await;
    let details = scene.until("the next", |details| hashes(details).iter().any(|hash| hash.starts_with("next"))).await;
    assert_eq!(hashes(&details).len(), 4, "what is stale or fails is kept as it was: {:?}", hashes(&details));
    let asked: BTreeSet<String> = std::iter::from_fn(|| scene.asked.try_recv().ok()).collect();
    assert!(!asked.contains("/apis/stale/v1"), "a server cannot give what it calls stale");
    scene.finish().await;
}

#[tokio::test]
async fn whatever_a_server_answers_its_lists_are_read_and_its_good_details_kept() {
    for bad in Bad::HOSTILE {
        let mut scene = Scene::start(state(&["apps/v1=deployments"])).await;
        scene.read().await;
        let good = scene.until("good", |details| hashes(details).len() == 2).await;
        let keys = ["/version", "v2beta1", "/api/v1", "/apis/apps/v1"];
        scene.state.send_modify(|state| {
            state.bad = keys.into_iter().map(|key| (key, bad)).collect();
            state.apis = vec!["apps/v1=deployments", "batch/v1=jobs"];
        });
        scene.lists.forget_connections();
        let reading = scene.read().await;
        assert_eq!(reading.failure, None, "{bad:?}");
        assert_eq!(reading.apis.unwrap().list.items.len(), 2, "{bad:?}");
        let details = scene.until(&format!("{bad:?}"), |details| hashes(details).len() == 3).await;
        assert_eq!(details.version, good.version, "{bad:?}");
        assert_eq!(hashes(&details)[..2], hashes(&good)[..], "{bad:?}");
        scene.finish().await;
    }
}

#[tokio::test]
async fn document_that_hangs_holds_up_neither_the_lists_nor_the_others() {
    let bad = vec![("/apis/hangs/v1", Bad::Silence)];
    let mut scene = Scene::start(State { bad, ..state(&["apps/v1=deployments", "hangs/v1=things"]) }).await;
    scene.read().await;
    for listed in [["apps/v1=deployments", "hangs/v1=others"], ["apps/v1=daemonsets", "hangs/v1=things"]] {
        scene.state.send_modify(|state| state.apis = listed.to_vec());
        assert_eq!(scene.read().await.failure, None);
    }
    let is_new = |details: &Details| {
        let apps = details.legacy.resources.get(&GroupVersion::new("apps", "v1"));
        apps.is_some_and(|list| list.resources[0].name == "daemonsets")
    };
    scene.until("the other document", is_new).await;
    scene.finish().await;
}

#[tokio::test]
async fn what_a_legacy_walk_has_read_is_not_read_again() {
    let fixture = Fixture::new();
    let (log, mut asked) = mpsc::unbounded_channel();
    let server = fixture
        .server(move |request: Request<Incoming>| {
            let path = request.uri().path().to_owned();
            log.send(path.clone()).unwrap();
            let version = json!({"groupVersion": "apps/v1", "version": "v1"});
            let group = json!({"name": "apps", "versions": [version], "preferredVersion": version});
            async move {
                match path.as_str() {
                    "/api" => json_reply(&json!({"kind": "APIVersions", "versions": ["v1"], "future": 1})),
                    "/apis" => json_reply(&json!({"kind": "APIGroupList", "groups": [group]})),
                    "/api/v1" => json_reply(&legacy("v1", "pods")),
                    "/apis/apps/v1" => json_reply(&legacy("apps/v1", "deployments")),
                    "/version" => json_reply(&json!({"minor": "26", "gitVersion": "v1.26.15"})),
                    _ => not_found(),
                }
            }
        })
        .await;
    let mut lists = fixture.reader(&server, Limits::default());
    let (sender, mut reports) = mpsc::channel(8);
    let client = fixture.client(server.address());
    let id = ServerId::from_hostname("node-b");
    let details = DetailsReader { server: id, client, limits: Limits::default(), pause: PAUSE };
    let task = tokio::spawn(details.run(lists.lists(), sender));
    lists.read().await;
    let details = loop {
        let (_, details) = timeout(PATIENCE, reports.recv()).await.unwrap().unwrap();
        if !details.legacy.resources.is_empty() {
            break details;
        }
    };
    assert_eq!(hashes(&details), ["v1=v1=", "apps/v1=apps/v1="]);
    assert_eq!(details.legacy.api.as_ref().unwrap().unknown["future"], 1);
    assert!(!details.gives_v2beta1);
    drop(lists);
    timeout(PATIENCE, task).await.unwrap().unwrap();
    server.stop().await;
    let mut all = Vec::new();
    while let Ok(path) = asked.try_recv() {
        all.push(path);
    }
    all.sort();
    // `/api` once for the list and once for the question of v2beta1.
    assert_eq!(all, ["/api", "/api", "/api/v1", "/apis", "/apis/apps/v1", "/version"]);
}
