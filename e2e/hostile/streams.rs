//! Many requests side by side: none waits for another.

use std::time::Duration;

use http_body_util::BodyExt;
use peerfront::testing::stub::{Exchange, Io};
use tokio::time::Instant;

use crate::client;
use crate::fixture::Fixture;
use crate::soon;

/// Longest time of a small request while others hang, in a debug build on a busy machine.
const PROMPT: Duration = Duration::from_secs(5);

/// A watch that sends a line and then nothing; a list without an end; anything else is short.
async fn serve(mut exchange: Exchange) -> Option<Io> {
    let line = exchange.seen.line().to_owned();
    if line.contains("watch=true") {
        exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n").await.ok()?;
        std::future::pending::<()>().await;
    }
    if line.contains("endless") {
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n").await.ok()?;
        let block = vec![b'x'; 64 * 1024];
        loop {
            exchange.write(&block).await.ok()?;
        }
    }
    exchange.ok("", "{}").await
}

#[tokio::test]
async fn each_chunk_arrives_by_itself() {
    let (next, chunks) = tokio::sync::mpsc::unbounded_channel::<String>();
    let chunks = std::sync::Arc::new(tokio::sync::Mutex::new(chunks));
    let fixture = Fixture::start(move |mut exchange| {
        let chunks = std::sync::Arc::clone(&chunks);
        Box::pin(async move {
            exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await.ok()?;
            let mut chunks = chunks.lock().await;
            while let Some(chunk) = chunks.recv().await {
                if chunk.is_empty() {
                    exchange.write("0\r\n\r\n").await.ok()?;
                    return Some(exchange.io);
                }
                exchange.write(format!("{:x}\r\n{chunk}\r\n", chunk.len())).await.ok()?;
            }
            None
        })
    })
    .await;
    let mut raw = fixture.raw().await;
    raw.write("GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: front\r\nAccept-Encoding: gzip\r\n\r\n").await;
    assert!(raw.head().await.starts_with("HTTP/1.1 200"), "the head comes before the first event");
    for event in ["{}", "{\"a\":1}\n", "x"] {
        next.send(event.to_owned()).unwrap();
        assert_eq!(raw.line().await.trim(), format!("{:x}", event.len()));
        assert_eq!(raw.bytes(event.len() + 2).await, format!("{event}\r\n").as_bytes());
    }
    next.send(String::new()).unwrap();
    raw.bytes(5).await;
    let mut h2 = fixture.h2().await;
    let request = h2.send_request(client::request("/api/v1/pods?watch=true", &[]));
    let mut body = soon("the head before the first event", request).await.unwrap().into_body();
    for event in ["{}", "{\"a\":1}\n", "x"] {
        next.send(event.to_owned()).unwrap();
        let frame = soon("an event", body.frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), event);
    }
}

#[tokio::test]
async fn readers_that_stall_hold_nobody_up() {
    let fixture = Fixture::start(|exchange| Box::pin(serve(exchange))).await;
    let mut shared = fixture.h2().await;
    let (mut stalled, mut unread) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let request = client::request("/api/v1/namespaces/d/pods/endless/log", &[]);
        stalled.push(shared.send_request(request).await.unwrap());
        let request = client::request("/api/v1/pods?watch=true", &[]);
        stalled.push(shared.send_request(request).await.unwrap());
        let mut raw = fixture.raw().await;
        raw.write("GET /api/v1/namespaces/d/pods/endless/log HTTP/1.1\r\nHost: front\r\n\r\n").await;
        raw.head().await;
        unread.push(raw);
    }
    let mut other = fixture.h2().await;
    for number in 0..200 {
        let began = Instant::now();
        let request = other.send_request(client::request("/api/v1/pods", &[]));
        client::whole(soon("a short answer", request).await.unwrap()).await.unwrap();
        assert!(began.elapsed() < PROMPT, "request {number} took {:?}", began.elapsed());
    }
    drop((stalled, unread));
}

