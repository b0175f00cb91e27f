//! Reads what one server serves: `/api` and `/apis`, each on its own, asked for only if changed.
//!
//! Any kube-apiserver can be read: the newest form that it has is taken, and one that has no aggregated form is walked.
//! What was read once is kept, so that a server which fails does not vanish. Inputs are a server's answers, which may
//! be anything: they are bounded in bytes and in time, and never followed elsewhere.

use std::sync::Arc;

use futures_util::future::join;
use http::HeaderValue;
use tokio::time::Instant;

use self::exchange::Error;
use self::walk::Walked;
use super::client::ServerClient;
use super::health::{Failure, UNHEARD_LIMIT};
use super::poll::Source;
use crate::discovery::parse::{Document as Form, parse};
use crate::discovery::{ACCEPT_LOCAL, ApiGroupDiscoveryList};
use crate::view::ServerVersion;

mod exchange;
mod walk;

pub(super) use self::exchange::{Condition, Error as FetchError, Limits, get};

/// A document as it was last read.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// What it lists. The same `Arc` until it changes.
    pub(super) list: Arc<ApiGroupDiscoveryList>,
    /// Its entity tag, if the server gave one.
    pub(super) etag: Option<HeaderValue>,
}

/// What one read of a server came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// `/api` as last read, now or earlier.
    pub(super) api: Option<Document>,
    /// `/apis` as last read, now or earlier.
    pub(super) apis: Option<Document>,
    /// `/version`; asked of the local server only.
    pub(super) version: Option<ServerVersion>,
    /// What failed; with the reason, for people.
    pub(super) failure: Option<(Failure, String)>,
}

impl Reading {
    /// Whether both list the same.
    pub(super) fn has_same_documents(&self, other: &Self) -> bool {
        let is_same = |one: &Option<Document>, other: &Option<Document>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(&one.list, &other.list),
            (one, other) => one.is_none() && other.is_none(),
        };
        is_same(&self.api, &other.api) && is_same(&self.apis, &other.apis)
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
}

impl ServerReader {
    /// Makes a reader that knows nothing yet.
    pub(super) fn new(client: ServerClient, limits: Limits) -> Self {
        let (api, apis) = (Kept::new("/api"), Kept::new("/apis"));
        Self { client, limits, api, apis, is_settled: false, starting_since: None }
    }

    /// The client that it reads with.
    pub(super) fn client(&self) -> &ServerClient {
        &self.client
    }

    /// The bounds that it reads within.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
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
        self.is_settled = failure.is_none();
        failure
    }
}

impl Source for ServerReader {
    async fn read(&mut self) -> Reading {
        let failure = self.read_documents().await;
        Reading { api: self.api.document.clone(), apis: self.apis.document.clone(), version: None, failure }
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
}

impl Kept {
    fn new(path: &'static str) -> Self {
        Self { path, document: None, walked: None }
    }

    async fn refresh(&mut self, client: &ServerClient, limits: &Limits) -> Result<(), Error> {
        let etag = self.document.as_ref().and_then(|document| document.etag.clone());
        let condition = Condition { accept: HeaderValue::from_static(ACCEPT_LOCAL), if_none_match: etag };
        let Some(answer) = get(client, self.path, condition, limits).await? else { return Ok(()) };
        let form = parse(&answer.body, answer.content_type()).map_err(|source| Error::decode(self.path, source))?;
        match form {
            Form::Aggregated(list) => {
                self.walked = None;
                self.keep(list, answer.etag);
            }
            Form::Legacy(root) => {
                let now = Instant::now();
                if !self.walked.as_ref().is_some_and(|walked| walked.is_fresh(&root, now)) {
                    let known = self.document.as_ref().map(|document| document.list.as_ref());
                    let list = walk::walk(client, root.clone(), known, limits).await;
                    self.walked = Some(Walked::new(root, Instant::now()));
                    self.keep(list, None);
                }
            }
        }
        Ok(())
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
mod tests;
