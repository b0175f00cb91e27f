//! One loop per server: read, report, wait. Servers never wait for one another.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, MissedTickBehavior};

use super::fetch::Reading;
use crate::apimachinery::server_id::ServerId;

/// How often servers are asked whether their documents have changed. Both answers are usually a 304 of a few hundred
/// bytes.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// For the co-located server; default 1 s: a CRD that a client has just made shows in the merged documents a second
    /// later.
    pub local: Duration,
    /// For each peer; default 2 s: what a peer serves changes when it is upgraded, and each front asks every other.
    pub peer: Duration,
    /// Until CRDs and APIServices are asked for again after a refusal; default 15 s: an administrator who has just
    /// granted the rights looks at readiness next, and each refusal is a line in two logs.
    pub refused: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Self { local: Duration::from_secs(1), peer: Duration::from_secs(2), refused: Duration::from_secs(15) }
    }
}

/// Where documents come from: a server, or a test.
pub(super) trait Source: Send + 'static {
    /// Reads what has changed. Ends within a time of its own, whatever the server does.
    fn read(&mut self) -> impl Future<Output = Reading> + Send;

    /// Makes the next read prove that a new connection can be made.
    fn forget_connections(&mut self) {}
}

/// What a loop reports.
#[derive(Debug)]
pub(super) struct Report {
    /// The server that was asked.
    pub(super) server: ServerId,
    /// When the read began.
    pub(super) began: Instant,
    /// What came of it.
    pub(super) reading: Reading,
}

/// Reads `source` until nobody wants the reports any more: every `every`, and at once when `doubt` is notified.
pub(super) async fn run(
    server: ServerId,
    mut source: impl Source,
    every: Duration,
    doubt: Arc<Notify>,
    reports: mpsc::Sender<Report>,
) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = doubt.notified() => source.forget_connections(),
            () = reports.closed() => return,
        }
        let began = Instant::now();
        let reading = source.read().await;
        if reports.send(Report { server: server.clone(), began, reading }).await.is_err() {
            return;
        }
    }
}
