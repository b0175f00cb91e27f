//! Who a request comes from is never what the client says.

use http::HeaderName;
use peerfront::testing::pki::Identity;
use peerfront::testing::raw::Raw;
use peerfront::testing::stub::{Exchange, Seen, Served, Stub};

use crate::client;
use crate::fixture::{Fixture, Place, ok};

/// Ways to write the identity of somebody else.
const FORGED: &[(&str, &str)] = &[
    ("X-Remote-User", "root"),
    ("x-remote-user", "root2"),
    ("X_Remote_User", "root3"),
    ("X-REMOTE_USER", "root4"),
    ("X-Remote-Uid", "0"),
    ("X-Remote-Group", "system:masters"),
    ("X-Remote-Group", "system:nodes"),
    ("x_remote_group", "system:masters"),
    ("X-Remote-Extra-Scopes", "all"),
    ("X-Remote-Extra-", "all"),
    ("x_remote_extra_scopes", "all"),
    ("X-Kubernetes-Peer-Proxied", "true"),
    ("X-Forwarded-For", "10.0.0.1"),
    ("X-Real-Ip", "10.0.0.2"),
];

fn lines(headers: &[(&str, &str)]) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

/// Names of identity headers that arrived, whatever stands between their words.
fn identity(seen: &Seen) -> Vec<String> {
    let lines = seen.head.lines().skip(1).filter_map(|line| line.split_once(": "));
    let lines = lines.map(|(name, value)| (name.to_ascii_lowercase().replace('_', "-"), value));
    lines.filter(|(name, _)| name.starts_with("x-remote")).map(|(name, value)| format!("{name}={value}")).collect()
}

/// What alice is, as the server is to be told.
fn alice(seen: &Seen) -> bool {
    let found = identity(seen);
    let fixed = ["x-remote-user=alice", "x-remote-group=dev", "x-remote-group=system:authenticated"];
    found.len() == 4
        && fixed.iter().all(|one| found.iter().any(|other| other == one))
        && found
            .iter()
            .any(|one| one.starts_with("x-remote-extra-authentication.kubernetes.io%2fcredential-id=X509SHA256="))
}

/// Somebody who calls, what else they send and what the server may see of it.
struct Case {
    name: &'static str,
    identity: Option<Identity>,
    headers: &'static [(&'static str, &'static str)],
    is_right: fn(&Seen) -> bool,
}

fn cases(place: &Place) -> Vec<Case> {
    let nobody = |seen: &Seen| identity(seen).is_empty() && !seen.certificate && seen.all("authorization").is_empty();
    let token =
        |seen: &Seen| identity(seen).is_empty() && !seen.certificate && seen.all("authorization") == ["Bearer t"];
    let bearer: &[(&str, &str)] = &[("Authorization", "Bearer t")];
    let stranger = Identity::root("strangers").issue(&peerfront::testing::pki::Profile::client("alice"));
    let user = || Some(place.plane.user("alice", &["dev"]));
    vec![
        Case { name: "nobody", identity: None, headers: &[], is_right: nobody },
        Case { name: "alice", identity: user(), headers: &[], is_right: |seen| alice(seen) && seen.certificate },
        Case {
            name: "alice with a token",
            identity: user(),
            headers: bearer,
            is_right: |seen| alice(seen) && seen.certificate && seen.all("authorization").is_empty(),
        },
        Case { name: "a token", identity: None, headers: bearer, is_right: token },
        Case { name: "a stranger with a token", identity: Some(stranger), headers: bearer, is_right: token },
    ]
}

fn has_no_claims(seen: &Seen) -> bool {
    seen.all("x-forwarded-for") == ["127.0.0.1"] && seen.all("x-real-ip").is_empty()
}

