//! Bodies pass as streams: whole, broken off where the server broke off, and never held in memory.

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Frame;
use peerfront::testing::pki::Identity;
use peerfront::testing::raw::Raw;
use peerfront::testing::stub::Stub;
use tokio::io::AsyncReadExt;

use crate::client::{self, full, whole};
use crate::fixture::{Fixture, Place, ok};
use crate::process::Process;
use crate::soon;

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn answer_that_breaks_off_looks_broken_off() {
    for head in ["Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n"] {
        let fixture = Fixture::start(move |mut exchange| {
            Box::pin(async move {
                let start = if head.starts_with('C') { "half" } else { "4\r\nhalf\r\n" };
                exchange.write(format!("HTTP/1.1 200 OK\r\n{head}\r\n{start}")).await.ok()?;
                None
            })
        })
        .await;
        let mut h2 = fixture.h2().await;
        let answer = h2.send_request(client::request("/api/v1/pods", &[])).await.unwrap();
        assert!(whole(answer).await.is_err(), "a short body must not look complete");
        let mut raw = fixture.raw().await;
        raw.write("GET /api/v1/pods HTTP/1.1\r\nHost: front\r\n\r\n").await;
        raw.head().await;
        let rest = raw.until_closed().await;
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{:?}", String::from_utf8_lossy(&rest));
        assert!(rest.windows(4).any(|part| part == b"half"));
    }
}

