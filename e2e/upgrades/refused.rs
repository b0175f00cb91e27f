//! What never becomes a tunnel.

use peerfront::testing::raw::web_socket;

use crate::fixture::{EXEC, Fixture};
use crate::stub::Call;

/// Written right behind a request that will be refused: through a tunnel left open it would be an administrator's.
const SECOND: &str = "GET /api/v1/secrets HTTP/1.1\r\nHost: front\r\nX-Remote-User: admin\r\n\r\n";

/// The second request has reached the server as any other of alice's.
async fn assert_fresh(call: &mut Call) {
    assert!(call.head.starts_with("GET /api/v1/secrets HTTP/1.1\r\n"), "{}", call.head);
    assert_eq!(call.all("x-remote-user"), ["alice"]);
    call.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno").await;
}

/// Source of the case: <https://github.com/kubernetes/kubernetes/issues/71411> (CVE-2018-1002105)
#[tokio::test]
async fn refusal_is_relayed_and_what_follows_is_a_fresh_request() {
    let mut fixture = Fixture::start().await;
    for status in ["200 OK", "400 Bad Request", "403 Forbidden", "404 Not Found", "500 Internal Server Error"] {
        let mut client = fixture.alice().await;
        client.write(web_socket(EXEC) + SECOND).await;
        let mut refused = fixture.upstream.call().await;
        assert_eq!(refused.all("upgrade"), ["websocket"]);
        refused.write(format!("HTTP/1.1 {status}\r\nContent-Length: 7\r\n\r\nbecause")).await;
        let (head, body) = client.answer().await.into_parts();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        assert_eq!(body, "because");
        assert_fresh(&mut fixture.upstream.call().await).await;
        assert_eq!(client.answer().await.into_parts().1, "no");
        assert!(refused.until_closed().await.is_empty(), "{status}: bytes behind a refused upgrade");
    }
}

/// Also when the second request is written while the first is being answered.
#[tokio::test]
async fn bytes_behind_a_late_refusal_reach_no_server_raw() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.alice().await;
    client.ask(EXEC).await;
    let mut refused = fixture.upstream.call().await;
    client.write(SECOND).await;
    refused.write("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 7\r\n\r\nbe").await;
    client.write(SECOND).await;
    refused.write("cause").await;
    assert_eq!(client.answer().await.into_parts().1, "because");
    for _ in 0..2 {
        assert_fresh(&mut fixture.upstream.call().await).await;
        assert_eq!(client.answer().await.into_parts().1, "no");
    }
    assert!(refused.until_closed().await.is_empty());
}

#[tokio::test]
async fn switch_to_what_was_not_asked_for_is_an_error() {
    let mut fixture = Fixture::start().await;
    for upgrade in ["Upgrade: SPDY/3.1\r\n", "Upgrade: h2c\r\n", "Upgrade: websocket, foo\r\n", ""] {
        let mut client = fixture.alice().await;
        client.write(web_socket(EXEC) + SECOND).await;
        let mut call = fixture.upstream.call().await;
        call.write(format!("HTTP/1.1 101 Switching Protocols\r\n{upgrade}Connection: Upgrade\r\n\r\nsecret")).await;
        let (head, body) = client.answer().await.into_parts();
        assert!(head.starts_with("HTTP/1.1 503 "), "{upgrade:?}: {head}");
        assert!(!body.contains("secret") && body.contains("ServiceUnavailable"), "{body}");
        assert!(call.until_closed().await.is_empty(), "{upgrade:?}");
        assert_fresh(&mut fixture.upstream.call().await).await;
    }
}

/// A server that switches all the same answers a request that nobody made.
#[tokio::test]
async fn other_protocols_are_not_asked_for_and_never_tunneled() {
    let mut fixture = Fixture::start().await;
    let asks = [
        ("h2c", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"),
        ("foo", "Connection: Upgrade\r\nUpgrade: foo\r\n"),
        ("websocket", "Upgrade: websocket\r\n"),
        ("websocket", "Connection: up, grade\r\nUpgrade: websocket\r\n"),
        ("foo", "Connection: Upgrade\r\nUpgrade: foo\r\nUpgrade: websocket\r\n"),
    ];
    for (protocol, ask) in asks {
        let mut client = fixture.alice().await;
        client.write(format!("GET {EXEC} HTTP/1.1\r\nHost: front\r\n{ask}\r\n")).await;
        let mut call = fixture.upstream.call().await;
        for name in ["upgrade", "connection", "http2-settings"] {
            assert!(call.all(name).is_empty(), "{ask:?}: {}", call.head);
        }
        call.write(format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: {protocol}\r\nConnection: Upgrade\r\n\r\n"))
            .await;
        let (head, _) = client.answer().await.into_parts();
        assert!(head.starts_with("HTTP/1.1 503 "), "{ask:?}: {head}");
        client.write(SECOND).await;
        assert!(call.until_closed().await.is_empty(), "{ask:?}");
        assert_fresh(&mut fixture.upstream.call().await).await;
    }
}

#[tokio::test]
async fn connect_is_no_tunnel() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.alice().await;
    client.write(format!("CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: front\r\n\r\n{SECOND}")).await;
    let (head, _) = client.answer().await.into_parts();
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
    // The server was not asked, and what follows is a request like any other.
    assert_fresh(&mut fixture.upstream.call().await).await;
}

/// HTTP/1.0 knows no upgrade.
#[tokio::test]
async fn old_http_is_not_upgraded() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.alice().await;
    client.write(web_socket(EXEC).replace("HTTP/1.1", "HTTP/1.0")).await;
    let call = fixture.upstream.call().await;
    assert!(call.all("upgrade").is_empty(), "{}", call.head);
}
