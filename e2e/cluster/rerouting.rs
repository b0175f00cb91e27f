//! Requests for what only another node serves.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Cluster, Kubectl};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::timeout;

use crate::metrics;
use crate::support::bundle;

/// Resource and the nodes whose own server does not serve it.
const ELSEWHERE: [(&str, &[&str]); 3] = [
    ("mutatingadmissionpolicies", &["node-a"]),
    ("clustertrustbundles", &["node-a", "node-b"]),
    ("storageversionmigrations", &["node-a", "node-b"]),
];

pub(crate) async fn resources_that_only_a_peer_serves_are_listed_through_every_node(cluster: &Cluster) -> Result<()> {
    for (resource, nodes) in ELSEWHERE {
        for node in nodes {
            let output = cluster.kubectl(node).run(&["get", resource]).await?;
            ensure!(output.success, "{resource} through {node}: {}", output.stderr);
        }
    }
    Ok(())
}

pub(crate) async fn without_peerfront_the_same_requests_fail(cluster: &Cluster) -> Result<()> {
    for (resource, nodes) in ELSEWHERE {
        for node in nodes {
            let output = cluster.kubectl_direct(node).run(&["get", resource]).await?;
            ensure!(!output.success, "{resource} at {node} itself: {}", output.stdout);
        }
    }
    Ok(())
}

