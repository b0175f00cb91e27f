//! One server's index, read again and again. It has no entity tag, so its bytes are compared.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use tokio::sync::{Notify, mpsc};
use tokio::time::MissedTickBehavior;

use super::super::client::ServerClient;
use super::super::fetch::{Condition, FetchError, Limits, get};
use crate::apimachinery::server_id::ServerId;
use crate::openapi::Index;
use crate::openapi::steady::Steady;

const INDEX: &str = "/openapi/v3";

/// What a reader says; nothing while nothing changes.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) server: ServerId,
    /// Its index and version, or why they cannot be read.
    pub(super) outcome: Result<(Index, Version), String>,
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
    let mut reader = IndexReader { limits, last: Bytes::new(), known: None, steady: Steady::default() };
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
    known: Option<Index>,
    steady: Steady,
}

impl IndexReader {
    /// Reads the index, and the version of a server that has a new one; `None` if nothing has changed.
    async fn read(&mut self, client: &ServerClient) -> Result<Option<(Index, Version)>, FetchError> {
        let body = match get(client, INDEX, Condition::anything(), &self.limits).await {
            Ok(answer) => answer.map(|answer| answer.body).unwrap_or_default(),
            // It publishes none: OpenAPI v3 came with 1.23.
            Err(FetchError::Status { status: StatusCode::NOT_FOUND, .. }) => Bytes::from_static(br#"{"paths":{}}"#),
            Err(error) => return Err(error),
        };
        if body == self.last {
            return Ok(None);
        }
        let read = Index::parse(&body).map_err(|source| FetchError::decode(INDEX, source))?;
        let index = match &self.known {
            Some(known) => self.steady.settle(known, read),
            None => read,
        };
        if self.known.as_ref() == Some(&index) && !self.last.is_empty() {
            return Ok(None);
        }
        let version = version(client, &self.limits).await?;
        self.last = body;
        self.known = Some(index.clone());
        Ok(Some((index, version)))
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
