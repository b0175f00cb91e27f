//! The merged documents: alike on all nodes, soon up to date, and only for who may read them.

use std::collections::HashSet;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Client, Cluster, Identity};
use serde_json::json;

use crate::support::{AGGREGATED, NOTICED, discovery, ensure_same, eventually, versions_of};

/// The administrator at each front.
pub(crate) fn fronts(cluster: &Cluster) -> Vec<Client> {
    cluster.nodes().iter().map(|node| cluster.client(node.front(), &cluster.admin())).collect()
}

pub(crate) async fn all_fronts_answer_with_the_same_document(cluster: &Cluster) -> Result<()> {
    for path in ["/apis", "/api"] {
        let check = async || {
            let mut answers = Vec::new();
            for client in fronts(cluster) {
                let client = client.with_header("accept", AGGREGATED);
                answers.push(client.get(path).await?.success()?);
                answers.push(client.h2().get(path).await?.success()?);
            }
            for answer in &answers {
                ensure!(answer.header("etag").is_some_and(|tag| tag.len() == 130), "{:?}", answer.headers);
                ensure!(answer.header("etag") == answers[0].header("etag"), "tags of {path} differ");
                ensure!(answer.body == answers[0].body, "bodies of {path} differ");
            }
            Ok(answers.swap_remove(0))
        };
        let merged = eventually(NOTICED, check).await?.json()?;
        let newest = cluster.client(cluster.node("node-c").upstream(), &cluster.admin());
        let own = newest.with_header("accept", AGGREGATED).get(path).await?.success()?.json()?;
        for group in own["items"].as_array().context("groups")? {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            ensure!(!versions_of(&merged, name).is_empty(), "{path} does not list the group {name:?}");
        }
    }
    Ok(())
}

pub(crate) async fn unchanged_document_is_not_sent_again(cluster: &Cluster) -> Result<()> {
    for client in fronts(cluster) {
        let check = async || {
            let tag = discovery(&client).await?.header("etag").context("a tag")?.to_owned();
            let conditional = client.clone().with_header("accept", AGGREGATED).with_header("if-none-match", &tag);
            let again = conditional.get("/apis").await?;
            ensure!(again.status == 304 && again.body.is_empty(), "{}: {}", again.status, again.text());
            ensure!(again.header("etag") == Some(&tag), "{:?}", again.headers);
            Ok(())
        };
        // Whatever another test has changed may have to settle.
        eventually(NOTICED, check).await?;
    }
    Ok(())
}

/// A server compares the whole header with its own tag, and no two forms share one.
pub(crate) async fn every_other_condition_gets_the_document(cluster: &Cluster) -> Result<()> {
    for node in cluster.nodes() {
        for server in [node.front(), node.upstream()] {
            let client = cluster.client(server, &cluster.admin());
            eventually(NOTICED, async || other_conditions(&client).await).await.context(node.name().to_owned())?;
        }
    }
    Ok(())
}

async fn other_conditions(client: &Client) -> Result<()> {
    let older = AGGREGATED.replace("v=v2", "v=v2beta1");
    let mut tags = Vec::new();
    for (accept, path) in
        [AGGREGATED, &older, "application/json"].iter().flat_map(|form| [(form, "/apis"), (form, "/api")])
    {
        let form = client.clone().with_header("accept", accept);
        let answer = form.get(path).await?;
        // Not every server here gives the older form.
        if answer.status != 406 || *accept != older {
            tags.push((form, path, answer.success()?.header("etag").map(str::to_owned)));
        }
    }
    for (form, path, own) in &tags {
        let others = tags.iter().map(|(.., tag)| tag).filter(|tag| *tag != own).flatten().cloned();
        let own = own.iter().flat_map(|tag| [format!("W/{tag}"), format!("{tag}, \"other\""), tag.replace('"', "")]);
        for condition in own.chain(others).chain(["*".to_owned(), "\"other\"".to_owned()]) {
            let answer = form.clone().with_header("if-none-match", &condition).get(path).await?;
            ensure!(answer.status == 200, "{path}: {} for {condition}", answer.status);
        }
    }
    let given: Vec<_> = tags.iter().filter_map(|(.., tag)| tag.as_ref()).collect();
    ensure!(given.len() == given.iter().collect::<HashSet<_>>().len(), "forms share a tag: {given:?}");
    Ok(())
}

