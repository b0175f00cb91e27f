//! The whole room against servers on loopback, over TLS.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::apimachinery::peer::PeerKind;
use crate::metrics::Registry;
use crate::openapi::OpenApi;
use crate::peers::Intervals;
use crate::routing::RoutingTable;
use crate::settings::IdentityHeaderNames;
use crate::settings::RouteSync;
use crate::testing::api_server::{ApiServer, Reply, endless, reply};
use crate::testing::pki::ControlPlane;
use crate::tls::{ALPN_HTTP_1_1, Connector};
use crate::view::{ClusterView, ConditionState, Discovery, LocalState};

const FREE_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TICK: Duration = Duration::from_millis(50);
/// Longer than anything here takes, so that a hang fails with what was awaited.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a server answers at the moment.
#[derive(Clone, Debug, Default)]
struct State {
    /// `group/version=resource` of `/apis`.
    apis: Vec<&'static str>,
    /// CRDs as `group/version=resource`; `None` answers 403.
    crds: Option<Vec<&'static str>>,
}

fn list(listed: &[&str]) -> String {
    let items: Vec<Value> = listed
        .iter()
        .map(|text| {
            let (group, version, resource) = parts(text);
            json!({"metadata": {"name": group}, "versions": [{"version": version, "freshness": "Current",
                "resources": [{"resource": resource, "verbs": ["get"], "responseKind": {"kind": "Thing"}}]}]})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}).to_string()
}

fn parts(text: &str) -> (&str, &str, &str) {
    let (group_version, resource) = text.split_once('=').unwrap();
    let (group, version) = group_version.split_once('/').unwrap();
    (group, version, resource)
}

fn crd(text: &str) -> Value {
    let (group, version, resource) = parts(text);
    let spec = json!({"group": group, "names": {"plural": resource}, "scope": "Cluster",
                      "versions": [{"name": version, "served": true, "storage": true}]});
    json!({"metadata": {"name": format!("{resource}.{group}")}, "spec": spec, "status": {"conditions": []}})
}

fn answer(request: &Request<Incoming>, state: &State) -> Reply {
    let json = |value: Value| reply(StatusCode::OK, "application/json", value.to_string());
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let objects = |items: Vec<Value>| json(json!({"metadata": {"resourceVersion": "1"}, "items": items}));
    let accept = request.headers().get("accept").map_or("", |value| value.to_str().unwrap());
    let reads_lists = accept.contains("v=v2;");
    match request.uri().path() {
        "/api" if !reads_lists => json(json!({"kind": "APIVersions", "versions": ["v1"]})),
        "/api" => reply(StatusCode::OK, V2, list(&["/v1=pods"])),
        "/apis" => reply(StatusCode::OK, V2, list(&state.apis)),
        "/openapi/v3" => json(json!({"paths": {}})),
        "/readyz" | "/readyz/shutdown" => reply(StatusCode::OK, "text/plain", "ok"),
        "/version" => json(json!({"major": "1", "minor": "35", "gitVersion": "v1.35.4"})),
        _ if is_watch => endless("application/json", Bytes::new(), Duration::from_secs(1)),
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" => match &state.crds {
            Some(crds) => objects(crds.iter().map(|text| crd(text)).collect()),
            None => {
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                                    "message": "forbidden", "reason": "Forbidden", "code": 403});
                reply(StatusCode::FORBIDDEN, "application/json", status.to_string())
            }
        },
        "/apis/apiregistration.k8s.io/v1/apiservices" => objects(vec![
            json!({"metadata": {"name": "v1.apps"}, "spec": {"group": "apps", "version": "v1"}}),
            json!({"metadata": {"name": "v1.metrics.example.com"},
                   "spec": {"group": "metrics.example.com", "version": "v1", "service": {"name": "metrics"}}}),
        ]),
        path => {
            let names: Vec<&str> = path.split('/').skip(1).collect();
            assert!(matches!(names[..], ["api", _] | ["apis", _, _]), "nobody should ask for {path}");
            reply(StatusCode::NOT_FOUND, "text/plain", "404 page not found")
        }
    }
}

