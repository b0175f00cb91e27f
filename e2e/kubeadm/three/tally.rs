//! What a client has seen.

use std::fmt;
use std::time::Duration;

use anyhow::Error;
use http::StatusCode;
use tokio::time::Instant;

/// How many failures are kept in words.
const EXAMPLES: usize = 4;

/// Answers and failures of one client since it was last looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) served: usize,
    /// Nobody listened.
    refused: usize,
    /// Reset, closed, or without an end.
    broken: usize,
    /// Answered with 5xx or 429, or with the 403 of a server that does not know its roles yet.
    pub(crate) turned_away: usize,
    /// Answered with what is never right, above all 404 for what exists.
    pub(crate) wrong: usize,
    slowest: Duration,
    failing_since: Option<Instant>,
    outages: Vec<Duration>,
    examples: Vec<String>,
}

impl Tally {
    /// Counts a request that was sent at this time and has just ended; `expected` is what its answer must be.
    pub(crate) fn count(
        &mut self,
        what: &str,
        expected: StatusCode,
        sent: Instant,
        answer: Result<StatusCode, &Error>,
    ) {
        self.slowest = self.slowest.max(sent.elapsed());
        let failure = match answer {
            Ok(status) if status == expected => {
                self.served += 1;
                self.outages.extend(self.failing_since.take().map(|since| since.elapsed()));
                return;
            }
            Ok(status) => {
                let is_passing = [StatusCode::TOO_MANY_REQUESTS, StatusCode::FORBIDDEN].contains(&status);
                *(if is_passing || status.is_server_error() { &mut self.turned_away } else { &mut self.wrong }) += 1;
                status.to_string()
            }
            Err(error) => {
                *(if is_refusal(error) { &mut self.refused } else { &mut self.broken }) += 1;
                format!("{error:#}")
            }
        };
        self.failing_since.get_or_insert(sent);
        let example = format!("{what}: {failure}");
        if self.examples.len() < EXAMPLES && !self.examples.contains(&example) {
            self.examples.push(example);
        }
    }

    /// Requests that a client would have to send again.
    pub(crate) fn failures(&self) -> usize {
        self.refused + self.broken + self.turned_away + self.wrong
    }

    /// Time in which requests failed, from the first to the next that was served.
    pub(crate) fn outage(&self) -> Duration {
        self.outages.iter().sum::<Duration>() + self.failing_since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { served, refused, broken, turned_away, wrong, slowest, outages, examples, .. } = self;
        write!(f, "served {served}, slowest {slowest:.1?}, failed {}", self.failures())?;
        if self.failures() > 0 {
            let outage = self.outage();
            write!(f, " (refused {refused}, broken {broken}, turned away {turned_away}, wrong {wrong})")?;
            write!(f, " in {outage:.1?} of {} outages, such as {examples:?}", outages.len())?;
        }
        Ok(())
    }
}

fn is_refusal(error: &Error) -> bool {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::ConnectionRefused)
}
