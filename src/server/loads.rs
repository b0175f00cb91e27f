//! How busy each peer is, as this worker sees it: which of several peers gets the next request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::apimachinery::server_id::ServerId;

/// What happened this long ago counts a third. Source: `tower::load::PeakEwma`, whose users take 10 s.
const DECAY: Duration = Duration::from_secs(10);

/// Taken for a peer that has not answered anything yet: a millisecond, so that those get a request soon.
const UNKNOWN_SECONDS: f64 = 0.001;

/// The peers' loads; one per worker.
#[derive(Debug, Default)]
pub(super) struct Loads {
    // A lock without contention: it belongs to one single-threaded worker. It is never held over an await.
    #[allow(clippy::disallowed_types)]
    by_peer: std::sync::Mutex<HashMap<ServerId, Load>>,
}

#[derive(Clone, Copy, Debug)]
struct Load {
    /// Requests without an answer yet.
    pending: u32,
    /// Smoothed time until the head of an answer: rises at once, falls slowly.
    seconds: f64,
    at: Instant,
}

impl Load {
    fn decayed(&self, now: Instant) -> f64 {
        let age = now.duration_since(self.at).as_secs_f64();
        self.seconds * (-age / DECAY.as_secs_f64()).exp()
    }

    fn take(&mut self, seconds: f64, now: Instant) {
        let weight = (-now.duration_since(self.at).as_secs_f64() / DECAY.as_secs_f64()).exp();
        self.seconds = seconds.max(self.seconds * weight + seconds * (1.0 - weight));
        self.at = now;
    }
}

impl Loads {
    /// How long a request at this peer may wait, in microseconds: its time for an answer times what is pending there.
    pub(super) fn cost(&self, peer: &ServerId) -> u64 {
        let now = Instant::now();
        let load = self.with(|loads| loads.get(peer).copied());
        let seconds = load.map_or(UNKNOWN_SECONDS, |load| load.decayed(now).max(UNKNOWN_SECONDS));
        let waiting = load.map_or(1, |load| load.pending.saturating_add(1));
        // Times are hours at most.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let micros = (seconds * 1_000_000.0 * f64::from(waiting)) as u64;
        micros
    }

    /// A request goes to a peer; its answer or its end is when the value is dropped.
    pub(super) fn begin(self: &Arc<Self>, peer: &ServerId) -> Pending {
        let now = Instant::now();
        self.with(|loads| {
            let unknown = Load { pending: 0, seconds: UNKNOWN_SECONDS, at: now };
            loads.entry(peer.clone()).or_insert(unknown).pending += 1;
        });
        Pending { loads: Arc::clone(self), peer: peer.clone(), since: now }
    }

    /// Forgets peers that are not among these.
    pub(super) fn keep(&self, is_known: impl Fn(&ServerId) -> bool) {
        self.with(|loads| loads.retain(|peer, load| load.pending > 0 || is_known(peer)));
    }

    #[allow(clippy::unwrap_used)] // Nothing panics while the lock is held.
    fn with<R>(&self, edit: impl FnOnce(&mut HashMap<ServerId, Load>) -> R) -> R {
        edit(&mut self.by_peer.lock().unwrap())
    }
}

/// A request that a peer has not answered yet.
#[derive(Debug)]
pub(super) struct Pending {
    loads: Arc<Loads>,
    peer: ServerId,
    since: Instant,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let now = Instant::now();
        self.loads.with(|loads| {
            if let Some(load) = loads.get_mut(&self.peer) {
                load.pending = load.pending.saturating_sub(1);
                load.take(now.duration_since(self.since).as_secs_f64(), now);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slow_and_busy_peers_cost_more_and_slowness_is_forgotten() {
        let loads = Arc::new(Loads::default());
        let (slow, quick) = (ServerId::from_hostname("node-b"), ServerId::from_hostname("node-c"));
        assert_eq!(loads.cost(&slow), loads.cost(&quick), "nothing is known");
        let pending = loads.begin(&slow);
        assert_eq!(loads.cost(&slow), 2 * loads.cost(&quick), "one is waited for");
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(pending);
        assert_eq!(loads.cost(&slow), 2_000_000, "it took two seconds");
        tokio::time::advance(DECAY).await;
        assert!((700_000..750_000).contains(&loads.cost(&slow)), "{}", loads.cost(&slow));
        drop(loads.begin(&slow));
        assert!(loads.cost(&slow) < 750_000, "an answer at once counts, but not alone: {}", loads.cost(&slow));
        tokio::time::advance(DECAY * 100).await;
        assert_eq!(loads.cost(&slow), loads.cost(&quick));
    }

    #[tokio::test(start_paused = true)]
    async fn peers_that_have_left_are_forgotten_once_nothing_is_pending() {
        let loads = Arc::new(Loads::default());
        let peer = ServerId::from_hostname("node-b");
        let pending = loads.begin(&peer);
        loads.keep(|_| false);
        assert_eq!(loads.with(|loads| loads.len()), 1);
        drop(pending);
        loads.keep(|_| false);
        assert_eq!(loads.with(|loads| loads.len()), 0);
    }
}
