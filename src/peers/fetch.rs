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
use super::health::Failure;
use super::poll::Source;
use crate::discovery::ApiGroupDiscoveryList;
use crate::discovery::parse::{Document as Form, parse};
use crate::view::ServerVersion;

mod exchange;
mod walk;

pub(super) use self::exchange::{Condition, Error as FetchError, Limits, get};

/// The forms that a server may answer with, best first; it must not merge its own peers' into them.
///
/// All are offered: a server refuses with 406 what it does not know, and one that knows no profile ignores it.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/discovery/aggregated/negotiation.go>
const ACCEPT: HeaderValue = HeaderValue::from_static(concat!(
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,",
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,",
    "application/json",
));

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
}

impl ServerReader {
    /// Makes a reader that knows nothing yet.
    pub(super) fn new(client: ServerClient, limits: Limits) -> Self {
        Self { client, limits, api: Kept::new("/api"), apis: Kept::new("/apis") }
    }

    /// The client that it reads with.
    pub(super) fn client(&self) -> &ServerClient {
        &self.client
    }

    /// The bounds that it reads within.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }
}

impl Source for ServerReader {
    async fn read(&mut self) -> Reading {
        let Self { client, limits, api, apis } = self;
        let results = join(api.refresh(client, limits), apis.refresh(client, limits)).await;
        Reading {
            api: self.api.document.clone(),
            apis: self.apis.document.clone(),
            version: None,
            failure: failure_of(results),
        }
    }

    fn forget_connections(&mut self) {
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
            let best = [Failure::Refused, Failure::Failing].into_iter().find(|failure| failures.contains(failure));
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
        let condition = Condition { accept: ACCEPT, if_none_match: etag };
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
                    self.walked = Some(Walked::new(root, now));
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
