//! From `kubeadm init` with peerfront to a node without it, through an upgrade.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::eventually;
use serde_json::Value;

use crate::Workshop;
use crate::node::Node;
use crate::programs::{ETCD, NEW, OLD};

/// Longest time that a node takes to settle after a change, on a busy machine.
const SETTLED: Duration = Duration::from_secs(180);

/// Where rendered files are kept on a node.
const FILES: &str = "/etc/kubernetes/peerfront";

/// What one would write for this cluster without peerfront.
fn cluster_configuration() -> String {
    format!(
        "\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v{OLD}
controlPlaneEndpoint: cp.e2e:6443
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

const CHECK: [&str; 5] = [
    "peerfront",
    "check",
    "--kube-apiserver-manifest=/etc/kubernetes/manifests/kube-apiserver.yaml",
    "--peer-ca-file=/etc/kubernetes/pki/ca.crt",
    "--kubeconfig=/etc/kubernetes/admin.conf",
];

const KUBELET_CONFIGURATION: &str = "\
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
failSwapOn: false
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
    init(node).await.context("kubeadm init")?;
    check_with_front(node, OLD).await.context("after kubeadm init")?;
    upgrade(node, workshop).await.context("kubeadm upgrade")?;
    check_with_front(node, NEW).await.context("after kubeadm upgrade")?;
    restart_front(node).await.context("restart of peerfront")?;
    uninstall(node).await.context("removal")?;
    check_without_front(node, NEW).await.context("after removal")?;
    install_on_running(node).await.context("installation on a running node")?;
    check_with_front(node, NEW).await.context("after installation on a running node")
}

async fn init(node: &Node) -> Result<()> {
    node.write("/etc/kubernetes/cluster.yaml", &cluster_configuration())?;
    let address = format!("--advertise-address={}", node.address);
    let render = ["peerfront", "kubeadm", "render", "--output-dir", FILES, "--cluster-configuration"];
    let options = ["/etc/kubernetes/cluster.yaml", &address, "--peer-cidrs=198.18.0.0/24"];
    node.run(&[render.as_slice(), &options].concat()).await?;
    let rendered = node.read(&format!("{FILES}/kubeadm-config.yaml"))?;
    let kind = "kind: InitConfiguration\n";
    let configuration = rendered.replacen(kind, &format!("{kind}{}", node_registration(node)), 1);
    node.write("/etc/kubernetes/init.yaml", &format!("{configuration}{KUBELET_CONFIGURATION}"))?;
    install_pod(node).await?;
    node.run(&[
        "kubeadm",
        "init",
        "--config=/etc/kubernetes/init.yaml",
        "--ignore-preflight-errors=all",
        "--skip-phases=addon",
    ])
    .await?;
    for file in ["rbac.yaml", "flowschema.yaml"] {
        node.run(&["kubectl", "apply", "-f", &format!("{FILES}/{file}")]).await?;
    }
    Ok(())
}

async fn install_pod(node: &Node) -> Result<()> {
    node.shell(&format!(
        "mkdir -p /etc/kubernetes/manifests && cp {FILES}/manifests/kube-peerfront.yaml /etc/kubernetes/manifests/"
    ))
    .await
    .map(drop)
}

/// kubeadm of the new version beside the running node, with the patches named as the README says.
async fn upgrade(node: &Node, workshop: &Workshop) -> Result<()> {
    let kubeadm = workshop.programs.path("kubeadm", NEW)?.to_string_lossy().into_owned();
    let version = format!("v{NEW}");
    let patches = format!("--patches={FILES}/patches");
    node.run(&[
        &kubeadm,
        "upgrade",
        "apply",
        &version,
        "--yes",
        "--etcd-upgrade=false",
        "--ignore-preflight-errors=all",
        "--skip-phases=addon,kubelet-config",
        &patches,
    ])
    .await
    .map(drop)
}

/// A graceful stop, as the kubelet does it, and a new start.
async fn restart_front(node: &Node) -> Result<()> {
    node.shell("mv /etc/kubernetes/manifests/kube-peerfront.yaml /etc/kubernetes/").await?;
    let gone = async || {
        let holders = holders(node).await?;
        ensure!(!holders.contains("peerfront"), "{holders}");
        Ok(())
    };
    eventually(SETTLED, gone).await?;
    node.shell("mv /etc/kubernetes/kube-peerfront.yaml /etc/kubernetes/manifests/").await?;
    check_with_front(node, NEW).await
}

/// The front goes first, with its Lease; only then is the port free for the server on every address.
async fn uninstall(node: &Node) -> Result<()> {
    configure(node, "--remove").await?;
    node.shell(
        "rm /etc/kubernetes/manifests/kube-peerfront.yaml
        while peerfront healthcheck 2>/dev/null; do sleep 1; done
        kubeadm init phase control-plane apiserver --config=/etc/kubernetes/init.yaml",
    )
    .await?;
    let removed = async || {
        node.shell(&format!(
            "kubectl delete --ignore-not-found -f {FILES}/flowschema.yaml -f {FILES}/rbac.yaml && rm -rf /var/cache/kube-peerfront"
        ))
        .await
        .map(drop)
    };
    eventually(SETTLED, removed).await
}

/// Changes the cluster's configuration and writes this node's to init.yaml; the node goes on as it is.
async fn configure(node: &Node, option: &str) -> Result<()> {
    node.shell(&format!(
        "kubectl -n kube-system get configmap kubeadm-config -o jsonpath='{{.data.ClusterConfiguration}}' >/etc/kubernetes/cluster.yaml
        peerfront kubeadm render --output-dir={FILES} --cluster-configuration=/etc/kubernetes/cluster.yaml \
            --kube-apiserver-manifest=/etc/kubernetes/manifests/kube-apiserver.yaml {option}
        cp {FILES}/kubeadm-config.yaml /etc/kubernetes/init.yaml
        kubeadm init phase upload-config kubeadm --config=/etc/kubernetes/init.yaml"
    ))
    .await
    .map(drop)
}

async fn install_on_running(node: &Node) -> Result<()> {
    configure(node, "--peer-cidrs=198.18.0.0/24").await?;
    node.shell(&format!("kubectl apply -f {FILES}/rbac.yaml -f {FILES}/flowschema.yaml")).await?;
    node.shell("kubeadm init phase control-plane apiserver --config=/etc/kubernetes/init.yaml").await?;
    install_pod(node).await
}

/// Who listens on the public port, one line per socket.
async fn holders(node: &Node) -> Result<String> {
    node.run(&["ss", "--no-header", "--listening", "--tcp", "--numeric", "--processes", "sport = :6443"]).await
}

async fn check_with_front(node: &Node, version: &str) -> Result<()> {
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
    let found = node.run(&CHECK).await?;
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
