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
mod metrics;
mod paths;
mod peers;
mod pool;
mod process;
mod streams;

use peerfront::testing::soon;
