//! How soon a change shows, and what a front shows that has just started.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Client, Cluster};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{AGGREGATED, BUNDLES, NOTICED, discovery, ensure_unavailable, eventually, versions_of};

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const GROUP: &str = "fresh.peerfront.example";

/// Between looks: a small part of what is measured.
const LOOK: Duration = Duration::from_millis(20);

/// A definition with these versions, the first of which is stored.
pub(crate) fn definition(plural: &str, group: &str, versions: &[&str]) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let versions: Vec<Value> = versions
        .iter()
        .map(|name| json!({ "name": name, "served": true, "storage": *name == versions[0], "schema": schema }))
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": { "api-approved.kubernetes.io": "unapproved, for a test" },
        },
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": { "plural": plural, "singular": &plural[..plural.len() - 1], "kind": "Fresh" },
            "versions": versions,
        },
    })
}

/// A group version whose server does not exist.
pub(crate) fn service(group: &str, version: &str) -> Value {
    json!({
        "metadata": { "name": format!("{version}.{group}") },
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "insecureSkipTLSVerify": true,
            "service": { "namespace": "default", "name": "nobody" },
        },
    })
}

/// Waits until the group has these versions: at the server to which the change was made, and through every front. Says
/// how long after the change, and after that server listed it, the last front did.
async fn shown(cluster: &Cluster, what: &str, expected: &[&str]) -> Result<()> {
    let changed = Instant::now();
    let source = cluster.client(cluster.node("node-c").upstream(), &cluster.admin());
    let fronts = cluster.nodes().iter().map(|node| cluster.client(node.front(), &cluster.admin()));
    let clients: Vec<Client> = std::iter::once(source).chain(fronts).collect();
    let waits = clients
        .into_iter()
        .map(|client| tokio::spawn(listed(client, expected.iter().map(|name| (*name).to_owned()).collect())));
    let mut after = Vec::new();
    for wait in waits.collect::<Vec<_>>() {
        after.push(wait.await??.duration_since(changed));
    }
    let (source, last) = (after[0], after[1..].iter().max().copied().unwrap_or_default());
    let behind = last.saturating_sub(source);
    writeln!(
        std::io::stderr(),
        "{what}: listed by its server after {source:?}, through all fronts after {last:?}, {behind:?} later"
    )?;
    Ok(())
}

async fn listed(client: Client, expected: Vec<String>) -> Result<Instant> {
    let deadline = Instant::now() + NOTICED;
    loop {
        let versions = versions_of(&discovery(&client).await?.json()?, GROUP);
        let names: Vec<&str> = versions.iter().filter_map(|version| version["version"].as_str()).collect();
        if names == expected {
            let seen = Instant::now();
            in_every_form(&client, &expected).await?;
            return Ok(seen);
        }
        ensure!(Instant::now() < deadline, "{names:?} instead of {expected:?}");
        sleep(LOOK).await;
    }
}

/// What one form of the list shows, every other one that the server gives shows already.
async fn in_every_form(client: &Client, expected: &[String]) -> Result<()> {
    let older = AGGREGATED.replace("v=v2", "v=v2beta1");
    let answer = client.clone().with_header("accept", &older).get("/apis").await?;
    if answer.status == 200 {
        let versions = versions_of(&answer.json()?, GROUP);
        let names: Vec<&str> = versions.iter().filter_map(|version| version["version"].as_str()).collect();
        ensure!(names == expected, "v2beta1: {names:?} instead of {expected:?}");
    }
    let legacy = client.get("/apis").await?.success()?.json()?;
    let mut groups = legacy["groups"].as_array().into_iter().flatten();
    let versions = groups.find(|group| group["name"] == GROUP).map(|group| group["versions"].clone());
    let versions = versions.unwrap_or_default();
    let names: Vec<&str> =
        versions.as_array().into_iter().flatten().filter_map(|version| version["version"].as_str()).collect();
    ensure!(names == expected, "legacy: {names:?} instead of {expected:?}");
    Ok(())
}

pub(crate) async fn changes_on_a_server_show_through_every_node(cluster: &Cluster) -> Result<()> {
    let newest = cluster.client(cluster.node("node-c").upstream(), &cluster.admin());
    let crd = format!("{CRDS}/freshes.{GROUP}");
    newest.post(CRDS, &definition("freshes", GROUP, &["v1"])).await?.success()?;
    shown(cluster, "a new CRD", &["v1"]).await?;

    let mut known = newest.get(&crd).await?.success()?.json()?;
    known["spec"] = definition("freshes", GROUP, &["v1", "v2"])["spec"].clone();
    newest.put(&crd, &known).await?.success()?;
    shown(cluster, "a new version of a CRD", &["v2", "v1"]).await?;

    newest.delete(&crd).await?.success()?;
    shown(cluster, "a deleted CRD", &[]).await?;

    newest.post(SERVICES, &service(GROUP, "v3")).await?.success()?;
    shown(cluster, "a new APIService", &["v3"]).await?;
    newest.delete(&format!("{SERVICES}/v3.{GROUP}")).await?.success()?;
    shown(cluster, "an APIService that is gone", &[]).await
}

