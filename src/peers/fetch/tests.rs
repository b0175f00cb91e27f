//! Against real servers on loopback: one scenario each, which asserts what every request must carry.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::discovery::model::Freshness;
use crate::peers::client::identity;
use crate::settings::IdentityHeaderNames;
use crate::testing::api_server::{ApiServer, PeerCertificates, Reply, endless, reply};
use crate::testing::pki::ControlPlane;
use crate::tls::{ALPN_HTTP_1_1, Connector};

const FREE_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
pub(in crate::peers) const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
pub(in crate::peers) const V2BETA1: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
pub(in crate::peers) const JSON: &str = "application/json";

/// Longer than anything within those bounds takes, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bounds for tests that run into them.
pub(in crate::peers) const SHORT: Limits =
    Limits { document: Duration::from_millis(400), walk: Duration::from_millis(800), bytes: 1 << 20 };

pub(in crate::peers) struct Fixture {
    plane: ControlPlane,
    front_proxy: crate::testing::pki::Identity,
    _directory: tempfile::TempDir,
}

impl Fixture {
    pub(in crate::peers) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let plane = ControlPlane::new(directory.path());
        let front_proxy = plane.front_proxy();
        front_proxy.write(directory.path(), "front-proxy-client");
        Self { plane, front_proxy, _directory: directory }
    }

    /// A server that is ready and answers each further request by path, after what every request must carry has been
    /// asserted.
    pub(in crate::peers) async fn server<F>(
        &self,
        answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    ) -> ApiServer
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        self.server_ready_if(answer, || StatusCode::OK).await
    }

    async fn server_ready_if<F>(
        &self,
        answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        readiness: impl Fn() -> StatusCode + Clone + Send + Sync + 'static,
    ) -> ApiServer
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        let certificate = self.front_proxy.certificate().clone();
        let scenario = move |request: Request<Incoming>| {
            assert_asked_as_peerfront(&request, certificate.as_ref());
            let readyz = (request.uri().path() == "/readyz").then(|| reply(readiness(), "text/plain", "readyz"));
            let answer = readyz.is_none().then(|| answer(request));
            async move {
                match (readyz, answer) {
                    (Some(readyz), _) => readyz,
                    (None, Some(answer)) => answer.await,
                    (None, None) => unreachable!("one of the two"),
                }
            }
        };
        ApiServer::start(&self.plane, FREE_PORT, scenario).await
    }

    pub(in crate::peers) fn reader(&self, server: &ApiServer, limits: Limits) -> ServerReader {
        self.reader_of(server.address(), limits)
    }

    fn reader_of(&self, address: SocketAddr, limits: Limits) -> ServerReader {
        ServerReader::new(self.client(address), limits, KnownLists::default())
    }

    pub(in crate::peers) fn client(&self, address: SocketAddr) -> ServerClient {
        let files = self.front_proxy.write(self._directory.path(), "front-proxy-client");
        let roots = self.plane.path("serving-ca.crt");
        let connector = Connector::load(&roots, Some(&files), "kubernetes.default.svc", &[ALPN_HTTP_1_1]).unwrap();
        let identity = identity(&IdentityHeaderNames::default());
        ServerClient::new(Arc::new(connector), address, identity)
    }
}

#[track_caller]
fn assert_asked_as_peerfront(request: &Request<Incoming>, certificate: &[u8]) {
    let values = |name: &str| -> Vec<&str> {
        request.headers().get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    };
    assert_eq!(request.method(), "GET");
    assert_eq!(values("x-remote-user"), ["system:kube-peerfront"]);
    assert_eq!(values("x-remote-group"), ["system:authenticated"]);
    assert_eq!(values("x-kubernetes-peer-proxied"), ["true"]);
    assert_eq!(values("host"), ["kubernetes.default.svc"]);
    assert_eq!(values("authorization"), [""; 0]);
    let presented = request.extensions().get::<PeerCertificates>().unwrap();
    assert_eq!(presented.0.first().map(AsRef::as_ref), Some(certificate), "not the front-proxy certificate");
}

pub(in crate::peers) fn header<'r>(request: &'r Request<Incoming>, name: &str) -> Option<&'r str> {
    request.headers().get(name).map(|value| value.to_str().unwrap())
}

/// A list of one group version.
fn list(group: &str, version: &str, api_version: &str) -> String {
    let item = json!({"metadata": {"name": group}, "versions": [{"version": version, "freshness": "Current",
        "resources": [{"resource": "things", "verbs": ["get", "list"], "scope": "Cluster",
                       "responseKind": {"group": "", "version": "", "kind": "Thing"}}]}]});
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": [item]}).to_string()
}

