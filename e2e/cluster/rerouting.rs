//! Requests for what only another node serves.

use anyhow::{Result, ensure};
use peerfront_e2e::Cluster;

/// Resource and the nodes whose own server does not serve it.
const ELSEWHERE: [(&str, &[&str]); 3] = [
    ("mutatingadmissionpolicies", &["node-a"]),
    ("clustertrustbundles", &["node-a", "node-b"]),
    ("storageversionmigrations", &["node-a", "node-b"]),
];

pub async fn resources_that_only_a_peer_serves_are_listed_through_every_node(cluster: &Cluster) -> Result<()> {
    for (resource, nodes) in ELSEWHERE {
        for node in nodes {
            let output = cluster.kubectl(node).run(&["get", resource]).await?;
            ensure!(output.success, "{resource} through {node}: {}", output.stderr);
        }
    }
    Ok(())
}

pub async fn without_peerfront_the_same_requests_fail(cluster: &Cluster) -> Result<()> {
    for (resource, nodes) in ELSEWHERE {
        for node in nodes {
            let output = cluster.kubectl_direct(node).run(&["get", resource]).await?;
            ensure!(!output.success, "{resource} at {node} itself: {}", output.stdout);
        }
    }
    Ok(())
}