/// kube-apiserver itself hides behind such a definition what a peer serves of the group version.
pub(crate) async fn custom_resource_in_a_built_in_group_hides_nothing(cluster: &Cluster) -> Result<()> {
    let group = "certificates.k8s.io";
    let admin = cluster.client(cluster.node("node-a").front(), &cluster.admin());
    admin.post(CRDS, &definition("freshes", group, &["v1"])).await?.success()?;
    let checked = eventually(NOTICED, async || {
        let crd = admin.get(&format!("{CRDS}/freshes.{group}")).await?.success()?.json()?;
        let conditions = crd["status"]["conditions"].to_string();
        ensure!(conditions.contains("Established"), "{conditions}");
        Ok(())
    });
    checked.await?;
    for node in cluster.nodes() {
        let client = cluster.client(node.front(), &cluster.admin());
        client.get(BUNDLES).await?.success().context("the built-in resource")?;
        let versions = versions_of(&discovery(&client).await?.json()?, group);
        let v1 = versions.iter().find(|version| version["version"] == "v1").context("the built-in version")?;
        for resource in ["certificatesigningrequests", "clustertrustbundles"] {
            ensure!(v1.to_string().contains(resource), "{} does not list {resource}: {v1}", node.name());
        }
        let own = format!("/apis/{group}/v1/freshes");
        let direct = cluster.client(node.upstream(), &cluster.admin()).get(&own).await?.status;
        let status = client.get(&own).await?.status;
        ensure!(status == direct, "the defined resource: {status} through {}, {direct} directly", node.name());
    }
    admin.delete(&format!("{CRDS}/freshes.{group}")).await?.success()?;
    Ok(())
}

pub(crate) async fn front_restarted_beside_a_stopped_one_lists_everything_at_once(cluster: &Cluster) -> Result<()> {
    let (own, other) = (cluster.node("node-a").front(), cluster.node("node-c").front());
    let admin = cluster.client(own, &cluster.admin());
    let before = groups(&discovery(&admin).await?.json()?);
    let published = documents(&admin).await?;
    other.stop().await?;
    let checked = async {
        own.restart().await?;
        let after = groups(&discovery(&admin).await?.json()?);
        let differ = |one: &Groups, other: &Groups| -> Groups {
            one.iter().filter(|item| !other.contains(item)).cloned().collect()
        };
        ensure!(after == before, "lacks {:?}, has {:?} too", differ(&before, &after), differ(&after, &before));
        let now = documents(&admin).await?;
        ensure!(now == published, "OpenAPI was {published:?}, is {now:?}");
        let migrations = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
        ensure_unavailable(&admin.get(migrations).await?)
    };
    let checked = checked.await;
    other.start().await?;
    checked?;
    let served = async || {
        admin.get(BUNDLES).await?.success()?;
        let document = admin.clone().with_header("accept", AGGREGATED).get("/apis").await?.success()?;
        ensure!(!document.text().contains("Stale"), "{}", document.text());
        Ok(())
    };
    eventually(NOTICED, served).await
}

/// Which OpenAPI documents are listed, and the tags of two of which a part or all is the newest server's. What is not
/// known yet after a start is waited for.
async fn documents(client: &Client) -> Result<Vec<String>> {
    let read = async |path| {
        let mut answer = client.get(path).await?;
        while answer.status == 503 {
            sleep(LOOK).await;
            answer = client.get(path).await?;
        }
        answer.success()
    };
    let index: Value = read("/openapi/v3").await?.json()?;
    let mut all: Vec<String> = index["paths"].as_object().context("an index")?.keys().cloned().collect();
    for path in ["/openapi/v3/api/v1", "/openapi/v3/apis/storagemigration.k8s.io/v1"] {
        all.push(read(path).await?.header("etag").context("a tag")?.to_owned());
    }
    Ok(all)
}

type Groups = Vec<(String, String, String)>;

/// Every group with its versions and their resources.
fn groups(document: &Value) -> Groups {
    let mut all = Vec::new();
    for group in document["items"].as_array().into_iter().flatten() {
        for version in group["versions"].as_array().into_iter().flatten() {
            let resources = version["resources"].as_array().into_iter().flatten();
            let names: Vec<&str> = resources.filter_map(|resource| resource["resource"].as_str()).collect();
            let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            all.push((name(&group["metadata"]["name"]), name(&version["version"]), names.join(",")));
        }
    }
    all
}
