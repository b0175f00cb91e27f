//! What flows after a 101.

use std::time::Duration;

use peerfront::testing::raw::web_socket;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::fixture::{ATTACH, EXEC, Fixture};
use crate::is_full;

/// Bytes that differ from place to place, so that a lost or repeated piece shows.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

/// Source of the case: <https://github.com/golang/go/issues/80924>
#[tokio::test]
async fn bytes_sent_together_with_the_handshake_arrive_once_and_in_order() {
    let mut fixture = Fixture::start().await;
    let (there, back) = (pattern(4 << 10), pattern(64 << 10));
    let mut client = fixture.alice().await;
    client.write([web_socket(EXEC).as_bytes(), &there].concat()).await;
    let mut call = fixture.upstream.call().await;
    let head: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    call.write([head, &back].concat()).await;
    client.head().await;
    assert_eq!(client.bytes(back.len()).await, back);
    assert_eq!(call.bytes(there.len()).await, there);
    client.write("more").await;
    assert_eq!(call.bytes(4).await, b"more");
}

#[tokio::test]
async fn megabytes_flow_both_ways_at_once() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.alice().await;
    client.ask(EXEC).await;
    let mut call = fixture.upstream.call().await;
    call.switch().await;
    client.head().await;
    let bytes = pattern(4 << 20);
    let sent = bytes.clone();
    let server = tokio::spawn(async move {
        for piece in sent.chunks(100_000) {
            call.write(piece).await;
            assert_eq!(call.bytes(piece.len()).await, piece);
        }
    });
    for piece in bytes.chunks(100_000) {
        client.write(piece).await;
        assert_eq!(client.bytes(piece.len()).await, piece);
    }
    server.await.unwrap();
}

#[tokio::test]
async fn smallest_pieces_are_passed_on_at_once() {
    const LIMIT: Duration = Duration::from_millis(50);
    let mut fixture = Fixture::start().await;
    let mut client = fixture.alice().await;
    client.ask(EXEC).await;
    let mut call = fixture.upstream.call().await;
    call.switch().await;
    client.head().await;
    let mut durations = Vec::new();
    for _ in 0..51 {
        let begun = Instant::now();
        client.write("x").await;
        call.bytes(1).await;
        call.write("y").await;
        client.bytes(1).await;
        durations.push(begun.elapsed() / 2);
    }
    // Others may hold up a few of them on a busy machine; a buffer would hold up all.
    durations.sort();
    assert!(durations[25] < LIMIT, "{durations:?}");
}

/// Longer than every limit that the front sets to connections which are not tunnels, if there is time.
#[tokio::test]
async fn quiet_tunnel_stays_open() {
    let quiet = Duration::from_secs(if is_full() { 100 } else { 2 });
    let mut fixture = Fixture::start().await;
    let mut client = fixture.alice().await;
    client.ask(EXEC).await;
    let mut call = fixture.upstream.call().await;
    call.switch().await;
    client.head().await;
    tokio::time::sleep(quiet).await;
    client.write("still there?").await;
    assert_eq!(call.bytes(12).await, b"still there?");
    call.write("yes").await;
    assert_eq!(client.bytes(3).await, b"yes");
}

#[tokio::test]
async fn end_of_one_direction_leaves_the_other_open() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.alice().await;
    client.ask(EXEC).await;
    let mut call = fixture.upstream.call().await;
    call.switch().await;
    client.head().await;
    client.write("the whole input").await;
    client.end().await;
    assert_eq!(call.until_closed().await, b"the whole input");
    call.write("and the result").await;
    assert_eq!(client.bytes(14).await, b"and the result");
    call.end().await;
    assert!(client.until_closed().await.is_empty());
}

#[tokio::test]
async fn end_of_the_server_ends_the_tunnel_after_its_last_byte() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.alice().await;
    client.ask(EXEC).await;
    let mut call = fixture.upstream.call().await;
    call.switch().await;
    call.write("last words").await;
    call.end().await;
    client.head().await;
    assert_eq!(client.until_closed().await, b"last words");
    client.write("still heard").await;
    assert_eq!(call.bytes(11).await, b"still heard");
}

/// A server that is killed ends the client's connection without a word of HTTP in the stream.
#[tokio::test]
async fn death_of_the_server_writes_nothing_into_the_stream() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.alice().await;
    client.ask(EXEC).await;
    let mut call = fixture.upstream.call().await;
    call.switch().await;
    client.head().await;
    call.write("half a fra").await;
    assert_eq!(client.bytes(10).await, b"half a fra");
    drop(call);
    assert!(client.until_closed().await.is_empty());
}

#[tokio::test]
async fn client_that_leaves_takes_the_servers_connection_with_it() {
    let mut fixture = Fixture::start().await;
    for (path, answered) in [(EXEC, true), (EXEC, false), (ATTACH, true), (ATTACH, false)] {
        let mut client = fixture.alice().await;
        client.ask(path).await;
        let stub = if path == EXEC { &mut fixture.upstream } else { &mut fixture.peer };
        let mut call = stub.call().await;
        if answered {
            call.switch().await;
            client.head().await;
        }
        drop(client);
        assert!(call.until_closed().await.is_empty());
    }
}

/// Every connection of a handshake that failed is closed, however it failed.
#[tokio::test]
async fn failed_handshakes_leave_no_connection_open() {
    let answers = [
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: foo\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
        "not HTTP at all\r\n\r\n",
    ];
    let rounds = if is_full() { 250 } else { 50 };
    let mut fixture = Fixture::start().await;
    let mut open = JoinSet::new();
    for round in 0..rounds {
        let mut client = fixture.alice().await;
        for answer in answers {
            client.ask(EXEC).await;
            let mut call = fixture.upstream.call().await;
            call.write(answer).await;
            let head = client.head().await;
            // The rest of the answer is read while the connection ends at the server.
            let body =
                if head.contains("hunked") { 12 } else { crate::values(&head, "content-length")[0].parse().unwrap() };
            client.bytes(body).await;
            open.spawn(async move { assert!(call.until_closed().await.is_empty(), "round {round}") });
        }
    }
    while let Some(ended) = open.join_next().await {
        ended.unwrap();
    }
}
