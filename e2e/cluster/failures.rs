//! Servers and fronts that are lost, and how the rest goes on.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Client, Cluster};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::metrics::{self, REROUTED};
use crate::rerouting::policy;
use crate::support::{AGGREGATED, BUNDLES, NOTICED, REFUSED, discovery, ensure_unavailable, eventually, versions_of};

const MIGRATION_GROUP: &str = "storagemigration.k8s.io";
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";

/// Longer than the Lease of a front that hangs goes on counting.
const BEYOND_THE_LEASE: Duration = Duration::from_secs(25);

/// The administrator at a front, with as much patience as a client has that is not to hang.
fn at_front(cluster: &Cluster, node: &str) -> Client {
    cluster.client(cluster.node(node).front(), &cluster.admin()).with_timeout(REFUSED)
}

pub(crate) async fn requests_only_a_lost_node_can_serve_are_refused_and_come_back(cluster: &Cluster) -> Result<()> {
    let node = cluster.node("node-c");
    let checked = async {
        node.upstream().kill().await?;
        without_newest(cluster).await?;
        node.front().kill().await?;
        without_newest(cluster).await
    };
    let checked = checked.await;
    if node.upstream().process().pid().is_none() {
        node.upstream().start().await?;
    }
    if node.front().process().pid().is_none() {
        node.front().start().await?;
    }
    checked?;
    for node in ["node-a", "node-b"] {
        served_again(&at_front(cluster, node)).await?;
    }
    Ok(())
}

/// Right after the loss, and once everybody knows of it.
async fn without_newest(cluster: &Cluster) -> Result<()> {
    for node in ["node-a", "node-b"] {
        let admin = at_front(cluster, node);
        refused(&admin).await?;
        let unreadable = async || {
            ensure!(freshness(&admin).await? == ["Stale"]);
            Ok(())
        };
        eventually(NOTICED, unreadable).await?;
        refused(&admin).await?;
        still_listed(&admin).await?;
        goes_on(&admin, node).await?;
        let bundles = versions_of(&discovery(&admin).await?.json()?, "certificates.k8s.io");
        let v1 = bundles.iter().find(|version| version["version"] == "v1");
        let listed =
            v1.is_some_and(|v1| v1["freshness"] == "Current" && v1.to_string().contains("clustertrustbundles"));
        ensure!(listed, "certificates.k8s.io/v1 at {node}: {v1:?}");
    }
    let kubectl = cluster.kubectl("node-a");
    kubectl.run(&["get", "namespaces"]).await?.success()?;
    kubectl.run(&["get", "mutatingadmissionpolicies"]).await?.success()?;
    Ok(())
}

/// Never 404, never a hang.
async fn refused(admin: &Client) -> Result<()> {
    for client in [admin.clone(), admin.clone().h2()] {
        for path in [BUNDLES, MIGRATIONS, "/apis/storagemigration.k8s.io/v1/storageversionmigrations?watch=true"] {
            ensure_unavailable(&client.get(path).await?)?;
        }
        ensure_unavailable(&client.post(MIGRATIONS, &json!({})).await?)?;
        ensure_unavailable(&client.delete(&format!("{BUNDLES}/any")).await?)?;
    }
    Ok(())
}

/// In documents of old the lost group version is listed and its own document cannot be had.
async fn still_listed(admin: &Client) -> Result<()> {
    let group = admin.get(&format!("/apis/{MIGRATION_GROUP}")).await?.success()?.json()?;
    ensure!(group["preferredVersion"]["version"] == "v1", "{group}");
    ensure!(admin.get("/apis").await?.success()?.text().contains(MIGRATION_GROUP), "the group is not listed");
    for client in [admin.clone(), admin.clone().with_header("accept", "application/json;as=Table")] {
        ensure_unavailable(&client.get(&format!("/apis/{MIGRATION_GROUP}/v1")).await?)?;
    }
    Ok(())
}

async fn goes_on(admin: &Client, node: &str) -> Result<()> {
    let object = json!({ "metadata": { "name": "goes-on" } });
    let maps = "/api/v1/namespaces/default/configmaps";
    admin.post(maps, &object).await?.success()?;
    admin.delete(&format!("{maps}/goes-on")).await?.success()?;
    // Another node still serves these to the oldest.
    let name = format!("goes-on-{node}");
    admin.post(POLICIES, &policy(&name)).await?.success()?;
    admin.delete(&format!("{POLICIES}/{name}")).await?.success()?;
    Ok(())
}

