//! A local server that stops and starts as in an upgrade: what its peers can answer as well goes on.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use peerfront_e2e::{Cluster, eventually};
use tokio::time::{Instant, sleep};

use crate::counters;
use crate::scenarios::{at, served};
use crate::traffic::Traffic;

/// How long a server goes on answering after it was told to stop.
const DELAY: (&str, &str) = ("shutdown-delay-duration", "5s");
/// Longest time until the server has all its requests back, on a busy machine.
const BACK: Duration = Duration::from_secs(60);

pub(crate) async fn local_server_that_stops_with_a_delay_loses_no_request(cluster: &Cluster) -> Result<()> {
    let admin = at(cluster, "node-a");
    let server = cluster.node("node-a").upstream().process();
    server.stop().await?;
    server.change_flags(&[DELAY]);
    server.start().await?;
    eventually(BACK, async || is_back(cluster).await).await?;
    served(&admin).await?;
    let traffic = Traffic::start(&admin, "stopping");
    let (before, errors) = (rerouted(cluster).await?, lease_errors(cluster).await?);
    server.stop().await?;
    let stopped = rerouted(cluster).await? - before;
    server.change_flags(&[]);
    server.start().await?;
    let began = Instant::now();
    eventually(BACK, async || is_back(cluster).await).await?;
    let back = began.elapsed();
    let ledgers = traffic.finish().await?;
    let _ = writeln!(
        std::io::stderr(),
        "stopped: {stopped} requests went to peers; all are back after {back:?}; {ledgers:?}"
    );
    ensure!(stopped > 0, "no request went to a peer");
    ensure!(ledgers[0].refused == 0, "{ledgers:?}");
    ensure!(lease_errors(cluster).await? > errors, "Leases could not be watched, and that is not counted");
    Ok(())
}

/// Whether what the local server serves is asked of it alone.
async fn is_back(cluster: &Cluster) -> Result<()> {
    let admin = at(cluster, "node-a");
    let before = rerouted(cluster).await?;
    for _ in 0..10 {
        admin.get("/api/v1/namespaces/default").await?.success()?;
        sleep(Duration::from_millis(100)).await;
    }
    let after = rerouted(cluster).await?;
    ensure!(after == before, "{} of its requests went to peers", after - before);
    Ok(())
}

/// Requests for namespaces that node-a's front has sent to peers.
async fn rerouted(cluster: &Cluster) -> Result<u64> {
    counters::sum(cluster, "apiserver_rerouted_request_total", r#"resource="namespaces""#).await
}

/// Failed lists and watches of Leases.
async fn lease_errors(cluster: &Cluster) -> Result<u64> {
    counters::sum(cluster, "apiserver_peer_discovery_sync_errors_total", r#"type="lease_list""#).await
}
