//! The order in which a cluster's processes start, and what is installed on the way.

use std::collections::HashSet;

use anyhow::{Context as _, Result};

use super::Cluster;
use crate::programs;

/// Starts what calls after what is called, and returns when all of it is ready.
pub(super) async fn everything(cluster: &Cluster) -> Result<()> {
    let say = |what: &str| cluster.progress.say(what);
    say("starting etcd");
    for etcd in &cluster.etcds {
        etcd.start().await?;
    }
    for node in &cluster.nodes {
        say(&format!("starting kube-apiserver {} on {}", node.version(), node.name()));
        node.upstream().process().spawn()?;
    }
    for node in &cluster.nodes {
        node.upstream().process().wait_ready().await?;
        say(&format!("kube-apiserver {} on {} is ready", node.version(), node.name()));
    }
    apply_rbac(cluster).await?;
    for node in &cluster.nodes {
        if let Some(front) = node.front_if_any() {
            front.process().spawn()?;
        }
    }
    for node in &cluster.nodes {
        if let Some(front) = node.front_if_any() {
            front.process().wait_ready().await?;
            say(&format!("peerfront on {} is ready", node.name()));
        }
    }
    if let Some(manager) = &cluster.controller_manager {
        manager.start().await?;
        say("kube-controller-manager is ready");
    }
    Ok(())
}

/// Grants peerfront's own calls their rights, as an installation does.
async fn apply_rbac(cluster: &Cluster) -> Result<()> {
    let manifest = programs::repository().join("kubeadm/rbac.yaml");
    let has_fronts = cluster.nodes.iter().any(|node| node.front_if_any().is_some());
    if !has_fronts || !manifest.is_file() {
        return Ok(());
    }
    let manifest = manifest.to_string_lossy();
    // Once in every etcd.
    let mut etcds = HashSet::new();
    for node in cluster.nodes.iter().filter(|node| etcds.insert(node.etcd())) {
        let kubectl = cluster.kubectl_direct(node.name());
        kubectl.run(&["apply", "-f", &manifest]).await?.success().context("apply kubeadm/rbac.yaml")?;
    }
    Ok(())
}
