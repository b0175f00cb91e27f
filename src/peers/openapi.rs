//! The OpenAPI documents of every server: one loop that reads indices, fetches what differs, and has it merged.
//!
//! It runs beside the loops that read discovery, over connections of its own, so that megabytes of OpenAPI never delay
//! the news that a server has left. Each server's index is read every few seconds, and at once when its discovery
//! documents change ([`read`]). What is known of all servers is kept in one place without I/O ([`known`]); it says what
//! is to be fetched ([`fetch`]), a document only once per hash, and what is to be merged, which happens on a thread
//! where it holds up nobody. The outcome is published as a whole.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderName, HeaderValue};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};

use self::fetch::Fetched;
use self::known::Known;
use self::read::Report;
use super::client::ServerClient;
use super::cluster::{Cluster, Server};
use crate::apimachinery::peer::Peer;
use crate::apimachinery::server_id::ServerId;
use crate::discovery::ApiGroupDiscoveryList;
use crate::openapi::OpenApi;
use crate::routing::Exclusions;
use crate::tls::Connector;

mod fetch;
mod known;
mod read;

pub(super) use self::fetch::Limits;
pub(super) use self::known::{Memory, Remembered};

/// Log target of everything about OpenAPI.
const LOG: &str = "openapi";

/// Documents that are fetched of one server at a time: it has other work.
const CONCURRENCY: usize = 2;

/// How long clients wait for the first complete documents once discovery is there. After that the local server's own
/// answers, which is what clients have without peerfront.
const AWAITED_FOR: Duration = Duration::from_secs(60);

/// How often it is looked whether something that failed is to be tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Reports that may wait.
const REPORTS: usize = 16;

/// What the loop works with.
pub(super) struct Setup {
    /// The co-located server's address, and how to connect to it.
    pub(super) upstream: (SocketAddr, Arc<Connector>),
    /// How to connect to peers.
    pub(super) peers: Arc<Connector>,
    /// Headers that say who asks.
    pub(super) identity: Arc<[(HeaderName, HeaderValue)]>,
    /// How often each server's index is read; less often among many peers.
    pub(super) pace: watch::Receiver<Duration>,
    /// Bounds of what is taken.
    pub(super) limits: Limits,
    /// What an earlier run knew.
    pub(super) remembered: Memory,
}

/// What of the cluster matters here.
#[derive(Clone, Default)]
pub(super) struct Inputs {
    /// Whether merged discovery is given out.
    is_started: bool,
    servers: Vec<Input>,
    exclusions: Exclusions,
}

#[derive(Clone)]
struct Input {
    id: ServerId,
    hostname: String,
    peer: Option<Arc<Peer>>,
    is_heard: bool,
    documents: [Option<Arc<ApiGroupDiscoveryList>>; 2],
}

/// What has come of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Published {
    /// What requests look into.
    pub(super) state: OpenApi,
    /// What is missing, for readiness; empty if nothing is.
    pub(super) missing: String,
    /// What the next run may need to know.
    pub(super) memory: Memory,
}

impl Inputs {
    /// What is known of the cluster; `is_started` says whether merged discovery is given out.
    pub(super) fn of(cluster: &Cluster, is_started: bool) -> Self {
        let servers = cluster.servers().map(Input::of).collect();
        Self { is_started, servers, exclusions: cluster.exclusions.clone() }
    }
}

impl Input {
    fn of(server: &Server) -> Self {
        let list = |document: &Option<super::fetch::Document>| Some(Arc::clone(&document.as_ref()?.list));
        Self {
            id: server.id.clone(),
            hostname: server.hostname.clone(),
            peer: server.peer.clone(),
            is_heard: server.health.standing().heard,
            documents: [list(&server.api), list(&server.apis)],
        }
    }

    fn has_same_documents(&self, other: &Self) -> bool {
        self.documents.iter().zip(&other.documents).all(|pair| match pair {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        })
    }
}

/// The loop.
struct Loop {
    setup: Setup,
    known: Known,
    readers: BTreeMap<ServerId, Reader>,
    started: Option<Instant>,
    reports: mpsc::Sender<Report>,
    jobs: JoinSet<Done>,
    is_merging: bool,
    published: watch::Sender<Published>,
}

/// The reader of one server's index.
struct Reader {
    input: Input,
    client: ServerClient,
    permits: Arc<Semaphore>,
    at_once: Arc<Notify>,
    task: AbortHandle,
}

/// What a job came to.
enum Done {
    /// A reader ended, because its server left.
    Reader,
    Fetched(Fetched),
    Merged(known::Outcome),
}

