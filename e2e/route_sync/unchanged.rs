//! What two fronts count while nothing changes.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Cluster, eventually};
use tokio::time::sleep;

const FAMILY: &str = "route_controller_route_sync_total";
const TEN_MINUTES: Duration = Duration::from_secs(600);
/// Longest time until nothing happens any more after a start.
const SETTLED: Duration = Duration::from_secs(60);
/// Served by the newest server only.
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

pub(crate) async fn cluster_is_synced_never_or_sixty_times(cluster: &Cluster) -> Result<()> {
    settle(cluster).await?;
    let before = [syncs(cluster, "node-a").await?, syncs(cluster, "node-b").await?];
    sleep(TEN_MINUTES).await;
    let after = [syncs(cluster, "node-a").await?, syncs(cluster, "node-b").await?];
    let [watch_based, periodic] = [0, 1].map(|node| grown(&before[node], &after[node]));
    ensure!(watch_based.is_empty(), "{watch_based:?}");
    let expected = r#"trigger="periodic",outcome="noop""#;
    let count = periodic.get(expected).copied().unwrap_or_default();
    ensure!(periodic.len() == 1 && (59..=60).contains(&count), "{periodic:?}");
    Ok(())
}

/// Waits until what one server alone serves is listed through both nodes, and the first front is quiet for a while.
async fn settle(cluster: &Cluster) -> Result<()> {
    eventually(SETTLED, async || {
        for node in cluster.nodes() {
            cluster.client(node.front(), &cluster.admin()).get(MIGRATIONS).await?.success()?;
        }
        let before = syncs(cluster, "node-a").await?;
        sleep(Duration::from_secs(10)).await;
        let news = grown(&before, &syncs(cluster, "node-a").await?);
        ensure!(news.is_empty(), "{news:?}");
        Ok(())
    })
    .await
}

/// The counter's series of a front, by their labels.
async fn syncs(cluster: &Cluster, node: &str) -> Result<BTreeMap<String, u64>> {
    let metrics = cluster.admin_port(node).get("/metrics").await?.success()?.text();
    let series = metrics.lines().filter_map(|line| line.strip_prefix(FAMILY)?.strip_prefix('{')?.split_once("} "));
    series.map(|(labels, value)| Ok((labels.to_owned(), value.parse().context("a count")?))).collect()
}

/// What has been counted meanwhile.
fn grown(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let grown = after.iter().map(|(labels, count)| (labels.clone(), count - before.get(labels).unwrap_or(&0)));
    grown.filter(|(_, count)| *count > 0).collect()
}