fn v2(path: &str) -> Reply {
    let body = if path == "/api" { list("", "v1", V2_VERSION) } else { list("apps", "v1", V2_VERSION) };
    reply(StatusCode::OK, V2, body)
}

const V2_VERSION: &str = "apidiscovery.k8s.io/v2";

pub(in crate::peers) fn json_reply(value: &Value) -> Reply {
    reply(StatusCode::OK, JSON, value.to_string())
}

pub(in crate::peers) fn not_found() -> Reply {
    reply(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n")
}

/// `group/version=resource,resource` of everything in a document, `!` before what is stale.
fn summary(document: Option<&Document>) -> Vec<String> {
    let list = &document.unwrap().list;
    list.group_versions()
        .map(|(group, listed)| {
            let mark = if listed.freshness == Freshness::Stale { "!" } else { "" };
            let resources: Vec<&str> = listed.resources.iter().map(|one| one.resource.as_str()).collect();
            format!("{mark}{group}/{}={}", listed.version, resources.join(","))
        })
        .collect()
}

fn is_unchanged(one: &Reading, other: &Reading) -> bool {
    is_same(one.api.as_ref(), other.api.as_ref()) && is_same(one.apis.as_ref(), other.apis.as_ref())
}

#[tokio::test]
async fn every_form_is_offered_and_an_unchanged_document_is_not_sent_again() {
    let fixture = Fixture::new();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let server = fixture
        .server(move |request| {
            let accept = header(&request, "accept").unwrap();
            let forms: Vec<&str> = accept.split(',').collect();
            assert_eq!(forms[0], format!("{V2};profile=nopeer"));
            assert_eq!(forms[1..], [V2, V2BETA1, JSON]);
            let path = request.uri().path().to_owned();
            let etag = format!("\"{path}\"");
            let is_known = header(&request, "if-none-match") == Some(&etag);
            assert_eq!(is_known, count.fetch_add(1, Ordering::SeqCst) >= 2, "conditional from the second read on");
            async move {
                let mut reply = if is_known { reply(StatusCode::NOT_MODIFIED, V2, "") } else { v2(&path) };
                reply.headers_mut().insert(header::ETAG, HeaderValue::try_from(etag).unwrap());
                reply
            }
        })
        .await;
    let mut reader = fixture.reader(&server, Limits::default());
    let first = reader.read().await;
    assert_eq!(first.failure, None);
    assert_eq!(summary(first.api.as_ref()), ["/v1=things"]);
    assert_eq!(summary(first.apis.as_ref()), ["apps/v1=things"]);
    for _ in 0..3 {
        let again = reader.read().await;
        assert_eq!(again.failure, None);
        assert!(is_unchanged(&again, &first), "an unchanged document must stay the same Arc");
        assert_eq!(again.apis.unwrap().etag.unwrap(), "\"/apis\"");
    }
    assert_eq!(sent.load(Ordering::SeqCst), 8);
    assert_eq!(server.connections(), 2, "connections are kept");
    server.stop().await;
}

#[tokio::test]
async fn server_that_starts_is_not_believed_before_it_is_ready() {
    let fixture = Fixture::new();
    let readiness = watch::Sender::new(StatusCode::FORBIDDEN);
    let told = readiness.subscribe();
    let answer = |request: Request<Incoming>| async move { v2(request.uri().path()) };
    let server = fixture.server_ready_if(answer, move || *told.borrow()).await;
    let mut reader = fixture.reader(&server, Limits::default());
    for code in [StatusCode::FORBIDDEN, StatusCode::INTERNAL_SERVER_ERROR] {
        readiness.send_replace(code);
        let starting = reader.read().await;
        assert_eq!(starting.failure.map(|(failure, _)| failure), Some(Failure::Failing), "{code}");
        assert!(starting.api.is_none() && starting.apis.is_none(), "its documents may lack what it is about to serve");
    }
    readiness.send_replace(StatusCode::OK);
    let started = reader.read().await;
    assert_eq!((started.failure.clone(), summary(started.apis.as_ref())), (None, vec!["apps/v1=things".to_owned()]));
    readiness.send_replace(StatusCode::INTERNAL_SERVER_ERROR);
    let again = reader.read().await;
    assert!(again.failure.is_none() && is_unchanged(&again, &started), "readiness is asked for after a pause only");
    server.stop().await;
}

#[tokio::test]
async fn server_that_stops_is_stopping_until_it_says_otherwise() {
    let fixture = Fixture::new();
    // What it answers to the question whether it stops, and to everything.
    let codes = watch::Sender::new([StatusCode::OK; 2]);
    let told = codes.subscribe();
    let server = fixture
        .server(move |request| {
            let [stopping, all] = *told.borrow();
            async move {
                match request.uri().path() {
                    _ if all != StatusCode::OK => reply(all, JSON, "{}"),
                    "/readyz/shutdown" => reply(stopping, "text/plain", ""),
                    path => v2(path),
                }
            }
        })
        .await;
    let known = KnownLists::default();
    let mut reader = ServerReader::local(fixture.client(server.address()), Limits::default(), known);
    let (ok, failing) = (StatusCode::OK, StatusCode::INTERNAL_SERVER_ERROR);
    for (now, is_failed, is_stopping) in [
        ([ok, ok], false, false),
        ([failing, ok], false, true),
        ([failing, StatusCode::SERVICE_UNAVAILABLE], true, true),
        ([ok, ok], false, false),
        ([ok, StatusCode::SERVICE_UNAVAILABLE], true, false),
    ] {
        codes.send_replace(now);
        let reading = reader.read().await;
        assert_eq!((reading.failure.is_some(), reading.is_stopping), (is_failed, is_stopping), "{now:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn equal_document_without_entity_tag_counts_as_unchanged() {
    let fixture = Fixture::new();
    let server = fixture.server(|request| async move { v2(request.uri().path()) }).await;
    let mut reader = fixture.reader(&server, Limits::default());
    let first = reader.read().await;
    assert!(is_unchanged(&reader.read().await, &first));
    server.stop().await;
}

#[tokio::test]
async fn server_with_v2beta1_only_is_read() {
    let fixture = Fixture::new();
    let server = fixture
        .server(|request| async move {
            let group = if request.uri().path() == "/api" { "" } else { "batch" };
            reply(StatusCode::OK, V2BETA1, list(group, "v1", "apidiscovery.k8s.io/v2beta1"))
        })
        .await;
    let reading = fixture.reader(&server, Limits::default()).read().await;
    assert_eq!(reading.failure, None);
    assert_eq!(summary(reading.apis.as_ref()), ["batch/v1=things"]);
    server.stop().await;
}

/// Answers as a server without aggregated discovery, whose `/apis` lists what another version registered.
fn legacy(path: &str) -> Reply {
    let group = |name: &str| {
        let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
        json!({"name": name, "versions": [version], "preferredVersion": version})
    };
    let resources = |group_version: &str| {
        json_reply(&json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": [
            {"name": "things", "namespaced": true, "kind": "Thing", "verbs": ["get"]},
            {"name": "things/status", "namespaced": true, "kind": "Thing", "verbs": ["get"]}]}))
    };
    match path {
        "/api" => json_reply(&json!({"kind": "APIVersions", "versions": ["v1"]})),
        "/apis" => json_reply(&json!({"kind": "APIGroupList", "apiVersion": "v1",
            "groups": [group("apps"), group("newer.k8s.io"), group("broken.example.com")]})),
        "/api/v1" => resources("v1"),
        "/apis/apps/v1" => resources("apps/v1"),
        "/apis/broken.example.com/v1" => reply(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "service unavailable"),
        _ => not_found(),
    }
}

