//! One legacy document of a group version, within what a server may send in all of them together.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;

use super::exchange::{Condition, Error, Limits, get};
use crate::apimachinery::gvr::GroupVersion;
use crate::discovery::legacy::ApiResourceList;
use crate::discovery::parse::parse_legacy_resources;
use crate::peers::client::ServerClient;

/// Requests for legacy documents under way at a time: a few, because the server has other work.
pub(in crate::peers) const CONCURRENCY: usize = 4;

/// How many bytes a server may still send.
pub(in crate::peers) struct Budget(AtomicUsize);

impl Budget {
    /// As much as one document may have.
    pub(in crate::peers) fn new(limits: &Limits) -> Self {
        Self(AtomicUsize::new(limits.bytes))
    }

    fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn spend(&self, bytes: usize) {
        self.0.store(self.left().saturating_sub(bytes), Ordering::Relaxed);
    }
}

/// Fetches the document of one group version; `None` if the server does not serve it.
pub(in crate::peers) async fn fetch(
    client: &ServerClient,
    group_version: &GroupVersion,
    path: &str,
    limits: &Limits,
    budget: &Budget,
) -> Result<Option<ApiResourceList>, Error> {
    let limits = Limits { bytes: budget.left(), ..*limits };
    match get(client, path, Condition::json(), &limits).await {
        Ok(Some(answer)) => {
            budget.spend(answer.body.len());
            let list = parse_legacy_resources(&answer.body, answer.content_type(), group_version);
            list.map(Some).map_err(|source| Error::decode(path, source))
        }
        // Not asked for conditionally, so there is no "unchanged".
        Ok(None) | Err(Error::Status { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
