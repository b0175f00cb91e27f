//! How a front stops.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use peerfront::app::Bound;
use peerfront::testing::raw::{self, Raw};
use peerfront::testing::stub::{Exchange, Io, Stub};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::client;
use crate::fixture::{Fixture, Place, admin_get, ok};
use crate::process::Process;
use crate::soon;

/// Long-running requests end within this time.
const SPREAD: Duration = Duration::from_secs(3);
/// Room for a busy machine.
const ROOM: Duration = Duration::from_secs(4);

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const CHUNK: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n";

/// What never ends by itself begins, anything else is answered once it is released.
async fn endless(mut exchange: Exchange, release: Arc<Notify>) -> Option<Io> {
    let begin = match exchange.seen.line() {
        line if line.contains("exec") => SWITCH,
        line if line.contains("watch") || line.contains("log") => CHUNK,
        _ => {
            release.notified().await;
            return exchange.ok("", "{}").await;
        }
    };
    exchange.write(begin).await.ok()?;
    let _ = tokio::io::copy(&mut exchange.io, &mut tokio::io::sink()).await;
    None
}

/// A front that has been told to stop, and says so.
async fn told_to_stop(front: Bound) -> tokio::task::JoinHandle<()> {
    let admin = front.admin_address;
    let stopping = tokio::spawn(front.stop());
    let said = async { while !admin_get(admin, "/readyz").await.starts_with("HTTP/1.1 500") {} };
    soon("a readiness that says so", said).await;
    assert!(admin_get(admin, "/livez").await.starts_with("HTTP/1.1 200"), "still alive");
    stopping
}

#[tokio::test]
async fn short_requests_end_and_long_ones_are_ended() {
    let release = Arc::new(Notify::new());
    let released = Arc::clone(&release);
    let mut fixture = Fixture::start(move |exchange| Box::pin(endless(exchange, Arc::clone(&released)))).await;
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: front\r\n\r\n");
    let mut h2 = fixture.h2().await;
    let mut watch = h2.send_request(client::request("/api/v1/pods?watch=true", &[])).await.unwrap().into_body();
    watch.frame().await.unwrap().unwrap();
    let (mut raw_watch, mut log, mut tunnel) = (fixture.raw().await, fixture.raw().await, fixture.raw().await);
    for (raw, path) in [(&mut raw_watch, "/api/v1/pods?watch=true"), (&mut log, "/api/v1/namespaces/d/pods/p/log")] {
        raw.write(request(path)).await;
        raw.head().await;
        assert_eq!(raw.bytes(8).await, b"3\r\n{}\n\r\n");
    }
    let exec = request("/api/v1/namespaces/d/pods/p/exec");
    tunnel.write(exec.replace("\r\n\r\n", "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")).await;
    tunnel.head().await;
    let mut raw = fixture.raw().await;
    raw.write(request("/api/v1/pods")).await;
    let short = tokio::spawn(h2.send_request(client::request("/api/v1/pods", &[])));
    for _ in 0..6 {
        fixture.stub.next().await;
    }
    let began = Instant::now();
    let stopping = told_to_stop(fixture.front).await;
    let refused = async { while tokio::net::TcpStream::connect(fixture.address).await.is_ok() {} };
    soon("the end of the listener", refused).await;
    let end_of_watch = async {
        assert!(watch.collect().await.unwrap().to_bytes().is_empty(), "a watch ends whole");
    };
    let ends =
        async { tokio::join!(end_of_watch, raw_watch.until_closed(), log.until_closed(), tunnel.until_closed()) };
    let ((), raw_watch, log, tunnel) = soon("the end of what is long-running", ends).await;
    assert!(began.elapsed() < SPREAD + ROOM, "{:?}", began.elapsed());
    assert_eq!(raw_watch, b"0\r\n\r\n", "a watch ends whole");
    assert_eq!((log, tunnel), (vec![], vec![]), "the end of a log would look like the end of the program");
    assert!(!stopping.is_finished());
    release.notify_waiters();
    let answer = raw.answer().await;
    assert_eq!((answer.code(), answer.all("connection")), (200, vec!["close"]));
    assert_eq!(soon("the short request", short).await.unwrap().unwrap().status(), 200);
    soon("the stop", stopping).await.unwrap();
}

#[tokio::test]
async fn front_with_idle_connections_only_stops_at_once() {
    let fixture = Fixture::start(ok).await;
    let mut h2 = fixture.h2().await;
    assert_eq!(h2.send_request(client::request("/api/v1/pods", &[])).await.unwrap().status(), 200);
    let mut raw = fixture.raw().await;
    assert_eq!(raw.get("/api/v1/pods", "").await.code(), 200);
    let began = Instant::now();
    soon("the stop", fixture.front.stop()).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(raw.until_closed().await.is_empty());
}

#[tokio::test]
async fn stop_loses_no_request_of_a_connection_that_is_open() {
    let fixture = Fixture::start(ok).await;
    let plane = &fixture.place.plane;
    let mut half = fixture.raw().await;
    assert_eq!(half.get("/api/v1/pods", "").await.code(), 200);
    half.write("GET /api/v1/pods HTTP/1.1\r\nHo").await;
    // In the hands of the system: this thread lets nobody accept them before the stop.
    let connect = |_| std::net::TcpStream::connect(fixture.address).unwrap();
    let waiting: Vec<_> = (0..10).map(connect).collect();
    let stopping = told_to_stop(fixture.front).await;
    half.write("st: front\r\n\r\n").await;
    let answer = half.answer().await;
    assert_eq!((answer.code(), answer.all("connection")), (200, vec!["close"]));
    let alice = plane.user("alice", &["dev"]);
    let asked = waiting.into_iter().enumerate().map(async |(number, stream)| {
        stream.set_nonblocking(true).unwrap();
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        if number % 2 == 0 {
            let mut raw = Raw::new(raw::handshake(plane, stream, None, b"http/1.1").await);
            let answer = raw.get("/api/v1/pods", "").await;
            assert_eq!((answer.code(), answer.all("connection")), (200, vec!["close"]), "{number}");
        } else {
            let mut h2 = client::h2_on(raw::handshake(plane, stream, Some(&alice), b"h2").await).await;
            let answer = h2.send_request(client::request("/api/v1/pods", &[])).await.unwrap();
            assert_eq!(answer.status(), 200, "{number}");
        }
    });
    futures_util::future::join_all(asked).await;
    soon("the stop", stopping).await.unwrap();
}

#[tokio::test]
async fn process_told_to_stop_twice_stops_at_once() {
    let place = Place::new();
    let mut stub = Stub::start(&place.plane, &[], |exchange| {
        Box::pin(async move {
            let _kept = exchange;
            std::future::pending().await
        })
    })
    .await;
    let mut process = Process::spawn(&place, stub.address).await;
    let mut raw = Raw::open(&place.plane, process.address, None).await;
    raw.write("GET /api/v1/pods HTTP/1.1\r\nHost: front\r\n\r\n").await;
    stub.next().await;
    process.terminate();
    process.said("stopping").await;
    let began = Instant::now();
    process.terminate();
    let status = soon("the end of the process", process.child.wait()).await.unwrap();
    assert!(status.success(), "{status}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
