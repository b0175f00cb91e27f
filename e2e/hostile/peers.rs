//! What becomes of requests that peers should answer.

use std::net::SocketAddr;

use peerfront::apimachinery::peer::PeerKind;
use peerfront::app::{self, Bound};
use peerfront::settings::{Peering, StaticPeer};
use peerfront::testing::front;
use peerfront::testing::raw::Raw;
use peerfront::testing::stub::{Exchange, Served, Stub};

use crate::fixture::{Place, until_ready};
use crate::soon;

const PATH: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const SERVED: &[&str] = &["admissionregistration.k8s.io/v1=mutatingadmissionpolicies"];
/// Claimed before peers only, so that each front wrongly believes that the other's server has it.
const CLAIMED: &[&str] = &["~admissionregistration.k8s.io/v1=mutatingadmissionpolicies"];

/// A script that has none of what it is asked for.
fn not_found(mut exchange: Exchange) -> Served {
    Box::pin(async move {
        exchange.body().await.ok()?;
        let text = "404 page not found\n";
        let head = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 19\r\n\r\n";
        exchange.write(format!("{head}{text}")).await.ok()?;
        Some(exchange.io)
    })
}

/// A front on this port whose peer listens on the other.
async fn front(place: &Place, stub: &Stub, hostname: &str, port: u16, peer: u16) -> Bound {
    let mut settings = place.settings(stub.address);
    settings.serving.secure_port = port;
    settings.hostname = hostname.to_owned();
    let other = if hostname == "node-a" { "node-b" } else { "node-a" };
    settings.peering = front::peering(&place.plane, other, ([127, 0, 0, 1], peer).into());
    app::start(&settings, 1).await.unwrap()
}

/// Ports that were free a moment ago.
fn two_ports() -> (u16, u16) {
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (one, other) = (free(), free());
    (one.local_addr().unwrap().port(), other.local_addr().unwrap().port())
}