#[tokio::test]
async fn post_is_answered_while_ten_others_are_not_read() {
    let eleventh = std::sync::Arc::new(tokio::sync::Notify::new());
    let fixture = Fixture::start(move |mut exchange| {
        let eleventh = std::sync::Arc::clone(&eleventh);
        Box::pin(async move {
            if exchange.seen.line().contains("eleventh") {
                let answered = exchange.ok("", "{}").await;
                eleventh.notify_waiters();
                return answered;
            }
            eleventh.notified().await;
            exchange.body().await.ok()?;
            exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.ok()?;
            Some(exchange.io)
        })
    })
    .await;
    let mut h2 = fixture.h2().await;
    let mut stub = fixture.stub;
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let mut request = client::request("/api/v1/namespaces/d/pods", &[]);
        *request.method_mut() = http::Method::POST;
        *request.body_mut() = client::full(vec![b'x'; 2 * 1024 * 1024]);
        waiting.push(tokio::spawn(h2.send_request(request)));
        stub.next().await;
    }
    let mut request = client::request("/api/v1/namespaces/d/pods?eleventh", &[]);
    *request.method_mut() = http::Method::POST;
    *request.body_mut() = client::full("{}");
    assert_eq!(soon("the eleventh", h2.send_request(request)).await.unwrap().status(), 200);
    for one in waiting {
        assert_eq!(soon("the others", one).await.unwrap().unwrap().status(), 200);
    }
}

#[tokio::test]
async fn thousand_watches_leave_room_for_short_requests() {
    let mut fixture = Fixture::start(|exchange| Box::pin(serve(exchange))).await;
    let mut watches = Vec::new();
    let mut connections = Vec::new();
    for _ in 0..10 {
        let mut h2 = fixture.h2().await;
        for _ in 0..100 {
            watches.push(h2.send_request(client::request("/api/v1/pods?watch=true", &[])));
        }
        connections.push(h2);
    }
    let mut bodies = Vec::new();
    for watch in watches {
        let mut body = soon("the head of a watch", watch).await.unwrap().into_body();
        assert_eq!(soon("an event", body.frame()).await.unwrap().unwrap().into_data().unwrap(), "{}");
        bodies.push(body);
    }
    assert_eq!(fixture.stub.rest().len(), 1000);
    // The hundred-and-first stream of a connection waits at the client, which keeps the connection.
    let over = tokio::spawn(connections[0].send_request(client::request("/api/v1/pods", &[])));
    let mut raw = fixture.raw().await;
    for _ in 0..100 {
        let began = Instant::now();
        assert_eq!(raw.get("/api/v1/pods", "").await.code(), 200);
        assert!(began.elapsed() < PROMPT);
    }
    assert!(!over.is_finished());
    drop(bodies);
    assert_eq!(soon("the stream that waited", over).await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn nobody_gets_one_http2_connection_for_many_requests() {
    let fixture = Fixture::start(|exchange| Box::pin(serve(exchange))).await;
    let plane = &fixture.place.plane;
    let stranger = peerfront::testing::pki::Identity::root("strangers");
    for identity in [None, Some(&stranger)] {
        let mut h2 = client::h2(plane, fixture.address, identity).await;
        let answer = soon("an answer", h2.send_request(client::request("/api/v1/pods", &[]))).await.unwrap();
        assert_eq!(answer.status(), if identity.is_none() { 200 } else { 401 });
        client::whole(answer).await.unwrap();
        let closed = async {
            while !h2.is_closed() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        soon("the end of the connection", closed).await;
    }
    let mut alice = fixture.h2().await;
    for _ in 0..10 {
        let answer = soon("an answer", alice.send_request(client::request("/api/v1/pods", &[]))).await.unwrap();
        client::whole(answer).await.unwrap();
    }
    assert!(!alice.is_closed());
}
