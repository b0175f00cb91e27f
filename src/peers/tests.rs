//! What becomes of reports: without sockets, with paused time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, Uri};
use serde_json::json;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, advance};

use super::build::Builder;
use super::cluster::{Cluster, Server};
use super::details::Details;
use super::exclusions::{Excluded, Problem};
use super::fetch::{Document, Reading};
use super::health::Failure;
use super::poll::{self, Report, Signals, Source};
use crate::apimachinery::discovery_path::DiscoveryPath;
use crate::apimachinery::gvr::{GroupVersion, GroupVersionResource};
use crate::apimachinery::peer::{Hop, Peer, PeerKind};
use crate::apimachinery::server_id::ServerId;
use crate::authz::Reader;
use crate::discovery::{ApiGroupDiscoveryList, Documents, Found, serve};
use crate::request_info::RequestInfo;
use crate::routing::{Decision, NotFound, decide};
use crate::view::{ClusterView, ConditionState};

mod restarts;
mod views;
mod routes;
mod simulation;

const SECOND: Duration = Duration::from_secs(1);

/// A cluster with the builder of its views.
struct Fixture {
    cluster: Cluster,
    builder: Builder,
}

impl Fixture {
    /// node-a with these peers. Nothing has been read.
    fn new(peers: &[&str]) -> Self {
        let mut cluster = Cluster::new(Server::local("node-a", Instant::now()));
        for name in peers {
            cluster.add(&peer(name), Instant::now());
        }
        Self { cluster, builder: Builder::new(None) }
    }

    /// node-a and node-b, heard with these groups.
    fn heard(local: &[&str], peer: &[&str]) -> Self {
        let mut fixture = Self::new(&["node-b"]);
        fixture.cluster.exclude(listed(&[], &[]), Instant::now());
        fixture.report("node-a", reading(local));
        fixture.report("node-b", reading(peer));
        fixture
    }

    fn report(&mut self, server: &str, reading: Reading) {
        let server = ServerId::from_hostname(server);
        let is_details_due = self.cluster.servers().any(|known| known.id == server && !known.is_detailed);
        if is_details_due && reading.failure.is_none() {
            self.cluster.detail(&server, Details::default(), Instant::now());
        }
        self.cluster.report(Report { server, began: Instant::now(), reading }, Instant::now());
    }

    /// The next read of a server fails, and what it gave last stays.
    fn fail(&mut self, server: &str, failure: Failure) {
        let id = ServerId::from_hostname(server);
        let known = self.cluster.servers().find(|server| server.id == id).unwrap();
        // A reader has what it has read itself.
        let read = |document: &Option<Document>| document.clone().filter(|_| !known.is_remembered);
        let (api, apis) = (read(&known.api), read(&known.apis));
        self.report(server, Reading { api, apis, failure: Some((failure, "it fails".to_owned())), is_stopping: false });
    }

    fn view(&mut self) -> ClusterView {
        let now = Instant::now();
        self.builder.reconcile(&self.cluster, now);
        self.builder.build(&self.cluster, now)
    }

    /// Whether anything was new since this was last asked.
    fn take_due(&mut self) -> bool {
        let due = self.cluster.due();
        self.cluster.done(true, Instant::now());
        due.view
    }

    /// `group/version` of the merged `/apis`, `!` before what is stale.
    fn listed(&mut self) -> Vec<String> {
        listed_in(&self.view())
    }
}

