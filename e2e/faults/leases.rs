//! Leases that are deleted and written by others, and nodes that come back under another name or address.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Client, Cluster, eventually};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::scenarios::{at, served};
use crate::traffic::Traffic;

pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const SELECTOR: &str = "?labelSelector=app.kubernetes.io/name%3Dkube-peerfront";
pub(crate) const ADDRESS: &str = "kubernetes.io/peer-advertise-address";

/// Time for what is found to be told to everybody, on a busy machine.
pub(crate) const FOUND: Duration = Duration::from_secs(60);

/// The Lease that a node's front keeps.
pub(crate) async fn lease_of(admin: &Client, node: &str) -> Result<Value> {
    let list = admin.get(&format!("{LEASES}{SELECTOR}")).await?.success()?.json()?;
    let leases = list["items"].as_array().cloned().unwrap_or_default();
    let own = leases.into_iter().find(|lease| lease["metadata"]["labels"]["kubernetes.io/hostname"] == node);
    own.with_context(|| format!("{node} keeps no Lease: {list}"))
}

/// Where a Lease is read and written.
pub(crate) fn path_of(lease: &Value) -> String {
    format!("{LEASES}/{}", lease["metadata"]["name"].as_str().unwrap_or_default())
}

/// Its owner makes it anew, and meanwhile nobody is forgotten.
pub(crate) async fn lease_that_is_deleted_again_and_again(cluster: &Cluster) -> Result<()> {
    let admin = at(cluster, "node-a");
    served(&admin).await?;
    let traffic = Traffic::start(&admin, "deleted");
    let mut right_again = Vec::new();
    for _ in 0..3 {
        let lease = lease_of(&admin, "node-c").await?;
        let began = Instant::now();
        admin.delete(&path_of(&lease)).await?.success()?;
        let made_anew = async || {
            let new = lease_of(&admin, "node-c").await?;
            ensure!(new["metadata"]["uid"] != lease["metadata"]["uid"], "it is the old one");
            Ok(())
        };
        eventually(FOUND, made_anew).await?;
        served(&admin).await?;
        right_again.push(began.elapsed());
    }
    let ledgers = traffic.finish().await?;
    let _ = writeln!(std::io::stderr(), "deleted: made anew after {right_again:?}; {ledgers:?}");
    ensure!(ledgers.iter().all(|ledger| ledger.refused == 0 && ledger.unknown == 0), "{ledgers:?}");
    Ok(())
}

/// Two releases side by side: what one does not know stays in the Lease of the other, and nobody minds it.
pub(crate) async fn lease_with_words_of_a_later_release_is_kept_and_read(cluster: &Cluster) -> Result<()> {
    const WORD: &str = "kube-peerfront/of-a-later-release";
    let admin = at(cluster, "node-a");
    served(&admin).await?;
    let traffic = Traffic::start(&admin, "later");
    let lease = lease_of(&admin, "node-c").await?;
    let words = json!({ "metadata": { "annotations": { WORD: "a word" }, "labels": { WORD: "a-word" } } });
    admin.patch(&path_of(&lease), "application/merge-patch+json", &words).await?.success()?;
    for _ in 0..2 {
        let before = lease_of(&admin, "node-c").await?["spec"]["renewTime"].clone();
        let renewed = async || {
            let lease = lease_of(&admin, "node-c").await?;
            ensure!(lease["spec"]["renewTime"] != before, "it is not renewed");
            ensure!(lease["metadata"]["annotations"][WORD] == "a word", "{lease}");
            Ok(())
        };
        eventually(FOUND, renewed).await?;
    }
    served(&admin).await?;
    let ledgers = traffic.finish().await?;
    ensure!(ledgers.iter().all(|ledger| ledger.refused == 0 && ledger.unknown == 0), "{ledgers:?}");
    Ok(())
}

pub(crate) async fn node_that_gets_another_name_and_its_first_again(cluster: &Cluster) -> Result<()> {
    changed(cluster, "renamed", &[("hostname-override", "node-renamed")]).await
}

pub(crate) async fn node_that_moves_to_another_address_and_back(cluster: &Cluster) -> Result<()> {
    let [a, b, c, d] = cluster.node("node-c").front().address().ip().octets();
    let moved = format!("{a}.{b}.{}.{d}", c ^ 0x40);
    let flags = ["bind-address", "advertise-address", "peer-advertise-ip"].map(|name| (name, moved.as_str()));
    changed(cluster, "moved", &flags).await
}

/// node-c's front is restarted with other flags, and then with its own.
async fn changed(cluster: &Cluster, what: &'static str, flags: &[(&str, &str)]) -> Result<()> {
    let admin = at(cluster, "node-a");
    let front = cluster.node("node-c").front().process();
    served(&admin).await?;
    let traffic = Traffic::start(&admin, what);
    let mut right_again = Vec::new();
    for flags in [flags, &[]] {
        front.stop().await?;
        front.change_flags(flags);
        let began = Instant::now();
        front.start().await?;
        served(&admin).await?;
        right_again.push(began.elapsed());
    }
    let ledgers = traffic.finish().await?;
    let _ = writeln!(std::io::stderr(), "{what}: right again after {right_again:?}; {ledgers:?}");
    Ok(())
}
