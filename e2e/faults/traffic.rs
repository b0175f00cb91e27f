//! Clients that go on while something fails, and what they may see.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Client, Response};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep};

/// Served by the newest server only.
pub(crate) const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
/// Served by every server.
const LOCAL: &str = "/api/v1/namespaces/default";

/// Longest wait for an answer of the local server while others fail.
const UNDISTURBED: Duration = Duration::from_secs(5);
/// Longest wait until a request gets a 503 that no server can answer.
const REFUSED: Duration = Duration::from_secs(30);

/// Requests in the background, until they are asked how it went.
pub(crate) struct Traffic {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<Result<Ledger>>>,
}

/// How many of its requests a client got answered in which way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ledger {
    /// As if nothing had failed.
    pub(crate) served: u32,
    /// 503 with a Status and Retry-After.
    pub(crate) refused: u32,
    /// Writes that were under way when the connection broke: 504 with a Status that says so, and without Retry-After,
    /// which would have client-go send them again.
    pub(crate) unknown: u32,
    /// The slowest answer.
    pub(crate) slowest: Duration,
}

impl Traffic {
    /// Starts three clients of a front: one of what the local server serves, one that reads and one that writes what
    /// only a peer serves.
    pub(crate) fn start(admin: &Client, name: &'static str) -> Self {
        let (stop, stopped) = watch::channel(false);
        let tasks = vec![
            tokio::spawn(local(admin.clone().with_timeout(UNDISTURBED), stopped.clone())),
            tokio::spawn(reads(admin.clone().with_timeout(REFUSED), stopped.clone())),
            tokio::spawn(writes(admin.clone().with_timeout(REFUSED), name, stopped)),
        ];
        Self { stop, tasks }
    }

    /// Ends the clients: the ledgers of the local one, of the reader and of the writer.
    ///
    /// # Errors
    /// What one of them saw that it should not.
    pub(crate) async fn finish(self) -> Result<[Ledger; 3]> {
        self.stop.send_replace(true);
        let mut ledgers = [Ledger::default(); 3];
        for (place, task) in ledgers.iter_mut().zip(self.tasks) {
            *place = task.await??;
        }
        Ok(ledgers)
    }
}

async fn local(admin: Client, stopped: watch::Receiver<bool>) -> Result<Ledger> {
    let mut ledger = Ledger::default();
    let mut ticks = interval(Duration::from_millis(50));
    while !*stopped.borrow() {
        ticks.tick().await;
        let began = Instant::now();
        let answer = admin.get(LOCAL).await.context("a request of what the local server serves")?;
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
        ledger.take(began, true);
    }
    Ok(ledger)
}

async fn reads(admin: Client, stopped: watch::Receiver<bool>) -> Result<Ledger> {
    let mut ledger = Ledger::default();
    while !*stopped.borrow() {
        let began = Instant::now();
        let answer = admin.get(MIGRATIONS).await.context("a read of what a peer serves")?;
        ledger.take(began, is_served(&answer, 200)?);
        sleep(Duration::from_millis(100)).await;
    }
    Ok(ledger)
}

/// Creates objects of names never used before: a request that a front sent twice is refused as a duplicate.
async fn writes(admin: Client, name: &'static str, stopped: watch::Receiver<bool>) -> Result<Ledger> {
    let mut ledger = Ledger::default();
    for number in 0_u32.. {
        if *stopped.borrow() {
            break;
        }
        let object = json!({
            "metadata": { "name": format!("{name}-{number}") },
            "spec": { "resource": { "group": "", "resource": "configmaps" } },
        });
        let began = Instant::now();
        let answer = admin.post(MIGRATIONS, &object).await.context("a write of what a peer serves")?;
        if answer.status == 504 && answer.text().contains("it may have been carried out") {
            ensure!(answer.header("retry-after").is_none(), "to be sent twice: {}", answer.text());
            ledger.unknown += 1;
        } else {
            ledger.take(began, is_served(&answer, 201)?);
        }
        sleep(Duration::from_millis(200)).await;
    }
    Ok(ledger)
}

/// Whether a request was served; the only other right answer is a 503 that says when to ask again.
///
/// # Errors
/// For every other answer.
pub(crate) fn is_served(answer: &Response, expected: u16) -> Result<bool> {
    if answer.status == expected {
        return Ok(true);
    }
    ensure!(answer.status == 503, "{}: {}", answer.status, answer.text());
    ensure!(answer.header("retry-after").is_some(), "no Retry-After: {}", answer.text());
    let status = answer.json()?;
    ensure!(status["kind"] == "Status" && status["code"] == 503, "{status}");
    Ok(false)
}

impl Ledger {
    fn take(&mut self, began: Instant, is_served: bool) {
        *(if is_served { &mut self.served } else { &mut self.refused }) += 1;
        self.slowest = self.slowest.max(began.elapsed());
    }
}
