//! From `kubeadm init` with peerfront to a node without it, through an upgrade.

use anyhow::{Context as _, Result};

use crate::Workshop;
use crate::checks;
use crate::node::Node;
use crate::programs::{ETCD, NEW, OLD, is_full};
use crate::readme::{FOLDER, INSTALL, Readme};
use crate::streams;

/// The network that control-plane nodes are in, in the README and here.
pub(crate) const NETWORK: (&str, &str) = ("192.0.2.0/24", "198.18.0.0/24");

/// What one would write for this cluster without peerfront. Watches keep a stopping server for half a minute, until the
/// kubelet kills it, unless they are ended.
pub(crate) fn cluster_configuration() -> String {
    format!(
        "\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v{OLD}
controlPlaneEndpoint: cp.e2e:6443
apiServer:
  extraArgs:
    - name: shutdown-watch-termination-grace-period
      value: 2s
networking:
  serviceSubnet: 198.18.128.0/20
  podSubnet: 198.18.64.0/20
etcd:
  local:
    imageTag: {ETCD}-0
"
    )
}

/// What this machine needs and a common one does not.
pub(crate) fn node_registration(node: &Node) -> String {
    let Node { name, address, .. } = node;
    format!(
        "\
nodeRegistration:
  name: {name}
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: IfNotPresent
  taints: []
  kubeletExtraArgs:
    - name: node-ip
      value: {address}
"
    )
}

/// What this machine needs, and a look at every pod more often than once a minute.
pub(crate) const KUBELET_CONFIGURATION: &str = "\
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
failSwapOn: false
syncFrequency: 2s
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: \"0%\", nodefs.available: \"0%\", imagefs.available: \"0%\"}
resolvConf: /etc/resolv.conf
";

pub(crate) async fn node_is_made_with_peerfront_upgraded_and_given_back(workshop: &Workshop) -> Result<()> {
    let node = Node::start(&workshop.programs, "n1", "198.18.0.11").await?;
    let lived = live(&node, workshop).await;
    if lived.is_err() {
        node.show_logs();
    }
    lived
}

async fn live(node: &Node, workshop: &Workshop) -> Result<()> {
    let readme = &workshop.readme;
    let addresses = [node.address.as_str()];
    init(node, readme).await.context("kubeadm init")?;
    checks::with_front(node, readme, OLD, &addresses).await.context("after kubeadm init")?;
    streams::flow(node).await?;
    readme.follow(node, "External addresses of Services", &[]).await?;
    upgrade(node, workshop).await.context("kubeadm upgrade")?;
    checks::with_front(node, readme, NEW, &addresses).await.context("after kubeadm upgrade")?;
    readme.follow(node, "The way back", &[]).await.context("removal")?;
    checks::without_front(node, NEW, &addresses).await.context("after removal")?;
    checks::nothing_left(node).await.context("after removal")?;
    if !is_full() {
        return Ok(());
    }
    readme.follow(node, "A cluster that runs", &[NETWORK]).await.context("installation on a running node")?;
    checks::with_front(node, readme, NEW, &addresses).await.context("after installation on a running node")?;
    readme.follow(node, "Replace peerfront", &[]).await.context("restart of peerfront")?;
    checks::with_front(node, readme, NEW, &addresses).await.context("after a restart of peerfront")
}

async fn init(node: &Node, readme: &Readme) -> Result<()> {
    node.write(&format!("{FOLDER}/cluster.yaml"), &cluster_configuration())?;
    node.write(&format!("{FOLDER}/registration.yaml"), &node_registration(node))?;
    node.write(&format!("{FOLDER}/kubelet.yaml"), KUBELET_CONFIGURATION)?;
    readme.follow(node, INSTALL, &[]).await?;
    let init = "kubeadm init --config=/etc/kubernetes/peerfront/kubeadm-config.yaml\n";
    let adapted = format!(
        "\
sed -i '/^kind: InitConfiguration$/r registration.yaml' peerfront/kubeadm-config.yaml
cat kubelet.yaml >>peerfront/kubeadm-config.yaml
{} --ignore-preflight-errors=all --skip-phases=preflight,addon
",
        init.trim_end()
    );
    readme.follow(node, "A new cluster", &[NETWORK, ("192.0.2.11", &node.address), (init, &adapted)]).await.map(drop)
}

/// kubeadm of the new version beside the running node.
async fn upgrade(node: &Node, workshop: &Workshop) -> Result<()> {
    let upgrade = format!("kubeadm upgrade apply v{NEW} ");
    let adapted = format!(
        "{}{} --yes --etcd-upgrade=false --ignore-preflight-errors=all --skip-phases=preflight,addon,kubelet-config ",
        workshop.programs.path("kubeadm", NEW)?.display(),
        upgrade.trim_start_matches("kubeadm").trim_end(),
    );
    workshop.readme.follow(node, "Upgrade Kubernetes", &[(&upgrade, &adapted)]).await.map(drop)
}
