//! Requests that become streams, to containers that a real kubelet runs.

use anyhow::{Context as _, Result};
use peerfront_e2e::eventually;

use crate::checks::{self, SETTLED};
use crate::node::Node;
use crate::programs::repository;

const MANIFEST: &str = "/etc/kubernetes/manifests/toolbox.yaml";

/// kubectl of this node talks with a pod of this node, over each transport that it has.
pub(crate) async fn flow(node: &Node) -> Result<()> {
    node.write("/etc/kubernetes/toolbox.yaml", include_str!("toolbox.yaml"))?;
    node.run(&["mv", "/etc/kubernetes/toolbox.yaml", MANIFEST]).await?;
    eventually(SETTLED, async || checks::ready(node, "toolbox").await).await?;
    let script = repository().join("e2e/kubeadm/streams").to_string_lossy().into_owned();
    for transport in ["websocket", "spdy"] {
        let pod = format!("toolbox-{}", node.name);
        node.run(&[&script, "kube-system", &pod, transport]).await.context("streams")?;
    }
    node.run(&["rm", MANIFEST]).await.map(drop)
}
