//! One server's index, read again and again. It has no entity tag, so its bytes are compared.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, MissedTickBehavior};

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

/// Reads until nobody wants the reports any more: every `every`, and at once when `at_once` is notified.
pub(super) async fn run(
    server: ServerId,
    mut client: ServerClient,
    limits: Limits,
    every: Duration,
    at_once: Arc<Notify>,
    reports: mpsc::Sender<Report>,
) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reader = IndexReader::new(limits);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = at_once.notified() => {}
            () = reports.closed() => return,
        }
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
    /// Whether the last read succeeded, so that the server has not been restarted unnoticed.
    is_settled: bool,
    /// Since when it has answered that it is not ready.
    starting_since: Option<Instant>,
}

impl IndexReader {
    fn new(limits: Limits) -> Self {
        Self { limits, last: Bytes::new(), steady: Steady::default(), is_settled: false, starting_since: None }
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
        for _ in 0..self.steady.further_readings() {
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
