//! Upgrades byte by byte: what reaches a server, what comes back, and what never becomes a tunnel.
//!
//! A front runs in this process, over real TLS, with a server and a peer behind it whose answers each test writes by
//! hand. Nothing but loopback and the Rust toolchain is needed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, which may")]

mod accounting;
mod fixture;
mod handshake;
mod identity;
mod refused;
mod stub;
mod tunnel;

use peerfront::testing::{soon, values};

/// Whether the slow tests are wanted as well, as `./e2e/test --full` says.
fn is_full() -> bool {
    std::env::var("E2E_FULL").is_ok_and(|full| full == "1")
}
