use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Cluster, Server, create};
use crate::client::Client;
use crate::components::{self, Context};
use crate::programs;

const NAMESPACE: &str = "default";
const NODE: &str = "worker";
const CONTAINER: &str = "main";

/// A pod that can be talked to: exec, attach, port-forward, cp and logs reach a stand-in for its node's kubelet, built
/// on the kubelet's own server. What the container does is told in `e2e/kubernetes/kubelet-standin`.
///
/// Dropping it ends the kubelet; the pod goes with the cluster.
#[derive(Debug)]
pub struct Pod {
    kubelet: Server,
    root: PathBuf,
}

impl Pod {
    /// Its name, in the namespace `default`.
    pub const NAME: &str = "standin";

    /// The kubelet of its node.
    pub fn kubelet(&self) -> &Server {
        &self.kubelet
    }

    /// The folder of this machine that commands in the container start in.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Cluster {
    /// Starts a kubelet of the newest version in the cluster with one running pod.
    ///
    /// # Errors
    /// If it cannot be built or started, or the first node's server refuses node or pod.
    pub async fn start_pod(&self) -> Result<Pod> {
        let newest = self.nodes.iter().map(|node| node.version().clone()).max().context("a cluster without nodes")?;
        let program = programs::build(&[("kubelet-standin", newest)], &self.records).await?.swap_remove(0);
        let root = self.directory().join("pod");
        std::fs::create_dir_all(&root).with_context(|| format!("create {}", root.display()))?;
        let address = self.block.kubelet();
        let context = Context { directory: self.directory(), pki: &self.pki, records: &self.records };
        let name = format!("{NAMESPACE}/{}/{CONTAINER}", Pod::NAME);
        let kubelet = Server::new(address, components::kubelet_standin(&context, program, address, &name, &root));
        kubelet.start().await?;
        self.register(&kubelet).await?;
        Ok(Pod { kubelet, root })
    }

    /// Says of node and pod what kubelet and scheduler would say.
    async fn register(&self, kubelet: &Server) -> Result<()> {
        let first = self.nodes.first().context("a cluster without nodes")?;
        let admin = self.client(first.upstream(), &self.admin());
        // Pods need their namespace's account, which only a controller manager makes.
        create(&admin, &format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), "default").await?;
        let node = json!({
            "metadata": { "name": NODE },
            "status": {
                "addresses": [{ "type": "InternalIP", "address": kubelet.address().ip().to_string() }],
                "daemonEndpoints": { "kubeletEndpoint": { "Port": kubelet.address().port() } },
            },
        });
        admin.post("/api/v1/nodes", &node).await?.success().context("create the node")?;
        let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
        let pod = json!({
            "metadata": { "name": Pod::NAME },
            "spec": {
                "nodeName": NODE,
                "automountServiceAccountToken": false,
                "tolerations": [{ "operator": "Exists" }],
                "containers": [{ "name": CONTAINER, "image": "none" }],
            },
        });
        admin.post(&pods, &pod).await?.success().context("create the pod")?;
        mark_running(&admin, &format!("{pods}/{}/status", Pod::NAME)).await
    }
}

async fn mark_running(admin: &Client, path: &str) -> Result<()> {
    let container: Value = json!({
        "name": CONTAINER, "image": "none", "imageID": "none", "containerID": "standin://main",
        "ready": true, "started": true, "restartCount": 0, "state": { "running": {} },
    });
    let status = json!({ "status": { "phase": "Running", "containerStatuses": [container] } });
    admin.patch(path, "application/merge-patch+json", &status).await?.success().context("say that the pod runs")?;
    Ok(())
}