fn listed_in(view: &ClusterView) -> Vec<String> {
    let document = aggregated(view.documents().unwrap());
    let of = |(group, listed): (&str, &crate::discovery::model::ApiVersionDiscovery)| {
        let mark = if String::from(listed.freshness.clone()) == "Stale" { "!" } else { "" };
        let names: Vec<&str> = listed.resources.iter().map(|one| one.resource.as_str()).collect();
        format!("{mark}{group}/{}={}", listed.version, names.join(","))
    };
    document.group_versions().map(of).collect()
}

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The merged `/apis` as a client reads it.
pub(super) fn aggregated(documents: &Documents) -> ApiGroupDiscoveryList {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(V2))]);
    match documents.find(&DiscoveryPath::Apis, &headers, &Uri::from_static("/apis")) {
        Found::Page(page) => serde_json::from_slice(serve(&Reader::of_test(), &page, &headers).body()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn peer(name: &str) -> Arc<Peer> {
    // One of its own.
    let port = name.bytes().fold(1, |port: u16, byte| port.wrapping_mul(31).wrapping_add(byte.into()));
    let (id, address) = (ServerId::from_hostname(name), ([127, 0, 0, 1], port).into());
    Arc::new(Peer { id, hostname: name.to_owned(), address, kind: PeerKind::Front })
}

/// `group/version=resource,resource` each.
fn document(listed: &[&str]) -> Document {
    let group = |text: &&str| {
        let (group_version, resources) = text.split_once('=').unwrap();
        let (group, version) = group_version.split_once('/').unwrap();
        let resources: Vec<_> = resources
            .split(',')
            .map(|name| json!({"resource": name, "verbs": ["get", "list"], "responseKind": {"kind": "Thing"}}))
            .collect();
        json!({"metadata": {"name": group},
               "versions": [{"version": version, "freshness": "Current", "resources": resources}]})
    };
    let items: Vec<_> = listed.iter().map(group).collect();
    let list = serde_json::from_value(json!({"metadata": {}, "items": items})).unwrap();
    Document { list: Arc::new(list), etag: Some(HeaderValue::from_static("\"1\"")) }
}

fn reading(apis: &[&str]) -> Reading {
    Reading { api: Some(document(&["/v1=pods"])), apis: Some(document(apis)), ..Reading::default() }
}

fn listed(crds: &[(&str, &str)], api_services: &[&str]) -> Excluded {
    let crd = |(group_version, resource): &(&str, &str)| GroupVersionResource {
        group_version: GroupVersion::parse(group_version),
        resource: (*resource).to_owned(),
    };
    Excluded {
        custom_resources: Some(crds.iter().map(crd).collect::<BTreeSet<_>>()),
        api_services: Some(api_services.iter().map(|text| GroupVersion::parse(text)).collect()),
        problem: None,
    }
}

/// What the view decides about reading a path: `local`, `local, then 503`, `peer` or `nobody`.
fn decision(view: &ClusterView, path: &str) -> &'static str {
    let uri = path.parse().unwrap();
    let info = RequestInfo::parse(&Method::GET, &uri).unwrap();
    match decide(&info, Hop::First, &view.routes) {
        Decision::Upstream { not_found: NotFound::Pass, .. } => "local",
        Decision::Upstream { .. } => "local, then 503",
        Decision::Peer(_) => "peer",
        Decision::Unavailable(_) => "nobody",
        Decision::Discovery(_) => "discovery",
        Decision::OpenApi => "openapi",
        Decision::Metrics => "metrics",
    }
}

fn condition(view: &ClusterView, name: &str) -> (ConditionState, String) {
    let found = view.readiness.iter().find(|condition| condition.name == name).unwrap();
    (found.state, found.message.clone())
}

#[tokio::test(start_paused = true)]
async fn documents_wait_for_the_local_server_and_five_minutes_for_a_silent_peer() {
    let mut fixture = Fixture::new(&["node-b", "node-c"]);
    assert!(fixture.view().documents().is_none());
    fixture.report("node-a", reading(&["apps/v1=deployments"]));
    fixture.report("node-b", reading(&["batch/v1=jobs"]));
    let view = fixture.view();
    assert!(view.documents().is_none(), "node-c has not been heard");
    fixture.fail("node-c", Failure::Down);
    let view = fixture.view();
    assert!(view.documents().is_none(), "node-c may be starting");
    assert!(!view.is_ready());
    tokio::time::advance(Duration::from_secs(300)).await;
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "batch/v1=jobs"]);
    let view = fixture.view();
    assert!(view.is_ready(), "{:?}", view.readiness);
    assert_eq!(condition(&view, "peer-discovery"), (ConditionState::Degraded, "node-c: it fails".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn group_version_that_a_walk_could_not_read_is_unknown_until_it_can() {
    let mut fixture = Fixture::heard(&["apps/v1=deployments"], &["apps/v1=deployments"]);
    let list = json!({"metadata": {}, "items": [{"metadata": {"name": "batch"},
        "versions": [{"version": "v1", "freshness": "Stale", "resources": []}]}]});
    let unread = Document { list: Arc::new(serde_json::from_value(list).unwrap()), etag: None };
    fixture.report("node-b", Reading { apis: Some(unread), ..reading(&[]) });
    assert_eq!(decision(&fixture.view(), "/apis/batch/v1/jobs"), "local, then 503");
    assert_eq!(decision(&fixture.view(), "/apis/batch/v2/jobs"), "local");
    fixture.report("node-b", reading(&["batch/v1=jobs"]));
    assert_eq!(decision(&fixture.view(), "/apis/batch/v1/jobs"), "peer");
    assert_eq!(decision(&fixture.view(), "/apis/batch/v1/things"), "local");
}

#[tokio::test(start_paused = true)]
async fn dead_peer_keeps_its_documents_as_stale_and_is_current_when_it_returns() {
    let mut fixture = Fixture::heard(&["apps/v1=deployments"], &["apps/v1=deployments", "batch/v1=jobs"]);
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "batch/v1=jobs"]);
    assert_eq!(decision(&fixture.view(), "/apis/batch/v1/jobs"), "peer");

    advance(SECOND).await;
    fixture.fail("node-b", Failure::Down);
    let view = fixture.view();
    assert_eq!(decision(&view, "/apis/batch/v1/jobs"), "nobody");
    assert_eq!(listed_in(&view), ["apps/v1=deployments", "batch/v1=jobs"], "one failure is no loss");

    advance(SECOND).await;
    fixture.fail("node-b", Failure::Down);
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "!batch/v1=jobs"]);
    assert!(fixture.view().peers[0].lost);

    advance(SECOND).await;
    fixture.report("node-b", reading(&["batch/v1=jobs"]));
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "batch/v1=jobs"]);
    assert_eq!(decision(&fixture.view(), "/apis/batch/v1/jobs"), "peer");
}

