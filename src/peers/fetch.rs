//! Reads what one server serves: `/api` and `/apis`, each on its own, asked for only if changed.
//!
//! Any kube-apiserver can be read: the newest form that it has is taken, and one that has no aggregated form is walked.
//! What was read once is kept, so that a server which fails does not vanish. Inputs are a server's answers, which may
//! be anything: they are bounded in bytes and in time, and never followed elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use http::{HeaderValue, StatusCode};
use tokio::sync::watch;
use tokio::time::Instant;

use self::exchange::Error;
use self::walk::Walked;
use super::client::ServerClient;
use super::health::{Failure, UNHEARD_LIMIT};
use super::poll::Source;
use crate::apimachinery::gvr::GroupVersion;
use crate::discovery::legacy::{ApiResourceList, ApiVersions, LegacyDocuments, RootDocument};
use crate::discovery::parse::{Document as Form, parse, parse_api_versions};
use crate::discovery::{ACCEPT_LOCAL, ApiGroupDiscoveryList};

mod exchange;
mod known_lists;
pub(super) mod resources;
mod walk;

pub(super) use self::exchange::{Answer, Condition, Error as FetchError, Limits, get};
pub(super) use self::known_lists::KnownLists;

/// Most group versions that a document may list: several times those of the clusters with the most CRDs. Each costs
/// every client of discovery some bytes, and an old server a request.
const MAX_GROUP_VERSIONS: usize = 10_000;

/// How long a server that refuses to say whether it is ready is not believed: one that starts refuses everybody before it
/// has read who may do what.
const RIGHTS_LIMIT: Duration = Duration::from_secs(15);

/// How long an answer may take before it is tried whether the server can be reached at all: a node that has vanished
/// says nothing on the connections that there are, and is known as such after this and one attempt to connect.
const PATIENCE: Duration = Duration::from_secs(1);

/// A document as it was last read.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// What it lists. The same `Arc` until it changes.
    pub(super) list: Arc<ApiGroupDiscoveryList>,
    /// Its entity tag, if the server gave one.
    pub(super) etag: Option<HeaderValue>,
}

/// Whether both are the same list, as it was read once.
pub(super) fn is_same(one: Option<&Document>, other: Option<&Document>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(&one.list, &other.list),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// What one read of a server came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// `/api` as last read, now or earlier.
    pub(super) api: Option<Document>,
    /// `/apis` as last read, now or earlier.
    pub(super) apis: Option<Document>,
    /// What failed; with the reason, for people.
    pub(super) failure: Option<(Failure, String)>,
    /// Whether it has been told to stop: it answers, and will soon not.
    pub(super) is_stopping: bool,
}

/// What a reader has read last, for who reads on from there.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    /// `/api`.
    pub(super) api: Option<Document>,
    /// `/apis`.
    pub(super) apis: Option<Document>,
    /// What was read in legacy form on the way; nothing of a server that gives aggregated documents.
    pub(super) walked: LegacyDocuments,
    /// How often the server has answered after a pause, in which it may have been replaced; 0 before it first did.
    pub(super) arrivals: u64,
}

impl Lists {
    /// Whether nothing has been read that the other does not have.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let is_same = |one: &Option<Document>, other: &Option<Document>| is_same(one.as_ref(), other.as_ref());
        let are_lists_same = is_same(&self.api, &other.api) && is_same(&self.apis, &other.apis);
        are_lists_same && self.arrivals == other.arrivals && self.walked == other.walked
    }
}

/// Reads one server again and again.
pub(super) struct ServerReader {
    client: ServerClient,
    limits: Limits,
    known: KnownLists,
    api: Kept,
    apis: Kept,
    /// Whether the last read succeeded, so that the server has not been restarted unnoticed.
    is_settled: bool,
    /// Since when it has answered that it is not ready.
    starting_since: Option<Instant>,
    /// Whether it is the co-located server, which is asked whether it is going to stop.
    is_local: bool,
    is_stopping: bool,
    lists: watch::Sender<Lists>,
}

impl ServerReader {
    /// Makes a reader that knows nothing yet.
    pub(super) fn new(client: ServerClient, limits: Limits, known: KnownLists) -> Self {
        Self {
            client,
            limits,
            known,
            api: Kept::new("/api"),
            apis: Kept::new("/apis"),
            is_settled: false,
            starting_since: None,
            is_local: false,
            is_stopping: false,
            lists: watch::Sender::default(),
        }
    }