async fn serve(plane: &ControlPlane, address: SocketAddr, state: &watch::Sender<State>) -> ApiServer {
    let state = state.subscribe();
    let scenario = move |request: Request<Incoming>| {
        let values: Vec<_> = request.headers().get_all("x-remote-user").iter().collect();
        assert_eq!(values, ["system:kube-peerfront"]);
        assert_eq!(request.headers()["x-remote-group"], "system:authenticated");
        assert_eq!(request.headers()["x-kubernetes-peer-proxied"], "true");
        let answer = answer(&request, &state.borrow());
        async move { answer }
    };
    ApiServer::start(plane, address, scenario).await
}

/// A view before the first.
fn nothing() -> ClusterView {
    ClusterView {
        routes: RoutingTable::default(),
        discovery: Discovery::Awaited,
        openapi: OpenApi::Awaited,
        local: LocalState::default(),
        peers: Vec::new(),
        readiness: Vec::new(),
    }
}

/// node-a's control loops, with node-a's server and a peer's.
struct Front {
    plane: ControlPlane,
    local: ApiServer,
    local_state: watch::Sender<State>,
    peer: Arc<Peer>,
    peer_server: Option<ApiServer>,
    peer_state: watch::Sender<State>,
    leases: watch::Sender<Found>,
    upstream_address: SocketAddr,
    connector: Arc<Connector>,
    cache_dir: PathBuf,
    troubles: mpsc::Sender<(ServerId, Trouble)>,
    registry: Arc<Registry>,
    view: ViewReader,
    trigger: drain::Trigger,
    task: JoinHandle<()>,
    _directory: tempfile::TempDir,
}

impl Front {
    async fn start(local: State, peer: State) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let plane = ControlPlane::new(directory.path());
        let files = plane.front_proxy().write(directory.path(), "front-proxy-client");
        let (local_state, peer_state) = (watch::Sender::new(local), watch::Sender::new(peer));
        let local = serve(&plane, FREE_PORT, &local_state).await;
        let peer_server = serve(&plane, FREE_PORT, &peer_state).await;
        let (id, address) = (ServerId::from_hostname("node-b"), peer_server.address());
        let peer = Arc::new(Peer { id, hostname: "node-b".to_owned(), address, kind: PeerKind::Front });
        let roots = plane.path("serving-ca.crt");
        let connector = Connector::load(&roots, Some(&files), "kubernetes.default.svc", &[ALPN_HTTP_1_1]).unwrap();
        let connector = Arc::new(connector);
        let found = Found { peers: vec![Arc::clone(&peer)], is_complete: true, ..Found::default() };
        let (leases, troubles) = (watch::Sender::new(found), mpsc::channel(1).0);
        let registry = Arc::new(Registry::new());
        let cache_dir = directory.path().join("cache");
        let (view, trigger, task) = (view::channel(nothing()).1, drain::channel().0, tokio::spawn(async {}));
        let mut front = Self {
            upstream_address: local.address(),
            plane,
            local,
            local_state,
            peer,
            peer_server: Some(peer_server),
            peer_state,
            leases,
            connector,
            cache_dir,
            troubles,
            registry,
            view,
            trigger,
            task,
            _directory: directory,
        };
        front.run();
        front
    }

    /// Starts the control loops.
    fn run(&mut self) {
        let (troubles, met) = mpsc::channel(8);
        self.registry = Arc::new(Registry::new());
        let (mut controller, view) = Controller::new(Setup {
            hostname: "node-a".to_owned(),
            upstream_address: self.upstream_address,
            upstream: Arc::clone(&self.connector),
            peering: Peering::On(Arc::clone(&self.connector)),
            static_peers: Vec::new(),
            identity_headers: IdentityHeaderNames::default(),
            troubles: met,
            route_sync: RouteSync::WatchBased,
            cache_dir: Some(self.cache_dir.clone()),
            intervals: Intervals { local: TICK, peer: TICK, refused: TICK },
            registry: Arc::clone(&self.registry),
        });
        controller.leases = self.leases.subscribe();
        controller.leases.mark_changed();
        controller.cluster.await_leases(Instant::now());
        let (trigger, drain) = drain::channel();
        (self.view, self.troubles, self.trigger) = (view, troubles, trigger);
        self.task = tokio::spawn(controller.run(drain));
    }

    /// Ends the control loops, as at the end of the process.
    async fn halt(&mut self) {
        self.trigger.start();
        let task = std::mem::replace(&mut self.task, tokio::spawn(async {}));
        timeout(PATIENCE, task).await.unwrap().unwrap();
    }

    async fn until(&mut self, what: &str, wanted: impl Fn(&ClusterView) -> bool) -> Arc<ClusterView> {
        match timeout(PATIENCE, self.view.wait_for(wanted)).await {
            Ok(view) => view.unwrap(),
            Err(_) => panic!("{what}: {:?}", self.view.load_full()),
        }
    }

    async fn until_listed(&mut self, expected: &[&str]) {
        let what = format!("{expected:?} are listed");
        self.until(&what, |view| listed(view) == expected).await;
    }

    /// The value of a series, given as it is rendered.
    fn value(&self, series: &str) -> Option<f64> {
        let metrics = self.registry.render();
        let values = metrics.lines().filter_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        values.map(|value| value.parse().unwrap()).next()
    }

    async fn stop_peer(&mut self) {
        self.peer_server.take().unwrap().stop().await;
    }

    async fn start_peer(&mut self) {
        self.peer_server = Some(serve(&self.plane, self.peer.address, &self.peer_state).await);
    }

    /// Ends everything and fails if a server was asked something wrong.
    async fn finish(mut self) {
        self.halt().await;
        self.local.stop().await;
        if let Some(server) = self.peer_server {
            server.stop().await;
        }
    }
}

