//! Reads what one server serves: `/api` and `/apis`, each on its own, asked for only if changed.
//!
//! Any kube-apiserver can be read: the newest form that it has is taken, and one that has no aggregated form is walked.
//! What was read once is kept, so that a server which fails does not vanish. Inputs are a server's answers, which may
//! be anything: they are bounded in bytes and in time, and never followed elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

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
pub(super) mod resources;
mod walk;

pub(super) use self::exchange::{Answer, Condition, Error as FetchError, Limits, get};

/// Most group versions that a document may list: several times those of the clusters with the most CRDs. Each costs
/// every client of discovery some bytes, and an old server a request.
const MAX_GROUP_VERSIONS: usize = 10_000;

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
    api: Kept,
    apis: Kept,
    /// Whether the last read succeeded, so that the server has not been restarted unnoticed.
    is_settled: bool,
    /// Since when it has answered that it is not ready.
    starting_since: Option<Instant>,
    lists: watch::Sender<Lists>,
}

impl ServerReader {
    /// Makes a reader that knows nothing yet.
    pub(super) fn new(client: ServerClient, limits: Limits) -> Self {
        let (api, apis) = (Kept::new("/api"), Kept::new("/apis"));
        let lists = watch::Sender::default();
        Self { client, limits, api, apis, is_settled: false, starting_since: None, lists }
    }

    /// What it reads, as it reads it.
    pub(super) fn lists(&self) -> watch::Receiver<Lists> {
        self.lists.subscribe()
    }

    /// A server that starts answers before it has all its groups, and what is not listed counts as gone: after a pause
    /// it is believed once it says that it is ready, or has not become so within [`UNHEARD_LIMIT`].
    async fn check_started(&mut self) -> Result<(), Error> {
        let path = "/readyz";
        match get(&self.client, path, Condition::anything(), &self.limits).await {
            Err(error) if error.is_of_server() => {
                let since = *self.starting_since.get_or_insert_with(Instant::now);
                if since.elapsed() < UNHEARD_LIMIT { Err(error) } else { Ok(()) }
            }
            // No such path, or no right to it: then only the documents count.
            Ok(_) | Err(Error::Status { .. }) => {
                self.starting_since = None;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn read_documents(&mut self) -> Option<(Failure, String)> {
        if !self.is_settled
            && let Err(error) = self.check_started().await
        {
            return Some((error.failure(), super::chain(&error)));
        }
        let Self { client, limits, api, apis, .. } = self;
        let failure = failure_of(join(api.refresh(client, limits), apis.refresh(client, limits)).await);
        let has_arrived = failure.is_none() && !self.is_settled;
        self.is_settled = failure.is_none();
        self.tell(has_arrived);
        failure
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

impl Source for ServerReader {
    async fn read(&mut self) -> Reading {
        let failure = self.read_documents().await;
        Reading { api: self.api.document.clone(), apis: self.apis.document.clone(), failure }
    }

    fn forget_connections(&mut self) {
        self.is_settled = false;
        self.client.forget_connections();
    }
}

/// A server fails as its better half does.
fn failure_of((api, apis): (Result<(), Error>, Result<(), Error>)) -> Option<(Failure, String)> {
    match (api, apis) {
        (Ok(()), Ok(())) => None,
        (Err(error), Ok(())) | (Ok(()), Err(error)) => Some((Failure::Refused, super::chain(&error))),
        (Err(api), Err(apis)) => {
            let failures = [api.failure(), apis.failure()];
            let best = [Failure::Refused, Failure::Failing, Failure::Broken]
                .into_iter()
                .find(|failure| failures.contains(failure));
            Some((best.unwrap_or(Failure::Down), super::chain(&api)))
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

    async fn refresh(&mut self, client: &ServerClient, limits: &Limits) -> Result<(), Error> {
        let Some(answer) = self.ask(client, limits).await? else { return Ok(()) };
        let decode = |source| Error::decode(self.path, source);
        let form = parse(&answer.body, answer.content_type()).map_err(decode)?;
        self.check_size(&form)?;
        match form {
            Form::Aggregated(list) => {
                self.walked = None;
                self.versions = None;
                self.keep(list, answer.etag);
            }
            Form::Legacy(root) => {
                self.versions = parse_api_versions(&answer.body, answer.content_type()).ok().map(Arc::new);
                self.walk(root, client, limits).await;
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

    async fn walk(&mut self, root: RootDocument, client: &ServerClient, limits: &Limits) {
        if self.walked.as_ref().is_some_and(|walked| walked.is_fresh(&root, Instant::now())) {
            return;
        }
        let known = self.document.as_ref().map(|document| document.list.as_ref());
        let (list, walked) = walk::walk(client, root, known, limits).await;
        self.walked = Some(walked);
        self.keep(list, None);
    }

    fn walked_resources(&self) -> BTreeMap<GroupVersion, Arc<ApiResourceList>> {
        self.walked.as_ref().map(|walked| walked.resources.clone()).unwrap_or_default()
    }

    /// Keeps the `Arc` of an equal list, by which everyone else sees that nothing has changed.
    fn keep(&mut self, list: ApiGroupDiscoveryList, etag: Option<HeaderValue>) {
        match &mut self.document {
            Some(document) if *document.list == list => document.etag = etag,
            document => *document = Some(Document { list: Arc::new(list), etag }),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
