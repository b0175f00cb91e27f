//! How the local server gets its requests back after it was away; pure.

use std::time::Duration;

use tokio::time::Instant;

use crate::routing::Share;

/// A server that has just become ready has cold caches. In so many steps it gets all of what peers can answer as well;
/// each lets in some clients more, so that a client changes the server once.
const STEPS: u32 = 10;

/// Time between two steps.
const STEP: Duration = Duration::from_secs(1);

/// Whether the local server is away, stopping, or coming back.
#[derive(Debug, Default)]
pub(super) struct Returning {
    is_away: bool,
    is_stopping: bool,
    since: Option<Instant>,
}

impl Returning {
    /// Takes whether it answers, which after a pause means that it is ready, and whether it has been told to stop.
    pub(super) fn take(&mut self, is_available: bool, is_stopping: bool, now: Instant) {
        self.is_stopping = is_stopping;
        if !is_available {
            self.since = None;
        } else if self.is_away {
            self.since = Some(now);
        }
        self.is_away = !is_available;
    }

    /// What it gets of what peers can answer as well, while it is not away.
    pub(super) fn share(&self, now: Instant) -> Share {
        match self.since {
            _ if self.is_stopping => Share::NONE,
            Some(since) => {
                let steps = (now - since).as_secs().saturating_add(1).min(u64::from(STEPS));
                Share::percent(u8::try_from(steps * 100 / u64::from(STEPS)).unwrap_or(100))
            }
            None => Share::ALL,
        }
    }

    /// When the share changes next.
    pub(super) fn next_step(&self, now: Instant) -> Option<Instant> {
        let since = self.since.filter(|_| !self.is_stopping)?;
        (1..STEPS).map(|step| since + step * STEP).find(|at| now < *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_comes_back_gets_its_requests_step_by_step() {
        let start = Instant::now();
        let mut returning = Returning::default();
        returning.take(true, false, start);
        assert_eq!((returning.share(start), returning.next_step(start)), (Share::ALL, None), "it was never away");
        returning.take(false, false, start);
        returning.take(true, false, start);
        let mut now = start;
        let mut shares = vec![returning.share(now)];
        while let Some(next) = returning.next_step(now) {
            returning.take(true, false, next);
            now = next;
            shares.push(returning.share(now));
        }
        let expected: Vec<Share> = (1..=10).map(|step| Share::percent(step * 10)).collect();
        assert_eq!(shares, expected);
        assert_eq!(now - start, Duration::from_secs(9));
    }

    #[test]
    fn server_that_stops_gets_nothing_that_others_can_answer() {
        let now = Instant::now();
        let mut returning = Returning::default();
        returning.take(true, true, now);
        assert_eq!((returning.share(now), returning.next_step(now)), (Share::NONE, None));
        returning.take(true, false, now);
        assert_eq!(returning.share(now), Share::ALL, "it did not stop");
    }
}