#[tokio::test]
async fn forged_identity_reaches_no_server() {
    let mut fixture = Fixture::start(ok).await;
    for case in cases(&fixture.place) {
        let headers = [FORGED, case.headers].concat();
        let mut raw = Raw::open(&fixture.place.plane, fixture.address, case.identity.as_ref()).await;
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
        for (path, more) in
            [("/api/v1/pods", ""), ("/api/v1/pods?watch=true", ""), ("/api/v1/namespaces/d/pods/p/exec", upgrade)]
        {
            assert_eq!(raw.get(path, &(lines(&headers) + more)).await.code(), 200);
            let seen = fixture.stub.next().await;
            assert!((case.is_right)(&seen) && has_no_claims(&seen), "{} over HTTP/1.1:\n{}", case.name, seen.head);
            assert!(seen.all("x-kubernetes-peer-proxied").is_empty(), "peering is off:\n{}", seen.head);
        }
        let mut h2 = client::h2(&fixture.place.plane, fixture.address, case.identity.as_ref()).await;
        let lower: Vec<_> = headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), *value)).collect();
        let lower: Vec<_> = lower.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(h2.send_request(client::request("/api/v1/pods", &lower)).await.unwrap().status(), 200);
        let seen = fixture.stub.next().await;
        assert!((case.is_right)(&seen) && has_no_claims(&seen), "{} over HTTP/2:\n{}", case.name, seen.head);
    }
}

