//! Tunnels count as requests under way until they end, in the metrics and when the front stops.

use peerfront::testing::front::admin_get;

use crate::fixture::{EXEC, Fixture};
use crate::soon;

async fn in_flight(fixture: &Fixture, kind: &str) -> String {
    let series = format!("peerfront_current_inflight_requests{{request_kind=\"{kind}\"}} ");
    let metrics = admin_get(fixture.front.admin_address, "/metrics").await;
    let line = metrics.lines().find_map(|line| line.strip_prefix(&series));
    line.unwrap_or_else(|| panic!("no {series} in {metrics}")).to_owned()
}

/// Even where the path alone would be a short request.
#[tokio::test]
async fn tunnel_is_a_long_running_request_until_it_ends() {
    let mut fixture = Fixture::start().await;
    for path in [EXEC, "/api/v1/pods"] {
        let mut client = fixture.alice().await;
        client.ask(path).await;
        let mut call = fixture.upstream.call().await;
        call.switch().await;
        client.head().await;
        client.write("x").await;
        call.bytes(1).await;
        assert_eq!(in_flight(&fixture, "longRunning").await, "1", "{path}");
        assert_eq!(in_flight(&fixture, "short").await, "0", "{path}");
        call.end().await;
        client.end().await;
        client.until_closed().await;
        let ended = async {
            while in_flight(&fixture, "longRunning").await != "0" {
                tokio::task::yield_now().await;
            }
        };
        soon("the end of the request", ended).await;
        assert_eq!(in_flight(&fixture, "short").await, "0", "{path}");
    }
}

#[tokio::test]
async fn stopping_front_lets_a_tunnel_end() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.alice().await;
    client.ask(EXEC).await;
    let mut call = fixture.upstream.call().await;
    call.switch().await;
    client.head().await;
    let address = fixture.front.addresses[0];
    let stop = tokio::spawn(fixture.front.stop());
    let closed = async { while tokio::net::TcpStream::connect(address).await.is_ok() {} };
    soon("the end of the listener", closed).await;
    for _ in 0..100 {
        client.write("ping").await;
        assert_eq!(call.bytes(4).await, b"ping");
        call.write("pong").await;
        assert_eq!(client.bytes(4).await, b"pong");
    }
    assert!(!stop.is_finished());
    call.end().await;
    client.end().await;
    soon("the stop", stop).await.unwrap();
}