/// Runs until nobody reads what is published, or nobody says any more what the cluster is.
pub(super) async fn run(mut setup: Setup, mut inputs: watch::Receiver<Inputs>, published: watch::Sender<Published>) {
    let (reports, mut reported) = mpsc::channel(REPORTS);
    let mut this = Loop {
        known: Known::remembering(std::mem::take(&mut setup.remembered)),
        setup,
        readers: BTreeMap::new(),
        started: None,
        reports,
        jobs: JoinSet::new(),
        is_merging: false,
        published,
    };
    let mut ticks = tokio::time::interval(RETRY_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            changed = inputs.changed() => match changed {
                Ok(()) => this.take_inputs(&inputs.borrow_and_update().clone()),
                Err(_) => return,
            },
            Some(report) = reported.recv() => this.take_report(report),
            Some(Ok(done)) = this.jobs.join_next() => this.take_done(done),
            _ = ticks.tick() => {}
            () = this.published.closed() => return,
        }
        this.proceed();
    }
}

impl Loop {
    fn take_inputs(&mut self, inputs: &Inputs) {
        if inputs.is_started {
            self.started.get_or_insert_with(Instant::now);
        }
        let servers = inputs.servers.iter();
        self.known.set_servers(servers.map(|one| (&one.id, one.peer.is_none(), one.is_heard, &*one.hostname)));
        self.known.set_exclusions(&inputs.exclusions);
        let readers = &mut self.readers;
        readers.retain(|id, reader| {
            let is_same = inputs.servers.iter().any(|server| server.id == *id && server.peer == reader.input.peer);
            if !is_same {
                reader.task.abort();
            }
            is_same
        });
        // A server alone has nobody to differ from.
        for server in inputs.servers.iter().filter(|server| server.is_heard && inputs.servers.len() > 1) {
            match self.readers.get_mut(&server.id) {
                Some(reader) if reader.input.has_same_documents(server) => {}
                Some(reader) => {
                    reader.input = server.clone();
                    reader.at_once.notify_one();
                }
                None => self.start(server),
            }
        }
    }

    fn start(&mut self, server: &Input) {
        let (connector, address) = match &server.peer {
            Some(peer) => (&self.setup.peers, peer.address),
            None => (&self.setup.upstream.1, self.setup.upstream.0),
        };
        let client = ServerClient::new(Arc::clone(connector), address, Arc::clone(&self.setup.identity));
        let at_once = Arc::new(Notify::new());
        let reader = read::run(
            server.id.clone(),
            client.clone(),
            self.setup.limits.index,
            read::Pace { every: self.setup.pace.clone(), at_once: Arc::clone(&at_once) },
            self.reports.clone(),
        );
        let task = self.jobs.spawn(async move {
            reader.await;
            Done::Reader
        });
        let permits = Arc::new(Semaphore::new(CONCURRENCY));
        self.readers.insert(server.id.clone(), Reader { input: server.clone(), client, permits, at_once, task });
    }

    /// What is new at one server, such as a CRD, is soon new at the others.
    fn take_report(&mut self, report: Report) {
        for (id, reader) in self.readers.iter().filter(|_| report.outcome.is_ok()) {
            if *id != report.server {
                reader.at_once.notify_one();
            }
        }
        self.known.reported(report);
    }

    fn take_done(&mut self, done: Done) {
        match done {
            Done::Reader => {}
            Done::Fetched(fetched) => self.known.fetched(fetched, Instant::now()),
            Done::Merged(outcome) => {
                self.is_merging = false;
                self.known.merged(outcome);
            }
        }
    }

    /// Starts what is to be done next and publishes what is new.
    fn proceed(&mut self) {
        self.known.settle();
        for wanted in self.known.take_wanted(Instant::now()) {
            let Some(reader) = self.readers.get(&wanted.server) else {
                let outcome = Err("the server is not there".to_owned());
                self.known.fetched(Fetched { wanted, outcome }, Instant::now());
                continue;
            };
            let (client, permits) = (reader.client.clone(), Arc::clone(&reader.permits));
            let fetching = fetch::fetch(client, permits, wanted, self.setup.limits);
            self.jobs.spawn(async move { Done::Fetched(fetching.await) });
        }
        if !self.is_merging
            && let Some(merging) = self.known.next_merging()
        {
            self.is_merging = true;
            self.jobs.spawn_blocking(move || Done::Merged(merging.run(SystemTime::now())));
        }
        let is_overdue = self.started.is_some_and(|started| started.elapsed() >= AWAITED_FOR);
        if let Some(published) = self.known.publish(self.started.is_some(), is_overdue) {
            self.published.send_replace(published);
        }
    }
}

#[cfg(test)]
mod tests;
