//! What the reads of one server, and the requests that were sent to it, say about it; pure.

use std::time::Duration;

use tokio::time::Instant;

use crate::routing::Circuit;

/// How long a server that has never been heard keeps "not found" answers back. After that it counts as one that may
/// never come; clients cannot wait for it any longer.
pub(super) const UNHEARD_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Failed reads in a row after which a server's documents count as those of a lost one. One failure may be a moment of
/// overload, and client-go drops every resource of a group version that only a lost server serves.
const LOST_AFTER: u32 = 2;

/// How long a peer that answers again stays behind others that can answer as well, after its first failure; each further
/// one doubles it.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);

/// The most that comes to.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// A peer that has not failed for so long begins anew.
const FORGIVEN_AFTER: Duration = Duration::from_secs(5 * 60);

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
    /// An attempt to connect to it is not even refused.
    Vanished,
}

/// Whether one server answers.
#[derive(Clone, Debug)]
pub(super) struct Health {
    known_since: Instant,
    /// When the last failure began to count; `None` while it answers.
    opened: Option<Instant>,
    /// Until when it stays behind others though it answers again.
    half_open_until: Option<Instant>,
    /// How often it has begun to fail.
    ejections: u64,
    /// How often of late, and when it did last.
    late_ejections: u32,
    last_ejection: Option<Instant>,
    failures: u32,
    standing: Standing,
}

/// How a server stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Standing {
    /// Whether requests are forwarded to it.
    pub(super) circuit: Circuit,
    /// Attempts to connect to it are not even refused.
    pub(super) vanished: bool,
    /// Its documents are those of a server that does not answer any more.
    pub(super) lost: bool,
    /// All its documents have been read at least once.
    pub(super) heard: bool,
}

impl Standing {
    /// Whether requests may be forwarded to it.
    pub(super) fn is_available(self) -> bool {
        self.circuit != Circuit::Open
    }
}

impl Health {
    /// A server just learned of. Nobody has tried to reach it.
    pub(super) fn new(now: Instant) -> Self {
        let standing = Standing { circuit: Circuit::Closed, vanished: false, lost: false, heard: false };
        Self {
            known_since: now,
            opened: None,
            half_open_until: None,
            ejections: 0,
            late_ejections: 0,
            last_ejection: None,
            failures: 0,
            standing,
        }
    }

    /// Takes what came of a read of its documents that began at `began`.
    pub(super) fn read(&mut self, failure: Option<Failure>, began: Instant, now: Instant) {
        self.standing.vanished = failure == Some(Failure::Vanished);
        match failure {
            None => {
                self.standing.heard = true;
                self.answered(began, now);
            }
            Some(Failure::Refused) => self.answered(began, now),
            Some(failure) => {
                self.failures = self.failures.saturating_add(1);
                if (failure != Failure::Failing || self.failures >= LOST_AFTER) && self.opened.is_none() {
                    self.eject(now);
                }
            }
        }
        self.settle(now);
    }

    /// A request could not be forwarded, because no connection could be made.
    pub(super) fn connect_failed(&mut self, now: Instant) {
        if self.opened.is_none() {
            self.eject(now);
        }
        self.opened = Some(now);
        self.settle(now);
    }

    fn eject(&mut self, now: Instant) {
        if self.last_ejection.is_some_and(|last| now - last >= FORGIVEN_AFTER) {
            self.late_ejections = 0;
        }
        self.ejections += 1;
        self.late_ejections = self.late_ejections.saturating_add(1);
        self.last_ejection = Some(now);
        self.opened = Some(now);
        self.half_open_until = None;
    }

    fn answered(&mut self, began: Instant, now: Instant) {
        self.failures = 0;
        // An answer to a read that began before the failure says nothing about now.
        if self.opened.is_some_and(|opened| opened <= began) {
            self.opened = None;
            self.half_open_until = Some(now + self.backoff());
        }
    }

    fn backoff(&self) -> Duration {
        let doubled = 1u32.checked_shl(self.late_ejections.saturating_sub(1)).unwrap_or(u32::MAX);
        FIRST_BACKOFF.saturating_mul(doubled).min(MAX_BACKOFF)
    }

