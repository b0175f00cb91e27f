//! How often a request is sent on, by whom: counted at every front and at every kube-apiserver.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use peerfront_e2e::{Client, Cluster, eventually};
use serde_json::json;

use crate::interop::{NOTICED, ONLY_C, ONLY_D, at};

const NODES: [&str; 4] = ["node-a", "node-b", "node-c", "node-d"];
/// Reads, and as many writes, of each sort.
const TIMES: u64 = 5;
/// Nobody serves it.
const UNSERVED: &str = "/apis/nobody.example.com/v1/things";

/// Requests of a resource that each front and each server has sent on so far.
type Hops = BTreeMap<String, u64>;

async fn hops(cluster: &Cluster, resource: &str) -> Result<Hops> {
    let mut hops = Hops::new();
    for node in cluster.nodes() {
        let server = cluster.client(node.upstream(), &cluster.admin());
        let key = if node.front_if_any().is_some() { "server behind the front of " } else { "" };
        hops.insert(format!("{key}{}", node.name()), sent_on(&server, resource).await?);
        if node.front_if_any().is_some() {
            hops.insert(node.name().to_owned(), sent_on(&cluster.admin_port(node.name()), resource).await?);
        }
    }
    Ok(hops)
}

async fn sent_on(server: &Client, resource: &str) -> Result<u64> {
    let metrics = server.get("/metrics").await?.success()?.text();
    let series = metrics.lines().filter(|line| line.starts_with("apiserver_rerouted_request_total{"));
    let counts = series.filter(|line| line.contains(resource)).filter_map(|line| line.rsplit_once(' '));
    Ok(counts.filter_map(|(_, count)| count.parse::<u64>().ok()).sum())
}

/// What has been added since `before`.
fn added(before: &Hops, after: Hops) -> Hops {
    let added = after.into_iter().map(|(name, count)| (name.clone(), count - before[&name]));
    added.filter(|(_, count)| *count > 0).collect()
}

/// Whoever is asked sends it to the one server that has it, front or none, and nobody sends it further. A write that
/// were carried out twice would be refused the second time.
pub(crate) async fn each_request_is_sent_on_once_by_whoever_is_asked(cluster: &Cluster) -> Result<()> {
    for (path, owner) in [(ONLY_C, "node-c"), (ONLY_D, "node-d")] {
        for asked in NODES {
            let admin = at(cluster, asked);
            // Upstream's own proxy reads the others' discovery every 30 s or so.
            eventually(3 * NOTICED, async || admin.get(path).await?.success().map(drop)).await?;
            let before = hops(cluster, "deviceclasses").await?;
            for number in 0..TIMES {
                admin.get(path).await?.success()?;
                let object = json!({ "metadata": { "name": format!("by-{asked}-to-{owner}-{number}") }, "spec": {} });
                admin.post(path, &object).await?.success()?;
            }
            let added = added(&before, hops(cluster, "deviceclasses").await?);
            let expected = (asked != owner).then(|| (asked.to_owned(), 2 * TIMES));
            ensure!(added == expected.into_iter().collect(), "{path} at {asked} was sent on by {added:?}");
        }
    }
    Ok(())
}

/// The answer of the first server that is asked comes back.
pub(crate) async fn what_nobody_serves_is_sent_on_by_nobody(cluster: &Cluster) -> Result<()> {
    let before = hops(cluster, "").await?;
    for asked in NODES {
        let answer = at(cluster, asked).get(UNSERVED).await?;
        ensure!(answer.status == 404, "{} at {asked}: {}", answer.status, answer.text());
    }
    let added = added(&before, hops(cluster, "").await?);
    ensure!(added.is_empty(), "sent on by {added:?}");
    Ok(())
}
