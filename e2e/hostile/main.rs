//! What hostile, broken and unlucky clients and servers can do to the data path.
//!
//! Fronts run in this process, over real TLS, before servers that follow a script byte by byte and report every request
//! head as it arrived. Nothing but loopback and the Rust toolchain is needed.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod bodies;
mod client;
mod discovery;
mod drain;
mod fixture;
mod framing;
mod identity;
mod limits;
mod paths;
mod peers;
mod pool;
mod streams;
mod stub;

use std::time::Duration;

/// Longer than anything here takes, so that a hang fails with what was awaited.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a future, but not for ever.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}
