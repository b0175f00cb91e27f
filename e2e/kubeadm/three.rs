//! Three control planes under load: peerfront is put in front of them, they are upgraded, their certificates renewed, one
//! of them is replaced, and peerfront goes again.
//!
//! Clients of other nodes must not notice what happens to one; the node's own see what a plain restart of its server
//! costs, which is measured first.

mod changes;
mod cluster;
mod load;
mod machines;
mod skew;
mod tally;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::eventually;
use tokio::time::Instant;

use crate::Workshop;
use crate::checks::{self, SETTLED};
use crate::life::NETWORK;
use crate::node::Node;
use crate::programs::{NEW, NEWEST, OLD};
use crate::readme::INSTALL;
use crate::streams;

use cluster::{Cluster, Others, say};
use load::Load;
use machines::Machines;

/// What is done on one node only, as the README marks it.
const UPLOAD: &str = "kubeadm init phase upload-config kubeadm --config=/etc/kubernetes/peerfront/kubeadm-config.yaml ";
const RIGHTS: &str =
    "kubectl apply -f /etc/kubernetes/peerfront/rbac.yaml -f /etc/kubernetes/peerfront/flowschema.yaml ";
const NO_RIGHTS: &str =
    "kubectl delete -f /etc/kubernetes/peerfront/flowschema.yaml -f /etc/kubernetes/peerfront/rbac.yaml ";

/// How the README upgrades the first node, and the others.
const APPLY: &str = "kubeadm upgrade apply v1.36.3 ";
const UPGRADE: &str = "kubeadm upgrade node ";

/// What kubeadm is told because of this machine: no addons, no network for images, and an etcd that stays.
const OPTIONS: &str =
    "--etcd-upgrade=false --ignore-preflight-errors=all --skip-phases=preflight,addon,kubelet-config ";

pub(crate) async fn three_nodes_change_under_load(workshop: &Workshop) -> Result<()> {
    let mut cluster = Cluster {
        machines: Machines::start(workshop).await?,
        load: Load::new(),
        readme: &workshop.readme,
        version: OLD,
        baseline: Duration::MAX,
    };
    let lived = live(&mut cluster, workshop).await;
    if lived.is_err() {
        for node in cluster.machines.all() {
            say(&format!("--- {}", node.name));
            node.show_logs();
        }
    }
    lived
}

async fn live(cluster: &mut Cluster<'_>, workshop: &Workshop) -> Result<()> {
    let started = Instant::now();
    cluster.machines.form().await.context("kubeadm init and join")?;
    say(&format!("a cluster of three nodes, {:.0?}", started.elapsed()));
    for node in cluster.machines.all() {
        checks::without_front(node, OLD, &cluster.machines.addresses()).await.context("a new cluster")?;
        cluster.load.add(&node.name, machines::administrator(node)?);
    }
    cluster.baseline = cluster.restart_server("n2").await?;
    for name in ["n1", "n2", "n3"] {
        cluster.install(name).await?;
    }
    cluster.views_are_equal().await.context("after the installation")?;
    cluster.stream_through_peers("n2").await?;
    cluster.upgrade(workshop, NEW, ["n1", "n2", "n3"]).await?;
    cluster.renew("n2").await?;
    cluster.leave("n3").await.context("a node leaves")?;
    cluster.join(workshop, "n4", "198.18.0.14").await.context("a node joins")?;
    cluster.is_forgotten("n3").await?;
    cluster.views_are_equal().await?;
    cluster.upgrade(workshop, NEWEST, ["n1", "n2", "n4"]).await?;
    for name in ["n4", "n2", "n1"] {
        cluster.uninstall(name).await?;
    }
    Ok(())
}

