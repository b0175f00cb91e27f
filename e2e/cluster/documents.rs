//! The documents of old: what one node lists every node lists, and all of it has its document.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Client, Cluster};
use serde_json::{Value, json};

use crate::discovery::fronts;
use crate::support::{NOTICED, discovery, eventually};

/// Every group version that `/apis` lists, as `group/version`.
async fn listed(client: &Client) -> Result<BTreeSet<String>> {
    let list = client.get("/apis").await?.success()?.json()?;
    let groups = list["groups"].as_array().context("groups")?;
    let versions = groups.iter().flat_map(|group| group["versions"].as_array().into_iter().flatten());
    versions.map(|version| Ok(version["groupVersion"].as_str().context("a group version")?.to_owned())).collect()
}

/// Every path of a document of old that the listed group versions have, but `/apis` itself.
fn paths(listed: &BTreeSet<String>) -> BTreeSet<String> {
    let of_group = |version: &String| version.split_once('/').map(|(group, _)| format!("/apis/{group}"));
    let groups = listed.iter().filter_map(of_group);
    groups.chain(listed.iter().map(|version| format!("/apis/{version}"))).chain(["/api/v1".to_owned()]).collect()
}

pub(crate) async fn every_listed_group_version_has_the_same_document_on_every_node(cluster: &Cluster) -> Result<()> {
    let check = async || {
        let fronts = fronts(cluster);
        let all = listed(&fronts[0]).await?;
        ensure!(all.len() > 20, "{all:?}");
        let newest = cluster.client(cluster.node("node-c").upstream(), &cluster.admin());
        ensure!(listed(&newest).await?.is_subset(&all), "something of the newest server is missing");
        let merged = discovery(&fronts[0]).await?.json()?;
        ensure!(aggregated(&merged) == all, "the forms list different group versions");
        for path in paths(&all).iter().map(String::as_str).chain(["/apis", "/apis/"]) {
            for media_type in ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"] {
                alike(&fronts, path, media_type).await?;
            }
        }
        Ok(())
    };
    eventually(NOTICED, check).await
}

/// Nothing that a document lists is denied by the server that is asked for it.
pub(crate) async fn every_listed_resource_answers_on_every_node(cluster: &Cluster) -> Result<()> {
    for front in fronts(cluster) {
        let mut answered = 0;
        let versions = listed(&front).await?.into_iter().map(|version| format!("/apis/{version}"));
        for version in versions.chain(["/api/v1".to_owned()]) {
            let document = front.get(&version).await?.success()?.json()?;
            for resource in document["resources"].as_array().into_iter().flatten() {
                answered += u32::from(answers(&front, &version, resource).await?);
            }
        }
        ensure!(answered > 60, "only {answered} resources are listed");
    }
    Ok(())
}

/// Expects a list of the resource, or that a server takes note of what is to be created; false for one that has neither.
async fn answers(front: &Client, version: &str, resource: &Value) -> Result<bool> {
    let name = resource["name"].as_str().context("a name")?;
    let has = |verb: &str| resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|known| known == verb));
    if has("list") {
        front.get(&format!("{version}/{name}")).await?.success()?;
        return Ok(true);
    }
    if name.contains('/') || !has("create") {
        return Ok(false);
    }
    let place = if resource["namespaced"] == true { "/namespaces/default" } else { "" };
    let answer = front.post(&format!("{version}{place}/{name}"), &json!({})).await?;
    ensure!(![404, 503].contains(&answer.status.as_u16()), "{version} {name}: {}", answer.text());
    Ok(true)
}

/// Whether a document comes, and the same from all.
async fn alike(fronts: &[Client], path: &str, media_type: &str) -> Result<()> {
    let mut first = None;
    for front in fronts {
        let answer = front.clone().with_header("accept", media_type).get(path).await?.success()?;
        ensure!(answer.header("content-type") == Some(media_type), "{path}: {:?}", answer.headers);
        // Every answer of a server has it.
        ensure!(answer.header("x-kubernetes-pf-flowschema-uid").is_none(), "{path} is passed on");
        let expected = first.get_or_insert_with(|| answer.body.clone());
        ensure!(answer.body == *expected, "{path} differs in {media_type}: {}", answer.text());
    }
    Ok(())
}

fn aggregated(document: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for group in document["items"].as_array().into_iter().flatten() {
        for version in group["versions"].as_array().into_iter().flatten() {
            let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            all.insert(format!("{}/{}", name(&group["metadata"]["name"]), name(&version["version"])));
        }
    }
    all
}

/// The entries of a document by name; none if the server does not have it.
async fn entries(client: &Client, path: &str) -> Result<BTreeMap<String, Value>> {
    let answer = client.get(path).await?;
    if answer.status == 404 {
        return Ok(BTreeMap::new());
    }
    let document = answer.success()?.json()?;
    let resources = document["resources"].as_array().context("resources")?;
    resources.iter().map(|entry| Ok((entry["name"].as_str().context("a name")?.to_owned(), entry.clone()))).collect()
}

pub(crate) async fn entries_are_those_of_the_servers_that_own_them(cluster: &Cluster) -> Result<()> {
    let front = &fronts(cluster)[0];
    let servers: Vec<Client> =
        cluster.nodes().iter().map(|node| cluster.client(node.upstream(), &cluster.admin())).collect();
    let check = async || {
        let mut hashes = 0;
        for path in paths(&listed(front).await?).iter().filter(|path| path.matches('/').count() == 3) {
            let merged = entries(front, path).await?;
            let mut owned = Vec::new();
            for server in &servers {
                owned.push(entries(server, path).await?);
            }
            let names: BTreeSet<&String> = owned.iter().flat_map(BTreeMap::keys).collect();
            ensure!(merged.keys().collect::<BTreeSet<_>>() == names, "{path} lists {merged:?}");
            for (name, entry) in &merged {
                let is_owned = owned.iter().any(|entries| entries.get(name) == Some(entry));
                ensure!(is_owned, "{path}: nobody says {entry}");
                hashes += usize::from(entry.get("storageVersionHash").is_some());
            }
        }
        ensure!(hashes > 30, "{hashes} storage version hashes");
        Ok(())
    };
    eventually(NOTICED, check).await
}

pub(crate) async fn core_versions_differ_in_the_address_of_the_server_alone(cluster: &Cluster) -> Result<()> {
    for node in cluster.nodes() {
        let at = |server| cluster.client(server, &cluster.admin());
        let own = at(node.upstream()).get("/api").await?.success()?;
        let check = async || {
            let found = at(node.front()).get("/api").await?.success()?;
            ensure!(found.text() == own.text(), "{}: {} instead of {}", node.name(), found.text(), own.text());
            Ok(())
        };
        eventually(NOTICED, check).await?;
    }
    Ok(())
}