    /// The same of the co-located server.
    pub(super) fn local(client: ServerClient, limits: Limits, known: KnownLists) -> Self {
        Self { is_local: true, ..Self::new(client, limits, known) }
    }

    /// What it reads, as it reads it.
    pub(super) fn lists(&self) -> watch::Receiver<Lists> {
        self.lists.subscribe()
    }

    /// A server that starts answers before it has all its groups, and what is not listed counts as gone: after a pause
    /// it is believed once it says that it is ready, or has not become so within [`UNHEARD_LIMIT`], or has refused to say
    /// so for [`RIGHTS_LIMIT`].
    async fn check_started(&mut self) -> Result<(), Error> {
        let path = "/readyz";
        match get(&self.client, path, Condition::anything(), &self.limits).await {
            Err(error) if error.is_of_server() || error.is_of_rights() => {
                let limit = if error.is_of_server() { UNHEARD_LIMIT } else { RIGHTS_LIMIT };
                let since = *self.starting_since.get_or_insert_with(Instant::now);
                if since.elapsed() < limit { Err(error) } else { Ok(()) }
            }
            // No such path: then only the documents count.
            Ok(_) | Err(Error::Status { .. }) => {
                self.starting_since = None;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn read_documents(&mut self) -> Result<Option<(Failure, String)>, Error> {
        if !self.is_settled {
            self.check_started().await?;
        }
        let Self { client, limits, known, api, apis, is_local, .. } = self;
        let stopping = is_stopping(client, limits, *is_local);
        let documents = join(api.refresh(client, limits, known), apis.refresh(client, limits, known));
        let (documents, is_stopping) = join(documents, stopping).await;
        let failure = failure_of(documents);
        // A server that stops may refuse the rest before it is gone: that changes nothing.
        if failure.is_none() {
            self.is_stopping = is_stopping;
        }
        let has_arrived = failure.is_none() && !self.is_settled;
        self.is_settled = failure.is_none();
        self.tell(has_arrived);
        Ok(failure)
    }

    fn tell(&self, has_arrived: bool) {
        let mut resources = self.api.walked_resources();
        resources.extend(self.apis.walked_resources());
        let new = Lists {
            api: self.api.document.clone(),
            apis: self.apis.document.clone(),
            walked: LegacyDocuments { api: self.api.versions.clone(), resources },
            arrivals: self.lists.borrow().arrivals + u64::from(has_arrived),
        };
        self.lists.send_if_modified(|lists| {
            let is_new = !lists.is_same(&new);
            *lists = new;
            is_new
        });
    }
}

/// Why a server that takes longer than [`PATIENCE`] cannot be reached; never, if it can.
async fn unreachable(client: ServerClient) -> Error {
    tokio::time::sleep(PATIENCE).await;
    match client.prove_reachable().await {
        Err(source) => Error::Send { path: "/apis".to_owned(), source },
        Ok(()) => std::future::pending().await,
    }
}

impl Source for ServerReader {
    async fn read(&mut self) -> Reading {
        let unreachable = unreachable(self.client.clone());
        let read = tokio::select! {
            read = self.read_documents() => read,
            error = unreachable => Err(error),
        };
        let failure = match read {
            Ok(failure) => failure,
            Err(error) => {
                self.forget_connections();
                // A server that knows no rights yet would refuse clients as well.
                let failure = if error.is_of_rights() { Failure::Failing } else { error.failure() };
                Some((failure, super::chain(&error)))
            }
        };
        Reading {
            api: self.api.document.clone(),
            apis: self.apis.document.clone(),
            failure,
            is_stopping: self.is_stopping,
        }
    }

    fn forget_connections(&mut self) {
        self.is_settled = false;
        self.client.forget_connections();
    }
}

/// Whether the server has been told to stop: with a delay (`--shutdown-delay-duration`) it goes on answering meanwhile.
/// One check of all those behind `/readyz`: that, say, etcd is not well is no reason to leave it.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/server/healthz.go> (`shutdownCheck`)
async fn is_stopping(client: &ServerClient, limits: &Limits, is_local: bool) -> bool {
    is_local
        && get(client, "/readyz/shutdown", Condition::anything(), limits).await.is_err_and(|error| error.is_of_server())
}

/// A server fails as its better half does.
fn failure_of((api, apis): (Result<(), Error>, Result<(), Error>)) -> Option<(Failure, String)> {
    match (api, apis) {
        (Ok(()), Ok(())) => None,
        (Err(error), Ok(())) | (Ok(()), Err(error)) => Some((Failure::Refused, super::chain(&error))),
        (Err(api), Err(apis)) => {
            let failures = [api.failure(), apis.failure()];
            let best = [Failure::Refused, Failure::Failing, Failure::Broken, Failure::Down]
                .into_iter()
                .find(|failure| failures.contains(failure));
            Some((best.unwrap_or(Failure::Vanished), super::chain(&api)))
        }
    }
}

/// One document of a server, and what is needed to ask only whether it has changed.
struct Kept {
    path: &'static str,
    document: Option<Document>,
    walked: Option<Walked>,
    /// `/api` in the legacy form, of a server that gives no other.
    versions: Option<Arc<ApiVersions>>,
}

impl Kept {
    fn new(path: &'static str) -> Self {
        Self { path, document: None, walked: None, versions: None }
    }

    async fn refresh(&mut self, client: &ServerClient, limits: &Limits, known: &KnownLists) -> Result<(), Error> {
        let Some(answer) = self.ask(client, limits).await? else { return Ok(()) };
        let decode = |source| Error::decode(self.path, source);
        let form = parse(&answer.body, answer.content_type()).map_err(decode)?;
        self.check_size(&form)?;
        match form {
            Form::Aggregated(list) => {
                self.walked = None;
                self.versions = None;
                self.keep(list, answer.etag, known);
            }
            Form::Legacy(root) => {
                self.versions = parse_api_versions(&answer.body, answer.content_type()).ok().map(Arc::new);
                self.walk(root, client, limits, known).await;
            }
        }
        Ok(())
    }

    /// Asks for whatever form the server has; one that takes offence at the choice is asked for plain JSON.
    async fn ask(&self, client: &ServerClient, limits: &Limits) -> Result<Option<Answer>, Error> {
        let etag = self.document.as_ref().and_then(|document| document.etag.clone());
        let condition = Condition { accept: HeaderValue::from_static(ACCEPT_LOCAL), if_none_match: etag };
        match get(client, self.path, condition, limits).await {
            Err(Error::Status { status: StatusCode::NOT_ACCEPTABLE, .. }) => {
                get(client, self.path, Condition::json(), limits).await
            }
            answer => answer,
        }
    }

    fn check_size(&self, form: &Form) -> Result<(), Error> {
        let listed = match form {
            Form::Aggregated(list) => list.items.iter().map(|group| group.versions.len().max(1)).sum(),
            Form::Legacy(root) => root.groups.iter().map(|(_, versions)| versions.len().max(1)).sum::<usize>(),
        };
        if listed > MAX_GROUP_VERSIONS {
            return Err(Error::decode(self.path, format!("it lists more than {MAX_GROUP_VERSIONS} group versions")));
        }
        Ok(())
    }

    async fn walk(&mut self, root: RootDocument, client: &ServerClient, limits: &Limits, lists: &KnownLists) {
        if self.walked.as_ref().is_some_and(|walked| walked.is_fresh(&root, Instant::now())) {
            return;
        }
        let known = self.document.as_ref().map(|document| document.list.as_ref());
        let (list, walked) = walk::walk(client, root, known, limits).await;
        self.walked = Some(walked);
        self.keep(list, None, lists);
    }

    fn walked_resources(&self) -> BTreeMap<GroupVersion, Arc<ApiResourceList>> {
        self.walked.as_ref().map(|walked| walked.resources.clone()).unwrap_or_default()
    }

    /// Keeps the `Arc` of an equal list, by which everyone else sees that nothing has changed.
    fn keep(&mut self, list: ApiGroupDiscoveryList, etag: Option<HeaderValue>, lists: &KnownLists) {
        match &mut self.document {
            Some(document) if *document.list == list => document.etag = etag,
            document => *document = Some(Document { list: lists.share(list), etag }),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