#[tokio::test]
async fn legacy_server_is_walked_once_while_its_root_stays_the_same() {
    let fixture = Fixture::new();
    let walked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&walked);
    let server = fixture
        .server(move |request| {
            let path = request.uri().path().to_owned();
            if path != "/api" && path != "/apis" {
                count.fetch_add(1, Ordering::SeqCst);
            }
            async move { legacy(&path) }
        })
        .await;
    let mut reader = fixture.reader(&server, Limits::default());
    let first = reader.read().await;
    assert_eq!(first.failure, None);
    assert_eq!(summary(first.api.as_ref()), ["/v1=things"]);
    // What it lists and does not serve is left out; what fails is there and stale.
    assert_eq!(summary(first.apis.as_ref()), ["apps/v1=things", "!broken.example.com/v1="]);
    let subresources = &first.apis.as_ref().unwrap().list.items[0].versions[0].resources[0].subresources;
    assert_eq!(subresources[0].subresource, "status");
    assert!(is_unchanged(&reader.read().await, &first));
    assert_eq!(walked.load(Ordering::SeqCst), 4, "each group version is asked for once");
    server.stop().await;
}

/// Reads a good server that turns bad: what was read must be kept, and the failure must be as expected.
async fn check_bad(what: &str, expected: Failure, bad: impl Fn() -> Reply + Clone + Send + Sync + 'static) {
    let fixture = Fixture::new();
    let seen = Arc::new(AtomicUsize::new(0));
    let server = fixture
        .server(move |request| {
            let path = request.uri().path().to_owned();
            assert!(matches!(path.as_str(), "/api" | "/apis"), "nothing else may be asked for: {path}");
            let answer = if seen.fetch_add(1, Ordering::SeqCst) < 2 { v2(&path) } else { bad() };
            async move { answer }
        })
        .await;
    let mut reader = fixture.reader(&server, SHORT);
    let good = reader.read().await;
    assert_eq!(good.failure, None, "{what}");
    let began = Instant::now();
    let reading = reader.read().await;
    assert!(began.elapsed() < PATIENCE, "{what} held the reader up for {:?}", began.elapsed());
    assert!(is_unchanged(&reading, &good), "{what}: what was read must be kept");
    assert_eq!(reading.failure.as_ref().map(|(failure, _)| *failure), Some(expected), "{what}: {reading:?}");
    server.stop().await;
}

