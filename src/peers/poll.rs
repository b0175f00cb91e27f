//! One loop per server: read, report, wait. Servers never wait for one another.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::fetch::Reading;
use crate::apimachinery::server_id::ServerId;

/// How often servers are asked whether their documents have changed. Both answers are usually a 304 of a few hundred
/// bytes.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// For the co-located server; default 1 s: a CRD that a client has just made shows in the merged documents a second
    /// later.
    pub local: Duration,
    /// For each of up to ten peers; default 1 s as well: a change there must show through every node within two seconds.
    /// Fronts announce changes in their Leases, but plain kube-apiservers and fronts without the right to keep one do
    /// not. Three fronts cost each server six conditional requests a second. For more peers see [`Intervals::of_peers`].
    pub peer: Duration,
    /// Until CRDs and APIServices are asked for again after a refusal; default 15 s: an administrator who has just
    /// granted the rights looks at readiness next, and each refusal is a line in two logs.
    pub refused: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Self { local: Duration::from_secs(1), peer: Duration::from_secs(1), refused: Duration::from_secs(15) }
    }
}

/// Peers up to which each is asked in every interval.
const PEERS_AT_FULL_PACE: u32 = 10;

impl Intervals {
    /// For each of so many peers: among many each is asked less often, so that a front sends no more than some twenty
    /// requests a second to those that answer, and is asked no more often, however many there are.
    pub(super) fn of_peers(&self, count: usize) -> Duration {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.peer.saturating_mul(count.div_ceil(PEERS_AT_FULL_PACE).max(1))
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

/// After word of its change a server is read this often, so that many changes at once are a few reads.
const BRISK: Duration = Duration::from_millis(250);

/// A server that fails is read at least this often, so that its return is noticed.
const FAILING: Duration = Duration::from_secs(1);

/// For how long servers are read [`BRISK`]: a server lists what an object declares some moments after it has told of the object.
const BRISK_FOR: Duration = Duration::from_secs(2);

/// What makes a loop read before its time.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Whether the server can be reached is in doubt: it is read at once, over a new connection.
    pub(super) doubt: Notify,
    /// What it serves has probably changed: it is read soon, and for a moment more often.
    pub(super) change: Notify,
    /// What all servers serve has probably changed: as after `change`, but no more than four times as often as else.
    pub(super) common_change: Notify,
}

impl Signals {
    /// A front has announced something: another holder means that it was restarted, else its server serves something
    /// new. Both are in the text, the holder first.
    pub(super) fn announced(&self, before: Option<&String>, now: &str) {
        let holder = |text: &str| text.split_once(' ').map(|(holder, _)| holder.to_owned());
        if before.is_some_and(|before| holder(before) == holder(now)) {
            self.change.notify_one();
        } else {
            self.doubt.notify_one();
        }
    }
}

/// Reads `source` until nobody wants the reports any more: once in the time that `pace` says, and when there is a signal.
pub(super) async fn run(
    server: ServerId,
    mut source: impl Source,
    pace: watch::Receiver<Duration>,
    signals: Arc<Signals>,
    reports: mpsc::Sender<Report>,
) {
    let mut next = Instant::now();
    let mut last = None;
    let mut brisk_until = next;
    let mut brisk = BRISK;
    loop {
        tokio::select! {
            () = sleep_until(next) => {}
            () = signals.doubt.notified() => source.forget_connections(),
            () = signals.change.notified() => {
                (brisk_until, brisk) = (Instant::now() + BRISK_FOR, BRISK);
                next = last.map_or(next, |last: Instant| next.min(last + brisk));
                continue;
            }
            () = signals.common_change.notified() => {
                let now = Instant::now();
                let common = BRISK.max(*pace.borrow() / 4);
                brisk = if now < brisk_until { brisk.min(common) } else { common };
                brisk_until = now + BRISK_FOR;
                next = last.map_or(next, |last: Instant| next.min(last + brisk));
                continue;
            }
            () = reports.closed() => return,
        }
        let began = Instant::now();
        let reading = source.read().await;
        let is_failing = reading.failure.is_some();
        if reports.send(Report { server: server.clone(), began, reading }).await.is_err() {
            return;
        }
        last = Some(began);
        let every = *pace.borrow();
        next = began
            + match () {
                () if began < brisk_until => every.min(brisk),
                () if is_failing => every.min(FAILING),
                () => every,
            };
    }
}