/// `group/version` of the merged `/apis`, `!` before what is stale.
fn listed(view: &ClusterView) -> Vec<String> {
    let Some(documents) = view.documents() else { return Vec::new() };
    let list = crate::peers::tests::aggregated(documents);
    list.group_versions()
        .map(|(group, listed)| {
            let mark = if String::from(listed.freshness.clone()) == "Stale" { "!" } else { "" };
            format!("{mark}{group}/{}", listed.version)
        })
        .collect()
}

fn state(apis: &[&'static str], crds: &[&'static str]) -> State {
    State { apis: apis.to_vec(), crds: Some(crds.to_vec()) }
}

#[tokio::test]
async fn view_follows_a_peer_that_changes_dies_and_returns() {
    let mut front = Front::start(state(&["apps/v1=deployments"], &[]), state(&["batch/v1=jobs"], &[])).await;
    let view = front.until("ready", ClusterView::is_ready).await;
    assert_eq!(view.local.version.as_ref().map(|version| version.minor), Some(35));
    front.until_listed(&["apps/v1", "batch/v1"]).await;
    let skewed = |group| format!("peerfront_skewed_resources{{group=\"{group}\",version=\"v1\"}}");
    let merges = front.value("aggregator_discovery_peer_aggregated_cache_misses_total").unwrap();
    assert!(merges >= 1.0);
    assert_eq!(front.value("aggregator_discovery_aggregation_count_total"), Some(2.0), "/api and /apis");
    assert_eq!(front.value(&skewed("batch")), Some(1.0));
    assert_eq!(front.value(&skewed("")), Some(0.0), "both serve pods");

    front.peer_state.send_modify(|state| state.apis = vec!["batch/v1=jobs", "storage.k8s.io/v1=csinodes"]);
    front.until_listed(&["apps/v1", "batch/v1", "storage.k8s.io/v1"]).await;
    assert!(front.value("aggregator_discovery_peer_aggregated_cache_misses_total").unwrap() > merges);
    assert_eq!(front.value("aggregator_discovery_aggregation_count_total"), Some(2.0), "the peer's are not its own");
    assert_eq!(front.value(&skewed("storage.k8s.io")), Some(1.0));

    front.stop_peer().await;
    front.until_listed(&["apps/v1", "!batch/v1", "!storage.k8s.io/v1"]).await;
    let view = front.view.load_full();
    assert!(!view.peers[0].is_available() && view.peers[0].lost && view.peers[0].heard);
    let metrics = front.registry.render();
    assert!(metrics.contains("peerfront_peer_available{peer=\"node-b\"} 0"), "{metrics}");
    assert!(!metrics.contains("sync_errors_total{type=\"fetch_discovery\"} 0"), "{metrics}");

    front.start_peer().await;
    front.until_listed(&["apps/v1", "batch/v1", "storage.k8s.io/v1"]).await;
    front.until("available again", |view| view.peers[0].is_available()).await;
    assert!(front.registry.render().contains("peerfront_peer_available{peer=\"node-b\"} 1"));

    front.leases.send_replace(Found { is_complete: true, ..Found::default() });
    front.until_listed(&["apps/v1"]).await;
    assert_eq!(front.value(&skewed("batch")), Some(0.0), "nobody serves it any more");
    let metrics = front.registry.render();
    assert!(!metrics.contains("\"node-b\""), "series of a peer that has left:\n{metrics}");
    front.leases.send_replace(Found { peers: vec![Arc::clone(&front.peer)], is_complete: true, ..Found::default() });
    front.until("back", |view| !view.peers.is_empty()).await;
    let metrics = front.registry.render();
    assert!(metrics.contains("peer=\"node-b\"") && metrics.contains("server=\"node-b\""), "{metrics}");
    front.finish().await;
}