/// The freshness of each version of the group that only the newest node serves.
async fn freshness(admin: &Client) -> Result<Vec<Value>> {
    let versions = versions_of(&discovery(admin).await?.json()?, MIGRATION_GROUP);
    Ok(versions.iter().map(|version| version["freshness"].clone()).collect())
}

async fn served_again(admin: &Client) -> Result<()> {
    let recovered = async || {
        admin.get(BUNDLES).await?.success()?;
        admin.get(MIGRATIONS).await?.success()?;
        admin.get(&format!("/apis/{MIGRATION_GROUP}/v1")).await?.success()?;
        ensure!(freshness(admin).await? == ["Current"]);
        Ok(())
    };
    eventually(NOTICED, recovered).await
}

/// A node that neither answers nor refuses, once the others have noticed.
pub(crate) async fn requests_only_a_halted_node_can_serve_are_refused(cluster: &Cluster) -> Result<()> {
    let halted = cluster.node("node-c").front().process();
    halted.freeze()?;
    let checked = beside_halted_peer(cluster).await;
    halted.thaw()?;
    checked?;
    for node in ["node-a", "node-b"] {
        served_again(&at_front(cluster, node)).await?;
    }
    Ok(())
}

async fn beside_halted_peer(cluster: &Cluster) -> Result<()> {
    for node in ["node-a", "node-b"] {
        let admin = at_front(cluster, node);
        let unreadable = async || {
            ensure!(freshness(&admin).await? == ["Stale"]);
            Ok(())
        };
        eventually(NOTICED, unreadable).await?;
        refused(&admin).await?;
        goes_on(&admin, node).await?;
    }
    Ok(())
}

pub(crate) async fn front_started_beside_a_silent_peer_refuses_what_it_does_not_know(cluster: &Cluster) -> Result<()> {
    let silent = cluster.node("node-c").front().process();
    let own = cluster.node("node-a").front().process();
    own.stop().await?;
    // What it remembers would be listed; here it knows nothing.
    std::fs::remove_dir_all(cluster.cache_directory("node-a"))?;
    silent.freeze()?;
    own.spawn()?;
    let checked = beside_silent_peer(cluster).await;
    silent.thaw()?;
    own.wait_ready().await?;
    checked?;
    served_again(&at_front(cluster, "node-a")).await
}