#[tokio::test(start_paused = true)]
async fn lost_local_server_keeps_its_documents_too() {
    let mut fixture = Fixture::heard(&["apps/v1=deployments", "local/v1=things"], &["apps/v1=deployments"]);
    for _ in 0..2 {
        advance(SECOND).await;
        fixture.fail("node-a", Failure::Down);
    }
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "!local/v1=things"]);
    let view = fixture.view();
    assert!(!view.local.available && view.local.heard);
    assert_eq!(condition(&view, "local-discovery").0, ConditionState::Degraded);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_stay_current_while_the_local_server_is_down() {
    let all = ["apps/v1=deployments", "example.com/v1=things", "metrics.example.com/v1=pods"];
    let mut fixture = Fixture::heard(&all, &all);
    fixture.cluster.exclude(listed(&[("example.com/v1", "things")], &["metrics.example.com/v1"]), Instant::now());
    for _ in 0..2 {
        advance(SECOND).await;
        fixture.fail("node-a", Failure::Down);
    }
    assert_eq!(fixture.listed(), all, "a peer serves them in its place");
    assert_eq!(decision(&fixture.view(), "/apis/example.com/v1/things"), "peer");
}

#[tokio::test(start_paused = true)]
async fn custom_resources_do_not_make_the_order_differ_from_node_to_node() {
    let newer = ["apps/v1=deployments", "storagemigration.k8s.io/v1=storageversionmigrations", "example.com/v1=things"];
    let older = ["apps/v1=deployments", "example.com/v1=things"];
    let crds = || listed(&[("example.com/v1", "things")], &[]);
    let mut of_older = Fixture::heard(&older, &newer);
    of_older.cluster.exclude(crds(), Instant::now());
    let mut of_newer = Fixture::heard(&newer, &older);
    of_newer.cluster.exclude(crds(), Instant::now());
    assert_eq!(of_older.listed(), of_newer.listed());
}

