//! When the table of routes and the documents are built anew, and the count of it.
//!
//! The gate `WatchBasedRoutesReconciliation` has two sides, as upstream's gate of this name has in the route controller:
//! on, they are built when something has changed; off, every ten seconds, whatever has changed.
//! Source: <https://github.com/kubernetes/enhancements/tree/master/keps/sig-cloud-provider/5237-watch-based-route-controller-reconciliation>

use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Histogram};
use tokio::time::Instant;

use super::cluster::Due;
use crate::metrics::Registry;
use crate::settings::RouteSync;

const SYNCS: &str = "route_controller_route_sync_total";
const DURATION: &str = "peerfront_route_sync_duration_seconds";

/// Time between two syncs that nothing asked for; upstream's `--route-reconciliation-period`.
const PERIOD: Duration = Duration::from_secs(10);

/// Least time between two syncs that events asked for, so that a burst is one.
const BURST: Duration = Duration::from_millis(100);

/// Why there is a sync.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Trigger {
    /// Something has changed: who the peers are, what one serves, whether it counts.
    NodeChange,
    /// It was time.
    Periodic,
}

/// What came of a sync.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    /// Somebody serves something new, or at a new address.
    Changed,
    /// The table is the same.
    Noop,
    /// The table is the same, but what some server serves now could not be read.
    Error,
}

/// Decides when to sync, and counts.
pub(super) struct Syncs {
    mode: RouteSync,
    next: Instant,
    counters: [[Counter; 3]; 2],
    duration: Histogram,
}

impl Syncs {
    /// Declares the families; the first sync may be at once.
    pub(super) fn register(mode: RouteSync, registry: &Arc<Registry>, now: Instant) -> Self {
        registry.describe_counter(
            SYNCS,
            "Times that the table of who serves what at which address was computed and published, by trigger and outcome.",
        );
        registry.describe_histogram(DURATION, "Time from the first event behind a sync until its table is published.");
        let counter = |trigger, outcome| registry.counter(SYNCS, &[("trigger", trigger), ("outcome", outcome)]);
        let counters = ["node_change", "periodic"]
            .map(|trigger| ["changed", "noop", "error"].map(|outcome| counter(trigger, outcome)));
        Self { mode, next: now, counters, duration: registry.histogram(DURATION, &[]) }
    }

    /// When there is to be a sync, if there is.
    pub(super) fn next(&self, due: Due) -> Option<(Instant, Trigger)> {
        match self.mode {
            RouteSync::Periodic => Some((self.next, Trigger::Periodic)),
            RouteSync::WatchBased => due.routes.map(|since| (since.max(self.next), Trigger::NodeChange)),
        }
    }

    /// Counts one, begun for an event at `since`.
    pub(super) fn done(&mut self, trigger: Trigger, outcome: Outcome, since: Option<Instant>, now: Instant) {
        self.next = match self.mode {
            RouteSync::Periodic => now + PERIOD,
            RouteSync::WatchBased => now + BURST,
        };
        self.counters[trigger as usize][outcome as usize].increment(1);
        if let Some(since) = since {
            self.duration.record(now - since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(at: Instant) -> Due {
        Due { view: true, routes: Some(at) }
    }

    #[test]
    fn events_are_synced_at_once_and_a_burst_of_them_together() {
        let (start, registry) = (Instant::now(), Arc::new(Registry::new()));
        let mut syncs = Syncs::register(RouteSync::WatchBased, &registry, start);
        assert_eq!(syncs.next(Due::default()), None);
        assert_eq!(syncs.next(due(start)), Some((start, Trigger::NodeChange)));
        syncs.done(Trigger::NodeChange, Outcome::Changed, Some(start), start);
        assert_eq!(syncs.next(due(start)), Some((start + BURST, Trigger::NodeChange)));
        assert_eq!(syncs.next(due(start + PERIOD)), Some((start + PERIOD, Trigger::NodeChange)));
        let metrics = registry.render();
        let line = "route_controller_route_sync_total{trigger=\"node_change\",outcome=\"changed\"} 1";
        assert!(metrics.contains(line), "{metrics}");
        assert!(metrics.contains("peerfront_route_sync_duration_seconds_count 1"), "{metrics}");
    }

    #[test]
    fn periodic_syncs_do_not_wait_for_events() {
        let (start, registry) = (Instant::now(), Arc::new(Registry::new()));
        let mut syncs = Syncs::register(RouteSync::Periodic, &registry, start);
        assert_eq!(syncs.next(Due::default()), Some((start, Trigger::Periodic)));
        syncs.done(Trigger::Periodic, Outcome::Noop, None, start);
        assert_eq!(syncs.next(due(start)), Some((start + PERIOD, Trigger::Periodic)));
    }
}
