//! What must hold on a node, whatever has happened to it.

use std::time::Duration;

use anyhow::{Result, ensure};
use peerfront_e2e::eventually;
use serde_json::Value;

use crate::node::Node;
use crate::readme::Readme;

/// Longest time that a node takes to settle after a change, on a busy machine.
pub(crate) const SETTLED: Duration = Duration::from_secs(180);

/// Who listens on the public port, one line per socket.
async fn holders(node: &Node) -> Result<String> {
    node.run(&["ss", "--no-header", "--listening", "--tcp", "--numeric", "--processes", "sport = :6443"]).await
}

/// The front has the port and does its work; `addresses` are those of all control-plane nodes.
pub(crate) async fn with_front(node: &Node, readme: &Readme, version: &str, addresses: &[&str]) -> Result<()> {
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
    check(node, version, addresses).await?;
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

/// The server has the port again, or still.
pub(crate) async fn without_front(node: &Node, version: &str, addresses: &[&str]) -> Result<()> {
    let held = async || {
        let holders = holders(node).await?;
        ensure!(
            holders.lines().count() == 1 && holders.contains("*:6443") && holders.contains("kube-apiserver"),
            "{holders}"
        );
        Ok(())
    };
    eventually(SETTLED, held).await?;
    check(node, version, addresses).await?;
    let manifest = node.read("/etc/kubernetes/manifests/kube-apiserver.yaml")?;
    ensure!(!manifest.contains("--bind-address") && !manifest.contains("uid-headers"), "{manifest}");
    Ok(())
}

/// No front is left in the cluster, nor what fronts had.
pub(crate) async fn nothing_left(node: &Node) -> Result<()> {
    let gone = async || {
        let left = node.run(&["kubectl", "get", "pods,leases,roles", "-n=kube-system", "-o=name"]).await?;
        ensure!(!left.contains("peerfront"), "left: {left}");
        Ok(())
    };
    eventually(SETTLED, gone).await
}

/// What must be the same with and without a front.
async fn check(node: &Node, version: &str, addresses: &[&str]) -> Result<()> {
    let ready_now = async || {
        let answer = node.run(&["kubectl", "get", "--raw", "/readyz"]).await?;
        ensure!(answer == "ok", "/readyz: {answer}");
        let version_now: Value = serde_json::from_str(&node.run(&["kubectl", "version", "-o=json"]).await?)?;
        ensure!(version_now["serverVersion"]["gitVersion"] == format!("v{version}"), "{version_now}");
        ready(node, "kube-apiserver").await
    };
    eventually(SETTLED, ready_now).await?;
    eventually(SETTLED, async || endpoints(node, addresses).await).await?;
    let user: Value = serde_json::from_str(&node.run(&["kubectl", "auth", "whoami", "-o=json"]).await?)?;
    let user = &user["status"]["userInfo"];
    ensure!(
        user["username"] == "kubernetes-admin"
            && user["groups"] == serde_json::json!(["kubeadm:cluster-admins", "system:authenticated"]),
        "{user}"
    );
    let listed = node.run(&["kubectl", "api-resources", "-o=name"]).await?;
    ensure!(listed.lines().any(|line| line == "leases.coordination.k8s.io"), "{listed}");
    // The kubelet keeps its own Lease through the port.
    let kept = async || node.run(&["kubectl", "get", "lease", "-n=kube-node-lease", &node.name]).await.map(drop);
    eventually(SETTLED, kept).await
}

/// Server and port of every control-plane node, as clients inside of the cluster find them.
async fn endpoints(node: &Node, addresses: &[&str]) -> Result<()> {
    let slice = "-o=jsonpath={.addressType} {.ports[*].port} {.endpoints[*].addresses[*]}";
    let slice = node.run(&["kubectl", "get", "endpointslice", "kubernetes", slice]).await?;
    let mut found: Vec<&str> = slice.split_whitespace().collect();
    let mut expected = [["IPv4", "6443"].as_slice(), addresses].concat();
    found.sort_unstable();
    expected.sort_unstable();
    ensure!(found == expected, "endpoints of the kubernetes Service: {slice}");
    Ok(())
}

/// A pod of the control plane is ready on this node.
pub(crate) async fn ready(node: &Node, pod: &str) -> Result<()> {
    let name = format!("{pod}-{}", node.name);
    let condition = "-o=jsonpath={.status.conditions[?(@.type=='Ready')].status}";
    let status = node.run(&["kubectl", "get", "pod", "-n=kube-system", &name, condition]).await?;
    ensure!(status == "True", "{name} is not ready: {status}");
    Ok(())
}
