//! What is known into a view. Merging and rendering are skipped while what goes into them is the same.

use std::sync::Arc;

use http::HeaderValue;
use tokio::time::Instant;

use super::cluster::{Cluster, Server};
use super::fetch::Document;
use super::openapi::Published;
use super::readiness::conditions;
use super::routes::Outcome;
use crate::apimachinery::gvr::GroupVersion;
use crate::apimachinery::peer::Peer;
use crate::discovery::model::ApiVersionDiscovery;
use crate::discovery::stale::{Lists, settle};
use crate::discovery::{ApiGroupDiscoveryList, Documents, Inputs, V2Beta1};
use crate::routing::{Circuit, Exclusions, RoutingTable, Standing, Table};
use crate::view::{ClusterView, Discovery, LocalState, PeerState};

/// Builds views, and remembers what the next one can share with the last.
pub(super) struct Builder {
    peering_off: Option<String>,
    /// The last documents, with what they were made of.
    last: Option<(Inputs, Arc<Documents>)>,
    /// Set once documents have been given out: they never go away again.
    is_started: bool,
    /// Who serves what, as of the last reconciliation.
    table: Arc<Table>,
    /// Whether a peer was awaited then: what one has said since is not in the table.
    was_unheard: bool,
    /// What discovery says, as of the same.
    discovery: Discovery,
    openapi: Published,
}

impl Builder {
    /// Makes a builder; `peering_off` says why there are no peers.
    pub(super) fn new(peering_off: Option<String>) -> Self {
        let discovery = if peering_off.is_some() { Discovery::LeftToUpstream } else { Discovery::Awaited };
        Self {
            peering_off,
            last: None,
            is_started: false,
            table: Arc::default(),
            was_unheard: false,
            discovery,
            openapi: Published::default(),
        }
    }

    /// Takes what has come of the servers' OpenAPI documents.
    pub(super) fn set_openapi(&mut self, openapi: Published) {
        self.openapi = openapi;
    }

    /// Computes the table of routes and the documents as they are at `now`, and says what came of it.
    pub(super) fn reconcile(&mut self, cluster: &Cluster, now: Instant) -> Outcome {
        // A local server that does not come back after this front's restart is listed as before it, as a lost one.
        let is_local_known = cluster.local.health.standing().heard || cluster.is_local_missing(now);
        self.is_started |= is_local_known && !cluster.awaits_peers(now);
        self.discovery = self.discovery(cluster, now);
        self.was_unheard = is_unheard(cluster, now);
        let table = table(cluster);
        if *self.table != table {
            self.table = Arc::new(table);
            Outcome::Changed
        } else if cluster.servers().any(|server| server.error.is_some()) {
            Outcome::Error
        } else {
            Outcome::Noop
        }
    }

    /// The view of the cluster: what was reconciled last, and who can be reached at `now`.
    pub(super) fn build(&self, cluster: &Cluster, now: Instant) -> ClusterView {
        ClusterView {
            routes: RoutingTable::new(Arc::clone(&self.table), self.standing(cluster, now)),
            discovery: self.discovery.clone(),
            openapi: self.openapi.state.clone(),
            local: local_state(&cluster.local),
            peers: cluster.peers.values().filter_map(|server| peer_state(cluster, server, now)).collect(),
            readiness: conditions(cluster, self.peering_off.as_deref(), &self.openapi, now),
        }
    }

    /// Who of the table's servers can be reached. One that has left meanwhile, or is at another address, cannot.
    fn standing(&self, cluster: &Cluster, now: Instant) -> Standing {
        let circuit = |peer: &Arc<Peer>| {
            let server = cluster.peers.get(&peer.id).filter(|server| server.peer.as_ref() == Some(peer));
            server.map_or(Circuit::Open, Server::circuit)
        };
        Standing {
            local_reachable: cluster.local.health.standing().is_available(),
            local_share: cluster.returning.share(now),
            circuits: self.table.peers().iter().map(circuit).collect(),
            unheard: self.was_unheard || is_unheard(cluster, now),
        }
    }

    fn discovery(&mut self, cluster: &Cluster, now: Instant) -> Discovery {
        if self.peering_off.is_some() {
            return Discovery::LeftToUpstream;
        }
        if !self.is_started {
            return Discovery::Awaited;
        }
        let inputs = inputs(cluster, now);
        let documents = match self.last.take() {
            Some((last, documents)) if last == inputs => documents,
            _ => Arc::new(Documents::build(&inputs)),
        };
        self.last = Some((inputs, Arc::clone(&documents)));
        Discovery::Merged(documents)
    }
}

fn inputs(cluster: &Cluster, now: Instant) -> Inputs {
    let is_given = cluster.servers().any(|server| server.gives_v2beta1 && !cluster.is_lost(server, now));
    Inputs {
        local: cluster.local.id.clone(),
        api: settled(cluster, now, |server| server.api.as_ref()),
        apis: settled(cluster, now, |server| server.apis.as_ref()),
        legacy: cluster.servers().map(|server| (server.id.clone(), Arc::clone(&server.legacy))).collect(),
        v2beta1: if is_given { V2Beta1::Given } else { V2Beta1::Gone },
    }
}

/// Every server's list with its freshness settled.
fn settled(cluster: &Cluster, now: Instant, document: fn(&Server) -> Option<&Document>) -> Lists {
    let (lost, live): (Vec<&Server>, Vec<&Server>) = cluster.servers().partition(|server| cluster.is_lost(server, now));
    let local = document(&cluster.local);
    let listed = |servers: Vec<&Server>| -> Lists {
        let lists = servers.into_iter().filter_map(|server| Some((server, document(server)?)));
        lists.map(|(server, read)| (server.id.clone(), with_locals_word(server, read, cluster, local))).collect()
    };
    settle(&listed(live), &listed(lost))
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

fn table(cluster: &Cluster) -> Table {
    let peers = cluster.peers.values();
    let peers: Vec<_> =
        peers.filter_map(|server| Some((Arc::clone(server.peer.as_ref()?), server.served.as_deref()))).collect();
    let standing = cluster.local.health.standing();
    // Half of what it serves would send the other half to peers. What it served in an earlier run counts only while it
    // is not there to be asked.
    let is_last_known = cluster.local.is_remembered && !standing.is_available();
    let local = cluster.local.served.as_deref().filter(|_| standing.heard || is_last_known);
    Table::build(local, &peers, &cluster.exclusions)
}

/// Whether a peer may serve more than is known of it.
fn is_unheard(cluster: &Cluster, now: Instant) -> bool {
    cluster.peers.values().any(|server| cluster.awaited_until(server, now).is_some())
}

fn local_state(server: &Server) -> LocalState {
    let etag = |document: &Option<Document>| -> Option<HeaderValue> { document.as_ref()?.etag.clone() };
    let standing = server.health.standing();
    LocalState {
        heard: standing.heard,
        available: standing.is_available(),
        version: server.version.clone(),
        api_etag: etag(&server.api),
        apis_etag: etag(&server.apis),
        error: server.error.clone(),
    }
}

fn peer_state(cluster: &Cluster, server: &Server, now: Instant) -> Option<PeerState> {
    let standing = server.health.standing();
    Some(PeerState {
        peer: Arc::clone(server.peer.as_ref()?),
        origin: cluster.origin(&server.id),
        lease: cluster.leases.get(&server.id).cloned(),
        circuit: server.circuit(),
        vanished: standing.vanished,
        heard: standing.heard,
        lost: cluster.is_lost(server, now),
        error: server.error.clone(),
    })
}