#[tokio::test]
async fn whatever_a_server_answers_what_was_read_is_kept() {
    check_bad("HTML", Failure::Failing, || reply(StatusCode::OK, "text/html", "<html>sign in</html>")).await;
    check_bad("garbage", Failure::Failing, || reply(StatusCode::OK, V2, "{\"kind\": \"APIGroup")).await;
    check_bad("another object", Failure::Failing, || json_reply(&json!({"kind": "PodList", "items": []}))).await;
    check_bad("an error", Failure::Failing, || reply(StatusCode::INTERNAL_SERVER_ERROR, JSON, "{}")).await;
    check_bad("a 304 that was not asked for", Failure::Failing, || reply(StatusCode::NOT_MODIFIED, V2, "")).await;
    check_bad("too many requests", Failure::Refused, || reply(StatusCode::TOO_MANY_REQUESTS, "text/plain", "")).await;
    check_bad("forbidden", Failure::Refused, || reply(StatusCode::FORBIDDEN, JSON, "{}")).await;
    let redirect = || {
        let mut reply = reply(StatusCode::FOUND, "text/plain", "");
        reply.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/elsewhere"));
        reply
    };
    check_bad("a redirect", Failure::Failing, redirect).await;
    let good = list("apps", "v1", V2_VERSION);
    let half = good[..good.len() / 2].to_owned();
    check_bad("half a document", Failure::Failing, move || reply(StatusCode::OK, V2, half.clone())).await;
    let text = good.clone();
    check_bad("another content type", Failure::Failing, move || reply(StatusCode::OK, "text/plain", text.clone()))
        .await;
    let twice = good.replace("\"items\":", "\"items\":[],\"items\":");
    check_bad("a key that stands twice", Failure::Failing, move || reply(StatusCode::OK, V2, twice.clone())).await;
    let nested = good.replace("\"metadata\":", &format!("\"future\":{},\"metadata\":", "[".repeat(100_000)));
    check_bad("deep nesting", Failure::Failing, move || reply(StatusCode::OK, V2, nested.clone())).await;
}

#[tokio::test]
async fn dripping_and_endless_answers_are_cut_off() {
    let space = Bytes::from_static(b" ");
    check_bad("a drip", Failure::Failing, move || endless(V2, space.clone(), Duration::from_millis(20))).await;
    let chunk = Bytes::from(vec![b' '; 1 << 16]);
    check_bad("a flood", Failure::Failing, move || endless(V2, chunk.clone(), Duration::ZERO)).await;
}

#[tokio::test]
async fn document_of_100_mib_is_given_up_at_the_limit() {
    let fixture = Fixture::new();
    let server = fixture.server(|_| async { endless(V2, Bytes::from(vec![b' '; 1 << 20]), Duration::ZERO) }).await;
    let limits = Limits { document: Duration::from_secs(60), ..Limits::default() };
    let reading = fixture.reader(&server, limits).read().await;
    let (failure, error) = reading.failure.unwrap();
    assert_eq!((failure, error.as_str()), (Failure::Failing, "/api has more than 33554432 bytes"));
    server.stop().await;
}