#[tokio::test]
async fn two_wrong_beliefs_make_one_hop_and_a_503() {
    let place = Place::new();
    let mut stub_a = Stub::start(&place.plane, CLAIMED, not_found).await;
    let mut stub_b = Stub::start(&place.plane, CLAIMED, not_found).await;
    let (port_a, port_b) = two_ports();
    let a = front(&place, &stub_a, "node-a", port_a, port_b).await;
    let b = front(&place, &stub_b, "node-b", port_b, port_a).await;
    until_ready(a.admin_address).await;
    until_ready(b.admin_address).await;
    let alice = place.plane.user("alice", &["dev"]);
    let mark = "X-Kubernetes-Peer-Proxied";
    for (identity, credential) in [(Some(&alice), ""), (None, "Authorization: Bearer t\r\n"), (None, "")] {
        for forged in ["", &format!("{mark}: true\r\n"), &format!("{mark}: TRUE\r\n{mark}: true\r\n")] {
            let mut raw = Raw::open(&place.plane, a.addresses[0], identity).await;
            let answer = raw.get(PATH, &format!("{credential}{forged}")).await;
            assert_eq!(answer.code(), 503, "{credential}{forged}");
            assert!(answer.text().contains(r#""kind":"Status""#) && answer.all("retry-after") == ["1"]);
            let seen = stub_b.next().await;
            assert_eq!(seen.certificate, identity.is_some(), "{}", seen.head);
            assert_eq!(seen.all("x-remote-user").len(), usize::from(identity.is_some()));
            assert!(stub_a.rest().is_empty() && stub_b.rest().is_empty(), "one hop and no more");
        }
    }
}

/// What is denied without a body is denied all the same.
#[tokio::test]
async fn head_of_what_another_server_may_have_is_a_503() {
    let place = Place::new();
    let stub = Stub::start(&place.plane, &[], |mut exchange| {
        Box::pin(async move {
            let kind = if exchange.seen.line().contains("image") { "image/png" } else { "text/plain; charset=utf-8" };
            let head = format!("HTTP/1.1 404 Not Found\r\nContent-Type: {kind}\r\nContent-Length: 19\r\n\r\n");
            exchange.write(head).await.ok()?;
            Some(exchange.io)
        })
    })
    .await;
    let mut settings = place.settings(stub.address);
    settings.peering = place.peering(stub.address);
    let front = app::start(&settings, 1).await.unwrap();
    until_ready(front.admin_address).await;
    let mut raw = Raw::open(&place.plane, front.addresses[0], Some(&place.plane.front_proxy())).await;
    for (path, marked, code) in [(PATH, true, 503), (PATH, false, 404), ("/apis/x/v1/images", true, 404)] {
        let mark = if marked { "X-Kubernetes-Peer-Proxied: true\r\n" } else { "" };
        raw.write(format!("HEAD {path} HTTP/1.1\r\nHost: front\r\nX-Remote-User: bob\r\n{mark}\r\n")).await;
        let head = raw.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {code} ")), "{path}: {head}");
        assert_eq!(head.contains("Retry-After: 1"), code == 503, "{head}");
    }
}

#[tokio::test]
async fn request_to_a_peer_that_vanished_does_not_wait_for_ever() {
    let place = Place::new();
    let mut peer = Stub::start_front(&place.plane, SERVED, |exchange| Box::pin(exchange.ok("", "{}"))).await;
    let stub = Stub::start(&place.plane, &[], not_found).await;
    let mut settings = place.settings(stub.address);
    settings.peering = place.peering(peer.address);
    let front = app::start(&settings, 1).await.unwrap();
    until_ready(front.admin_address).await;
    let mut raw = Raw::open(&place.plane, front.addresses[0], None).await;
    assert_eq!(raw.get(PATH, "").await.code(), 200);
    peer.next().await;
    peer.freeze();
    raw.write(format!("POST {PATH} HTTP/1.1\r\nHost: front\r\nContent-Length: 0\r\n\r\n")).await;
    let answer = raw.answer().await;
    assert_eq!(answer.code(), 504);
    assert!(answer.all("retry-after").is_empty(), "it may have been carried out");
    let mut raw = Raw::open(&place.plane, front.addresses[0], None).await;
    let began = tokio::time::Instant::now();
    let answer = soon("the next answer", raw.get(PATH, "")).await;
    assert_eq!((answer.code(), answer.all("retry-after")), (503, vec!["1"]));
    assert!(began.elapsed() < std::time::Duration::from_secs(1), "known by now: {:?}", began.elapsed());
}

/// Which peer answers this client, asked for lists and watches on a new connection each.
async fn peer_of(place: &Place, front: SocketAddr, client: usize) -> String {
    let mut answers = Vec::new();
    for path in [PATH.to_owned(), format!("{PATH}?watch=true&resourceVersion=1"), format!("{PATH}?limit=500")] {
        let mut raw = Raw::open(&place.plane, front, None).await;
        let answer = raw.get(&path, &format!("User-Agent: client/{client}\r\n")).await;
        assert_eq!(answer.code(), 200, "{path}: {}", answer.text());
        answers.push(answer.text());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "client {client} is sent to and fro");
    answers.swap_remove(0)
}

#[tokio::test]
async fn lists_and_watches_of_a_client_stay_at_one_peer_while_it_is_well() {
    const CLIENTS: std::ops::Range<usize> = 0..16;
    let place = Place::new();
    let stub = Stub::start(&place.plane, &[], not_found).await;
    let one = Stub::start_front(&place.plane, SERVED, |exchange| Box::pin(exchange.ok("", "one"))).await;
    let other = Stub::start_front(&place.plane, SERVED, |exchange| Box::pin(exchange.ok("", "other"))).await;
    let mut settings = place.settings(stub.address);
    let Peering::On(mut peering) = place.peering(one.address) else { panic!("no peers") };
    let hostname = "node-c".to_owned();
    peering.static_peers.push(StaticPeer { hostname, address: other.address, kind: PeerKind::Front });
    settings.peering = Peering::On(peering);
    let front = app::start(&settings, 1).await.unwrap();
    until_ready(front.admin_address).await;
    let address = front.addresses[0];
    let mut of_one = 0;
    for client in CLIENTS {
        let first = peer_of(&place, address, client).await;
        assert_eq!(peer_of(&place, address, client).await, first, "client {client}");
        of_one += usize::from(first == "one");
    }
    assert!((1..CLIENTS.len()).contains(&of_one), "all clients at one peer");
    drop(one);
    for client in CLIENTS {
        assert_eq!(peer_of(&place, address, client).await, "other", "client {client} when its peer is gone");
    }
}