/// Served by node-c alone.
const NEWEST: &str = "/apis/storagemigration.k8s.io/v1";

const GROUP: &str = "peerfront.example";

pub(crate) async fn custom_resource_is_usable_at_once_and_listed_everywhere(cluster: &Cluster) -> Result<()> {
    let name = format!("widgets.{GROUP}");
    let kubectl = cluster.kubectl("node-b");
    kubectl.run_with_input(&["create", "-f", "-"], &widgets().to_string()).await?.success()?;
    kubectl.run(&["wait", "--for=condition=Established", "crd", &name, "--timeout=30s"]).await?.success()?;
    let widget = json!({ "apiVersion": "peerfront.example/v1", "kind": "Widget", "metadata": { "name": "one" } });
    let admin = cluster.client(cluster.node("node-b").front(), &cluster.admin());
    let made = admin.post("/apis/peerfront.example/v1/namespaces/default/widgets", &widget).await?;
    ensure!(made.status == 201, "{}: {}", made.status, made.text());

    for client in fronts(cluster) {
        let listed = async || {
            let versions = versions_of(&discovery(&client).await?.json()?, GROUP);
            ensure!(versions.len() == 1 && versions[0]["resources"][0]["resource"] == "widgets", "{versions:?}");
            Ok(())
        };
        eventually(NOTICED, listed).await?;
    }
    for node in cluster.nodes() {
        let listed = cluster.kubectl(node.name()).run(&["get", "widgets", "-o", "name"]).await?.success()?;
        ensure!(listed.trim() == format!("widget.{GROUP}/one"), "{}: {listed}", node.name());
    }
    kubectl.run(&["delete", "crd", &name]).await?.success()?;
    for client in fronts(cluster) {
        let gone = async || {
            ensure!(versions_of(&discovery(&client).await?.json()?, GROUP).is_empty(), "still listed");
            Ok(())
        };
        eventually(NOTICED, gone).await?;
    }
    Ok(())
}

fn widgets() -> serde_json::Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("widgets.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    })
}

pub(crate) async fn who_may_not_read_discovery_gets_the_servers_own_answer(cluster: &Cluster) -> Result<()> {
    let of_nobody = [("Impersonate-User", "system:anonymous"), ("Impersonate-Group", "system:unauthenticated")];
    for (what, identity, headers, status) in [
        ("nobody", Identity::anonymous(), [].as_slice(), 403),
        ("a wrong token", Identity::bearer("wrong"), &[], 401),
        ("nobody, impersonated", cluster.admin(), &of_nobody, 403),
    ] {
        for node in cluster.nodes() {
            let at = |server| {
                let client = cluster.client(server, &identity).with_header("accept", AGGREGATED);
                headers.iter().fold(client, |client, (name, value)| client.with_header(name, value))
            };
            // The last is of a group version that only the newest server has: the others refuse before they look.
            for path in ["/apis", "/api", "/apis/apps", "/apis/apps/v1", "/api/v1", NEWEST] {
                let direct = at(node.upstream()).get(path).await?;
                ensure!(direct.status == status, "{what} at {} itself: {}", node.name(), direct.text());
                for client in [at(node.front()), at(node.front()).h2()] {
                    ensure_same(&format!("{path} for {what}"), &client.get(path).await?, &direct)?;
                }
            }
        }
    }
    Ok(())
}

/// The audit log of the server does not see it.
pub(crate) async fn answer_given_here_is_logged(cluster: &Cluster) -> Result<()> {
    const AUDIT_ID: &str = "6e2f7c51-7a52-4c05-9d5f-0d1a8b4c7e11";
    let front = cluster.node("node-a").front();
    let client = cluster.client(front, &cluster.admin()).with_header("accept", AGGREGATED);
    let answer = client.with_header("audit-id", AUDIT_ID).get("/apis").await?.success()?;
    ensure!(answer.header("audit-id") == Some(AUDIT_ID), "{:?}", answer.headers);
    let log = front.process().log_text();
    let line = log.lines().find(|line| line.contains(AUDIT_ID)).context("no line with the Audit-Id")?;
    for words in ["aggregated_discovery: answered here", "user=\"kubernetes-admin\"", "path=\"/apis\"", "code=200"] {
        ensure!(line.contains(words), "{words} is not in {line}");
    }
    Ok(())
}
