//! Whose request it is that is upgraded.

use peerfront::testing::raw::web_socket;

use crate::fixture::{ATTACH, EXEC, Fixture};

const FORGED: &str = "X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\nX-Remote-Extra-Scope: all\r\n\
                      X-Kubernetes-Peer-Proxied: false\r\nX-Forwarded-For: 192.0.2.1\r\n";

fn with(path: &str, headers: &str) -> String {
    web_socket(path).replace("\r\n\r\n", &format!("\r\n{headers}\r\n"))
}

/// To the server and to a peer alike, and nothing that a client claims gets there.
#[tokio::test]
async fn certificate_user_is_asserted_on_a_marked_request() {
    let mut fixture = Fixture::start().await;
    for path in [EXEC, ATTACH] {
        let mut client = fixture.alice().await;
        client.write(with(path, FORGED)).await;
        let stub = if path == EXEC { &mut fixture.upstream } else { &mut fixture.peer };
        let mut call = stub.call().await;
        assert!(call.has_certificate, "{path}");
        assert_eq!(call.all("x-remote-user"), ["alice"]);
        assert_eq!(call.all("x-remote-group"), ["dev", "system:authenticated"]);
        assert!(call.all("x-remote-extra-scope").is_empty());
        assert_eq!(call.all("x-kubernetes-peer-proxied"), ["true"]);
        assert_eq!(call.all("x-forwarded-for"), ["127.0.0.1"]);
        call.switch().await;
        assert!(client.head().await.starts_with("HTTP/1.1 101 "));
        client.write("through").await;
        assert_eq!(call.bytes(7).await, b"through");
    }
}

/// A token is the server's business, in whichever header it comes. Towards it no certificate is shown; a peer's front
/// believes the mark only with one.
/// Source of the case: <https://github.com/kubernetes/kubernetes/issues/47740>
#[tokio::test]
async fn tokens_pass_untouched() {
    const BEARER: &str = "base64url.bearer.authorization.k8s.io";
    let mut fixture = Fixture::start().await;
    for headers in [
        "Authorization: Bearer secret\r\n".to_owned(),
        format!("Sec-WebSocket-Protocol: {BEARER}.c2VjcmV0, v5.channel.k8s.io\r\n"),
        format!("Sec-WebSocket-Protocol: v5.channel.k8s.io\r\nSec-WebSocket-Protocol: {BEARER}.c2VjcmV0\r\n"),
        // What follows is wrong, and the server's to refuse.
        format!("Sec-WebSocket-Protocol: {BEARER}.c2VjcmV0\r\n"),
        format!("Sec-WebSocket-Protocol: {BEARER}.c2VjcmV0==, v5.channel.k8s.io\r\n"),
        format!("Sec-WebSocket-Protocol: {BEARER}.!!!, v5.channel.k8s.io\r\n"),
        format!("Sec-WebSocket-Protocol: {BEARER}., v5.channel.k8s.io\r\n"),
        format!("Sec-WebSocket-Protocol: {BEARER}.YQ, {BEARER}.Yg, v5.channel.k8s.io\r\n"),
    ] {
        for path in [EXEC, ATTACH] {
            let mut client = fixture.nobody().await;
            client.write(with(path, &(headers.clone() + FORGED))).await;
            let stub = if path == EXEC { &mut fixture.upstream } else { &mut fixture.peer };
            let mut call = stub.call().await;
            let sent: Vec<&str> = headers.lines().map(|line| line.split_once(": ").unwrap().1).collect();
            let name = headers.split(':').next().unwrap();
            assert_eq!(call.all(name), sent);
            assert_eq!(call.has_certificate, path == ATTACH, "{path}");
            assert!(!call.head.to_ascii_lowercase().contains("x-remote-"), "{}", call.head);
            assert_eq!(call.all("x-kubernetes-peer-proxied"), ["true"]);
            call.write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\nwho?").await;
            let (head, body) = client.answer().await.into_parts();
            assert!(head.starts_with("HTTP/1.1 401 ") && body == "who?", "{head}");
        }
    }
}
