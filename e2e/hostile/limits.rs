//! How large a request head may be, and what happens beyond.

use peerfront::testing::raw::Raw;

use crate::client;
use crate::fixture::{Fixture, ok};

#[tokio::test]
async fn value_of_almost_a_mebibyte_reaches_the_server() {
    let mut fixture = Fixture::start(ok).await;
    let mut raw = fixture.raw().await;
    let mut shared = fixture.h2().await;
    for kilobytes in [4, 8, 15, 17, 60, 200, 900, 1020] {
        let value = "t".repeat(kilobytes * 1024);
        assert_eq!(raw.get("/api/v1/pods", &format!("Impersonate-User: {value}\r\n")).await.code(), 200);
        assert_eq!(fixture.stub.next().await.all("impersonate-user"), [value.as_str()], "{kilobytes} KiB");
        // On a new connection nothing is known yet of the server's settings.
        let mut new = fixture.h2().await;
        for h2 in [&mut new, &mut shared] {
            let request = client::request("/api/v1/pods", &[("impersonate-user", &value)]);
            assert_eq!(h2.send_request(request).await.unwrap().status(), 200, "{kilobytes} KiB");
            assert_eq!(fixture.stub.next().await.all("impersonate-user"), [value.as_str()], "{kilobytes} KiB");
        }
    }
}

#[tokio::test]
async fn head_beyond_the_limit_is_refused_and_harms_no_other_stream() {
    let mut fixture = Fixture::start(ok).await;
    let value = "t".repeat(1200 * 1024);
    let mut raw = fixture.raw().await;
    let answer = raw.get("/api/v1/pods", &format!("Authorization: Bearer {value}\r\n")).await;
    assert_eq!(answer.code(), 431);
    assert!(answer.text().contains(r#""kind":"Status""#), "{}", answer.text());
    let mut h2 = fixture.h2().await;
    let answer = h2.send_request(client::request("/api/v1/pods", &[("impersonate-user", &value)])).await.unwrap();
    assert_eq!(answer.status(), 431);
    assert!(String::from_utf8_lossy(&client::whole(answer).await.unwrap()).contains(r#""kind":"Status""#));
    assert_eq!(h2.send_request(client::request("/api/v1/pods", &[])).await.unwrap().status(), 200);
    assert_eq!(fixture.stub.rest().len(), 1);
}

#[tokio::test]
async fn hundreds_of_groups_pass_and_what_the_server_says_of_them() {
    let mut fixture = Fixture::start(|exchange| {
        let warnings: String = (0..150).map(|number| format!("Warning: 299 - \"{number}\"\r\n")).collect();
        Box::pin(async move { exchange.ok(&warnings, "{}").await })
    })
    .await;
    let proxy = fixture.place.plane.front_proxy();
    let groups: String = (0..500).map(|number| format!("X-Remote-Group: group-{number}\r\n")).collect();
    let extras: String = (0..150).map(|number| format!("X-Remote-Extra-E{number}: value\r\n")).collect();
    let mut raw = Raw::open(&fixture.place.plane, fixture.address, Some(&proxy)).await;
    let answer = raw.get("/api/v1/pods", &format!("X-Remote-User: bob\r\n{groups}{extras}")).await;
    assert_eq!((answer.code(), answer.all("warning").len()), (200, 150));
    let seen = fixture.stub.next().await;
    assert_eq!(seen.all("x-remote-group").len(), 501);
    assert_eq!(seen.names().iter().filter(|name| name.starts_with("x-remote-extra-")).count(), 150);
    let organizations: Vec<_> = (0..200).map(|number| format!("group-{number}")).collect();
    let organizations: Vec<_> = organizations.iter().map(String::as_str).collect();
    let alice = fixture.place.plane.user("alice", &organizations);
    let mut raw = Raw::open(&fixture.place.plane, fixture.address, Some(&alice)).await;
    assert_eq!(raw.get("/api/v1/pods", "").await.code(), 200);
    assert_eq!(fixture.stub.next().await.all("x-remote-group").len(), 201);
}

#[tokio::test]
async fn a_thousand_lines_pass_and_tens_of_thousands_do_no_harm() {
    let mut fixture = Fixture::start(ok).await;
    let lines = |count: usize| (0..count).map(|number| format!("a{number}: b\r\n")).collect::<String>();
    let alice = fixture.place.plane.user("alice", &["dev"]);
    let mut raw = Raw::open(&fixture.place.plane, fixture.address, Some(&alice)).await;
    assert_eq!(raw.get("/api/v1/pods", &lines(1000)).await.code(), 200);
    assert_eq!(fixture.stub.next().await.names().iter().filter(|name| name.starts_with('a')).count(), 1000);
    assert_eq!(raw.get("/api/v1/pods", &lines(30_000)).await.code(), 431);
    for count in [24_560, 24_575, 24_576, 25_000] {
        let mut h2 = client::h2(&fixture.place.plane, fixture.address, Some(&alice)).await;
        let mut request = client::request("/api/v1/pods", &[]);
        for number in 0..count.min(24_576) {
            let name = http::HeaderName::try_from(format!("a{number}")).unwrap();
            request.headers_mut().append(name, http::HeaderValue::from_static("b"));
        }
        let answer = h2.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 431, "{count} lines");
        assert_eq!(h2.send_request(client::request("/api/v1/pods", &[])).await.unwrap().status(), 200);
        fixture.stub.next().await;
    }
}

#[tokio::test]
async fn target_beyond_the_limit_is_refused() {
    let mut fixture = Fixture::start(ok).await;
    let mut raw = fixture.raw().await;
    assert_eq!(raw.get("/api/v1/pods", "").await.code(), 200);
    fixture.stub.next().await;
    let answer = raw.get(&format!("/api/v1/pods?{}", "x".repeat(70_000)), "").await;
    assert_eq!(answer.code(), 414);
    assert!(answer.text().contains(r#""kind":"Status""#), "{}", answer.head);
    assert!(fixture.stub.rest().is_empty());
}
