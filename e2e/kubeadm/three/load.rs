//! Clients that go on while nodes change, one for each node's address.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use peerfront_e2e::{Client, Connection, Response};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::tally::Tally;

/// Pause between two requests of a client.
const PAUSE: Duration = Duration::from_millis(100);
/// One in so many is a write.
const WRITES: u64 = 10;
/// After this a request has failed. Clients that are built on client-go wait longer.
const LIMIT: Duration = Duration::from_secs(20);

/// Read by every client.
const NAMESPACE: &str = "/api/v1/namespaces/kube-system";
/// Where every client writes.
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The clients; they end with it.
pub(crate) struct Load {
    clients: Vec<Seat>,
    paths: watch::Sender<Vec<String>>,
    tasks: JoinSet<()>,
}

struct Seat {
    node: String,
    tally: Arc<watch::Sender<Tally>>,
    task: AbortHandle,
}

impl Load {
    pub(crate) fn new() -> Self {
        Self { clients: Vec::new(), paths: watch::Sender::new(vec![NAMESPACE.to_owned()]), tasks: JoinSet::new() }
    }

    /// One more client, of this node.
    pub(crate) fn add(&mut self, node: &str, client: Client) {
        let tally = Arc::new(watch::Sender::new(Tally::default()));
        let worker = Worker { node: node.to_owned(), client, connection: None, tally: Arc::clone(&tally) };
        let task = self.tasks.spawn(worker.run(self.paths.subscribe()));
        self.clients.push(Seat { node: node.to_owned(), tally, task });
    }

    /// The client of this node goes with it.
    pub(crate) fn remove(&mut self, node: &str) {
        for seat in self.clients.extract_if(.., |seat| seat.node == node) {
            seat.task.abort();
        }
    }

    /// From now on all clients read this, too, and it is always there.
    pub(crate) fn read_also(&self, path: &str) {
        self.paths.send_modify(|paths| paths.push(path.to_owned()));
    }

    /// What each client has seen since this was last asked.
    pub(crate) fn take(&self) -> Vec<(String, Tally)> {
        let take = |seat: &Seat| (seat.node.clone(), seat.tally.send_replace(Tally::default()));
        self.clients.iter().map(take).collect()
    }
}

struct Worker {
    node: String,
    client: Client,
    connection: Option<Connection>,
    tally: Arc<watch::Sender<Tally>>,
}

impl Worker {
    async fn run(mut self, paths: watch::Receiver<Vec<String>>) {
        let mut ticks = interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in 0_u64.. {
            ticks.tick().await;
            let all = paths.borrow().clone();
            for path in all {
                self.ask(Method::GET, &path, Bytes::new(), StatusCode::OK).await;
            }
            if number % WRITES == 0 {
                self.write(number).await;
            }
        }
    }

    /// Makes an object of a name never used before, and deletes it.
    async fn write(&mut self, number: u64) {
        let name = format!("load-{}-{number}", self.node);
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
        if self.ask(Method::POST, CONFIG_MAPS, object.to_string().into(), StatusCode::CREATED).await {
            self.ask(Method::DELETE, &format!("{CONFIG_MAPS}/{name}"), Bytes::new(), StatusCode::OK).await;
        }
    }

    /// Whether the answer was the one expected.
    async fn ask(&mut self, method: Method, path: &str, body: Bytes, expected: StatusCode) -> bool {
        let what = format!("{method} {path}");
        let sent = Instant::now();
        let answer = timeout(LIMIT, self.send(method, path, body)).await;
        let answer = answer.context("no answer in time").and_then(|answer| answer).map(|response| response.status);
        if answer.is_err() {
            self.connection = None;
        }
        let is_served = answer.as_ref().is_ok_and(|status| *status == expected);
        self.tally.send_modify(|tally| tally.count(&what, expected, sent, answer.as_ref().copied()));
        is_served
    }

    async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Result<Response> {
        let request =
            Request::builder().method(method).uri(path).header("content-type", "application/json").body(body)?;
        let mut connection = match self.connection.take() {
            Some(connection) if !connection.is_closed() => connection,
            _ => self.client.connect().await?,
        };
        let response = connection.send(request).await?.collect().await?;
        self.connection = Some(connection);
        Ok(response)
    }
}