    /// Notes that time has passed.
    pub(super) fn settle(&mut self, now: Instant) {
        self.half_open_until = self.half_open_until.filter(|until| now < *until);
        self.standing.circuit = match (self.opened, self.half_open_until) {
            (Some(_), _) => Circuit::Open,
            (None, Some(_)) => Circuit::HalfOpen,
            (None, None) => Circuit::Closed,
        };
        self.standing.lost = self.failures >= LOST_AFTER;
    }

    /// How it stood when it was last settled.
    pub(super) fn standing(&self) -> Standing {
        self.standing
    }

    /// How often it has begun to fail, so that nothing was sent to it any more.
    pub(super) fn ejections(&self) -> u64 {
        self.ejections
    }

    /// When time alone changes how it stands.
    pub(super) fn settles_at(&self) -> Option<Instant> {
        self.half_open_until
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
        assert!(!health.standing().is_available());
        health.read(None, start, start + 2 * SECOND);
        assert!(!health.standing().is_available(), "a read that began before the failure must not count");
        health.read(None, start + 2 * SECOND, start + 2 * SECOND);
        assert!(health.standing().is_available());
        assert!(!health.standing().lost, "its documents were never in doubt");
    }

    #[test]
    fn refused_connection_makes_unavailable_at_once_two_make_lost() {
        let start = Instant::now();
        let mut health = heard(start);
        health.read(Some(Failure::Down), start, start + SECOND);
        assert!(!health.standing().is_available() && !health.standing().lost);
        health.read(Some(Failure::Down), start + SECOND, start + 2 * SECOND);
        assert!(health.standing().lost && health.standing().heard);
        health.read(None, start + 3 * SECOND, start + 3 * SECOND);
        assert!(health.standing().is_available() && !health.standing().lost);
    }

    #[test]
    fn server_that_fails_once_stays_available() {
        let start = Instant::now();
        let mut health = heard(start);
        health.read(Some(Failure::Failing), start, start);
        assert!(health.standing().is_available());
        health.read(Some(Failure::Failing), start, start);
        assert!(!health.standing().is_available() && health.standing().lost);
    }

    #[test]
    fn only_a_server_that_does_not_even_refuse_connections_has_vanished() {
        let start = Instant::now();
        let mut health = heard(start);
        health.connect_failed(start);
        assert!(!health.standing().vanished, "the next read will tell");
        for read in [Some(Failure::Failing), Some(Failure::Refused), None, Some(Failure::Broken), Some(Failure::Down)] {
            health.read(Some(Failure::Vanished), start, start);
            assert!(health.standing().vanished);
            health.read(read, start, start);
            assert!(!health.standing().vanished, "{read:?}");
        }
        assert!(!health.standing().is_available(), "a server that ends connections gets no requests");
    }

    #[test]
    fn refusing_server_stays_available_and_unheard() {
        let start = Instant::now();
        let mut health = Health::new(start);
        for _ in 0..3 {
            health.read(Some(Failure::Refused), start, start);
        }
        let expected = Standing { circuit: Circuit::Closed, vanished: false, lost: false, heard: false };
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

    #[test]
    fn peer_that_fails_again_and_again_stays_behind_others_longer_and_longer() {
        let mut now = Instant::now();
        let mut health = heard(now);
        let mut fail_and_return = |health: &mut Health| {
            now += 10 * SECOND;
            health.read(Some(Failure::Down), now, now);
            assert_eq!(health.standing().circuit, Circuit::Open);
            now += SECOND;
            health.read(None, now, now);
            assert_eq!(health.standing().circuit, Circuit::HalfOpen);
            let until = health.settles_at().unwrap();
            health.settle(until);
            assert_eq!((health.standing().circuit, health.settles_at()), (Circuit::Closed, None));
            (until - now).as_secs()
        };
        let behind: Vec<u64> = (0..9).map(|_| fail_and_return(&mut health)).collect();
        assert_eq!(behind, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let mut forgiven = Health { last_ejection: health.last_ejection.map(|last| last - FORGIVEN_AFTER), ..health };
        assert_eq!(fail_and_return(&mut forgiven), 1);
    }

    #[test]
    fn failing_while_open_is_one_ejection() {
        let start = Instant::now();
        let mut health = heard(start);
        for number in 1..5 {
            health.connect_failed(start + number * SECOND);
            health.read(Some(Failure::Vanished), start + number * SECOND, start + number * SECOND);
        }
        assert!(health.standing().vanished);
        assert_eq!(health.ejections(), 1);
    }
}
