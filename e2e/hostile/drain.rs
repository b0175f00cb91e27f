//! How a front stops.

use std::time::Duration;

use http_body_util::BodyExt;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::Instant;

use crate::client::{self, Raw};
use crate::fixture::{Fixture, Place, admin_get};
use crate::soon;
use crate::stub::Stub;

/// The front's own limit, with some room.
const LIMIT: Duration = Duration::from_secs(15);

#[tokio::test]
async fn front_stops_within_its_deadline_and_lets_short_requests_end() {
    let release = std::sync::Arc::new(tokio::sync::Notify::new());
    let released = std::sync::Arc::clone(&release);
    let mut fixture = Fixture::start(move |mut exchange| {
        let release = std::sync::Arc::clone(&released);
        Box::pin(async move {
            if exchange.seen.line().contains("watch") {
                exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n").await.ok()?;
                std::future::pending::<()>().await;
            }
            release.notified().await;
            exchange.ok("", "{}").await
        })
    })
    .await;
    let plane = &fixture.place.plane;
    let admin = fixture.front.admin_address;
    let mut h2 = fixture.h2().await;
    let mut watch = h2.send_request(client::request("/api/v1/pods?watch=true", &[])).await.unwrap().into_body();
    watch.frame().await.unwrap().unwrap();
    let idle = fixture.h2().await;
    let mut raw = Raw::open(plane, fixture.address, None).await;
    raw.write("GET /api/v1/pods HTTP/1.1\r\nHost: front\r\n\r\n").await;
    let short = tokio::spawn(h2.send_request(client::request("/api/v1/pods", &[])));
    for _ in 0..3 {
        fixture.stub.next().await;
    }
    let began = Instant::now();
    let stopping = tokio::spawn(fixture.front.stop());
    let refused = async {
        while tokio::net::TcpStream::connect(fixture.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    soon("the end of the listener", refused).await;
    assert!(admin_get(admin, "/readyz").await.starts_with("HTTP/1.1 500"), "not ready any more");
    assert!(admin_get(admin, "/livez").await.starts_with("HTTP/1.1 200"), "still alive");
    release.notify_waiters();
    let answer = raw.answer().await;
    assert_eq!(answer.code(), 200);
    assert_eq!(soon("the short request", short).await.unwrap().unwrap().status(), 200);
    assert!(raw.until_closed().await.is_empty());
    soon("the end of the idle connection", async {
        while !idle.is_closed() {
            tokio::time::sleep(Duration::from_millis(10)).await
        }
    })
    .await;
    soon("the stop", stopping).await.unwrap();
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
    assert!(soon("the end of the watch", watch.frame()).await.is_none_or(|frame| frame.is_err()));
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
    let file = |name: &str| place.plane.path(name).display().to_string();
    let mut process = tokio::process::Command::new(env!("CARGO_BIN_EXE_peerfront"))
        .env_clear() // A variable of the tests is none that peerfront knows.
        .arg("serve")
        .args(["--bind-address=127.0.0.1", "--secure-port=0", "--admin-bind-address=127.0.0.1:0"])
        .args([format!("--tls-cert-file={}", file("apiserver.crt"))])
        .args([format!("--tls-private-key-file={}", file("apiserver.key"))])
        .args([format!("--client-ca-file={}", file("ca.crt"))])
        .args([format!("--requestheader-client-ca-file={}", file("front-proxy-ca.crt"))])
        .args([format!("--proxy-client-cert-file={}", file("front-proxy-client.crt"))])
        .args([format!("--proxy-client-key-file={}", file("front-proxy-client.key"))])
        .args([format!("--upstream-ca-file={}", file("serving-ca.crt"))])
        .args([format!("--upstream=https://{}", stub.address)])
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut log = BufReader::new(process.stderr.take().unwrap()).lines();
    let listening = async {
        let mut all = String::new();
        while let Some(line) = log.next_line().await.unwrap() {
            if let Some((_, rest)) = line.split_once("listening address=") {
                return rest.split(' ').next().unwrap().parse().unwrap();
            }
            all += &line;
        }
        panic!("it ended: {all}");
    };
    let address = soon("the line that names the address", listening).await;
    let mut raw = Raw::open(&place.plane, address, None).await;
    raw.write("GET /api/v1/pods HTTP/1.1\r\nHost: front\r\n\r\n").await;
    stub.next().await;
    let terminate = || {
        let id = process.id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    };
    terminate();
    let stopping = async { while !log.next_line().await.unwrap().unwrap().contains("stopping") {} };
    soon("the line that says so", stopping).await;
    let began = Instant::now();
    terminate();
    let status = soon("the end of the process", process.wait()).await.unwrap();
    assert!(status.success(), "{status}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