#[tokio::test(start_paused = true)]
async fn local_server_of_which_only_half_was_read_is_not_passed_over() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-b", reading(&["apps/v1=deployments"]));
    let half = Reading { apis: None, failure: Some((Failure::Refused, "busy".to_owned())), ..reading(&[]) };
    fixture.report("node-a", half);
    assert_eq!(decision(&fixture.view(), "/apis/apps/v1/deployments"), "local, then 503");
}

#[tokio::test(start_paused = true)]
async fn failed_connect_makes_a_peer_unavailable_at_once_and_only_once() {
    let mut fixture = Fixture::heard(&["apps/v1=deployments"], &["batch/v1=jobs"]);
    let id = ServerId::from_hostname("node-b");
    fixture.take_due();
    assert!(fixture.cluster.connect_failed(&id, Instant::now()));
    assert!(fixture.take_due());
    assert_eq!(decision(&fixture.view(), "/apis/batch/v1/jobs"), "nobody");
    assert!(!fixture.cluster.connect_failed(&id, Instant::now()));
    assert!(!fixture.cluster.connect_failed(&ServerId::from_hostname("node-x"), Instant::now()));
    assert!(!fixture.take_due(), "nothing is new");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_due_while_reads_bring_nothing_new() {
    let mut fixture = Fixture::heard(&["apps/v1=deployments"], &["batch/v1=jobs"]);
    let same = |fixture: &Fixture| Reading {
        api: fixture.cluster.local.api.clone(),
        apis: fixture.cluster.local.apis.clone(),
        ..Reading::default()
    };
    assert!(fixture.take_due());
    let before = fixture.view();
    advance(SECOND).await;
    fixture.report("node-a", same(&fixture));
    fixture.cluster.exclude(listed(&[], &[]), Instant::now());
    assert!(!fixture.take_due());
    let after = fixture.view();
    let (before, after) = (before.documents().unwrap(), after.documents().unwrap());
    assert!(std::ptr::eq(before, after), "the rendered documents are shared");
    fixture.report("node-a", reading(&["apps/v1=deployments,daemonsets"]));
    assert!(fixture.take_due());
}

#[tokio::test(start_paused = true)]
async fn crds_and_api_services_are_never_taken_from_peers_until_five_minutes_after_they_are_gone() {
    let peer = ["apps/v1=deployments", "example.com/v1=things", "metrics.example.com/v1=pods", "batch/v1=jobs,others"];
    let mut fixture = Fixture::heard(&["apps/v1=deployments"], &peer);
    fixture.cluster.exclude(
        listed(&[("example.com/v1", "things"), ("batch/v1", "others")], &["metrics.example.com/v1"]),
        Instant::now(),
    );
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "batch/v1=jobs"]);
    let view = fixture.view();
    for path in ["/apis/example.com/v1/things", "/apis/metrics.example.com/v1/pods", "/apis/batch/v1/others"] {
        assert_eq!(decision(&view, path), "local", "{path}");
    }
    assert_eq!(decision(&view, "/apis/batch/v1/jobs"), "peer");

    advance(SECOND).await;
    fixture.cluster.exclude(listed(&[], &[]), Instant::now());
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "batch/v1=jobs"]);
    let wake = fixture.cluster.next_wake(Instant::now()).unwrap();
    assert_eq!(wake, Instant::now() + 300 * SECOND);
    advance(300 * SECOND).await;
    fixture.cluster.wake(Instant::now());
    assert!(fixture.take_due());
    assert_eq!(fixture.listed().len(), 4);
    assert_eq!(fixture.cluster.next_wake(Instant::now()), None);
}

