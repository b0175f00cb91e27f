//! What clients make of the merged documents: each way in which client-go reads them, and a manager of
//! controller-runtime, list everything that any server serves, through every node.

use anyhow::Result;
use peerfront_e2e::Cluster;
use peerfront_e2e::discovery::{self, Resource};
use peerfront_e2e::listers::{self, Lister};

pub(crate) async fn of_the_newest_client_go_list_everything_through_every_node(cluster: &Cluster) -> Result<()> {
    let resources = resources(cluster).await?;
    for lister in listers::READERS {
        list(cluster, lister, &resources).await?;
    }
    Ok(())
}

pub(crate) async fn of_controller_runtime_start_through_every_node(cluster: &Cluster) -> Result<()> {
    list(cluster, listers::MANAGER, &resources(cluster).await?).await
}

async fn resources(cluster: &Cluster) -> Result<Vec<Resource>> {
    let servers = cluster.nodes().iter().map(|node| cluster.client(node.upstream(), &cluster.admin()));
    Ok(discovery::of_servers(&servers.collect::<Vec<_>>()).await?.into_values().collect())
}

async fn list(cluster: &Cluster, lister: Lister, resources: &[Resource]) -> Result<()> {
    for node in cluster.nodes() {
        lister.check(&lister.lines(cluster, node.name(), resources).await?, resources)?;
    }
    Ok(())
}
