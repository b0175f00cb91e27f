//! What tests of this crate and of its users share; feature `testing`, never part of a product build.
//!
//! Helpers here panic with a reason instead of returning errors: a test has nothing better to do with one.
#![allow(clippy::panic, clippy::unwrap_used, reason = "only tests use this room")]

pub mod api_server;
pub mod front;
pub mod pki;
pub mod raw;
pub mod stub;

use std::time::Duration;

/// Longer than anything that is awaited takes, so that a hang fails with what it was.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a future, but not for ever.
///
/// # Panics
/// If [`PATIENCE`] is over, with what was awaited.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

/// Every value of a header in a head as it was read, in order.
#[must_use]
pub fn values<'h>(head: &'h str, name: &str) -> Vec<&'h str> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
}
