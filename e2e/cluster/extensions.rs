//! An extension API whose server is gone: shown as broken, by nobody forgotten, and in nobody else's way.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Client, Cluster, Kubectl};
use serde_json::json;

use crate::discovery::fronts;
use crate::freshness::{SERVICES, service};
use crate::namespaces;
use crate::support::{NOTICED, discovery, ensure_same, eventually, versions_of};

const GROUP: &str = "gone.peerfront.example";

pub(crate) async fn unavailable_one_is_listed_as_stale_and_hinders_nothing_else(cluster: &Cluster) -> Result<()> {
    let admin = cluster.client(cluster.node("node-a").front(), &cluster.admin());
    admin.post(SERVICES, &service(GROUP, "v1")).await?.success()?;
    for node in cluster.nodes() {
        let [front, direct] = [node.front(), node.upstream()].map(|server| cluster.client(server, &cluster.admin()));
        eventually(NOTICED, async || stale(&direct).await).await.context("the server itself")?;
        eventually(NOTICED, async || stale(&front).await).await.with_context(|| format!("through {}", node.name()))?;
        // Its own document is the extension's to give, the group's is not.
        for path in ["/apis/gone.peerfront.example/v1", "/apis/gone.peerfront.example"] {
            ensure_same(path, &front.get(path).await?, &direct.get(path).await?)?;
        }
        let kubectls = [cluster.kubectl(node.name()), cluster.kubectl_direct(node.name())];
        ensure_same_end(&kubectls, &["api-resources", "-o", "name"]).await?;
        ensure_same_end(&kubectls, &["api-versions"]).await?;
        let complaint = ensure_same_end(&kubectls, &["get", "gones.gone.peerfront.example"]).await?;
        ensure!(!complaint.is_empty(), "kubectl gets what nobody serves");
        let listed = kubectls[0].run(&["api-resources", "-o", "name"]).await?.stdout;
        ensure!(listed.contains("clustertrustbundles.certificates.k8s.io"), "{}: {listed}", node.name());
    }
    admin.delete(&format!("{SERVICES}/v1.{GROUP}")).await?.success()?;
    forgotten(cluster).await
}

/// kubectl ends the same way, and says the same on stderr, which is returned.
async fn ensure_same_end(kubectls: &[Kubectl; 2], command: &[&str]) -> Result<String> {
    let [front, direct] = [kubectls[0].run(command).await?, kubectls[1].run(command).await?];
    let (seen, expected) = ((front.code, &front.stderr), (direct.code, &direct.stderr));
    ensure!(seen == expected, "{command:?}: {seen:?} instead of {expected:?}");
    Ok(direct.stderr)
}

async fn stale(client: &Client) -> Result<()> {
    let versions = versions_of(&discovery(client).await?.json()?, GROUP);
    ensure!(versions == [json!({ "version": "v1", "freshness": "Stale" })], "{versions:?}");
    Ok(())
}

async fn forgotten(cluster: &Cluster) -> Result<()> {
    for client in fronts(cluster) {
        let gone = async || {
            ensure!(versions_of(&discovery(&client).await?.json()?, GROUP).is_empty(), "still listed");
            Ok(())
        };
        eventually(NOTICED, gone).await?;
    }
    Ok(())
}

/// What the extension has in the namespace nobody knows; so it stays until somebody does, and loses what is known.
pub(crate) async fn namespace_waits_for_an_unavailable_one_and_then_goes_away(cluster: &Cluster) -> Result<()> {
    const NAMESPACE: &str = "waiting";
    let admin = cluster.client(cluster.node("node-a").front(), &cluster.admin());
    admin.post(SERVICES, &service(GROUP, "v1")).await?.success()?;
    eventually(NOTICED, async || stale(&admin).await).await?;
    namespaces::fill(cluster, NAMESPACE, &admin, &admin).await?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}");
    admin.delete(&path).await?.success()?;
    let waits = async || {
        let conditions = admin.get(&path).await?.success()?.json()?["status"]["conditions"].take();
        let mut conditions = conditions.as_array().into_iter().flatten();
        let failure = conditions.find(|condition| condition["type"] == "NamespaceDeletionDiscoveryFailure");
        let failure = failure.context("no condition yet")?;
        let told = failure["message"].as_str().is_some_and(|message| message.contains(GROUP));
        ensure!(failure["status"] == "True" && told, "{failure}");
        let left = namespaces::keys(cluster, NAMESPACE).await?;
        ensure!(left == [format!("/registry/namespaces/{NAMESPACE}")], "left in etcd: {left:?}");
        Ok(())
    };
    eventually(Duration::from_secs(50), waits).await?;
    admin.delete(&format!("{SERVICES}/v1.{GROUP}")).await?.success()?;
    let gone = async || {
        let left = namespaces::keys(cluster, NAMESPACE).await?;
        ensure!(left.is_empty(), "left in etcd: {left:?}");
        Ok(())
    };
    eventually(Duration::from_secs(120), gone).await?;
    forgotten(cluster).await
}
