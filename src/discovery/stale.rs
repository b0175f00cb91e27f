//! Which group versions are `Stale`, seen over all servers.
//!
//! client-go drops every resource of a `Stale` group version, so the word is right only where no live server serves
//! the group version. Where one does, the group version stays `Current` and goes on listing what only a lost server
//! served: requests for that get 503, which makes clients wait, where an absence would make them forget.
//!
//! Source: <https://github.com/kubernetes/client-go/blob/v0.36.3/discovery/aggregated_discovery.go>

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::model::{ApiGroupDiscoveryList, Freshness};
use crate::apimachinery::server_id::ServerId;

/// Servers' lists by server.
pub type Lists = BTreeMap<ServerId, Arc<ApiGroupDiscoveryList>>;

/// The lists to merge: those of live servers and the last ones known of lost servers, with their freshness settled.
///
/// A group version that a live server lists as other than `Stale` is `Current` in every list; one that no live
/// server lists so is `Stale` in those of the lost. A server that is in both maps counts as live.
#[must_use]
pub fn settle(live: &Lists, lost: &Lists) -> Lists {
    let served: HashSet<(&str, &str)> = live
        .values()
        .flat_map(|list| list.group_versions())
        .filter(|(_, version)| version.freshness != Freshness::Stale)
        .map(|(group, version)| (group, version.version.as_str()))
        .collect();
    let of_lost = lost.iter().map(|(id, list)| (id.clone(), with_freshness(list, &served, Server::Lost)));
    let of_live = live.iter().map(|(id, list)| (id.clone(), with_freshness(list, &served, Server::Live)));
    of_lost.chain(of_live).collect()
}

#[derive(Clone, Copy)]
enum Server {
    Live,
    Lost,
}

/// The list itself if nothing is to be changed.
fn with_freshness(
    list: &Arc<ApiGroupDiscoveryList>,
    served: &HashSet<(&str, &str)>,
    server: Server,
) -> Arc<ApiGroupDiscoveryList> {
    let settled = |group: &str, version: &str, freshness: &Freshness| match (served.contains(&(group, version)), server)
    {
        (true, _) if *freshness == Freshness::Stale => Some(Freshness::Current),
        (false, Server::Lost) if *freshness != Freshness::Stale => Some(Freshness::Stale),
        _ => None,
    };
    let is_settled =
        list.group_versions().all(|(group, listed)| settled(group, &listed.version, &listed.freshness).is_none());
    if is_settled {
        return Arc::clone(list);
    }
    let mut changed = ApiGroupDiscoveryList::clone(list);
    for group in &mut changed.items {
        for listed in &mut group.versions {
            if let Some(freshness) = settled(&group.metadata.name, &listed.version, &listed.freshness) {
                listed.freshness = freshness;
            }
        }
    }
    Arc::new(changed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::arbitrary::server;
    use super::*;

    /// Lists of servers 0, 1, ..., each of which is `(version, freshness)` of one group.
    fn lists(first: usize, servers: &[&[(&str, &str)]]) -> Lists {
        let list = |versions: &&[(&str, &str)]| {
            let versions: Vec<_> = versions
                .iter()
                .map(|(version, freshness)| json!({ "version": version, "freshness": freshness }))
                .collect();
            Arc::new(
                serde_json::from_value(json!({ "items": [{ "metadata": { "name": "g" }, "versions": versions }] }))
                    .unwrap(),
            )
        };
        servers.iter().enumerate().map(|(index, versions)| (server(first + index), list(versions))).collect()
    }

    #[test]
    fn only_what_no_live_server_serves_is_stale() {
        let live = lists(0, &[&[("v1", "Current"), ("v2", "Stale")], &[("v1", "Stale")]]);
        let lost = lists(2, &[&[("v1", "Stale"), ("v2", "Current"), ("v3", "Current")]]);
        let expected = lists(
            0,
            &[
                &[("v1", "Current"), ("v2", "Stale")],
                &[("v1", "Current")],
                &[("v1", "Current"), ("v2", "Stale"), ("v3", "Stale")],
            ],
        );
        assert_eq!(settle(&live, &lost), expected);
    }

    #[test]
    fn lists_that_agree_are_not_copied() {
        let live = lists(0, &[&[("v1", "Current")]]);
        let lost = lists(1, &[&[("v1", "Current")]]);
        let settled = settle(&live, &lost);
        assert!(Arc::ptr_eq(&settled[&server(0)], &live[&server(0)]));
        assert!(Arc::ptr_eq(&settled[&server(1)], &lost[&server(1)]));
    }

    #[test]
    fn server_that_answers_again_is_not_lost() {
        let live = lists(0, &[&[("v1", "Current")]]);
        assert_eq!(settle(&live, &lists(0, &[&[("v2", "Current")]])), live);
    }
}