pub(crate) async fn policy_lives_and_dies_through_the_oldest_node(cluster: &Cluster) -> Result<()> {
    let manifest = policy("through-the-oldest").to_string();
    let create: &[&str] = &["create", "-f", "-"];
    cluster.kubectl_direct("node-a").run_with_input(create, &manifest).await?.failure()?;

    let kubectl = cluster.kubectl("node-a");
    let mut watch = Watch::start(&kubectl, &["mutatingadmissionpolicies"])?;
    kubectl.run_with_input(create, &manifest).await?.success()?;
    watch.expect("ADDED through-the-oldest").await?;
    let name = ["mutatingadmissionpolicy", "through-the-oldest"];
    let patch = ["-p", r#"{"metadata":{"labels":{"patched":"yes"}}}"#];
    kubectl.run(&["patch", name[0], name[1], patch[0], patch[1], "--type=merge"]).await?.success()?;
    watch.expect("MODIFIED through-the-oldest").await?;
    let label = kubectl.run(&["get", name[0], name[1], "-o", "jsonpath={.metadata.labels.patched}"]).await?;
    ensure!(label.success()? == "yes");
    cluster.kubectl_direct("node-a").run(&["delete", name[0], name[1]]).await?.failure()?;
    kubectl.run(&["delete", name[0], name[1]]).await?.success()?;
    watch.expect("DELETED through-the-oldest").await?;
    kubectl.run(&["get", name[0], name[1]]).await?.failure().map(drop)
}

pub(crate) async fn api_resources_lists_everything_that_the_newest_server_has(cluster: &Cluster) -> Result<()> {
    let newest = api_resources(&cluster.kubectl_direct("node-c")).await?;
    ensure!(newest.len() > 50, "{newest:?}");
    for node in cluster.nodes() {
        let merged = api_resources(&cluster.kubectl(node.name())).await?;
        let missing: Vec<_> = newest.difference(&merged).collect();
        ensure!(missing.is_empty(), "not listed through {}: {missing:#?}", node.name());
    }
    for node in ["node-a", "node-b"] {
        let own = api_resources(&cluster.kubectl_direct(node)).await?;
        ensure!(!newest.is_subset(&own), "{node} itself lists everything that 1.37 has");
    }
    Ok(())
}

pub(crate) async fn apply_and_server_side_apply_reach_the_peer(cluster: &Cluster) -> Result<()> {
    for node in ["node-a", "node-b"] {
        let kubectl = cluster.kubectl(node);
        let mut watch = Watch::start(&kubectl, &["clustertrustbundles"])?;
        for (way, field) in
            [("client", ["apply", "-f", "-"].as_slice()), ("server", &["apply", "--server-side", "-f", "-"])]
        {
            let name = format!("{way}-side-{node}");
            let mut manifest = bundle(cluster, &name)?;
            cluster.kubectl_direct(node).run_with_input(field, &manifest.to_string()).await?.failure()?;
            kubectl.run_with_input(field, &manifest.to_string()).await?.success()?;
            watch.expect(&format!("ADDED {name}")).await?;
            manifest["metadata"]["labels"] = json!({ "applied": "again" });
            kubectl.run_with_input(field, &manifest.to_string()).await?.success()?;
            watch.expect(&format!("MODIFIED {name}")).await?;
            kubectl.run(&["delete", "clustertrustbundle", &name]).await?.success()?;
            watch.expect(&format!("DELETED {name}")).await?;
        }
    }
    Ok(())
}

pub(crate) async fn migration_is_created_and_deleted_through_older_nodes(cluster: &Cluster) -> Result<()> {
    for node in ["node-a", "node-b"] {
        let manifest = json!({
            "apiVersion": "storagemigration.k8s.io/v1",
            "kind": "StorageVersionMigration",
            "metadata": { "name": format!("through-{node}") },
            "spec": { "resource": { "group": "", "resource": "configmaps" } },
        });
        let create: &[&str] = &["create", "-f", "-"];
        cluster.kubectl_direct(node).run_with_input(create, &manifest.to_string()).await?.failure()?;
        cluster.kubectl(node).run_with_input(create, &manifest.to_string()).await?.success()?;
        let name = format!("storageversionmigration/through-{node}");
        cluster.kubectl(node).run(&["delete", &name]).await?.success()?;
    }
    Ok(())
}

/// The older servers know the resource but not its subresource.
pub(crate) async fn subresource_that_only_a_peer_serves_is_patched_there(cluster: &Cluster) -> Result<()> {
    let admin = |node: &str| cluster.client(cluster.node(node).front(), &cluster.admin());
    let object = json!({ "metadata": { "name": "patched" }, "spec": { "drivers": [] } });
    admin("node-a").post("/apis/storage.k8s.io/v1/csinodes", &object).await?.success()?;
    let path = "/apis/storage.k8s.io/v1/csinodes/patched/status";
    let patch = json!({ "status": { "storageHealth": [] } });
    for node in ["node-a", "node-b"] {
        let direct = cluster.client(cluster.node(node).upstream(), &cluster.admin());
        let refused = direct.patch(path, "application/merge-patch+json", &patch).await?;
        ensure!(refused.status == 404, "{node} itself: {}", refused.status);

        let labels = [("group", "storage.k8s.io"), ("version", "v1"), ("resource", "csinodes"), ("code", "200")];
        let before = metrics::read(cluster, node).await?.value(metrics::REROUTED, &labels);
        for client in [admin(node), admin(node).h2()] {
            let patched = client.patch(path, "application/merge-patch+json", &patch).await?.success()?.json()?;
            ensure!(patched["kind"] == "CSINode" && patched["metadata"]["name"] == "patched", "{patched}");
        }
        let after = metrics::read(cluster, node).await?.value(metrics::REROUTED, &labels);
        ensure!(after == before + 2.0, "rerouted {before} before and {after} after two requests through {node}");
    }
    admin("node-a").delete("/apis/storage.k8s.io/v1/csinodes/patched").await?.success()?;
    Ok(())
}

/// A policy that matches nothing that anybody makes.
pub(crate) fn policy(name: &str) -> serde_json::Value {
    let rule = json!({
        "apiGroups": ["nobody.example"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"],
    });
    let mutation = json!({
        "patchType": "ApplyConfiguration",
        "applyConfiguration": { "expression": "Object{metadata: Object.metadata{}}" },
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": {
            "matchConstraints": { "resourceRules": [rule] },
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "mutations": [mutation],
        },
    })
}

/// What kubectl lists: name, version, scope and kind of each resource.
async fn api_resources(kubectl: &Kubectl) -> Result<BTreeSet<String>> {
    let listed = kubectl.run(&["api-resources", "--no-headers"]).await?.success()?;
    Ok(listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect())
}

/// `kubectl get --watch-only`.
struct Watch {
    lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
    _child: tokio::process::Child,
}

impl Watch {
    const EVENT: Duration = Duration::from_secs(10);

    fn start(kubectl: &Kubectl, what: &[&str]) -> Result<Self> {
        let line = "jsonpath={.type} {.object.metadata.name}{\"\\n\"}";
        let mut arguments = vec!["get"];
        arguments.extend(what);
        // Without --watch-only: whatever is made before the watch has begun is listed first.
        arguments.extend(["--watch", "--output-watch-events", "-o", line]);
        let mut child = kubectl.spawn(&arguments)?;
        let lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
        Ok(Self { lines, _child: child })
    }

    async fn expect(&mut self, expected: &str) -> Result<()> {
        let line = timeout(Self::EVENT, self.lines.next_line()).await.with_context(|| format!("no {expected}"))??;
        let line = line.with_context(|| format!("kubectl ended before {expected}"))?;
        ensure!(line == expected, "{line} instead of {expected}");
        Ok(())
    }
}
