//! How it stands with something that is fetched.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::openapi::Held;

/// Failures after which nobody waits any more: an answer without the document is better than none. It is asked for
/// again all the same.
pub(super) const GIVEN_UP_AFTER: u32 = 3;

/// Longest pause before something that failed is asked for again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How it stands with something that is fetched.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) held: Option<Arc<Held>>,
    pub(super) is_under_way: bool,
    pub(super) failures: u32,
    pub(super) not_before: Option<Instant>,
}

impl Progress {
    /// Of what is there.
    pub(super) fn of(held: &Arc<Held>) -> Self {
        Self { held: Some(Arc::clone(held)), ..Self::default() }
    }

    pub(super) fn may_start(&self, now: Instant) -> bool {
        !self.is_under_way && self.not_before.is_none_or(|time| now >= time)
    }

    /// Whether nobody waits for it any more.
    pub(super) fn is_settled(&self) -> bool {
        self.held.is_some() || self.failures >= GIVEN_UP_AFTER
    }

    pub(super) fn failed(&mut self, now: Instant) {
        let pause = Duration::from_secs(1 << self.failures.min(6)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(now + pause);
    }
}