async fn beside_silent_peer(cluster: &Cluster) -> Result<()> {
    let admin = at_front(cluster, "node-a");
    let is_up = async || goes_on(&admin, "node-a").await;
    eventually(NOTICED, is_up).await?;
    for path in [MIGRATIONS, "/apis/storagemigration.k8s.io/v1", BUNDLES] {
        ensure_unavailable(&admin.get(path).await?).context(path)?;
    }
    // Without the silent peer's groups a document would say that they are gone; also after its Lease has ended.
    let aggregated = admin.clone().with_header("accept", AGGREGATED);
    let began = Instant::now();
    while began.elapsed() < BEYOND_THE_LEASE {
        ensure_unavailable(&aggregated.get("/apis").await?)?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    ensure_unavailable(&admin.get(MIGRATIONS).await?)
}

pub(crate) async fn front_without_its_own_server_answers_through_peers(cluster: &Cluster) -> Result<()> {
    let node = cluster.node("node-a");
    node.upstream().kill().await?;
    let checked = without_own_server(cluster).await;
    node.upstream().start().await?;
    checked?;
    let itself = cluster.client(node.front(), &cluster.admin());
    let back = async || itself.get("/readyz").await?.success().map(drop);
    eventually(NOTICED, back).await
}

/// node-c's server alone has these: no peer's word that there is no such thing may be passed on.
pub(crate) async fn document_that_only_the_own_server_has_is_refused_while_it_is_down(cluster: &Cluster) -> Result<()> {
    let node = cluster.node("node-c");
    let admin = at_front(cluster, "node-c");
    node.upstream().kill().await?;
    let mut checked = Ok(());
    let began = Instant::now();
    while checked.is_ok() && began.elapsed() < Duration::from_secs(8) {
        for path in ["/apis/storagemigration.k8s.io/v1", "/apis/storagemigration.k8s.io/v1/", MIGRATIONS] {
            // What is merged is given out until the loss is noticed.
            checked = checked.and(match admin.get(path).await {
                Ok(answer) if answer.status == 200 => Ok(()),
                Ok(answer) => ensure_unavailable(&answer).with_context(|| path.to_owned()),
                Err(error) => Err(error),
            });
        }
    }
    node.upstream().start().await?;
    checked?;
    served_again(&admin).await
}

async fn without_own_server(cluster: &Cluster) -> Result<()> {
    let readiness = cluster.admin_port("node-a");
    stood_in_for(cluster).await?;
    let noticed = async || {
        let readiness = readiness.get("/readyz").await?.text();
        ensure!(readiness.contains("[~]local-discovery"), "{readiness}");
        Ok(())
    };
    eventually(NOTICED, noticed).await?;
    stood_in_for(cluster).await?;
    let admin = at_front(cluster, "node-a");
    ensure!(freshness(&admin).await? == ["Current"]);
    let legacy = admin.get("/apis").await?.success()?.json()?;
    ensure!(legacy["kind"] == "APIGroupList", "{legacy}");
    Ok(())
}

async fn stood_in_for(cluster: &Cluster) -> Result<()> {
    let kubectl = cluster.kubectl("node-a");
    let namespaces = kubectl.run(&["get", "namespaces", "-o", "name"]).await?.success()?;
    ensure!(namespaces.contains("namespace/kube-system"), "{namespaces}");
    for command in [["get", "clustertrustbundles"].as_slice(), &["api-resources"], &["version"]] {
        kubectl.run(command).await?.success()?;
    }
    goes_on(&at_front(cluster, "node-a"), "node-a").await
}

pub(crate) async fn reroutes_are_counted_under_upstreams_labels(cluster: &Cluster) -> Result<()> {
    let labels = |code| {
        [("group", "certificates.k8s.io"), ("version", "v1"), ("resource", "clustertrustbundles"), ("code", code)]
    };
    let admin = at_front(cluster, "node-b");
    // The peer may just have come back.
    eventually(NOTICED, async || admin.get(BUNDLES).await?.success().map(drop)).await?;
    let before = metrics::read(cluster, "node-b").await?;
    for _ in 0..3 {
        admin.get(BUNDLES).await?.success()?;
    }
    ensure!(admin.get(&format!("{BUNDLES}/missing")).await?.status == 404);
    let after = metrics::read(cluster, "node-b").await?;
    for (code, count) in [("200", 3.0), ("404", 1.0)] {
        let counted = after.value(REROUTED, &labels(code)) - before.value(REROUTED, &labels(code));
        ensure!(counted == count, "{counted} with code {code} instead of {count}");
    }
    let local = [("group", ""), ("version", "v1"), ("resource", "namespaces")];
    admin.get("/api/v1/namespaces").await?.success()?;
    ensure!(
        metrics::read(cluster, "node-b").await?.get(REROUTED, &local).is_none(),
        "a local request counts as rerouted"
    );
    Ok(())
}

pub(crate) async fn known_series_exist_at_zero_from_the_start(cluster: &Cluster) -> Result<()> {
    cluster.node("node-b").front().restart().await?;
    let scrape = metrics::read(cluster, "node-b").await?;
    let nothing = [("group", ""), ("version", ""), ("resource", "")];
    for (family, labels) in [
        (REROUTED, [nothing.as_slice(), &[("code", "200")]].concat()),
        ("apiserver_peer_proxy_errors_total", [nothing.as_slice(), &[("type", "proxy_transport")]].concat()),
        ("peerfront_request_total", vec![("verb", "deletecollection"), ("code", "500")]),
        ("peerfront_request_total", vec![("verb", "proxy"), ("code", "200")]),
    ] {
        let value = scrape.known(family, &labels)?;
        ensure!(value == 0.0, "{family} {labels:?} is {value}");
    }
    // Other fronts' clients have their watches back already, so that this one need not be zero.
    scrape.known("peerfront_current_inflight_requests", &[("request_kind", "longRunning")])?;
    served_again(&at_front(cluster, "node-b")).await
}