#[tokio::test]
async fn all_series_exist_at_zero_before_anything_was_read() {
    let front = Front::start(State::default(), State::default()).await;
    let metrics = front.registry.render();
    for kind in ["lease_list", "hostport_resolution", "fetch_discovery"] {
        let line = format!("apiserver_peer_discovery_sync_errors_total{{type=\"{kind}\"}} 0");
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }
    for counter in ["aggregation_count_total", "peer_aggregated_cache_misses_total"] {
        assert!(front.value(&format!("aggregator_discovery_{counter}")).is_some(), "{metrics}");
    }
    front.finish().await;
}

#[tokio::test]
async fn failed_connect_is_published_at_once_and_undone_by_a_new_connection() {
    let mut front = Front::start(state(&["apps/v1=deployments"], &[]), state(&["batch/v1=jobs"], &[])).await;
    front.until("peer heard", |view| view.documents().is_some()).await;
    let before = front.peer_server.as_ref().unwrap().connections();
    let mut changes = front.view.clone();
    front.troubles.send((front.peer.id.clone(), Trouble::NoConnection)).await.unwrap();
    timeout(PATIENCE, changes.wait_for(|view| !view.peers[0].is_available())).await.unwrap();
    front.until("available again", |view| view.peers[0].is_available()).await;
    let connections = front.peer_server.as_ref().unwrap().connections();
    assert!(connections > before, "an old connection proves nothing");
    front.finish().await;
}

#[tokio::test]
async fn crds_and_api_services_of_the_cluster_are_not_taken_from_peers() {
    let peer = ["apps/v1=deployments", "example.com/v1=things", "metrics.example.com/v1=pods", "batch/v1=jobs"];
    let local = state(&["apps/v1=deployments"], &["example.com/v1=things"]);
    let mut front = Front::start(local, state(&peer, &[])).await;
    front.until_listed(&["apps/v1", "batch/v1"]).await;
    let view = front.until("watching", |view| view.readiness[2].state == ConditionState::Met).await;
    assert_eq!(listed(&view), ["apps/v1", "batch/v1"]);
    front.finish().await;
}

#[tokio::test]
async fn missing_rights_are_named_in_readiness_and_granted_ones_found() {
    let local = State { apis: vec!["apps/v1=deployments"], crds: None };
    let mut front = Front::start(local, state(&["example.com/v1=things"], &[])).await;
    let view = front.until("refused", |view| view.readiness[2].message.contains("kubectl apply -f")).await;
    assert_eq!(view.readiness[2].state, ConditionState::Degraded);
    front.until_listed(&["apps/v1"]).await;
    front.local_state.send_modify(|state| state.crds = Some(Vec::new()));
    front.until("granted", |view| view.readiness[2].state == ConditionState::Met).await;
    front.until_listed(&["apps/v1", "example.com/v1"]).await;
    front.finish().await;
}