impl Cluster<'_> {
    /// What a change of the server's manifest costs without peerfront, such as one of its flags.
    async fn restart_server(&self, name: &str) -> Result<Duration> {
        let restart = async |node: &Node| {
            node.shell(
                "sed -i '/^  annotations:$/a\\    e2e: changed' /etc/kubernetes/manifests/kube-apiserver.yaml
                while [ \"$(ss -Hltn sport = :6443)\" ]; do sleep 0.2; done",
            )
            .await?;
            checks::without_front(node, self.version, &self.machines.addresses()).await
        };
        self.stage("plain change of the server", name, Others::Unaware, restart).await
    }

    async fn install(&self, name: &str) -> Result<()> {
        let install = async |node: &Node| {
            self.readme.follow(node, INSTALL, &[]).await?;
            let mut changes = vec![NETWORK];
            if name != "n1" {
                changes.extend([(UPLOAD, "true "), (RIGHTS, "true ")]);
            }
            self.readme.follow(node, "A cluster that runs", &changes).await?;
            checks::with_front(node, self.readme, self.version, &self.machines.addresses()).await
        };
        self.stage_like_a_restart("installation", name, install).await
    }

    /// A node whose server is away has its clients talk with its pods all the same.
    async fn stream_through_peers(&self, name: &str) -> Result<()> {
        let stream = async |node: &Node| {
            node.shell(
                "mv /etc/kubernetes/manifests/kube-apiserver.yaml /etc/kubernetes
                while [ \"$(ss -Hltn src 127.0.0.1:6443)\" ]; do sleep 0.2; done",
            )
            .await?;
            streams::flow(node).await?;
            node.run(&["mv", "/etc/kubernetes/kube-apiserver.yaml", "/etc/kubernetes/manifests"]).await?;
            checks::with_front(node, self.readme, self.version, &self.machines.addresses()).await
        };
        self.stage_like_a_restart("streams without the server", name, stream).await
    }

    /// Upgrades all nodes, the first of them n1. What the new version alone serves is read from then on.
    async fn upgrade(&mut self, workshop: &Workshop, version: &'static str, names: [&str; 3]) -> Result<()> {
        let kubeadm = workshop.programs.path("kubeadm", version)?;
        let before = skew::resources(&machines::administrator(self.machines.get("n1")?)?).await?;
        for name in names {
            let upgrade = async |node: &Node| {
                node.install("kubeadm", kubeadm)?;
                let (title, theirs, ours) = match name {
                    "n1" => ("Upgrade Kubernetes", APPLY, format!("kubeadm upgrade apply v{version} --yes {OPTIONS}")),
                    _ => ("Each further node", UPGRADE, format!("{UPGRADE}{OPTIONS}")),
                };
                self.readme.follow(node, title, &[(theirs, &ours)]).await?;
                checks::with_front(node, self.readme, version, &self.machines.addresses()).await
            };
            self.stage_like_a_restart(&format!("upgrade to {version}"), name, upgrade).await?;
            if name == "n1" {
                let path = self.read_what_is_new(&before).await.context("after the first upgrade")?;
                say(&format!("served by {version} only, and read from then on: {path}"));
                self.load.read_also(&path);
            }
            self.views_are_equal().await.with_context(|| format!("after the upgrade of {name}"))?;
        }
        self.version = version;
        Ok(())
    }

    /// What the upgraded n1 serves and others do not is read through each node; returns its path.
    async fn read_what_is_new(&self, before: &skew::Resources) -> Result<String> {
        let [n1, n2] = [self.machines.get("n1")?, self.machines.get("n2")?];
        let path =
            eventually(SETTLED, async || skew::added(before, &skew::resources(&machines::administrator(n1)?).await?))
                .await?;
        for node in self.machines.all() {
            let client = machines::administrator(node)?;
            eventually(SETTLED, async || client.get(&path).await?.success())
                .await
                .with_context(|| node.name.clone())?;
        }
        let direct =
            ["kubectl", "--server=https://127.0.0.1:6443", "--tls-server-name=kubernetes", "get", "--raw", &path];
        let refusal = n2.run(&direct).await.err().map(|error| format!("{error:#}")).unwrap_or_default();
        ensure!(refusal.contains("NotFound"), "n2's own server serves {path}: {refusal}");
        Ok(path)
    }

    async fn uninstall(&self, name: &str) -> Result<()> {
        let uninstall = async |node: &Node| {
            let others = [(UPLOAD, "true "), (NO_RIGHTS, "true ")];
            let changes = match name {
                "n4" => &others[1..],
                "n1" => &others[..1],
                _ => &others[..],
            };
            self.readme.follow(node, "The way back", changes).await?;
            checks::without_front(node, self.version, &self.machines.addresses()).await
        };
        self.stage_like_a_restart("removal", name, uninstall).await?;
        if name == "n1" { checks::nothing_left(self.machines.get(name)?).await } else { Ok(()) }
    }
}
