//! What clients make of the merged documents: each way in which client-go reads them, and a manager of
//! controller-runtime, list everything that any server serves, through every node.

use anyhow::{Result, ensure};
use peerfront_e2e::Cluster;
use peerfront_e2e::discovery;
use peerfront_e2e::listers::{self, Lister};

pub(crate) async fn of_aggregated_documents_list_everything_through_every_node(cluster: &Cluster) -> Result<()> {
    list(cluster, &listers::AGGREGATED).await
}

pub(crate) async fn of_legacy_documents_list_everything_through_every_node(cluster: &Cluster) -> Result<()> {
    list(cluster, &[listers::LEGACY]).await
}

pub(crate) async fn of_openapi_list_everything_through_every_node(cluster: &Cluster) -> Result<()> {
    list(cluster, &listers::OPENAPI).await
}

pub(crate) async fn of_controller_runtime_start_through_every_node(cluster: &Cluster) -> Result<()> {
    list(cluster, &[listers::MANAGER]).await
}

async fn list(cluster: &Cluster, listers: &[Lister]) -> Result<()> {
    let servers = cluster.nodes().iter().map(|node| cluster.client(node.upstream(), &cluster.admin()));
    let resources: Vec<_> = discovery::of_servers(&servers.collect::<Vec<_>>()).await?.into_values().collect();
    let mut failures = Vec::new();
    for lister in listers {
        for node in cluster.nodes() {
            let lines = lister.lines(cluster, node.name(), &resources).await;
            let outcome = lines.and_then(|lines| lister.check(&lines, &resources));
            failures.extend(outcome.err().map(|error| format!("through {}: {error:#}", node.name())));
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}