#[tokio::test]
async fn restart_beside_a_lost_peer_shows_what_it_showed_before() {
    let peer = state(&["batch/v1=jobs", "storage.k8s.io/v1=csinodes"], &[]);
    let mut front = Front::start(state(&["apps/v1=deployments"], &[]), peer).await;
    front.until_listed(&["apps/v1", "batch/v1", "storage.k8s.io/v1"]).await;
    front.stop_peer().await;
    front.until_listed(&["apps/v1", "!batch/v1", "!storage.k8s.io/v1"]).await;
    front.halt().await;

    front.run();
    let mut seen = front.view.clone();
    let first = timeout(PATIENCE, seen.wait_for(|view| view.documents().is_some())).await.unwrap().unwrap();
    assert_eq!(listed(&first).len(), 3, "{:?}", listed(&first));
    assert!(!first.peers[0].is_available() && !first.peers[0].heard);
    front.until("ready without the peer", ClusterView::is_ready).await;
    let view = front.view.load_full();
    assert_eq!(view.readiness[1].state, ConditionState::Degraded);
    assert!(view.readiness[1].message.contains("is listed"), "{}", view.readiness[1].message);
    front.until_listed(&["apps/v1", "!batch/v1", "!storage.k8s.io/v1"]).await;

    front.peer_state.send_modify(|state| state.apis = vec!["batch/v1=jobs"]);
    front.start_peer().await;
    front.until_listed(&["apps/v1", "batch/v1"]).await;
    front.finish().await;
}

#[tokio::test]
async fn peer_that_left_shortly_before_a_restart_is_listed_as_lost() {
    let mut front = Front::start(state(&["apps/v1=deployments"], &[]), state(&["batch/v1=jobs"], &[])).await;
    front.until_listed(&["apps/v1", "batch/v1"]).await;
    front.halt().await;
    front.stop_peer().await;
    front.leases.send_replace(Found { is_complete: true, ..Found::default() });
    front.run();
    let view = front.until("the first documents", |view| view.documents().is_some()).await;
    assert_eq!(listed(&view), ["apps/v1", "!batch/v1"]);
    front.finish().await;
}

#[tokio::test]
async fn front_that_starts_before_its_server_knows_its_peers_and_lists_what_it_listed() {
    let mut front =
        Front::start(state(&["apps/v1=deployments"], &[]), state(&["apps/v1=deployments", "batch/v1=jobs"], &[])).await;
    front.until_listed(&["apps/v1", "batch/v1"]).await;
    front.halt().await;
    // At the server's address nobody answers any more, and Leases are read through it.
    let other = serve(&front.plane, FREE_PORT, &front.local_state).await;
    std::mem::replace(&mut front.local, other).stop().await;
    front.leases.send_replace(Found::default());
    front.run();
    let view = front.until("the first documents", |view| view.documents().is_some()).await;
    assert_eq!(listed(&view), ["apps/v1", "batch/v1"]);
    front.until("the peer", |view| view.peers.first().is_some_and(|peer| peer.is_available() && peer.heard)).await;
    front.finish().await;
}

#[tokio::test]
async fn cache_that_cannot_be_written_is_said_and_not_waited_for() {
    let mut front = Front::start(state(&["apps/v1=deployments"], &[]), state(&["batch/v1=jobs"], &[])).await;
    front.halt().await;
    let obstacle = front._directory.path().join("obstacle");
    std::fs::write(&obstacle, "").unwrap();
    front.cache_dir = obstacle.join("cache");
    front.run();
    let view = front.until("ready", ClusterView::is_ready).await;
    let cache = view.readiness.iter().find(|condition| condition.name == "cache-directory").unwrap();
    assert_eq!(cache.state, ConditionState::Degraded);
    assert!(cache.message.contains("--cache-dir"), "{}", cache.message);
    front.until_listed(&["apps/v1", "batch/v1"]).await;
    front.finish().await;
}
