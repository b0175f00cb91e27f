//! Connections to servers that close them at bad moments.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use peerfront::testing::raw::Raw;
use peerfront::testing::stub::{Exchange, Served};
use tokio::io::AsyncWriteExt;

use crate::fixture::{Fixture, ok};

/// How a server ends a connection on which it has answered before.
#[derive(Clone, Copy, Debug)]
enum End {
    /// At once after the answer, without a word before.
    Quietly,
    /// Announced in the answer.
    Announced,
    /// When the head of the next request has been read.
    AfterTheHead,
    /// In the middle of the next answer's head.
    InTheHead,
}

/// A script that ends each connection at its second request, or after its first.
fn ending(end: End) -> impl Fn(Exchange) -> Served + Send + Sync + 'static {
    let served = Arc::new(AtomicUsize::new(usize::MAX));
    move |mut exchange| {
        let first = served.swap(exchange.seen.connection, Ordering::SeqCst) != exchange.seen.connection;
        Box::pin(async move {
            match end {
                End::Quietly => {
                    let mut io = exchange.ok("", "{}").await?;
                    io.shutdown().await.ok()?;
                    None
                }
                End::Announced => {
                    exchange.ok("Connection: close\r\n", "{}").await?;
                    None
                }
                _ if first => exchange.ok("", "{}").await,
                End::AfterTheHead => None,
                End::InTheHead => {
                    exchange.write("HTTP/1.1 200 OK\r\nConte").await.ok()?;
                    None
                }
            }
        })
    }
}

#[tokio::test]
async fn get_survives_every_way_to_close_an_idle_connection() {
    for end in [End::Quietly, End::Announced, End::AfterTheHead] {
        let fixture = Fixture::start(ending(end)).await;
        let mut raw = fixture.raw().await;
        for _ in 0..50 {
            let answer = raw.get("/api/v1/pods", "").await;
            assert_eq!(answer.code(), 200, "{end:?}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn post_is_never_sent_twice() {
    for end in [End::Quietly, End::Announced, End::AfterTheHead, End::InTheHead] {
        let mut fixture = Fixture::start(ending(end)).await;
        let mut raw = fixture.raw().await;
        let mut refused = 0;
        for number in 0..50 {
            let length = if number % 2 == 0 { "0\r\n\r\n" } else { "2\r\n\r\n{}" };
            raw.write(format!(
                "POST /api/v1/namespaces/d/pods?n={number} HTTP/1.1\r\nHost: front\r\nContent-Length: {length}"
            ))
            .await;
            let answer = raw.answer().await;
            if answer.code() != 200 {
                refused += 1;
                assert_eq!(answer.code(), 504, "{end:?}");
                assert!(answer.all("retry-after").is_empty(), "a client repeats what has one");
                assert!(answer.text().contains(r#""kind":"Status""#));
                if !answer.all("connection").is_empty() {
                    raw = fixture.raw().await;
                }
            }
        }
        let mut lines: Vec<_> = fixture.stub.rest().iter().map(|seen| seen.line().to_owned()).collect();
        let all = lines.len();
        lines.sort();
        lines.dedup();
        assert_eq!(lines.len(), all, "{end:?}: a request arrived twice");
        match end {
            End::Announced => assert_eq!(refused, 0),
            End::AfterTheHead | End::InTheHead => assert_eq!(refused, 25, "{end:?}"),
            End::Quietly => {} // Now and then the server's goodbye crosses the request.
        }
    }
}

#[tokio::test]
async fn get_is_not_repeated_for_ever() {
    let mut fixture = Fixture::start(|_| Box::pin(async { None })).await;
    let mut raw = fixture.raw().await;
    let answer = raw.get("/api/v1/pods", "").await;
    assert_eq!(answer.code(), 503);
    assert_eq!(answer.all("retry-after"), ["1"]);
    assert!(fixture.stub.rest().len() <= 2);
}

#[tokio::test]
async fn client_that_leaves_takes_its_request_along() {
    let (gone, mut left) = tokio::sync::mpsc::unbounded_channel();
    let mut fixture = Fixture::start(move |mut exchange| {
        let gone = gone.clone();
        Box::pin(async move {
            if exchange.seen.line().contains("watch") {
                exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n").await.ok()?;
            }
            // Nothing more comes on this connection but its end.
            let mut rest = Vec::new();
            let _ = tokio::io::AsyncReadExt::read_to_end(&mut exchange.io, &mut rest).await;
            let _ = gone.send(rest.len());
            None
        })
    })
    .await;
    for path in ["/api/v1/pods", "/api/v1/pods?watch=true"] {
        let mut raw = fixture.raw().await;
        raw.write(format!("GET {path} HTTP/1.1\r\nHost: front\r\n\r\n")).await;
        fixture.stub.next().await;
        drop(raw);
        assert_eq!(crate::soon("the end at the server", left.recv()).await, Some(0));
        let mut h2 = crate::client::h2(&fixture.place.plane, fixture.address, None).await;
        let request = h2.send_request(crate::client::request(path, &[]));
        let task = tokio::spawn(request);
        fixture.stub.next().await;
        task.abort();
        assert!(task.await.is_err() || path.contains("watch"));
        assert_eq!(crate::soon("the end at the server", left.recv()).await, Some(0));
    }
}

#[tokio::test]
async fn answer_before_the_end_of_the_upload_is_passed_on() {
    let mut fixture = Fixture::start(|mut exchange| {
        Box::pin(async move {
            if exchange.seen.line().starts_with("GET") {
                return exchange.ok("", "{}").await;
            }
            exchange
                .write("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\nmuch")
                .await
                .ok()?;
            exchange.io.shutdown().await.ok()?;
            // As Go does: what still comes is read for a while, so that the answer is not lost with a reset.
            let _ = tokio::io::copy(&mut exchange.io, &mut tokio::io::sink()).await;
            None
        })
    })
    .await;
    let mut raw = fixture.raw().await;
    raw.write("POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: front\r\nContent-Length: 4000000\r\n\r\n").await;
    let _ = raw.try_write(vec![b'x'; 1_000_000]).await;
    let answer = raw.answer().await;
    assert_eq!((answer.code(), answer.text().as_str()), (413, "much"));
    assert_eq!(fixture.raw().await.get("/api/v1/pods", "").await.code(), 200);
    assert_eq!(fixture.stub.rest().len(), 2);
}

#[tokio::test]
async fn server_that_is_down_is_a_status_and_returns() {
    let fixture = Fixture::start(ok).await;
    let Fixture { place, stub, address, front: _front } = fixture;
    let mut raw = Raw::open(&place.plane, address, None).await;
    assert_eq!(raw.get("/api/v1/pods", "").await.code(), 200);
    drop(stub);
    let deadline = async {
        loop {
            let answer = raw.get("/api/v1/pods", "").await;
            if answer.code() == 503 {
                return answer;
            }
        }
    };
    let answer = crate::soon("the loss of the server", deadline).await;
    assert_eq!(answer.all("retry-after"), ["1"]);
    assert!(answer.text().contains(r#""reason":"ServiceUnavailable""#));
}
