//! The legacy walk: one request per group version, for servers without an aggregated document (before 1.27).

use std::time::Duration;

use futures_util::{StreamExt, stream};
use http::StatusCode;
use tokio::time::{Instant, timeout_at};

use super::exchange::{Condition, Error, Limits, get};
use crate::apimachinery::gvr::GroupVersion;
use crate::discovery::ApiGroupDiscoveryList;
use crate::discovery::legacy::{Answer, LegacyWalk, RootDocument};
use crate::discovery::parse::parse_resources;
use crate::peers::client::ServerClient;

/// How old a walk may grow while the root document stays the same. New groups show at once; a resource that is new in
/// a known group version shows that late, which spares an old server some thirty requests a second.
const REWALK_AFTER: Duration = Duration::from_secs(10);

/// Requests of a walk under way at a time: a few, because the server has other work.
const CONCURRENCY: usize = 4;

/// What a walk started from, and when.
pub(super) struct Walked {
    root: RootDocument,
    at: Instant,
}

impl Walked {
    pub(super) fn new(root: RootDocument, at: Instant) -> Self {
        Self { root, at }
    }

    /// Whether its result still stands.
    pub(super) fn is_fresh(&self, root: &RootDocument, now: Instant) -> bool {
        self.root == *root && now - self.at < REWALK_AFTER
    }
}

/// Fetches what the root document lists. What fails, or does not come in time, is `Stale` with the resources that
/// `known` has of it.
pub(super) async fn walk(
    client: &ServerClient,
    root: RootDocument,
    known: Option<&ApiGroupDiscoveryList>,
    limits: &Limits,
) -> ApiGroupDiscoveryList {
    let mut walk = LegacyWalk::new(root);
    let deadline = Instant::now() + limits.walk;
    let pending: Vec<(GroupVersion, String)> = walk.pending().collect();
    let mut answers = stream::iter(pending)
        .map(|(group_version, path)| async move {
            let answer = ask(client, &group_version, &path, limits).await;
            (group_version, answer)
        })
        .buffer_unordered(CONCURRENCY);
    while let Ok(Some((group_version, answer))) = timeout_at(deadline, answers.next()).await {
        walk.record(group_version, answer);
    }
    drop(answers);
    walk.finish(known)
}

async fn ask(client: &ServerClient, group_version: &GroupVersion, path: &str, limits: &Limits) -> Answer {
    match get(client, path, Condition::json(), limits).await {
        Ok(Some(answer)) => parse_resources(&answer.body, answer.content_type(), group_version)
            .map_or(Answer::Failed, Answer::Resources),
        Err(Error::Status { status: StatusCode::NOT_FOUND, .. }) => Answer::NotServed,
        Ok(None) | Err(_) => Answer::Failed,
    }
}