#[tokio::test(start_paused = true)]
async fn without_rights_only_built_in_groups_come_from_peers_and_readiness_says_what_grants_them() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", reading(&["apps/v1=deployments", "example.org/v1=others"]));
    fixture
        .report("node-b", reading(&["example.com/v1=things", "storagemigration.k8s.io/v1=storageversionmigrations"]));
    fixture.cluster.exclude(Excluded { problem: Some(Problem::Forbidden), ..Excluded::default() }, Instant::now());
    let mut groups = fixture.listed();
    groups.sort();
    let expected =
        ["apps/v1=deployments", "example.org/v1=others", "storagemigration.k8s.io/v1=storageversionmigrations"];
    assert_eq!(groups, expected);
    let view = fixture.view();
    let (state, message) = condition(&view, "crd-and-apiservice-watch");
    assert_eq!(state, ConditionState::Degraded);
    assert!(message.contains("kubectl apply -f kubeadm/rbac.yaml"), "{message}");
    assert!(view.is_ready(), "static peers and the local view work without it");
}

#[tokio::test(start_paused = true)]
async fn peer_that_is_never_heard_holds_back_not_found_answers_for_five_minutes() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.cluster.exclude(listed(&[], &[]), Instant::now());
    fixture.report("node-a", reading(&["apps/v1=deployments"]));
    fixture.fail("node-b", Failure::Down);
    assert_eq!(decision(&fixture.view(), "/apis/unknown.k8s.io/v1/things"), "local, then 503");
    let wake = fixture.cluster.next_wake(Instant::now()).unwrap();
    advance(wake - Instant::now() - SECOND).await;
    assert_eq!(decision(&fixture.view(), "/apis/unknown.k8s.io/v1/things"), "local, then 503");
    advance(SECOND).await;
    fixture.cluster.wake(Instant::now());
    assert!(fixture.take_due());
    assert_eq!(decision(&fixture.view(), "/apis/unknown.k8s.io/v1/things"), "local");
}

#[tokio::test(start_paused = true)]
async fn peer_that_was_never_heard_is_waited_for_though_its_lease_has_ended() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.cluster.exclude(listed(&[], &[]), Instant::now());
    fixture.report("node-a", reading(&["apps/v1=deployments"]));
    fixture.cluster.take_ended([ServerId::from_hostname("node-b")].into(), Instant::now());
    assert!(fixture.view().documents().is_none(), "its front may hang, and its server be well");
    assert_eq!(decision(&fixture.view(), "/apis/unknown.k8s.io/v1/things"), "local, then 503");
    let limit = fixture.cluster.next_wake(Instant::now()).unwrap();
    advance(limit - Instant::now()).await;
    assert!(fixture.view().documents().is_some());
}

#[tokio::test(start_paused = true)]
async fn peer_at_a_new_address_keeps_what_is_known_of_it() {
    let mut fixture = Fixture::heard(&["apps/v1=deployments"], &["batch/v1=jobs"]);
    let moved = Arc::new(Peer { address: "127.0.0.2:1".parse().unwrap(), ..Peer::clone(&peer("node-b")) });
    fixture.cluster.add(&moved, Instant::now());
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "batch/v1=jobs"]);
    assert_eq!(fixture.view().peers[0].peer, moved);
    fixture.report("node-b", Reading { failure: Some((Failure::Down, "it fails".to_owned())), ..Reading::default() });
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "batch/v1=jobs"], "its new loop has not read anything yet");
    fixture.cluster.remove(&moved.id, Instant::now());
    assert_eq!(fixture.listed(), ["apps/v1=deployments"]);
}

#[tokio::test(start_paused = true)]
async fn server_under_a_new_name_is_listed_as_before_until_it_is_heard() {
    let mut fixture = Fixture::heard(&["apps/v1=deployments"], &["batch/v1=jobs"]);
    assert_eq!(decision(&fixture.view(), "/apis/batch/v1/jobs"), "peer");
    let before = peer("node-b");
    let renamed = Arc::new(Peer { address: before.address, ..Peer::clone(&peer("node-renamed")) });
    fixture.cluster.add(&renamed, Instant::now());
    fixture.cluster.remove(&before.id, Instant::now());
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "batch/v1=jobs"]);
    assert_eq!(decision(&fixture.view(), "/apis/batch/v1/jobs"), "nobody", "it may be another server");
    fixture.report("node-renamed", reading(&["events.k8s.io/v1=events"]));
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "events.k8s.io/v1=events"]);
    assert_eq!(decision(&fixture.view(), "/apis/batch/v1/jobs"), "local");
}

