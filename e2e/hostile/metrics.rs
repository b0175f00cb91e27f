//! `/peerfront/metrics` is for those who may read the server's own, says the server, and for nobody else.

use std::net::SocketAddr;

use peerfront::app;
use peerfront::testing::front::admin_get;
use peerfront::testing::raw::{Answer, Raw};
use peerfront::testing::stub::{Exchange, Served, Stub};

use crate::client;
use crate::fixture::{Fixture, Place, until_ready};

const PATH: &str = "/peerfront/metrics";
const REVIEW: &str = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1";
const READ: &str = "GET /metrics HTTP/1.1";

/// A server that lets `good` read its metrics, and alice and bob in whose name `good` may speak; `odd` as well, who may
/// not ask whether it may. It does not know `expired`.
fn judge(mut exchange: Exchange) -> Served {
    Box::pin(async move {
        let body = String::from_utf8(exchange.body().await.ok()?).ok()?;
        let (status, text) = verdict(&exchange, &body);
        let head = format!("HTTP/1.1 {status}\r\nX-Server: yes\r\nContent-Length: {}\r\n\r\n", text.len());
        exchange.write(head + text).await.ok()?;
        Some(exchange.io)
    })
}

fn verdict(exchange: &Exchange, body: &str) -> (&'static str, &'static str) {
    let seen = &exchange.seen;
    let one = |name| seen.all(name).first().copied().unwrap_or_default();
    let asserted = if seen.certificate { one("x-remote-user") } else { one("authorization") };
    let who = match (asserted, one("impersonate-user")) {
        (who, "") => who,
        ("Bearer good", who) => who,
        _ => "nobody",
    };
    let may_read = matches!(who, "Bearer good" | "Bearer odd" | "alice" | "bob");
    match (seen.line(), who) {
        (_, "Bearer expired") => ("401 Unauthorized", "who?"),
        (REVIEW, "Bearer odd" | "") => ("403 Forbidden", "may not ask"),
        (REVIEW, "Bearer busy") => ("429 Too Many Requests", "later"),
        (REVIEW, "Bearer garbled") => ("201 Created", r#"{"status":{"allowed":"true"}}"#),
        (REVIEW, _) => review(seen.all("content-type") == ["application/json"], body, may_read),
        (READ, _) if may_read => ("200 OK", "the_servers_own 1"),
        (READ, _) => ("403 Forbidden", "may not read"),
        _ => ("404 Not Found", "404 page not found\n"),
    }
}

fn review(is_json: bool, body: &str, may_read: bool) -> (&'static str, &'static str) {
    let asked: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let attributes = serde_json::json!({"nonResourceAttributes": {"path": "/metrics", "verb": "get"}});
    let is_right = is_json
        && asked["apiVersion"] == "authorization.k8s.io/v1"
        && asked["kind"] == "SelfSubjectAccessReview"
        && asked["spec"] == attributes;
    match (is_right, may_read) {
        (false, _) => ("400 Bad Request", ""),
        (true, true) => {
            ("201 Created", r#"{"kind":"SelfSubjectAccessReview","status":{"allowed":true,"reason":"RBAC"}}"#)
        }
        (true, false) => ("201 Created", r#"{"kind":"SelfSubjectAccessReview","status":{"allowed":false}}"#),
    }
}

fn is_metrics(answer: &Answer) -> bool {
    answer.code() == 200
        && answer.all("content-type") == ["text/plain; version=0.0.4; charset=utf-8"]
        && answer.all("x-server").is_empty()
        && answer.text().contains("\npeerfront_request_total{verb=\"get\",code=\"200\"} ")
}

fn lines(stub: &mut Stub) -> Vec<String> {
    stub.rest().iter().map(|seen| seen.line().to_owned()).collect()
}

#[tokio::test]
async fn server_says_who_may_read_a_fronts_metrics() {
    let mut fixture = Fixture::start(judge).await;
    let refused = [REVIEW, READ].as_slice();
    for (credential, code, asked) in [
        ("Authorization: Bearer good\r\n", 200, [REVIEW].as_slice()),
        ("Authorization: Bearer good\r\nAccept: application/openmetrics-text\r\nAccept-Encoding: gzip\r\n", 200, &[]),
        ("Authorization: Bearer good\r\nImpersonate-User: bob\r\n", 200, &[REVIEW]),
        ("Authorization: Bearer good\r\nImpersonate-User: eve\r\n", 403, refused),
        ("Authorization: Bearer good\r\nConnection: impersonate-user\r\nImpersonate-User: eve\r\n", 403, refused),
        ("Authorization: Bearer odd\r\n", 200, refused),
        ("Authorization: Bearer odd\r\n", 200, &[]),
        ("Authorization: Bearer busy\r\n", 403, refused),
        ("Authorization: Bearer garbled\r\n", 403, refused),
        ("Authorization: Bearer bad\r\n", 403, refused),
        ("Authorization: Bearer bad\r\n", 403, refused),
        ("Authorization: Bearer expired\r\n", 401, refused),
        ("", 403, refused),
        ("X-Remote-User: alice\r\n", 403, refused),
    ] {
        let answer = fixture.raw().await.get(PATH, credential).await;
        assert_eq!(answer.code(), code, "{credential}: {}", answer.text());
        assert_eq!(lines(&mut fixture.stub), asked, "{credential}");
        if code == 200 {
            assert!(is_metrics(&answer), "{credential}: {}{}", answer.head, answer.text());
        } else {
            let own = if code == 401 { "who?" } else { "may not read" };
            assert_eq!(
                (answer.text(), answer.all("x-server")),
                (own.to_owned(), vec!["yes"]),
                "the server's own answer"
            );
        }
    }
}

#[tokio::test]
async fn certificate_user_reads_over_both_versions_of_http() {
    let mut fixture = Fixture::start(judge).await;
    let alice = fixture.place.plane.user("alice", &["dev"]);
    let eve = fixture.place.plane.user("eve", &["dev"]);
    let mut h2 = client::h2(&fixture.place.plane, fixture.address, Some(&alice)).await;
    let answer = h2.send_request(client::request(&format!("{PATH}?x=1"), &[])).await.unwrap();
    assert_eq!(answer.status(), 200);
    let text = client::whole(answer).await.unwrap();
    assert!(String::from_utf8_lossy(&text).contains("peerfront_request_total{"));
    let seen = fixture.stub.next().await;
    assert_eq!((seen.line(), seen.all("x-remote-user"), seen.all("host")), (REVIEW, vec!["alice"], vec!["front"]));
    assert!(lines(&mut fixture.stub).is_empty());
    let mut raw = Raw::open(&fixture.place.plane, fixture.address, Some(&alice)).await;
    raw.write(format!("HEAD {PATH} HTTP/1.1\r\nHost: front\r\n\r\n")).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 200 "));
    assert!(is_metrics(&raw.get(PATH, "").await), "no body came after HEAD");
    assert!(lines(&mut fixture.stub).is_empty(), "the same caller asks for the same");
    let mut h2 = client::h2(&fixture.place.plane, fixture.address, Some(&eve)).await;
    let answer = h2.send_request(client::request(PATH, &[])).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers().contains_key("x-server")), (403, true));
    assert_eq!(lines(&mut fixture.stub), [REVIEW, READ]);
}

#[tokio::test]
async fn other_methods_and_paths_are_the_servers() {
    let mut fixture = Fixture::start(judge).await;
    let mut raw = fixture.raw().await;
    for (method, path) in [
        ("POST", PATH),
        ("DELETE", PATH),
        ("OPTIONS", PATH),
        ("GET", "/peerfront/metrics/"),
        ("GET", "/peerfront/metrics/cadvisor"),
        ("GET", "/peerfront"),
        ("GET", "/peerfront/statusz"),
        ("GET", "//peerfront/metrics"),
        ("GET", "/Peerfront/metrics"),
    ] {
        let token = "Authorization: Bearer good\r\nContent-Length: 0\r\n";
        raw.write(format!("{method} {path} HTTP/1.1\r\nHost: front\r\n{token}\r\n")).await;
        assert_eq!(raw.answer().await.code(), 404, "{method} {path}");
        assert_eq!(lines(&mut fixture.stub), [format!("{method} {path} HTTP/1.1")]);
    }
}

const SERVED: &[&str] = &["admissionregistration.k8s.io/v1=mutatingadmissionpolicies"];

#[tokio::test]
async fn no_front_answers_for_another() {
    let place = Place::new();
    let mut stub = Stub::start(&place.plane, &["apps/v1=deployments"], judge).await;
    let mut peer = Stub::start_front(&place.plane, SERVED, judge).await;
    let mut settings = place.settings(stub.address);
    settings.peering = place.peering(peer.address);
    let front = app::start(&settings, 1).await.unwrap();
    until_ready(front.admin_address).await;
    let address = front.addresses[0];
    let proxy = place.plane.front_proxy();

    let mut raw = Raw::open(&place.plane, address, Some(&proxy)).await;
    let marked = "X-Kubernetes-Peer-Proxied: true\r\nX-Remote-User: alice\r\n";
    assert_eq!(raw.get(PATH, marked).await.code(), 404, "what another front sends on is for the server");
    assert_eq!(lines(&mut stub), [format!("GET {PATH} HTTP/1.1")]);
    assert!(is_metrics(&raw.get(PATH, "X-Remote-User: alice\r\n").await), "a front proxy's own user");
    assert_eq!(lines(&mut stub), [REVIEW]);

    drop(stub);
    let mut raw = Raw::open(&place.plane, address, None).await;
    for path in [PATH, "/peerfront/statusz", "/metrics"] {
        let answer = raw.get(path, "Authorization: Bearer good\r\n").await;
        assert_eq!((answer.code(), answer.all("retry-after")), (503, vec!["1"]), "{path}: {}", answer.text());
        assert!(answer.text().contains(r#""kind":"Status""#), "{}", answer.text());
    }
    assert_eq!(lines(&mut peer), Vec::<String>::new(), "nothing goes to a peer");
    let retries = r#"peerfront_retry_total{peer="node-b"}"#;
    assert_eq!(value(front.admin_address, retries).await, Some(0), "nothing was sent elsewhere");
    assert_eq!(raw.get("/version", "Authorization: Bearer good\r\n").await.code(), 404, "what peers can answer");
    assert_eq!(lines(&mut peer), ["GET /version HTTP/1.1"]);
    for (family, count) in
        [("peerfront_peer_request_duration_seconds_count", 1), ("peerfront_peer_inflight_requests", 0)]
    {
        let series = format!("{family}{{peer=\"node-b\"}}");
        assert_eq!(value(front.admin_address, &series).await, Some(count), "{series}");
    }
    assert_eq!(value(front.admin_address, retries).await, Some(1), "sent elsewhere");
}

/// The value of a series, given as it is rendered.
async fn value(admin: SocketAddr, series: &str) -> Option<u64> {
    let metrics = admin_get(admin, "/metrics").await;
    let values = metrics.lines().filter_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    values.map(|value| value.trim().parse().unwrap()).next()
}

/// What upstream counts: aggregated lists of version 2 by whose they are, and only once their reader is allowed.
#[tokio::test]
async fn requests_for_merged_and_for_local_discovery_are_counted_as_upstream_counts() {
    const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let place = Place::new();
    let stub = Stub::start(&place.plane, &["apps/v1=deployments"], |mut exchange| {
        Box::pin(async move {
            let is_good = exchange.seen.all("authorization") == ["Bearer good"];
            let head = if is_good { "200 OK" } else { "403 Forbidden" };
            exchange.write(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n")).await.ok()?;
            Some(exchange.io)
        })
    })
    .await;
    let peer = Stub::start_front(&place.plane, SERVED, judge).await;
    let mut settings = place.settings(stub.address);
    settings.peering = place.peering(peer.address);
    let front = app::start(&settings, 1).await.unwrap();
    until_ready(front.admin_address).await;
    let address = front.addresses[0];
    let fixture = Fixture { place, stub, address, front };
    let (hits, local) =
        ("aggregator_discovery_peer_aggregated_cache_hits_total", "aggregator_discovery_nopeer_requests_total");
    assert_eq!(
        (value(fixture.front.admin_address, hits).await, value(fixture.front.admin_address, local).await),
        (Some(0), Some(0)),
        "from the start"
    );
    let mut raw = fixture.raw().await;
    for (path, accept, token, counted) in [
        ("/apis", V2.to_owned(), "good", (1, 0)),
        ("/api", V2.to_owned(), "good", (1, 0)),
        ("/apis", format!("{V2};profile=nopeer"), "good", (0, 1)),
        ("/api", format!("{V2};profile=nopeer,{V2}"), "good", (0, 1)),
        ("/apis", "application/json".to_owned(), "good", (0, 0)),
        ("/apis/apps/v1", V2.to_owned(), "good", (0, 0)),
        ("/apis", V2.to_owned(), "bad", (0, 0)),
    ] {
        let before = (
            value(fixture.front.admin_address, hits).await.unwrap(),
            value(fixture.front.admin_address, local).await.unwrap(),
        );
        raw.get(path, &format!("Accept: {accept}\r\nAuthorization: Bearer {token}\r\n")).await;
        let after = (
            value(fixture.front.admin_address, hits).await.unwrap(),
            value(fixture.front.admin_address, local).await.unwrap(),
        );
        assert_eq!((after.0 - before.0, after.1 - before.1), counted, "{path} {accept} {token}");
    }
}
