use std::net::SocketAddrV4;

use anyhow::{Context as _, Result};
use peerfront_e2e::{Cluster, Node};
use serde::Serialize;

/// A node as scripts read it. Addresses are `ip:port`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Description<'a> {
    name: &'a str,
    version: String,
    /// TLS.
    front: SocketAddrV4,
    /// Plain HTTP.
    admin: SocketAddrV4,
    /// TLS.
    upstream: SocketAddrV4,
    front_pid: Option<u32>,
    upstream_pid: Option<u32>,
}

/// Writes `nodes.json`, a list of all nodes.
pub(crate) fn write(cluster: &Cluster) -> Result<()> {
    let nodes: Vec<Description<'_>> = cluster.nodes().iter().map(describe).collect();
    let path = cluster.directory().join("nodes.json");
    let text = serde_json::to_string_pretty(&nodes)? + "\n";
    std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}

fn describe(node: &Node) -> Description<'_> {
    Description {
        name: node.name(),
        version: node.version().to_string(),
        front: node.front().address(),
        admin: node.admin(),
        upstream: node.upstream().address(),
        front_pid: node.front().process().pid(),
        upstream_pid: node.upstream().process().pid(),
    }
}
