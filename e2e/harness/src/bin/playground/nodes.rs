use anyhow::{Context as _, Result};
use peerfront_e2e::{Cluster, Node};
use serde_json::{Value, json};

/// Writes `nodes.json` for scripts.
pub(crate) fn write(cluster: &Cluster) -> Result<()> {
    let nodes: Vec<Value> = cluster.nodes().iter().map(describe).collect();
    let path = cluster.directory().join("nodes.json");
    let text = format!("{:#}\n", Value::from(nodes));
    std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}

/// Addresses are `ip:port`: of front and upstream over TLS, of the admin port over plain HTTP.
fn describe(node: &Node) -> Value {
    json!({
        "name": node.name(),
        "version": node.version().to_string(),
        "front": node.front().address().to_string(),
        "admin": node.admin().to_string(),
        "upstream": node.upstream().address().to_string(),
        "frontPid": node.front().process().pid(),
        "upstreamPid": node.upstream().process().pid(),
    })
}
