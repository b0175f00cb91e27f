//! What is known into a view. Merging and rendering are skipped while the lists to merge are the same.

use std::sync::Arc;

use http::HeaderValue;
use tokio::time::Instant;

use super::cluster::{Cluster, Server};
use super::fetch::Document;
use super::readiness::conditions;
use crate::apimachinery::gvr::GroupVersion;
use crate::discovery::model::ApiVersionDiscovery;
use crate::discovery::stale::{Lists, settle};
use crate::discovery::{ApiGroupDiscoveryList, Rendered, merge};
use crate::routing::{Exclusions, LocalServer, PeerRoutes, RoutingTable};
use crate::view::{ClusterView, Discovery, Documents, LocalState, PeerState};

/// Builds views, and remembers what the next one can share with the last.
pub(super) struct Builder {
    peering_off: Option<String>,
    api: Merged,
    apis: Merged,
    /// Set once documents have been given out: they never go away again.
    is_started: bool,
}

impl Builder {
    /// Makes a builder; `peering_off` says why there are no peers.
    pub(super) fn new(peering_off: Option<String>) -> Self {
        Self { peering_off, api: Merged::default(), apis: Merged::default(), is_started: false }
    }

    /// The view of the cluster as it is known at `now`.
    pub(super) fn build(&mut self, cluster: &Cluster, now: Instant) -> ClusterView {
        self.is_started |= cluster.local.health.standing().heard && !cluster.awaits_peers(now);
        ClusterView {
            routes: routes(cluster, now),
            discovery: self.discovery(cluster),
            local: local_state(&cluster.local),
            peers: cluster.peers.values().filter_map(peer_state).collect(),
            readiness: conditions(cluster, self.peering_off.as_deref(), now),
        }
    }
}

impl Builder {
    fn discovery(&mut self, cluster: &Cluster) -> Discovery {
        if self.peering_off.is_some() {
            return Discovery::LeftToUpstream;
        }
        if !self.is_started {
            return Discovery::Awaited;
        }
        Discovery::Merged(Documents {
            api: self.api.update(cluster, |server| server.api.as_ref()),
            apis: self.apis.update(cluster, |server| server.apis.as_ref()),
        })
    }
}

/// One merged document, with the lists that it was made of.
#[derive(Default)]
struct Merged {
    lists: Lists,
    rendered: Option<Arc<Rendered>>,
}

impl Merged {
    fn update(&mut self, cluster: &Cluster, document: fn(&Server) -> Option<&Document>) -> Arc<Rendered> {
        let (lost, live): (Vec<&Server>, Vec<&Server>) =
            cluster.servers().partition(|server| server.health.standing().lost);
        let local = document(&cluster.local);
        let listed = |servers: Vec<&Server>| -> Lists {
            let lists = servers.into_iter().filter_map(|server| Some((server, document(server)?)));
            lists.map(|(server, read)| (server.id.clone(), with_locals_word(server, read, cluster, local))).collect()
        };
        let lists = settle(&listed(live), &listed(lost));
        match &self.rendered {
            Some(rendered) if lists == self.lists => Arc::clone(rendered),
            _ => {
                let rendered = Arc::new(Rendered::new(&merge(&lists, &cluster.local.id)));
                self.lists = lists;
                self.rendered = Some(Arc::clone(&rendered));
                rendered
            }
        }
    }
}

/// What a server's document adds to the merged one: of the local server all. What is left to the local server counts of
/// a peer only if the local one lists it too, and as it lists it: then the peers' lists have the same order on every
/// node, and what they can stand in for is not stale while the local server is down.
fn with_locals_word(
    server: &Server,
    document: &Document,
    cluster: &Cluster,
    local: Option<&Document>,
) -> Arc<ApiGroupDiscoveryList> {
    let list = &document.list;
    let is_touched = |(group, listed): (&str, &ApiVersionDiscovery)| {
        let group_version = GroupVersion::new(group, &listed.version);
        cluster.exclusions.of_group_version(&group_version).is_some()
            || listed
                .resources
                .iter()
                .any(|one| cluster.exclusions.of_resource(&group_version, &one.resource).is_some())
    };
    if server.peer.is_none() || !list.group_versions().any(is_touched) {
        return Arc::clone(list);
    }
    let mut judged = ApiGroupDiscoveryList::clone(list);
    judged.items.retain_mut(|group| {
        let name = group.metadata.name.clone();
        group.versions.retain_mut(|listed| {
            let own = local.and_then(|local| local.list.version(&name, &listed.version));
            judge(&name, listed, own, &cluster.exclusions)
        });
        !group.versions.is_empty()
    });
    Arc::new(judged)
}

/// Replaces of a peer's version what is left to the local server by that one's `own`, or takes it out, and says whether
/// anything is left.
fn judge(
    group: &str,
    listed: &mut ApiVersionDiscovery,
    own: Option<&ApiVersionDiscovery>,
    exclusions: &Exclusions,
) -> bool {
    let group_version = GroupVersion::new(group, &listed.version);
    if exclusions.of_group_version(&group_version).is_some() {
        return own.inspect(|own| listed.clone_from(own)).is_some();
    }
    let before = listed.resources.len();
    listed.resources.retain_mut(|one| {
        if exclusions.of_resource(&group_version, &one.resource).is_none() {
            return true;
        }
        let own = own.and_then(|own| own.resources.iter().find(|own| own.resource == one.resource));
        own.inspect(|own| one.clone_from(own)).is_some()
    });
    before == 0 || !listed.resources.is_empty()
}

fn routes(cluster: &Cluster, now: Instant) -> RoutingTable {
    let peers: Vec<PeerRoutes<'_>> = cluster
        .peers
        .values()
        .filter_map(|server| {
            Some(PeerRoutes {
                peer: Arc::clone(server.peer.as_ref()?),
                available: server.health.standing().available,
                heard: cluster.awaited_until(server, now).is_none(),
                serves: server.served.as_ref(),
            })
        })
        .collect();
    let standing = cluster.local.health.standing();
    // Half of what it serves would send the other half to peers.
    let serves = cluster.local.served.as_ref().filter(|_| standing.heard);
    let local = LocalServer { serves, reachable: standing.available };
    RoutingTable::build(local, &peers, &cluster.exclusions)
}

fn local_state(server: &Server) -> LocalState {
    let etag = |document: &Option<Document>| -> Option<HeaderValue> { document.as_ref()?.etag.clone() };
    let standing = server.health.standing();
    LocalState {
        heard: standing.heard,
        available: standing.available,
        version: server.version.clone(),
        api_etag: etag(&server.api),
        apis_etag: etag(&server.apis),
        error: server.error.clone(),
    }
}

fn peer_state(server: &Server) -> Option<PeerState> {
    let standing = server.health.standing();
    Some(PeerState {
        peer: Arc::clone(server.peer.as_ref()?),
        available: standing.available,
        unreachable: standing.unreachable,
        heard: standing.heard,
        lost: standing.lost,
        error: server.error.clone(),
    })
}
