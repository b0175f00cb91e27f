//! Upgrades byte by byte: what reaches a server, what comes back, and what never becomes a tunnel.
//!
//! A front runs in this process, over real TLS, with a server and a peer behind it whose answers each test writes by
//! hand. Nothing but loopback and the Rust toolchain is needed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, which may")]

mod accounting;
mod client;
mod fixture;
mod handshake;
mod identity;
mod refused;
mod stub;
mod tunnel;

use std::time::Duration;

/// Longer than anything here takes, so that a hang fails with what was awaited.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a future, but not for ever.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

/// Every value of a header in a head as it was read, in order.
fn values<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
}

/// Whether the slow tests are wanted as well, as `./e2e/test --full` says.
fn is_full() -> bool {
    std::env::var("E2E_FULL").is_ok_and(|full| full == "1")
}
