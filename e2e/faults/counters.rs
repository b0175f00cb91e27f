//! What node-a's front counts.

use anyhow::{Context as _, Result};
use peerfront_e2e::Cluster;

/// The sum of a family's series that have this label.
pub(crate) async fn sum(cluster: &Cluster, family: &str, label: &str) -> Result<u64> {
    let metrics = cluster.admin_port("node-a").get("/metrics").await?.success()?.text();
    let series = metrics.lines().filter(|line| line.starts_with(&format!("{family}{{")) && line.contains(label));
    let counts = series.map(|line| {
        let (_, count) = line.rsplit_once(' ').with_context(|| format!("no value: {line}"))?;
        count.parse::<u64>().with_context(|| format!("no count: {line}"))
    });
    counts.sum()
}
