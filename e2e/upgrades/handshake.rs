//! Heads of a handshake, there and back.

use peerfront::testing::raw::web_socket;

use crate::fixture::{EXEC, Fixture};
use crate::values;

const PROTOCOLS: [&str; 4] = ["v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "channel.k8s.io"];

/// Source of the cases: <https://github.com/dotnet/yarp/issues/467>, <https://github.com/kubernetes/kubernetes/issues/67329>
#[tokio::test]
async fn every_spelling_of_an_upgrade_reaches_the_server_as_one() {
    let mut fixture = Fixture::start().await;
    for (connection, protocol) in [
        ("Connection: Upgrade\r\n", "SPDY/3.1"),
        ("Connection: Upgrade\r\n", "spdy/3.1"),
        ("connection: upgrade\r\n", "SPDY/3.1"),
        ("Connection: keep-alive, Upgrade\r\n", "SPDY/3.1"),
        ("Connection: close\r\nConnection: Upgrade\r\n", "SPDY/3.1"),
        ("Connection: Upgrade\r\nConnection: close, keep-alive\r\n", "websocket"),
        ("Connection:  , Upgrade ,, \r\n", "WebSocket"),
        // kube-apiserver takes the word anywhere in the line, and the first of several protocols.
        ("Connection: x-upgrade-x\r\n", "websocket"),
        ("Connection: Upgrade\r\n", "websocket\r\nUpgrade: h2c"),
    ] {
        let (asked, protocol) = (protocol, protocol.split('\r').next().unwrap());
        let lines: String = PROTOCOLS.iter().map(|one| format!("X-Stream-Protocol-Version: {one}\r\n")).collect();
        let mut client = fixture.alice().await;
        let head = format!("POST {EXEC} HTTP/1.1\r\nHost: front\r\n{connection}Upgrade: {asked}\r\n{lines}");
        client.write(head + "Content-Length: 0\r\n\r\n").await;
        let mut call = fixture.upstream.call().await;
        assert_eq!(call.all("x-stream-protocol-version"), PROTOCOLS, "{connection:?}");
        assert_eq!(call.all("connection"), ["Upgrade"], "{connection:?}");
        assert_eq!(call.all("upgrade"), [protocol], "{connection:?}");
        call.write(format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: {protocol}\r\nConnection: Upgrade\r\n\
             X-Stream-Protocol-Version: v4.channel.k8s.io\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
        ))
        .await;
        let head = client.head().await;
        assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
        // A client that asked for an end after the answer is told so, as after any other.
        let expected = if connection.contains("close") { "Upgrade, close" } else { "Upgrade" };
        assert_eq!(values(&head, "connection"), [expected], "{connection:?}");
        assert_eq!(values(&head, "upgrade"), [protocol]);
        assert_eq!(values(&head, "x-stream-protocol-version"), ["v4.channel.k8s.io"]);
        assert_eq!(values(&head, "sec-websocket-accept"), ["s3pPLMBiTxaQ9kYGzzhZRbK+xOo="]);
        client.write("ping").await;
        assert_eq!(call.bytes(4).await, b"ping");
        call.write("pong").await;
        assert_eq!(client.bytes(4).await, b"pong");
    }
}

/// Whatever the head of a 101 says of a body, it has none: what follows is the stream.
#[tokio::test]
async fn odd_heads_of_a_101_begin_a_tunnel_all_the_same() {
    let mut fixture = Fixture::start().await;
    const USUAL: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
    for (line, headers) in [
        ("HTTP/1.1 101 Switching Protocols", "connection: upgrade\r\nupgrade: WebSocket\r\n".to_owned()),
        ("HTTP/1.1 101 Switching Protocols", format!("{USUAL}Content-Length: 0\r\n")),
        ("HTTP/1.1 101 Switching Protocols", format!("{USUAL}Transfer-Encoding: chunked\r\n")),
        ("HTTP/1.1 101 Switching Protocols", format!("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n{USUAL}")),
        ("HTTP/1.1 101 Switching Protocols", format!("Date: Mon, 02 Jan 2006 15:04:05 GMT\r\n{USUAL}")),
        ("HTTP/1.1 101 ", USUAL.to_owned()),
        ("HTTP/1.1 101", USUAL.to_owned()),
        ("HTTP/1.1 101 Whatever It Takes", USUAL.to_owned()),
    ] {
        for at_once in [true, false] {
            let mut client = fixture.alice().await;
            client.ask(EXEC).await;
            let mut call = fixture.upstream.call().await;
            let early = if at_once { "0\r\n\r\nearly" } else { "" };
            call.write(format!("{line}\r\n{headers}\r\n{early}")).await;
            let head = client.head().await;
            assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
            for framing in ["content-length", "transfer-encoding"] {
                assert!(values(&head, framing).is_empty(), "{headers:?}: {head}");
            }
            assert_eq!(values(&head, "connection"), ["Upgrade"], "{headers:?}");
            call.write("later").await;
            let expected = format!("{early}later");
            assert_eq!(client.bytes(expected.len()).await, expected.as_bytes(), "{headers:?}");
            client.write("there").await;
            assert_eq!(call.bytes(5).await, b"there", "{headers:?}");
        }
    }
}

/// Both heads may come a byte at a time.
#[tokio::test]
async fn heads_in_pieces_are_put_together() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.alice().await;
    for byte in web_socket(EXEC).bytes() {
        client.write([byte]).await;
    }
    let mut call = fixture.upstream.call().await;
    for byte in "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst".bytes() {
        call.write([byte]).await;
    }
    assert!(client.head().await.starts_with("HTTP/1.1 101 "));
    assert_eq!(client.bytes(5).await, b"first");
}

/// Clients watch by WebSocket too, and read logs by it.
#[tokio::test]
async fn any_path_can_be_upgraded_and_subprotocols_pass_unchanged() {
    let mut fixture = Fixture::start().await;
    for path in
        ["/api/v1/pods?watch=true", "/api/v1/namespaces/d/pods/p/log?follow=true", "/apis/x.io/v1/things?watch=1"]
    {
        for offered in [&["v4.channel.k8s.io"][..], &["v5.channel.k8s.io, v4.channel.k8s.io"], &["a", "b, c"], &[]] {
            let lines: String = offered.iter().map(|one| format!("Sec-WebSocket-Protocol: {one}\r\n")).collect();
            let mut client = fixture.alice().await;
            client.write(web_socket(path).replace("\r\n\r\n", &format!("\r\n{lines}\r\n"))).await;
            let mut call = fixture.upstream.call().await;
            assert!(call.head.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{}", call.head);
            assert_eq!(call.all("sec-websocket-protocol"), offered);
            assert_eq!(call.all("sec-websocket-key"), ["dGhlIHNhbXBsZSBub25jZQ=="]);
            call.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n").await;
            call.write("Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n{\"type\":\"ADDED\"}").await;
            let head = client.head().await;
            assert_eq!(values(&head, "sec-websocket-protocol"), ["v4.channel.k8s.io"]);
            assert_eq!(client.bytes(16).await, b"{\"type\":\"ADDED\"}");
        }
    }
}
