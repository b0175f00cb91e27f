//! The files of kubeadm/external-ips on real servers, through every node.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use peerfront_e2e::{Client, Cluster, Response};
use serde_json::{Value, json};

use crate::support::{NOTICED, eventually};

const MERGE: &str = "application/merge-patch+json";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// What kubectl is told to apply.
fn file(name: &str) -> String {
    format!("{}/kubeadm/external-ips/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn service(name: &str, addresses: &[&str]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name },
        "spec": { "ports": [{ "port": 80 }], "externalIPs": addresses },
    })
}

fn ensure_denied(what: &str, answer: &Response, words: &str) -> Result<()> {
    let denied = answer.status == 403 && answer.text().contains(words);
    ensure!(denied, "{what}: {} {}", answer.status, answer.text());
    Ok(())
}

/// Changes a Service's addresses; null takes the field away.
async fn change(client: &Client, name: &str, addresses: Value) -> Result<Response> {
    client.patch(&format!("{SERVICES}/{name}"), MERGE, &json!({ "spec": { "externalIPs": addresses } })).await
}

/// One server has the plugin, which judges what is asked of it alone.
pub(crate) async fn plugin_denies_at_its_own_server_only(cluster: &Cluster) -> Result<()> {
    let [plain, plugged] =
        ["node-a", "node-c"].map(|node| cluster.client(cluster.node(node).front(), &cluster.admin()));
    let denied = plugged.post(SERVICES, &service("by-plugin", &["198.51.100.1"])).await?;
    ensure_denied("new Service", &denied, "Use of external IPs is denied by admission control")?;
    // A server that has only just come back has a part of its requests answered by others, which may have the plugin.
    let made = async || plain.post(SERVICES, &service("by-plugin", &["198.51.100.1"])).await?.success().map(drop);
    eventually(NOTICED, made).await?;
    change(&plugged, "by-plugin", json!([])).await?.success()?;
    plugged.delete(&format!("{SERVICES}/by-plugin")).await?.success()?;
    Ok(())
}

pub(crate) async fn policy_denies_new_addresses_through_every_node(cluster: &Cluster) -> Result<()> {
    // Not the last node: its server has the plugin, which would deny as well.
    let nodes = ["node-a", "node-b"];
    let apply = async |name: &str| {
        cluster.kubectl("node-a").run(&["apply", "-f", &file(name)]).await?.success().context(name.to_owned())
    };
    let clients = nodes.map(|node| cluster.client(cluster.node(node).front(), &cluster.admin()));
    apply("policy.yaml").await?;
    apply("binding-audit.yaml").await?;
    for (node, client) in nodes.iter().zip(&clients) {
        let counted = async || audited(client, node).await;
        eventually(NOTICED, counted).await?;
    }
    apply("binding-deny.yaml").await?;
    for (node, client) in nodes.iter().zip(&clients) {
        denies(client, node).await.context(*node)?;
    }
    for (kind, name) in [
        ("validatingadmissionpolicybinding", "service-external-ips"),
        ("validatingadmissionpolicy", "service-external-ips"),
    ] {
        cluster.kubectl("node-b").run(&["delete", kind, name]).await?.success()?;
    }
    Ok(())
}

/// A Service with the field is let in and counted.
async fn audited(client: &Client, node: &str) -> Result<()> {
    let name = format!("old-{node}");
    let made = client.post(SERVICES, &service(&name, &["198.51.100.1", "198.51.100.2"])).await?;
    if made.status == 409 {
        change(client, &name, json!([])).await?.success()?;
        change(client, &name, json!(["198.51.100.1", "198.51.100.2"])).await?.success()?;
    } else {
        made.success()?;
    }
    let metrics = client.get("/metrics").await?.success()?;
    let is_counted = |line: &str| {
        line.starts_with("apiserver_validating_admission_policy_check_total{")
            && ["service-external-ips", "\"audit\""].iter().all(|word| line.contains(word))
    };
    if !metrics.text().lines().any(is_counted) {
        bail!("nothing was audited at {node}");
    }
    Ok(())
}

/// What is new is denied; what was there may stay, shrink and go; addresses of load balancers are not concerned.
async fn denies(client: &Client, node: &str) -> Result<()> {
    let (old, new) = (format!("old-{node}"), format!("new-{node}"));
    let denied = async || {
        let made = client.post(SERVICES, &service(&new, &["198.51.100.3"])).await?;
        if made.status == 201 {
            client.delete(&format!("{SERVICES}/{new}")).await?.success()?;
        }
        ensure_denied("new Service", &made, "not get new ones: 198.51.100.3")
    };
    eventually(Duration::from_secs(20), denied).await?;
    client.post(SERVICES, &service(&new, &[])).await?.success()?;
    ensure_denied("addition", &change(client, &new, json!(["198.51.100.3"])).await?, "not get new ones")?;
    ensure_denied(
        "replacement",
        &change(client, &old, json!(["198.51.100.1", "198.51.100.4"])).await?,
        "not get new ones: 198.51.100.4",
    )?;
    let path = format!("{SERVICES}/{old}");
    let label = json!({ "metadata": { "labels": { "kept": "yes" } } });
    client.patch(&path, MERGE, &label).await?.success()?;
    change(client, &old, json!(["198.51.100.2"])).await?.success()?;
    let balanced = json!({ "spec": { "type": "LoadBalancer" } });
    client.patch(&path, MERGE, &balanced).await?.success()?;
    let ingress = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "198.51.100.9" }] } } });
    client.patch(&format!("{path}/status"), MERGE, &ingress).await?.success()?;
    change(client, &old, Value::Null).await?.success()?;
    for name in [&old, &new] {
        client.delete(&format!("{SERVICES}/{name}")).await?.success()?;
    }
    Ok(())
}