#[tokio::test]
async fn document_with_too_many_groups_is_refused_in_either_form() {
    let fixture = Fixture::new();
    let groups = |count: usize, of: &str| vec![of; count].join(",");
    let aggregated = |count| {
        let items = groups(count, r#"{"metadata":{"name":"g"},"versions":[{"version":"v1"}]}"#);
        format!(r#"{{"kind":"APIGroupDiscoveryList","apiVersion":"{V2_VERSION}","items":[{items}]}}"#)
    };
    let legacy = |count| {
        let items = groups(count, r#"{"name":"g","versions":[{"groupVersion":"g/v1","version":"v1"}]}"#);
        format!(r#"{{"kind":"APIGroupList","groups":[{items}]}}"#)
    };
    let limits = Limits { document: Duration::from_secs(60), ..Limits::default() };
    let too_many = ["it lists more than 10000 group versions", "the document holds more than 1000000 values"];
    for (content_type, body, expected) in [
        (V2, aggregated(10_001), too_many[0]),
        (JSON, legacy(10_001), too_many[0]),
        (V2, aggregated(1_000_000), too_many[1]),
        (JSON, legacy(1_000_000), too_many[1]),
    ] {
        // The larger ones are just within what is read of a document.
        let mut body = body;
        body.truncate(limits.bytes);
        let body = Bytes::from(body);
        let server = fixture
            .server(move |request| {
                let is_apis = request.uri().path() == "/apis";
                let body = if is_apis { body.clone() } else { list("", "v1", V2_VERSION).into() };
                async move { reply(StatusCode::OK, if is_apis { content_type } else { V2 }, body) }
            })
            .await;
        let reading = fixture.reader(&server, limits).read().await;
        let (failure, error) = reading.failure.unwrap();
        assert_eq!((failure, error), (Failure::Refused, format!("/apis cannot be read: {expected}")));
        assert!(reading.apis.is_none() && reading.api.is_some());
        server.stop().await;
    }
}

#[tokio::test]
async fn server_that_takes_offence_at_the_choice_is_asked_for_plain_json() {
    let fixture = Fixture::new();
    let server = fixture
        .server(|request| async move {
            let is_plain = header(&request, "accept") == Some(JSON);
            if is_plain { legacy(request.uri().path()) } else { reply(StatusCode::NOT_ACCEPTABLE, JSON, "{}") }
        })
        .await;
    let reading = fixture.reader(&server, Limits::default()).read().await;
    assert_eq!(reading.failure, None);
    assert_eq!(summary(reading.apis.as_ref()), ["apps/v1=things", "!broken.example.com/v1="]);
    server.stop().await;
}

#[tokio::test]
async fn half_of_a_server_is_kept_when_the_other_half_fails() {
    let fixture = Fixture::new();
    let server = fixture
        .server(|request| async move {
            let path = request.uri().path();
            if path == "/apis" { reply(StatusCode::INTERNAL_SERVER_ERROR, JSON, "{}") } else { v2(path) }
        })
        .await;
    let reading = fixture.reader(&server, SHORT).read().await;
    assert_eq!(summary(reading.api.as_ref()), ["/v1=things"]);
    assert!(reading.apis.is_none());
    let expected = "/apis is answered with 500 Internal Server Error";
    assert_eq!(reading.failure, Some((Failure::Refused, expected.to_owned())));
    server.stop().await;
}

#[tokio::test]
async fn server_that_refuses_connections_is_down_and_the_reason_is_told() {
    let fixture = Fixture::new();
    let server = fixture.server(|_| async { not_found() }).await;
    let address = server.address();
    server.stop().await;
    let (failure, error) = fixture.reader_of(address, SHORT).read().await.failure.unwrap();
    assert_eq!(failure, Failure::Down);
    assert!(error.contains(&format!("cannot connect to {address}")), "{error}");
}

#[tokio::test]
async fn server_of_another_authority_is_sent_nothing() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    let server = other.server(|request| async move { panic!("got {}", request.uri()) }).await;
    let reading = fixture.reader(&server, SHORT).read().await;
    assert_eq!(reading.failure.map(|(failure, _)| failure), Some(Failure::Down));
    server.stop().await;
}

#[tokio::test]
async fn forgotten_connections_are_made_anew() {
    let fixture = Fixture::new();
    let server = fixture.server(|request| async move { v2(request.uri().path()) }).await;
    let mut reader = fixture.reader(&server, Limits::default());
    reader.read().await;
    reader.forget_connections();
    assert_eq!(reader.read().await.failure, None);
    assert_eq!(server.connections(), 4);
    server.stop().await;
}
