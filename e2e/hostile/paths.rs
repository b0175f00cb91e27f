//! Targets arrive byte for byte, and redirects are nobody's business but the client's.

use crate::client;
use crate::fixture::{Fixture, ok};

const PROXY: &str = "/api/v1/namespaces/d/services/m:http/proxy";

#[tokio::test]
async fn target_arrives_byte_for_byte() {
    let mut fixture = Fixture::start(ok).await;
    let long = format!("{PROXY}/{}", "a".repeat(60_000));
    let targets = [
        format!("{PROXY}/a%2Fb/c%252Fd/e%20f/%E2%82%AC/;x=1/..%2f/./?q=%2F+%26"),
        format!("{PROXY}/"),
        PROXY.to_owned(),
        "/api/v1/namespaces/d/pods/a%3Ab".to_owned(),
        format!("{PROXY}/%ff%zz%"),
        "//api//v1/../x".to_owned(),
        "/api/v1/pods/{a}\"b|c^de~[f]\u{e9}".to_owned(),
        "/api/v1/pods?".to_owned(),
        "/api/v1/pods??a=b&&c&%zz=;".to_owned(),
        "/apis/".to_owned(),
        "/?x".to_owned(),
        long,
    ];
    let mut raw = fixture.raw().await;
    let mut h2 = fixture.h2().await;
    for target in &targets {
        assert_eq!(raw.get(target, "").await.code(), 200);
        assert_eq!(fixture.stub.next().await.line(), format!("GET {target} HTTP/1.1"));
        assert_eq!(h2.send_request(client::request(target, &[])).await.unwrap().status(), 200);
        assert_eq!(fixture.stub.next().await.line(), format!("GET {target} HTTP/1.1"));
    }
}

#[tokio::test]
async fn redirects_are_passed_on_and_never_followed() {
    let attacker = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let location = format!("https://{}/", attacker.local_addr().unwrap());
    let answer = location.clone();
    let mut fixture = Fixture::start(move |mut exchange| {
        let code = exchange.seen.line().split('/').nth(1).unwrap()[..3].to_owned();
        let answer = format!("HTTP/1.1 {code} Elsewhere\r\nLocation: {answer}\r\nContent-Length: 4\r\n\r\ngone");
        Box::pin(async move {
            exchange.body().await.ok()?;
            exchange.write(answer).await.ok()?;
            Some(exchange.io)
        })
    })
    .await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    for code in [300, 301, 302, 303, 305, 307, 308] {
        for headers in ["", upgrade] {
            let mut raw = fixture.raw().await;
            let answer = raw.get(&format!("/{code}"), headers).await;
            assert_eq!((answer.code(), answer.text().as_str()), (code, "gone"));
            assert_eq!(answer.all("location"), [location.as_str()]);
        }
    }
    assert_eq!(fixture.stub.rest().len(), 14);
    let accepted = tokio::time::timeout(std::time::Duration::from_millis(50), attacker.accept()).await;
    assert!(accepted.is_err(), "somebody followed a redirect");
}
