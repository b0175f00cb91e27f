//! The legacy walk: one request per group version, for servers without an aggregated document (before 1.27).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::exchange::Limits;
use super::resources::{Budget, CONCURRENCY, fetch};
use crate::apimachinery::gvr::GroupVersion;
use crate::discovery::ApiGroupDiscoveryList;
use crate::discovery::legacy::{Answer, ApiResourceList, LegacyWalk, RootDocument};
use crate::peers::client::ServerClient;

/// How old a walk may grow while the root document stays the same. New groups show at once; a resource that is new in
/// a known group version shows that late, which spares an old server some thirty requests a second.
const REWALK_AFTER: Duration = Duration::from_secs(10);

/// What a walk started from, when, and the documents that it has read.
pub(super) struct Walked {
    root: RootDocument,
    at: Instant,
    pub(super) resources: BTreeMap<GroupVersion, Arc<ApiResourceList>>,
}

impl Walked {
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
) -> (ApiGroupDiscoveryList, Walked) {
    let mut walk = LegacyWalk::new(root.clone());
    let mut resources = BTreeMap::new();
    let deadline = Instant::now() + limits.walk;
    let budget = Budget::new(limits);
    let pending: Vec<(GroupVersion, String)> = walk.pending().collect();
    let mut answers = stream::iter(pending)
        .map(|(group_version, path)| {
            let budget = &budget;
            async move {
                let answer = fetch(client, &group_version, &path, limits, budget).await;
                (group_version, answer)
            }
        })
        .buffer_unordered(CONCURRENCY);
    while let Ok(Some((group_version, answer))) = timeout_at(deadline, answers.next()).await {
        let answer = match answer {
            Ok(Some(list)) => {
                resources.insert(group_version.clone(), Arc::new(list.clone()));
                Answer::Resources(list.into())
            }
            Ok(None) => Answer::NotServed,
            Err(_) => Answer::Failed,
        };
        walk.record(group_version, answer);
    }
    drop(answers);
    (walk.finish(known), Walked { root, at: Instant::now(), resources })
}