#[tokio::test]
async fn stranger_without_a_token_is_refused_here() {
    let mut fixture = Fixture::start(ok).await;
    let stranger = Identity::root("strangers").issue(&peerfront::testing::pki::Profile::client("alice"));
    let mut raw = Raw::open(&fixture.place.plane, fixture.address, Some(&stranger)).await;
    let answer = raw.get("/api/v1/pods", &lines(FORGED)).await;
    assert_eq!(answer.code(), 401);
    assert!(answer.text().contains(r#""reason":"Unauthorized""#), "{}", answer.text());
    assert!(fixture.stub.rest().is_empty());
}

#[tokio::test]
async fn front_proxy_speaks_for_others_and_is_told_apart_from_them() {
    let mut fixture = Fixture::start(ok).await;
    let proxy = fixture.place.plane.front_proxy();
    let mut raw = Raw::open(&fixture.place.plane, fixture.address, Some(&proxy)).await;
    let asserted = "X-Remote-User: bob\r\nX-Remote-Group: a\r\nX-Remote-Group: b\r\nX-Remote-Extra-Scopes: one\r\n\
                    X_Remote_User: root\r\nX-Forwarded-For: 10.1.1.1\r\nAuthorization: Bearer t\r\n";
    assert_eq!(raw.get("/api/v1/pods", asserted).await.code(), 200);
    let seen = fixture.stub.next().await;
    let mut found = identity(&seen);
    found.sort();
    let expected = [
        "x-remote-extra-scopes=one",
        "x-remote-group=a",
        "x-remote-group=b",
        "x-remote-group=system:authenticated",
        "x-remote-user=bob",
    ];
    assert_eq!(found, expected);
    assert_eq!(seen.all("x-forwarded-for"), ["10.1.1.1, 127.0.0.1"]);
    assert!(seen.all("authorization").is_empty());
    assert_eq!(raw.get("/api/v1/pods", "").await.code(), 401, "the certificate itself is no user");
    assert!(fixture.stub.rest().is_empty());
}

#[tokio::test]
async fn configured_and_default_names_are_both_removed() {
    let mut fixture = Fixture::start_with(ok, |_, mut settings| {
        let names = &mut settings.authentication.identity_headers;
        names.username = vec![HeaderName::from_static("x-corp-user"), HeaderName::from_static("x-old-user")];
        names.group = vec![HeaderName::from_static("x-corp-group")];
        names.uid = vec![HeaderName::from_static("x-corp-uid")];
        names.extra_prefix = vec!["x-corp-extra-".to_owned()];
        settings
    })
    .await;
    let alice = fixture.place.plane.user("alice", &["dev"]);
    let mut raw = Raw::open(&fixture.place.plane, fixture.address, Some(&alice)).await;
    let forged = "X-Corp-User: root\r\nX_Corp_User: root\r\nX-Old-User: root\r\nX-Corp-Group: system:masters\r\n\
                  X-Corp-Uid: 0\r\nX-Corp-Extra-Scopes: all\r\nX_Corp-Extra_Scopes: all\r\n";
    assert_eq!(raw.get("/api/v1/pods", &(forged.to_owned() + &lines(FORGED))).await.code(), 200);
    let seen = fixture.stub.next().await;
    assert!(identity(&seen).is_empty(), "{}", seen.head);
    assert_eq!(seen.all("x-corp-user"), ["alice"]);
    assert_eq!(seen.all("x-corp-group"), ["dev", "system:authenticated"]);
    let mut names = seen.names();
    names.retain(|name| name.contains("corp") || name.contains("old") || name.contains('_'));
    names.sort();
    let extra = "x-corp-extra-authentication.kubernetes.io%2fcredential-id";
    assert_eq!(names, [extra, "x-corp-group", "x-corp-group", "x-corp-user"]);
}

const PEER_ONLY: &[&str] = &["admissionregistration.k8s.io/v1=mutatingadmissionpolicies"];

/// A front whose peer serves what its own server does not.
async fn with_peer() -> (Fixture, Stub) {
    let place = Place::new();
    let peer = Stub::start_front(&place.plane, PEER_ONLY, answer_as_peer).await;
    with_this_peer(place, peer).await
}

fn answer_as_peer(exchange: Exchange) -> Served {
    Box::pin(async move { exchange.ok("X-Peer: yes\r\n", "peer").await })
}

async fn with_this_peer(place: Place, peer: Stub) -> (Fixture, Stub) {
    let stub = Stub::start(&place.plane, &["apps/v1=deployments"], ok).await;
    let mut settings = place.settings(stub.address);
    settings.peering = place.peering(peer.address);
    let front = peerfront::app::start(&settings, 1).await.unwrap();
    crate::fixture::until_ready(front.admin_address).await;
    let address = front.addresses[0];
    (Fixture { place, stub, address, front }, peer)
}

#[tokio::test]
async fn peer_hears_of_every_caller_what_the_server_would() {
    let (mut fixture, mut peer) = with_peer().await;
    const PATH: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    for case in cases(&fixture.place) {
        let headers = lines(&[FORGED, case.headers].concat());
        let mut raw = Raw::open(&fixture.place.plane, fixture.address, case.identity.as_ref()).await;
        assert_eq!(raw.get(PATH, &headers).await.text(), "peer", "{}", case.name);
        let mut seen = peer.next().await;
        assert!(seen.certificate, "the mark is believed only with the certificate");
        assert_eq!(seen.all("x-kubernetes-peer-proxied"), ["true"]);
        seen.certificate = case.identity.is_some() && !identity(&seen).is_empty();
        assert!((case.is_right)(&seen) && has_no_claims(&seen), "{}:\n{}", case.name, seen.head);
    }
    assert!(fixture.stub.rest().is_empty());
}

/// With one CA for users and front proxies the certificate would be a user there, before any token is looked at.
#[tokio::test]
async fn server_that_is_taken_for_a_front_never_sees_the_certificate_beside_another_credential() {
    let place = Place::new();
    let peer = Stub::start(&place.plane, PEER_ONLY, answer_as_peer).await;
    let (fixture, mut peer) = with_this_peer(place, peer).await;
    const PATH: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    for case in cases(&fixture.place) {
        let headers = lines(&[FORGED, case.headers].concat());
        let mut raw = Raw::open(&fixture.place.plane, fixture.address, case.identity.as_ref()).await;
        for (path, more) in [("", ""), ("/p/exec", "Connection: Upgrade\r\nUpgrade: websocket\r\n")] {
            assert_eq!(raw.get(&format!("{PATH}{path}"), &(headers.clone() + more)).await.text(), "peer");
            let seen = peer.next().await;
            assert!((case.is_right)(&seen) && has_no_claims(&seen), "{}:\n{}", case.name, seen.head);
        }
    }
    assert!(peer.rest().is_empty());
}

#[tokio::test]
async fn marked_request_is_decided_by_its_own_credential_and_goes_no_further() {
    let (mut fixture, mut peer) = with_peer().await;
    const PATH: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    let proxy = fixture.place.plane.front_proxy();
    let mut raw = Raw::open(&fixture.place.plane, fixture.address, Some(&proxy)).await;
    for (credential, is_right) in [
        ("", (|seen| identity(seen).is_empty() && !seen.certificate) as fn(&Seen) -> bool),
        ("Authorization: Bearer t\r\n", |seen| seen.all("authorization") == ["Bearer t"] && !seen.certificate),
        ("X-Remote-User: bob\r\n", |seen| seen.all("x-remote-user") == ["bob"] && seen.certificate),
    ] {
        let headers = format!("X-Kubernetes-Peer-Proxied: true\r\n{credential}");
        assert_eq!(raw.get(PATH, &headers).await.code(), 200);
        let seen = fixture.stub.next().await;
        assert!(is_right(&seen), "{credential}: {}", seen.head);
    }
    assert!(peer.rest().is_empty());
}

#[tokio::test]
async fn token_in_a_websocket_subprotocol_passes_as_it_is() {
    let mut fixture = Fixture::start(ok).await;
    for protocols in
        ["base64url.bearer.authorization.k8s.io.dG9r, v5.channel.k8s.io", "base64url.bearer.authorization.k8s.io.%%"]
    {
        let headers = format!("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: {protocols}\r\n");
        let mut raw = fixture.raw().await;
        raw.get("/api/v1/namespaces/d/pods/p/exec?command=ls", &headers).await;
        let seen = fixture.stub.next().await;
        assert_eq!(seen.all("sec-websocket-protocol"), [protocols]);
        assert!(identity(&seen).is_empty() && !seen.certificate);
    }
}

/// kube-apiserver looks for a token in the subprotocols of whatever it takes for a request for a WebSocket, also where
/// nothing can be switched.
#[tokio::test]
async fn token_in_a_subprotocol_counts_where_it_would_without_a_front() {
    const TOKEN: &str = "base64url.bearer.authorization.k8s.io.dG9r, v5.channel.k8s.io";
    let (mut fixture, _peer) = with_peer().await;
    for (path, version, connection, counts) in [
        ("/api/v1/pods", "1.1", "Upgrade", true),
        ("/api/v1/pods", "1.1", "keep-alive, x-upgrade", true),
        ("/api/v1/pods", "1.0", "Upgrade", true),
        ("/apis", "1.1", "Upgrade", true),
        ("/api/v1/pods", "1.1", "keep-alive", false),
        ("/apis", "1.1", "keep-alive", false),
    ] {
        let mut raw = fixture.raw().await;
        let accept = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n";
        raw.write(format!(
            "GET {path} HTTP/{version}\r\nHost: front\r\n{accept}Connection: {connection}\r\nUpgrade: WebSocket\r\n\
             Sec-WebSocket-Protocol: {TOKEN}\r\n\r\n"
        ))
        .await;
        assert_eq!(raw.answer().await.code(), 200);
        let seen = fixture.stub.next().await;
        assert_eq!(seen.all("sec-websocket-protocol"), [TOKEN]);
        assert!(identity(&seen).is_empty() && !seen.certificate);
        let expected: (&[&str], &[&str]) = if counts { (&["Upgrade"], &["WebSocket"]) } else { (&[], &[]) };
        let found = (seen.all("connection"), seen.all("upgrade"));
        assert_eq!((found.0.as_slice(), found.1.as_slice()), expected, "{path} {version} {connection}:\n{}", seen.head);
    }
}

#[tokio::test]
async fn credential_named_as_an_option_of_the_connection_still_counts() {
    let mut fixture = Fixture::start(ok).await;
    let mut raw = fixture.raw().await;
    let named = "Connection: authorization, impersonate-user, accept, x-gone\r\nAuthorization: Bearer t\r\n\
                 Impersonate-User: bob\r\nAccept: text/plain\r\nX-Gone: 1\r\n";
    assert_eq!(raw.get("/api/v1/pods", named).await.code(), 200);
    let seen = fixture.stub.next().await;
    assert_eq!(seen.all("authorization"), ["Bearer t"], "a caller judged by its token must not become nobody");
    assert_eq!(seen.all("impersonate-user"), ["bob"]);
    assert!(seen.all("x-gone").is_empty());
}

#[tokio::test]
async fn one_ca_for_users_and_front_proxies_keeps_them_apart() {
    let mut fixture = Fixture::start_with(ok, |place, mut settings| {
        let request_header = settings.authentication.request_header.as_mut().unwrap();
        request_header.client_ca_file = place.plane.path("ca.crt");
        settings
    })
    .await;
    let plane = &fixture.place.plane;
    let proxy = plane.user("front-proxy-client", &[]);
    for (identity, expected) in [(plane.user("system:kube-scheduler", &[]), "system:kube-scheduler"), (proxy, "bob")] {
        let mut raw = Raw::open(plane, fixture.address, Some(&identity)).await;
        assert_eq!(raw.get("/api/v1/pods", "X-Remote-User: bob\r\n").await.code(), 200);
        assert_eq!(fixture.stub.next().await.all("x-remote-user"), [expected]);
    }
}
