//! What the reads and the failed connects of one server say about it; pure.

use std::time::Duration;

use tokio::time::Instant;

/// How long a server that has never been heard keeps "not found" answers back. After that it counts as one that may
/// never come; clients cannot wait for it any longer.
pub(super) const UNHEARD_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Failed reads in a row after which a server's documents count as those of a lost one. One failure may be a moment of
/// overload, and client-go drops every resource of a group version that only a lost server serves.
const LOST_AFTER: u32 = 2;

/// Why a read of a server's documents gave nothing, or not all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Failure {
    /// It answers, but not all of this now (too many requests, forbidden): requests may still be sent to it.
    Refused,
    /// It answers like no working API server, or not in time. Said twice in a row, nothing is sent to it.
    Failing,
    /// It takes connections and ends them without an answer.
    Broken,
    /// No connection to it can be made, the TLS handshake included.
    Down,
}

/// Whether one server answers.
#[derive(Clone, Debug)]
pub(super) struct Health {
    known_since: Instant,
    /// When the last failure began to count; `None` while requests may be forwarded.
    unavailable_since: Option<Instant>,
    failures: u32,
    standing: Standing,
}

/// How a server stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Standing {
    /// Requests may be forwarded to it.
    pub(super) available: bool,
    /// No connection to it can be made.
    pub(super) unreachable: bool,
    /// Its documents are those of a server that does not answer any more.
    pub(super) lost: bool,
    /// All its documents have been read at least once.
    pub(super) heard: bool,
}

impl Health {
    /// A server just learned of. Nobody has tried to reach it.
    pub(super) fn new(now: Instant) -> Self {
        let standing = Standing { available: true, unreachable: false, lost: false, heard: false };
        Self { known_since: now, unavailable_since: None, failures: 0, standing }
    }

    /// Takes what came of a read of its documents that began at `began`.
    pub(super) fn read(&mut self, failure: Option<Failure>, began: Instant, now: Instant) {
        self.standing.unreachable = failure == Some(Failure::Down);
        match failure {
            None => {
                self.standing.heard = true;
                self.answered(began);
            }
            Some(Failure::Refused) => self.answered(began),
            Some(failure) => {
                self.failures = self.failures.saturating_add(1);
                if failure != Failure::Failing || self.failures >= LOST_AFTER {
                    self.unavailable_since.get_or_insert(now);
                }
            }
        }
        self.settle();
    }

    /// A request could not be forwarded, because no connection could be made.
    pub(super) fn connect_failed(&mut self, now: Instant) {
        self.unavailable_since = Some(now);
        self.settle();
    }

    fn answered(&mut self, began: Instant) {
        self.failures = 0;
        // An answer to a read that began before the failure says nothing about now.
        if self.unavailable_since.is_some_and(|since| since <= began) {
            self.unavailable_since = None;
        }
    }

    fn settle(&mut self) {
        self.standing.available = self.unavailable_since.is_none();
        self.standing.lost = self.failures >= LOST_AFTER;
    }

    /// How it stands.
    pub(super) fn standing(&self) -> Standing {
        self.standing
    }

    /// Until when it may still be going to say what it serves; `None` once it has or the limit has passed.
    pub(super) fn awaited_until(&self, now: Instant) -> Option<Instant> {
        let limit = self.known_since + UNHEARD_LIMIT;
        (!self.standing.heard && now < limit).then_some(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn heard(now: Instant) -> Health {
        let mut health = Health::new(now);
        health.read(None, now, now);
        health
    }

    #[test]
    fn failed_connect_makes_a_peer_unavailable_until_a_later_read_succeeds() {
        let start = Instant::now();
        let mut health = heard(start);
        health.connect_failed(start + SECOND);
        assert!(!health.standing().available);
        health.read(None, start, start + 2 * SECOND);
        assert!(!health.standing().available, "a read that began before the failure must not count");
        health.read(None, start + 2 * SECOND, start + 2 * SECOND);
        assert!(health.standing().available);
        assert!(!health.standing().lost, "its documents were never in doubt");
    }

    #[test]
    fn refused_connection_makes_unavailable_at_once_two_make_lost() {
        let start = Instant::now();
        let mut health = heard(start);
        health.read(Some(Failure::Down), start, start + SECOND);
        assert!(!health.standing().available && !health.standing().lost);
        health.read(Some(Failure::Down), start + SECOND, start + 2 * SECOND);
        assert!(health.standing().lost && health.standing().heard);
        health.read(None, start + 3 * SECOND, start + 3 * SECOND);
        assert!(health.standing().available && !health.standing().lost);
    }

    #[test]
    fn server_that_fails_once_stays_available() {
        let start = Instant::now();
        let mut health = heard(start);
        health.read(Some(Failure::Failing), start, start);
        assert!(health.standing().available);
        health.read(Some(Failure::Failing), start, start);
        assert!(!health.standing().available && health.standing().lost);
    }

    #[test]
    fn only_a_server_that_takes_no_connection_is_unreachable() {
        let start = Instant::now();
        let mut health = heard(start);
        health.connect_failed(start);
        assert!(!health.standing().unreachable, "the next read will tell");
        for read in [Some(Failure::Failing), Some(Failure::Refused), None, Some(Failure::Broken)] {
            health.read(Some(Failure::Down), start, start);
            assert!(health.standing().unreachable);
            health.read(read, start, start);
            assert!(!health.standing().unreachable, "{read:?}");
        }
        assert!(!health.standing().available, "a server that ends connections gets no requests");
    }

    #[test]
    fn refusing_server_stays_available_and_unheard() {
        let start = Instant::now();
        let mut health = Health::new(start);
        for _ in 0..3 {
            health.read(Some(Failure::Refused), start, start);
        }
        let expected = Standing { available: true, unreachable: false, lost: false, heard: false };
        assert_eq!(health.standing(), expected);
    }

    #[test]
    fn unheard_server_is_awaited_for_five_minutes_only() {
        let start = Instant::now();
        let limit = start + Duration::from_secs(300);
        let mut health = Health::new(start);
        assert_eq!(health.awaited_until(start), Some(limit));
        assert_eq!(health.awaited_until(limit), None);
        health.read(None, start, start);
        assert_eq!(health.awaited_until(start), None);
    }
}
