//! Kinds that one server alone knows, and kinds that servers know differently, through kubectl's eyes.

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Kubectl, Version};
use serde_json::{Value, json};

use crate::Versions;

const KUBECTLS: [&str; 3] = ["1.28.15", "1.32.9", "1.37.2"];

/// Resource, group version and the node whose server knows most of it: only that one has it, or its release is the newest.
const EXPLAINED: [(&str, &str, &str); 5] = [
    ("flowschemas", "flowcontrol.apiserver.k8s.io/v1beta2", "node-a"),
    ("flowschemas", "flowcontrol.apiserver.k8s.io/v1beta3", "node-b"),
    ("clustertrustbundles", "certificates.k8s.io/v1", "node-d"),
    ("csinodes", "storage.k8s.io/v1", "node-d"),
    ("pods", "v1", "node-d"),
];

pub(crate) async fn are_explained_alike(versions: &Versions) -> Result<()> {
    let explain = async |kubectl: Kubectl, resource: &str, group_version: &str| {
        let version = format!("--api-version={group_version}");
        kubectl.run(&["explain", resource, "--recursive", &version]).await?.success()
    };
    for version in kubectl_versions()? {
        for (resource, group_version, owner) in EXPLAINED {
            let direct = versions.cluster.kubectl_direct(owner).version(&version).await?;
            let expected = explain(direct, resource, group_version).await?;
            for node in versions.cluster.nodes() {
                let front = versions.cluster.kubectl(node.name()).version(&version).await?;
                let what = || format!("kubectl {version} explain {resource} through {}", node.name());
                let seen = explain(front, resource, group_version).await.with_context(what)?;
                ensure!(seen == expected, "{}:\n{seen}\ninstead of\n{expected}", what());
            }
        }
    }
    Ok(())
}

pub(crate) async fn of_one_server_are_checked_and_made_through_every_node(versions: &Versions) -> Result<()> {
    for version in kubectl_versions()? {
        for node in versions.cluster.nodes() {
            let kubectl = versions.cluster.kubectl(node.name()).version(&version).await?;
            for object in [trust_bundle(versions)?, flow_schema()] {
                let check = check_and_make(&kubectl, object.clone()).await;
                check.with_context(|| format!("kubectl {version} through {}: {}", node.name(), object["kind"]))?;
            }
        }
    }
    Ok(())
}

async fn check_and_make(kubectl: &Kubectl, mut object: Value) -> Result<()> {
    let text = object.to_string();
    let strict: &[&str] = &["apply", "--dry-run=server", "--validate=strict", "-f", "-"];
    kubectl.run_with_input(&["create", "--dry-run=server", "-f", "-"], &text).await?.success()?;
    kubectl.run_with_input(strict, &text).await?.success()?;
    kubectl.run_with_input(&["create", "-f", "-"], &text).await?.success()?;
    kubectl.run_with_input(&["delete", "-f", "-"], &text).await?.success()?;

    object["spec"]["nonsense"] = json!("is no field");
    let refused = kubectl.run_with_input(strict, &object.to_string()).await?.failure()?;
    ensure!(refused.contains("nonsense"), "{refused}");
    Ok(())
}

fn kubectl_versions() -> Result<Vec<Version>> {
    KUBECTLS.iter().map(|version| Ok(version.parse()?)).collect()
}

/// A kind that 1.37 is the first to serve by default.
fn trust_bundle(versions: &Versions) -> Result<Value> {
    let authority = std::fs::read_to_string(versions.cluster.pki().file("ca.crt"))?;
    Ok(json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "ClusterTrustBundle",
        "metadata": { "name": "made" },
        "spec": { "trustBundle": authority },
    }))
}

/// A kind in a version that 1.28 was the last to serve.
fn flow_schema() -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1beta2",
        "kind": "FlowSchema",
        "metadata": { "name": "made" },
        "spec": { "priorityLevelConfiguration": { "name": "global-default" }, "matchingPrecedence": 9000 },
    })
}
