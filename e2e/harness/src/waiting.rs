//! Waiting for what gives no signal.

use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep};

const POLL: Duration = Duration::from_millis(100);

/// Repeats a check until it holds: for what happens in other processes, which give no signal.
///
/// # Errors
/// With the last failure, if it does not hold in time.
pub async fn eventually<T>(within: Duration, mut check: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + within;
    loop {
        match check().await {
            Ok(value) => return Ok(value),
            Err(error) if Instant::now() > deadline => return Err(error.context(format!("not within {within:?}"))),
            Err(_) => sleep(POLL).await,
        }
    }
}
