//! Whether a connection still has something to do, seen from outside HTTP/2, which keeps that to itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Looks taken in the time that a connection may be idle: it ends at most a third later.
const LOOKS: u32 = 3;

/// Time for what clients have sent when they could not know yet that the front stops: it is in the network, or in a socket
/// that a busy machine has not looked into.
const IN_TRANSIT: Duration = Duration::from_millis(250);

/// Requests of one connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    begun: AtomicUsize,
    open: AtomicUsize,
    /// Number, from 1, of the request of whose head bytes have come.
    arriving: AtomicUsize,
    began: Notify,
    unwelcome: Notify,
}

/// One request; it is open until this is dropped.
#[derive(Debug)]
pub(super) struct Open(Arc<Activity>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Activity {
    /// Counts a request.
    pub(super) fn begin(self: &Arc<Self>) -> Open {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        self.began.notify_waiters();
        Open(Arc::clone(self))
    }

    /// Notes that bytes have come: while no request is open, they are of the next one's head.
    pub(super) fn bytes_came(&self) {
        if !self.is_busy() {
            self.arriving.store(self.begun() + 1, Ordering::Relaxed);
        }
    }

    /// Whether bytes have come of a request that has not begun.
    pub(super) fn is_head_arriving(&self) -> bool {
        self.arriving.load(Ordering::Relaxed) > self.begun()
    }

    /// Waits for a request that is on its way, until it has begun, or for so long that none will come: one of which
    /// bytes have come, or come in the next moment, or the first of a connection that is younger than this time.
    pub(super) async fn head_on_its_way(&self, limit: Duration, age: Duration) {
        if tokio::time::timeout(IN_TRANSIT, self.began.notified()).await.is_ok() {
            return;
        }
        let began = self.began.notified();
        let limit = match self.begun() {
            _ if self.is_head_arriving() => limit,
            0 => limit.saturating_sub(age + IN_TRANSIT),
            _ => return,
        };
        let _ = tokio::time::timeout(limit, began).await;
    }

    /// How many requests have begun.
    fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether a request is open.
    pub(super) fn is_busy(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Asks for the end of the connection once its open requests have ended.
    pub(super) fn end(&self) {
        self.unwelcome.notify_one();
    }

    /// Waits until somebody has called [`Activity::end`].
    pub(super) async fn ended(&self) {
        self.unwelcome.notified().await;
    }

    /// Waits until no request has been open for this long.
    pub(super) async fn idle(&self, limit: Duration) {
        let mut looks = tokio::time::interval(limit / LOOKS);
        looks.tick().await;
        let (mut quiet, mut begun) = (0, self.begun.load(Ordering::Relaxed));
        while quiet < LOOKS {
            looks.tick().await;
            let now = self.begun.load(Ordering::Relaxed);
            quiet = if now == begun && !self.is_busy() { quiet + 1 } else { 0 };
            begun = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(90);

    #[tokio::test(start_paused = true)]
    async fn connection_without_requests_is_idle_after_the_limit() {
        let began = Instant::now();
        Activity::default().idle(LIMIT).await;
        assert!(began.elapsed() >= LIMIT && began.elapsed() < LIMIT * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn open_request_keeps_it_and_an_ended_one_starts_the_time_again() {
        let activity = Arc::new(Activity::default());
        let watch = activity.begin();
        assert!(timeout(LIMIT * 10, activity.idle(LIMIT)).await.is_err());
        let idle = tokio::spawn({
            let activity = Arc::clone(&activity);
            async move { activity.idle(LIMIT).await }
        });
        sleep(LIMIT * 2).await;
        drop(watch);
        let began = Instant::now();
        idle.await.unwrap();
        assert!(began.elapsed() >= LIMIT * 2 / 3, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn request_on_its_way_is_waited_for_and_no_other() {
        let activity = Arc::new(Activity::default());
        let waited = async |age| {
            let began = Instant::now();
            activity.head_on_its_way(LIMIT, age).await;
            began.elapsed()
        };
        assert_eq!(waited(LIMIT / 3).await, LIMIT * 2 / 3, "the first request of a new connection");
        assert_eq!(waited(LIMIT).await, IN_TRANSIT, "an old connection without a request");
        activity.bytes_came();
        assert_eq!(waited(LIMIT).await, IN_TRANSIT + LIMIT, "half a head");
        let waiting = activity.head_on_its_way(LIMIT, LIMIT);
        let begins = async {
            sleep(LIMIT / 2).await;
            activity.begin()
        };
        let began = Instant::now();
        let ((), open) = tokio::join!(waiting, begins);
        assert_eq!(began.elapsed(), LIMIT / 2, "until it has begun");
        activity.bytes_came();
        assert_eq!(waited(Duration::ZERO).await, IN_TRANSIT, "the body of an open request");
        drop(open);
        assert_eq!(waited(Duration::ZERO).await, IN_TRANSIT, "idle between two requests");
    }

    #[tokio::test(start_paused = true)]
    async fn short_requests_now_and_then_keep_it() {
        let activity = Arc::new(Activity::default());
        let idle = activity.idle(LIMIT);
        tokio::pin!(idle);
        for _ in 0..20 {
            assert!(timeout(LIMIT / 2, idle.as_mut()).await.is_err());
            drop(activity.begin());
        }
    }
}
