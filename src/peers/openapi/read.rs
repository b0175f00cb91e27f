//! One server's index, read again and again. It has no entity tag, so its bytes are compared.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::super::client::ServerClient;
use super::super::fetch::{Condition, FetchError, Limits, get};
use super::super::health::UNHEARD_LIMIT;
use crate::apimachinery::server_id::ServerId;
use crate::openapi::Index;
use crate::openapi::index::Publications;
use crate::openapi::steady::Steady;

const INDEX: &str = "/openapi/v3";

/// What a reader says; nothing while nothing changes.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) server: ServerId,
    /// What it publishes and its version, or why they cannot be read.
    pub(super) outcome: Result<(Publications, Version), String>,
}

/// How new a server is: the numbers of its version, such as 1, 37 and 2; none if it does not say.
pub(super) type Version = Vec<u64>;

/// When to read.
pub(super) struct Pace {
    /// How often, whatever happens.
    pub(super) every: watch::Receiver<Duration>,
    /// That something has probably changed.
    pub(super) at_once: Arc<Notify>,
}

/// Readings after word of a change in which documents that come by turns are looked at more closely.
const ALERT: u32 = 8;

/// Readings more that are taken at once for that.
const CLOSELY: u32 = 16;

/// Readings more that are taken at once as long as documents come by turns, so that it is seen within half a minute that
/// one is gone.
const BY_TURNS: u32 = 4;

/// Reads until nobody wants the reports any more.
pub(super) async fn run(
    server: ServerId,
    mut client: ServerClient,
    limits: Limits,
    pace: Pace,
    reports: mpsc::Sender<Report>,
) {
    let mut reader = IndexReader::new(limits);
    let (mut last, mut next) = (None, Instant::now());
    loop {
        tokio::select! {
            () = sleep_until(next) => {}
            () = pace.at_once.notified() => {
                reader.alert = ALERT;
                // Many changes at once are a few readings.
                if let Some(last) = last {
                    let every = *pace.every.borrow();
                    sleep_until(next.min(last + every / 4)).await;
                }
            }
            () = reports.closed() => return,
        }
        last = Some(Instant::now());
        next = Instant::now() + *pace.every.borrow();
        let outcome = match reader.read(&client).await {
            Ok(None) => continue,
            Ok(Some(read)) => Ok(read),
            Err(error) => {
                client.forget_connections();
                reader.is_settled = false;
                reader.last.clear();
                Err(super::super::chain(&error))
            }
        };
        if reports.send(Report { server: server.clone(), outcome }).await.is_err() {
            return;
        }
    }
}

struct IndexReader {
    limits: Limits,
    /// What was answered last; empty if nothing could be read.
    last: Bytes,
    steady: Steady,
    /// Readings that are still worth a closer look.
    alert: u32,
    /// Whether the last read succeeded, so that the server has not been restarted unnoticed.
    is_settled: bool,
    /// Since when it has answered that it is not ready.
    starting_since: Option<Instant>,
}

impl IndexReader {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            last: Bytes::new(),
            steady: Steady::default(),
            alert: ALERT,
            is_settled: false,
            starting_since: None,
        }
    }

    /// A server that starts publishes less than it will: after a pause it is believed once it says that it is ready, or
    /// has not become so for as long as discovery waits for it.
    async fn check_started(&mut self, client: &ServerClient) -> Result<(), FetchError> {
        match get(client, "/readyz", Condition::anything(), &self.limits).await {
            Err(error) if error.is_of_server() => {
                let since = *self.starting_since.get_or_insert_with(Instant::now);
                if since.elapsed() < UNHEARD_LIMIT { Err(error) } else { Ok(()) }
            }
            // No such path, or no right to it: then only the index counts.
            Ok(_) | Err(FetchError::Status { .. }) => {
                self.starting_since = None;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the index, and the version of a server that has a new one; `None` if nothing has changed.
    async fn read(&mut self, client: &ServerClient) -> Result<Option<(Publications, Version)>, FetchError> {
        if !self.is_settled {
            self.check_started(client).await?;
        }
        let mut body = self.index(client).await?;
        self.is_settled = true;
        if body == self.last && self.steady.is_settled() {
            return Ok(None);
        }
        let mut is_changed = self.take(&body)? || self.last.is_empty();
        for _ in 0..self.further_readings() {
            body = self.index(client).await?;
            is_changed |= self.take(&body)?;
        }
        if !is_changed {
            self.last = body;
            return Ok(None);
        }
        let version = version(client, &self.limits).await?;
        self.last = body;
        Ok(Some((self.steady.publications(), version)))
    }

    /// Of documents that come by turns one may be gone after a change, and one that has been replaced may return.
    fn further_readings(&mut self) -> u32 {
        let is_alert = self.alert > 0;
        self.alert = self.alert.saturating_sub(1);
        match self.steady.comes_by_turns() {
            _ if self.steady.has_just_changed() => CLOSELY,
            true if is_alert => CLOSELY,
            true => BY_TURNS,
            false => 0,
        }
    }

    async fn index(&self, client: &ServerClient) -> Result<Bytes, FetchError> {
        match get(client, INDEX, Condition::anything(), &self.limits).await {
            Ok(answer) => Ok(answer.map(|answer| answer.body).unwrap_or_default()),
            // It publishes none: OpenAPI v3 came with 1.23.
            Err(FetchError::Status { status: StatusCode::NOT_FOUND, .. }) => Ok(Bytes::from_static(br#"{"paths":{}}"#)),
            Err(error) => Err(error),
        }
    }

    fn take(&mut self, body: &[u8]) -> Result<bool, FetchError> {
        let read = Index::parse(body).map_err(|source| FetchError::decode(INDEX, source))?;
        Ok(self.steady.take(read))
    }
}

async fn version(client: &ServerClient, limits: &Limits) -> Result<Version, FetchError> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "gitVersion", default)]
        git_version: String,
    }
    let path = "/version";
    let body = get(client, path, Condition::json(), limits).await?.map(|answer| answer.body).unwrap_or_default();
    let answer: Answer = serde_json::from_slice(&body).map_err(|source| FetchError::decode(path, source))?;
    Ok(numbers(&answer.git_version))
}

/// The numbers of `v1.37.2-rc.0+vendor` up to the first that is none.
fn numbers(git_version: &str) -> Version {
    let plain = git_version.trim_start_matches('v');
    let end = plain.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(plain.len());
    plain[..end].split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(numbers("v1.37.2"), [1, 37, 2]);
        assert_eq!(numbers("v1.37.2-rc.0+vendor.5"), [1, 37, 2]);
        assert_eq!(numbers("v1.37"), [1, 37]);
        assert_eq!(numbers("x"), [0; 0]);
        assert!(numbers("v1.9.0") < numbers("v1.10.0"));
        assert!(numbers("") < numbers("v1.0"));
    }
}
