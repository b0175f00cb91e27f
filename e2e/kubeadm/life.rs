//! From `kubeadm init` with peerfront to a node without it, through an upgrade.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::eventually;
use serde_json::Value;

use crate::Workshop;
use crate::node::Node;
use crate::programs::{ETCD, NEW, OLD, is_full};
use crate::readme::{FOLDER, INSTALL, Readme};

/// Longest time that a node takes to settle after a change, on a busy machine.
const SETTLED: Duration = Duration::from_secs(180);

/// The network that control-plane nodes are in, in the README and here.
const NETWORK: (&str, &str) = ("192.0.2.0/24", "198.18.0.0/24");

/// What one would write for this cluster without peerfront. Watches keep a stopping server for half a minute, until the
/// kubelet kills it, unless they are ended.
fn cluster_configuration() -> String {
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
fn node_registration(node: &Node) -> String {
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
const KUBELET_CONFIGURATION: &str = "\
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
    init(node, readme).await.context("kubeadm init")?;
    check_with_front(node, readme, OLD).await.context("after kubeadm init")?;
    readme.follow(node, "External addresses of Services", &[]).await?;
    upgrade(node, workshop).await.context("kubeadm upgrade")?;
    check_with_front(node, readme, NEW).await.context("after kubeadm upgrade")?;
    readme.follow(node, "The way back", &[]).await.context("removal")?;
    check_without_front(node, NEW).await.context("after removal")?;
    if !is_full() {
        return Ok(());
    }
    readme.follow(node, "A cluster that runs", &[NETWORK]).await.context("installation on a running node")?;
    check_with_front(node, readme, NEW).await.context("after installation on a running node")?;
    readme.follow(node, "Replace peerfront", &[]).await.context("restart of peerfront")?;
    check_with_front(node, readme, NEW).await.context("after a restart of peerfront")
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

/// Who listens on the public port, one line per socket.
async fn holders(node: &Node) -> Result<String> {
    node.run(&["ss", "--no-header", "--listening", "--tcp", "--numeric", "--processes", "sport = :6443"]).await
}

async fn check_with_front(node: &Node, readme: &Readme, version: &str) -> Result<()> {
    let held = async || {
        let holders = holders(node).await?;
        let lines: Vec<&str> = holders.lines().collect();
        let holds =
            |address: &str, program: &str| lines.iter().any(|line| line.contains(address) && line.contains(program));
        ensure!(
            lines.len() == 2
                && holds(&format!("{}:6443", node.address), "peerfront")
                && holds("127.0.0.1:6443", "kube-apiserver"),
            "the port is held by {holders}"
        );
        Ok(())
    };
    eventually(SETTLED, held).await?;
    check(node, version).await?;
    eventually(SETTLED, async || ready(node, "kube-peerfront").await).await?;
    node.run(&["peerfront", "healthcheck"]).await?;
    let found = readme.follow(node, "Look", &[]).await?;
    ensure!(!found.contains("[-]") && found.contains("system:kube-peerfront has the rights"), "{found}");
    let probes = node
        .run(&[
            "kubectl",
            "get",
            "pod",
            "-n=kube-system",
            &format!("kube-apiserver-{}", node.name),
            "-o=jsonpath={.spec.containers[0]['livenessProbe','readinessProbe','startupProbe'].httpGet.host}",
        ])
        .await?;
    ensure!(probes == "127.0.0.1 127.0.0.1 127.0.0.1", "probes ask {probes}");
    // Each is what a scraper reads, and counts what kubectl has asked above.
    let metrics =
        node.shell("exec 3<>/dev/tcp/127.0.0.1/6440; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3").await?;
    ensure!(metrics.contains("apiserver_request_total") || metrics.contains("peerfront_"), "{metrics}");
    Ok(())
}

async fn check_without_front(node: &Node, version: &str) -> Result<()> {
    let held = async || {
        let holders = holders(node).await?;
        ensure!(
            holders.lines().count() == 1 && holders.contains("*:6443") && holders.contains("kube-apiserver"),
            "{holders}"
        );
        Ok(())
    };
    eventually(SETTLED, held).await?;
    check(node, version).await?;
    let gone = async || {
        let left = node.run(&["kubectl", "get", "pods,leases", "-n=kube-system", "-o=name"]).await?;
        ensure!(!left.contains("peerfront"), "left: {left}");
        Ok(())
    };
    eventually(SETTLED, gone).await?;
    let manifest = node.read("/etc/kubernetes/manifests/kube-apiserver.yaml")?;
    ensure!(!manifest.contains("--bind-address") && !manifest.contains("uid-headers"), "{manifest}");
    Ok(())
}

/// What must be the same with and without a front.
async fn check(node: &Node, version: &str) -> Result<()> {
    let ready_now = async || {
        let answer = node.run(&["kubectl", "get", "--raw", "/readyz"]).await?;
        ensure!(answer == "ok", "/readyz: {answer}");
        let version_now: Value = serde_json::from_str(&node.run(&["kubectl", "version", "-o=json"]).await?)?;
        ensure!(version_now["serverVersion"]["gitVersion"] == format!("v{version}"), "{version_now}");
        ready(node, "kube-apiserver").await
    };
    eventually(SETTLED, ready_now).await?;
    let slice = "-o=jsonpath={.addressType} {.endpoints[*].addresses[*]} {.ports[*].port}";
    let slice = node.run(&["kubectl", "get", "endpointslice", "kubernetes", slice]).await?;
    ensure!(slice == format!("IPv4 {} 6443", node.address), "endpoints of the kubernetes Service: {slice}");
    let user: Value = serde_json::from_str(&node.run(&["kubectl", "auth", "whoami", "-o=json"]).await?)?;
    let user = &user["status"]["userInfo"];
    ensure!(
        user["username"] == "kubernetes-admin"
            && user["groups"] == serde_json::json!(["kubeadm:cluster-admins", "system:authenticated"]),
        "{user}"
    );
    let listed = node.run(&["kubectl", "api-resources", "-o=name"]).await?;
    ensure!(listed.lines().any(|line| line == "leases.coordination.k8s.io"), "{listed}");
    // The kubelet's own Lease is renewed through the port.
    node.run(&["kubectl", "get", "lease", "-n=kube-node-lease", &node.name]).await.map(drop)
}

async fn ready(node: &Node, pod: &str) -> Result<()> {
    let name = format!("{pod}-{}", node.name);
    let condition = "-o=jsonpath={.status.conditions[?(@.type=='Ready')].status}";
    let status = node.run(&["kubectl", "get", "pod", "-n=kube-system", &name, condition]).await?;
    ensure!(status == "True", "{name} is not ready: {status}");
    Ok(())
}