/// A server that answers after `delay`.
struct Slow {
    delay: Duration,
    forgotten: Arc<Notify>,
}

impl Source for Slow {
    async fn read(&mut self) -> Reading {
        tokio::time::sleep(self.delay).await;
        Reading::default()
    }

    fn forget_connections(&mut self) {
        self.forgotten.notify_one();
    }
}

fn pace(every: Duration) -> watch::Receiver<Duration> {
    watch::Sender::new(every).subscribe()
}

#[tokio::test(start_paused = true)]
async fn hanging_server_holds_up_nobody_else() {
    let (reports, mut reported) = mpsc::channel(64);
    for (name, delay) in [("node-b", 4 * SECOND), ("node-c", Duration::ZERO)] {
        let source = Slow { delay, forgotten: Arc::default() };
        tokio::spawn(poll::run(ServerId::from_hostname(name), source, pace(SECOND), Arc::default(), reports.clone()));
    }
    tokio::time::sleep(10 * SECOND + SECOND / 2).await;
    drop(reports);
    let mut counts = (0, 0);
    while let Ok(report) = reported.try_recv() {
        let slow = report.server == ServerId::from_hostname("node-b");
        if slow { counts.0 += 1 } else { counts.1 += 1 }
    }
    assert_eq!(counts, (2, 11));
}

#[tokio::test(start_paused = true)]
async fn doubt_makes_a_loop_read_at_once_over_a_new_connection() {
    let (reports, mut reported) = mpsc::channel(64);
    let (signals, forgotten) = (Arc::new(Signals::default()), Arc::new(Notify::new()));
    let source = Slow { delay: Duration::ZERO, forgotten: Arc::clone(&forgotten) };
    let id = ServerId::from_hostname("node-b");
    tokio::spawn(poll::run(id, source, pace(60 * SECOND), Arc::clone(&signals), reports));
    reported.recv().await.unwrap();
    let before = Instant::now();
    signals.doubt.notify_one();
    let report = reported.recv().await.unwrap();
    assert_eq!(report.began, before);
    forgotten.notified().await;
}

#[tokio::test(start_paused = true)]
async fn word_of_changes_makes_a_loop_read_soon_and_a_burst_is_few_reads() {
    let (reports, mut reported) = mpsc::channel(64);
    let (signals, forgotten) = (Arc::new(Signals::default()), Arc::new(Notify::new()));
    let source = Slow { delay: Duration::ZERO, forgotten: Arc::clone(&forgotten) };
    let id = ServerId::from_hostname("node-b");
    tokio::spawn(poll::run(id, source, pace(60 * SECOND), Arc::clone(&signals), reports));
    reported.recv().await.unwrap();
    advance(SECOND).await;
    let start = Instant::now();
    for _ in 0..100 {
        signals.change.notify_one();
        advance(Duration::from_millis(10)).await;
        tokio::task::yield_now().await;
    }
    let mut began = Vec::new();
    while let Ok(Some(report)) = tokio::time::timeout(30 * SECOND, reported.recv()).await {
        began.push(report.began - start);
    }
    assert!(began[0] <= Duration::from_millis(10), "{began:?}");
    assert!(began.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(240)), "{began:?}");
    assert!((9..=14).contains(&began.len()), "one second of changes and two more: {began:?}");
    let untouched = tokio::time::timeout(SECOND, forgotten.notified()).await;
    assert!(untouched.is_err(), "connections are kept");
}

#[tokio::test(start_paused = true)]
async fn loop_ends_when_nobody_wants_its_reports() {
    let (reports, reported) = mpsc::channel(1);
    let source = Slow { delay: Duration::ZERO, forgotten: Arc::default() };
    let task =
        tokio::spawn(poll::run(ServerId::from_hostname("node-b"), source, pace(SECOND), Arc::default(), reports));
    drop(reported);
    task.await.unwrap();
}
