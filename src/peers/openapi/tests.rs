//! The whole loop against servers on loopback, over TLS: good ones, and what a bad one can do.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use data_encoding::HEXUPPER;
use http::{HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use serde_json::json;
use tokio::time::timeout;

use super::super::client;
use super::super::fetch::Limits as FetchLimits;
use super::*;
use crate::apimachinery::peer::PeerKind;
use crate::openapi::{Found, Page};
use crate::settings::IdentityHeaderNames;
use crate::testing::api_server::{ApiServer, Reply, endless, reply};
use crate::testing::pki::ControlPlane;
use crate::tls::ALPN_HTTP_1_1;

const FREE_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Longer than anything here takes, so that a hang fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bounds of size that a bad server reaches soon, and of time that a busy machine does not.
const SMALL: Limits = limits(Duration::from_secs(20));
/// Bounds that a bad server reaches soon.
const SHORT: Limits = limits(Duration::from_millis(500));

const fn limits(document: Duration) -> Limits {
    let one = FetchLimits { document, walk: PATIENCE, bytes: 1 << 20 };
    Limits { index: one, document: one }
}

const OLD: &str = r#"{"paths":{"/old":1}}"#;
const NEW: &str = r#"{"paths":{"/new":1}}"#;
const BOTH: &str = r#"{"paths":{"/new":1,"/old":1}}"#;

/// What a good server of a version answers: `documents` by key. A hash is the text itself, in hexadecimal digits.
fn good(path_and_query: &str, version: &str, documents: &[(&str, &str)]) -> Reply {
    let json = |value: serde_json::Value| reply(StatusCode::OK, "application/json", value.to_string());
    let path = path_and_query.split('?').next().unwrap();
    let tagged = |text: &str| {
        let mut reply = reply(StatusCode::OK, "application/json", text.to_owned());
        let tag = format!("\"{}\"", HEXUPPER.encode(text.as_bytes()));
        reply.headers_mut().insert(header::ETAG, HeaderValue::try_from(tag).unwrap());
        reply
    };
    match path {
        "/readyz" => reply(StatusCode::OK, "text/plain", "ok"),
        "/version" => json(json!({"gitVersion": version})),
        "/openapi/v2" => tagged(&format!(r#"{{"paths":{{"/{version}":1}}}}"#)),
        "/openapi/v3" => {
            let entry = |(key, text): &(&str, &str)| {
                let url = format!("/openapi/v3/{key}?hash={}", HEXUPPER.encode(text.as_bytes()));
                ((*key).to_owned(), json!({"serverRelativeURL": url}))
            };
            json(json!({"paths": documents.iter().map(entry).collect::<serde_json::Map<_, _>>()}))
        }
        _ => {
            let key = path.strip_prefix("/openapi/v3/").unwrap_or_else(|| panic!("nobody should ask for {path}"));
            tagged(documents.iter().find(|(known, _)| *known == key).unwrap().1)
        }
    }
}

/// A local server and a newer peer, and the loop of the front beside the local one.
struct Fixture {
    local: ApiServer,
    peer: ApiServer,
    connector: Arc<Connector>,
    published: watch::Receiver<Published>,
    _inputs: watch::Sender<Inputs>,
    _directory: tempfile::TempDir,
}

impl Fixture {
    async fn new(limits: Limits, bad: impl Fn(&str) -> Option<Reply> + Clone + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let plane = ControlPlane::new(directory.path());
        let files = plane.front_proxy().write(directory.path(), "front-proxy-client");
        let roots = plane.path("serving-ca.crt");
        let connector = Connector::load(&roots, Some(&files), "kubernetes.default.svc", &[ALPN_HTTP_1_1]).unwrap();
        let connector = Arc::new(connector);
        let local = serve(&plane, |path| good(path, "v1.36.0", &[("api/v1", OLD)])).await;
        let peer = serve(&plane, move |path| {
            let documents = [("api/v1", NEW), ("apis/new/v1", NEW)];
            bad(path).unwrap_or_else(|| good(path, "v1.37.0", &documents))
        })
        .await;
        let setup = Setup {
            upstream: (local.address(), Arc::clone(&connector)),
            peers: Arc::clone(&connector),
            identity: client::identity(&IdentityHeaderNames::default()),
            pace: watch::Sender::new(Duration::from_millis(50)).subscribe(),
            limits,
            remembered: Memory::new(),
        };
        let input = |hostname: &str, address| {
            let id = ServerId::from_hostname(hostname);
            let peer = Peer { id: id.clone(), hostname: hostname.to_owned(), address, kind: PeerKind::Front };
            Input {
                id,
                hostname: hostname.to_owned(),
                peer: Some(Arc::new(peer)),
                is_heard: true,
                documents: [None, None],
            }
        };
        let servers = vec![Input { peer: None, ..input("node-a", local.address()) }, input("node-b", peer.address())];
        let mut exclusions = Exclusions::default();
        exclusions.set_custom_resources([].into(), Instant::now());
        exclusions.set_api_services([].into(), Instant::now());
        let inputs = watch::Sender::new(Inputs::default());
        let publish = watch::Sender::new(Published { state: OpenApi::Awaited, ..Published::default() });
        let published = publish.subscribe();
        tokio::spawn(run(setup, inputs.subscribe(), publish));
        inputs.send_replace(Inputs { is_started: true, servers, exclusions });
        Self { local, peer, connector, published, _inputs: inputs, _directory: directory }
    }

    /// Waits until something else than "awaited" is published.
    async fn settled(&mut self) -> Published {
        let settled = self.published.wait_for(|published| !matches!(published.state, OpenApi::Awaited));
        timeout(PATIENCE, settled).await.expect("it is settled in time").unwrap().clone()
    }

    async fn stop(self) {
        drop(self.published);
        self.local.stop().await;
        self.peer.stop().await;
    }
}

async fn serve(plane: &ControlPlane, answer: impl Fn(&str) -> Reply + Clone + Send + Sync + 'static) -> ApiServer {
    let scenario = move |request: Request<Incoming>| {
        assert_eq!(request.headers()["x-remote-user"], "system:kube-peerfront");
        assert_eq!(request.headers()["x-kubernetes-peer-proxied"], "true");
        let answer = answer(&request.uri().to_string());
        async move { answer }
    };
    ApiServer::start(plane, FREE_PORT, scenario).await
}

/// The JSON that is served here; `local` or `503` if none is.
fn find(published: &Published, path: &str) -> String {
    match published.state.find(path) {
        Found::Here(Page::V3(_, held) | Page::V2(held)) => String::from_utf8(held.json.unpack().to_vec()).unwrap(),
        Found::Here(Page::Index(index)) => String::from_utf8(index.to_vec()).unwrap(),
        Found::Upstream | Found::Unknown => "local".to_owned(),
        Found::Unavailable(_) => "503".to_owned(),
    }
}

#[tokio::test]
async fn documents_of_servers_that_differ_are_merged() {
    let mut fixture = Fixture::new(Limits::default(), |_| None).await;
    let published = fixture.settled().await;
    assert_eq!(find(&published, "/openapi/v3/api/v1"), BOTH);
    assert_eq!(find(&published, "/openapi/v3/apis/new/v1"), NEW);
    assert_eq!(find(&published, "/openapi/v2"), r#"{"paths":{"/v1.36.0":1,"/v1.37.0":1}}"#);
    assert_eq!(published.missing, "");
    fixture.stop().await;
}

#[tokio::test]
async fn documents_that_a_server_publishes_by_turns_are_both_merged() {
    const TURN: &str = r#"{"paths":{"/turn":1}}"#;
    let requests = Arc::new(AtomicUsize::new(0));
    let by_turns = move |target: &str| {
        let (path, hash) = target.split_once("?hash=").unwrap_or((target, ""));
        if !["/openapi/v3", "/openapi/v3/apis/new/v1"].contains(&path) {
            return None;
        }
        let text = if requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) { NEW } else { TURN };
        if !hash.is_empty() && hash != HEXUPPER.encode(text.as_bytes()) {
            return Some(reply(StatusCode::MOVED_PERMANENTLY, "text/plain", ""));
        }
        Some(good(path, "v1.37.0", &[("api/v1", NEW), ("apis/new/v1", text)]))
    };
    let mut fixture = Fixture::new(Limits::default(), by_turns).await;
    let is_merged =
        |published: &Published| find(published, "/openapi/v3/apis/new/v1") == r#"{"paths":{"/new":1,"/turn":1}}"#;
    timeout(PATIENCE, fixture.published.wait_for(is_merged)).await.expect("both are found in time").unwrap();
    fixture.stop().await;
}

/// Answers an index badly: the local server's own answers are left, and the reason is told.
async fn check_index(
    limits: Limits,
    what: &str,
    reason: &str,
    bad: impl Fn() -> Reply + Clone + Send + Sync + 'static,
) {
    let mut fixture = Fixture::new(limits, move |path| (path == "/openapi/v3").then(&bad)).await;
    let published = fixture.settled().await;
    for path in ["/openapi/v3", "/openapi/v2", "/openapi/v3/api/v1"] {
        assert_eq!(find(&published, path), "local", "{what}: {path}");
    }
    assert!(published.missing.contains(reason), "{what}: {}", published.missing);
    fixture.stop().await;
}

#[tokio::test]
async fn bad_index_leaves_the_local_servers_answers() {
    check_index(SMALL, "HTML", "no index", || reply(StatusCode::OK, "text/html", "<html>sign in</html>")).await;
    check_index(SMALL, "half of it", "no index", || reply(StatusCode::OK, "text/plain", r#"{"paths":{"api"#)).await;
    check_index(SMALL, "an error", "500", || reply(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "")).await;
    check_index(SMALL, "forbidden", "403", || reply(StatusCode::FORBIDDEN, "text/plain", "")).await;
    check_index(SMALL, "a redirect", "302", || {
        let mut reply = reply(StatusCode::FOUND, "text/plain", "");
        reply.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/elsewhere"));
        reply
    })
    .await;
    check_index(SMALL, "a flood", "more than", || {
        endless("text/plain", Bytes::from(vec![b' '; 1 << 16]), Duration::ZERO)
    })
    .await;
    let drip = || endless("text/plain", Bytes::from_static(b" "), Duration::from_millis(20));
    check_index(SHORT, "a drip", "longer than", drip).await;
}

/// Answers documents badly: what the local server has is served, and what only the peer has is listed and refused.
async fn check_documents(what: &str, bad: impl Fn() -> Reply + Clone + Send + Sync + 'static) {
    let is_document = |path: &str| path.starts_with("/openapi/v3/") || path == "/openapi/v2";
    let mut fixture = Fixture::new(SMALL, move |path| is_document(path).then(&bad)).await;
    let published = fixture.settled().await;
    assert_eq!(find(&published, "/openapi/v3/api/v1"), OLD, "{what}");
    assert_eq!(find(&published, "/openapi/v3/apis/new/v1"), "503", "{what}");
    assert_eq!(find(&published, "/openapi/v2"), r#"{"paths":{"/v1.36.0":1}}"#, "{what}");
    assert!(find(&published, "/openapi/v3").contains("apis/new/v1"), "{what}");
    fixture.stop().await;
}

fn tagged(body: &'static str) -> Reply {
    let mut reply = reply(StatusCode::OK, "application/json", body);
    reply
        .headers_mut()
        .insert(header::ETAG, HeaderValue::try_from(format!("\"{}\"", HEXUPPER.encode(NEW.as_bytes()))).unwrap());
    reply
}

#[tokio::test]
async fn bad_documents_are_left_out() {
    tokio::join!(
        check_documents("no JSON", || tagged("<html>")),
        check_documents("another object", || tagged(r#"{"paths":[]}"#)),
        check_documents("no tag", || reply(StatusCode::OK, "application/json", NEW)),
        check_documents("an error", || reply(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "")),
        check_documents("a redirect", || reply(StatusCode::MOVED_PERMANENTLY, "text/plain", "")),
        check_documents("a flood", || endless("application/json", Bytes::from(vec![b' '; 1 << 16]), Duration::ZERO)),
    );
}

#[tokio::test]
async fn document_of_another_hash_than_was_asked_for_is_left_out() {
    let mut fixture = Fixture::new(SMALL, |path| {
        path.starts_with("/openapi/v3/").then(|| {
            let mut reply = reply(StatusCode::OK, "application/json", NEW);
            reply.headers_mut().insert(header::ETAG, HeaderValue::from_static("\"AB\""));
            reply
        })
    })
    .await;
    let published = fixture.settled().await;
    assert_eq!(find(&published, "/openapi/v3/api/v1"), OLD);
    fixture.stop().await;
}

#[tokio::test]
async fn document_that_drips_is_cut_off_and_holds_up_one_permit_only() {
    let drip = |path: &str| {
        path.starts_with("/openapi/v3/")
            .then(|| endless("application/json", Bytes::from_static(b" "), Duration::from_millis(20)))
    };
    let fixture = Fixture::new(SMALL, drip).await;
    let identity = client::identity(&IdentityHeaderNames::default());
    let client = ServerClient::new(Arc::clone(&fixture.connector), fixture.peer.address(), identity);
    let location = crate::openapi::index::Location { url: "/openapi/v3/api/v1".to_owned() };
    let wanted = fetch::Wanted {
        server: ServerId::from_hostname("node-b"),
        document: fetch::Document::V3(location),
        comes_by_turns: false,
    };
    let permits = Arc::new(Semaphore::new(1));
    let fetched = timeout(PATIENCE, fetch::fetch(client, Arc::clone(&permits), wanted, SHORT)).await.unwrap();
    let error = fetched.outcome.unwrap_err();
    assert_eq!(error, "/openapi/v3/api/v1 takes longer than 500ms");
    assert_eq!(permits.available_permits(), 1);
    fixture.stop().await;
}