#[tokio::test]
async fn upload_that_breaks_off_looks_broken_off() {
    let (report, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let fixture = Fixture::start(move |mut exchange| {
        let report = report.clone();
        Box::pin(async move {
            let _ = report.send(exchange.body().await.is_err());
            None
        })
    })
    .await;
    for framing in ["Content-Length: 100\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"] {
        let mut raw = fixture.raw().await;
        raw.write(format!("POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: front\r\n{framing}")).await;
        drop(raw);
        assert_eq!(soon("the end of the upload", reports.recv()).await, Some(true), "{framing}");
    }
}

/// As kube-apiserver answers it: nothing is wrong with the server, and asking again would not help.
#[tokio::test]
async fn upload_in_broken_chunks_is_the_clients_fault() {
    let fixture = Fixture::start(|mut exchange| {
        Box::pin(async move {
            exchange.body().await.ok()?;
            None
        })
    })
    .await;
    let mut raw = fixture.raw().await;
    let head = "POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n";
    raw.write(format!("{head}4\r\nhalf\r\nzz\r\n")).await;
    let answer = raw.answer().await;
    assert_eq!(answer.code(), 500);
    assert!(answer.all("retry-after").is_empty() && answer.text().contains(r#""kind":"Status""#), "{}", answer.text());
}

#[tokio::test]
async fn body_of_a_get_passes_although_nobody_said_its_length() {
    let (report, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let fixture = Fixture::start(move |mut exchange| {
        let report = report.clone();
        Box::pin(async move {
            let _ = report.send(exchange.body().await.ok()?);
            exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.ok()?;
            Some(exchange.io)
        })
    })
    .await;
    let mut raw = fixture.raw().await;
    let path = "/api/v1/namespaces/d/services/es/proxy/_search";
    raw.write(format!(
        "GET {path} HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nquery\r\n0\r\n\r\n"
    ))
    .await;
    raw.head().await;
    assert_eq!(soon("the body", reports.recv()).await.as_deref(), Some(&b"query"[..]));
}

#[tokio::test]
async fn objects_of_three_mebibytes_pass_in_every_framing() {
    let mut fixture = Fixture::start(|mut exchange| {
        Box::pin(async move {
            let length = exchange.body().await.ok()?.len().to_string();
            exchange
                .write(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{length}", length.len()))
                .await
                .ok()?;
            Some(exchange.io)
        })
    })
    .await;
    let body = Bytes::from(vec![b'x'; 3 * MIB + 1]);
    let mut raw = fixture.raw().await;
    let head = "POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: front\r\n";
    raw.write(format!("{head}Content-Length: {}\r\n\r\n", body.len())).await;
    raw.write(&body).await;
    assert_eq!(raw.answer().await.text(), body.len().to_string());
    raw.write(format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len())).await;
    raw.write(&body).await;
    raw.write("\r\n0\r\n\r\n").await;
    assert_eq!(raw.answer().await.text(), body.len().to_string());
    let mut h2 = fixture.h2().await;
    for known in [true, false] {
        let mut request = client::request("/api/v1/namespaces/d/pods", &[]);
        *request.method_mut() = Method::PATCH;
        *request.body_mut() = if known { full(body.clone()) } else { client::unsized_body(body.len()) };
        let answer = h2.send_request(request).await.unwrap();
        assert_eq!(whole(answer).await.unwrap(), body.len().to_string());
    }
    assert_eq!(fixture.stub.rest().len(), 4);
}

/// 401, 431 and a discovery document, with an upload that comes only afterwards: none of it is lost, and the connection
/// can be used again.
#[tokio::test]
async fn answer_made_here_is_not_lost_by_a_client_that_still_sends() {
    const LENGTH: usize = 200 * 1024;
    let fixture = Fixture::start(ok).await;
    let stranger = Identity::root("strangers");
    let lines = "a: b\r\n".repeat(1600);
    for (identity, headers, code) in [(Some(&stranger), "", 401), (None, lines.as_str(), 431)] {
        let mut raw = Raw::open(&fixture.place.plane, fixture.address, identity).await;
        for _ in 0..2 {
            let head = "POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: front\r\n";
            raw.write(format!("{head}{headers}Content-Length: {LENGTH}\r\n\r\n")).await;
            assert_eq!(raw.answer().await.code(), code);
            raw.write(vec![b'x'; LENGTH]).await;
        }
    }
}

/// Bytes that fit into the buffers of two sockets, two TLS sessions and the front, with room to spare. The kernel's part
/// is the largest: up to 6 MiB received and 4 MiB to be sent on each connection.
const BUFFERS: usize = 32 * MIB;

#[tokio::test]
async fn upload_waits_for_a_server_that_does_not_read() {
    let mut fixture = Fixture::start(|exchange| {
        Box::pin(async move {
            let _unread = exchange;
            std::future::pending().await
        })
    })
    .await;
    let mut raw = fixture.raw().await;
    raw.write("POST /api/v1/namespaces/d/pods/p/proxy HTTP/1.1\r\nHost: front\r\nContent-Length: 500000000\r\n\r\n")
        .await;
    fixture.stub.next().await;
    let mut taken = 0;
    let block = vec![b'x'; 256 * 1024];
    let stalled = std::time::Duration::from_secs(1);
    while tokio::time::timeout(stalled, raw.write(&block)).await.is_ok() {
        taken += block.len();
        assert!(taken < BUFFERS, "the front keeps what the server does not take");
    }
}

#[tokio::test]
async fn download_waits_for_a_client_that_does_not_read() {
    let (report, mut written) = tokio::sync::mpsc::unbounded_channel();
    let fixture = Fixture::start(move |mut exchange| {
        let report = report.clone();
        Box::pin(async move {
            exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 500000000\r\n\r\n").await.ok()?;
            let block = vec![b'x'; 256 * 1024];
            loop {
                exchange.write(&block).await.ok()?;
                let _ = report.send(block.len());
            }
        })
    })
    .await;
    let mut h2 = fixture.h2().await;
    let unread = h2.send_request(client::request("/api/v1/pods", &[])).await.unwrap();
    let mut raw = fixture.raw().await;
    raw.write("GET /api/v1/pods HTTP/1.1\r\nHost: front\r\n\r\n").await;
    let mut total = 0;
    let stalled = std::time::Duration::from_secs(1);
    while let Ok(Some(length)) = tokio::time::timeout(stalled, written.recv()).await {
        total += length;
        assert!(total < 2 * BUFFERS, "the front keeps what the clients do not take");
    }
    drop(unread);
}

#[tokio::test]
async fn half_a_gigabyte_passes_without_staying() {
    const TOTAL: usize = 500 * MIB;
    let place = Place::new();
    let stub = Stub::start(&place.plane, &["apps/v1=deployments"], |mut exchange| {
        Box::pin(async move {
            let mut block = vec![0; MIB];
            let mut left = TOTAL;
            while left > 0 {
                left -= exchange.io.read(&mut block).await.ok().filter(|read| *read > 0)?;
            }
            exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.ok()?;
            Some(exchange.io)
        })
    })
    .await;
    // A process of its own: what is measured is the front's memory, and no other test's.
    let front = Process::spawn(&place, stub.address).await;
    let mut h2 = client::h2(&place.plane, front.address, Some(&place.plane.user("alice", &["dev"]))).await;
    let block = Bytes::from(vec![b'x'; MIB]);
    let frames = futures_util::stream::iter((0..TOTAL / MIB).map(move |_| Ok(Frame::data(block.clone()))));
    let mut request = client::request("/api/v1/namespaces/d/pods/p/proxy/", &[])
        .map(|_| BodyExt::boxed(http_body_util::StreamBody::new(frames)));
    *request.method_mut() = Method::POST;
    request.headers_mut().insert("content-length", TOTAL.into());
    let before = front.peak_bytes();
    let answer = tokio::time::timeout(std::time::Duration::from_secs(120), h2.send_request(request)).await;
    assert_eq!(answer.unwrap().unwrap().status(), 200);
    let grown = front.peak_bytes() - before;
    assert!(grown < 100 * MIB, "{} MiB stayed", grown / MIB);
}
