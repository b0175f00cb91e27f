//! OpenAPI: alike on all nodes, with what any server publishes, as clients read it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::Request;
use peerfront_e2e::{Client, Cluster, Identity, Response};
use serde_json::{Value, json};

use crate::discovery::fronts;
use crate::freshness::{CRDS, definition};
use crate::support::{NOTICED, bundle, ensure_same, ensure_unavailable, eventually};

const PROTOBUF_V3: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
const PROTOBUF_V2: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Longest time until every node's `/openapi/v2`, which is read with pauses, is without what has been deleted.
const GONE: Duration = Duration::from_secs(60);

/// The status of CSINodes: a subresource of a group version that all three servers have, served by 1.37 only.
const CSI_NODE_STATUS: &str = "/apis/storage.k8s.io/v1/csinodes/{name}/status";

fn direct(cluster: &Cluster, node: &str) -> Client {
    cluster.client(cluster.node(node).upstream(), &cluster.admin())
}

/// Keys and URLs of an index.
async fn index(client: &Client) -> Result<serde_json::Map<String, Value>> {
    let answer = client.get("/openapi/v3").await?.success()?.json()?;
    Ok(answer["paths"].as_object().context("paths")?.clone())
}

fn url<'i>(index: &'i serde_json::Map<String, Value>, key: &str) -> Result<&'i str> {
    index.get(key).and_then(|entry| entry["serverRelativeURL"].as_str()).with_context(|| format!("{key} is not listed"))
}

/// The answer of every front once all of them give the same body.
async fn agreed(cluster: &Cluster, path: &str, accept: &str) -> Result<Response> {
    eventually(NOTICED, async || agreed_now(cluster, path, accept).await).await
}

async fn agreed_now(cluster: &Cluster, path: &str, accept: &str) -> Result<Response> {
    let mut answers = Vec::new();
    for client in fronts(cluster) {
        let client = client.with_header("accept", accept);
        answers.push(client.get(path).await?.success()?);
        answers.push(client.h2().get(path).await?.success()?);
    }
    for answer in &answers {
        ensure!(answer.body == answers[0].body, "bodies of {path} differ");
        ensure!(answer.header("etag") == answers[0].header("etag"), "tags of {path} differ");
    }
    Ok(answers.swap_remove(0))
}

pub(crate) async fn every_node_publishes_the_same_documents_with_everything(cluster: &Cluster) -> Result<()> {
    let merged = agreed(cluster, "/openapi/v3", "*/*").await?;
    ensure!(merged.header("content-type") == Some("text/plain; charset=utf-8"), "{:?}", merged.headers);
    let front = &fronts(cluster)[0];
    let listed = index(front).await?;
    for node in cluster.nodes() {
        for (key, _) in index(&direct(cluster, node.name())).await? {
            ensure!(listed.contains_key(&key), "{key} of {} is not listed", node.name());
        }
    }
    for (key, entry) in &listed {
        let url = entry["serverRelativeURL"].as_str().context("a URL")?;
        let hash = url.split_once("?hash=").context("a hash")?.1;
        let document = agreed(cluster, url, "application/json").await?;
        ensure!(document.header("etag") == Some(&format!("\"{hash}\"")), "{key}: {:?}", document.headers);
        ensure!(document.header("cache-control") == Some("public, immutable"), "{key}: {:?}", document.headers);
        let document = document.json()?;
        for node in cluster.nodes() {
            let own = direct(cluster, node.name()).get(&format!("/openapi/v3/{key}")).await?;
            if own.status == 200 {
                ensure_superset(key, &document, &own.json()?, &[&["paths"], &["components", "schemas"]])?;
            }
        }
        let binary = agreed(cluster, url, PROTOBUF_V3).await?;
        ensure!(binary.header("etag") == Some(&format!("\"{hash}\"")), "{key}: {:?}", binary.headers);
        ensure_named(key, &binary.body, &document, &[&["paths"], &["components", "schemas"]])?;
    }
    Ok(())
}

pub(crate) async fn v2_has_what_any_server_publishes(cluster: &Cluster) -> Result<()> {
    let document = agreed(cluster, "/openapi/v2", "application/json").await?.json()?;
    let members: [&[&str]; 2] = [&["paths"], &["definitions"]];
    for node in cluster.nodes() {
        let own = direct(cluster, node.name()).get("/openapi/v2").await?.success()?.json()?;
        ensure_superset(node.name(), &document, &own, &members)?;
    }
    let binary = agreed(cluster, "/openapi/v2", PROTOBUF_V2).await?;
    ensure!(
        binary.header("content-type") == Some("application/com.github.proto-openapi.spec.v2.v1.0+protobuf"),
        "{:?}",
        binary.headers
    );
    ensure_named("/openapi/v2", &binary.body, &document, &members)?;
    for client in fronts(cluster) {
        let packed = client.with_header("accept-encoding", "gzip").get("/openapi/v2").await?.success()?;
        ensure!(packed.header("content-encoding") == Some("gzip") && packed.body.len() < 1_000_000);
    }
    Ok(())
}

/// Whether an object at each place has all names that the other has there.
fn ensure_superset(what: &str, merged: &Value, own: &Value, places: &[&[&str]]) -> Result<()> {
    for place in places {
        let at = |document: &Value| place.iter().fold(document.clone(), |value, name| value[name].clone());
        let merged = at(merged);
        for name in at(own).as_object().into_iter().flat_map(|entries| entries.keys()) {
            ensure!(merged.get(name).is_some(), "{what} lacks {name} in {place:?}");
        }
    }
    Ok(())
}

/// Whether all names of the JSON form stand in the other form.
fn ensure_named(what: &str, binary: &[u8], document: &Value, places: &[&[&str]]) -> Result<()> {
    for place in places {
        let entries = place.iter().fold(document.clone(), |value, name| value[name].clone());
        for name in entries.as_object().into_iter().flat_map(|entries| entries.keys()) {
            let is_there = binary.windows(name.len()).any(|window| window == name.as_bytes());
            ensure!(is_there, "the protobuf form of {what} lacks {name}");
        }
    }
    Ok(())
}

pub(crate) async fn subresource_of_a_newer_server_is_in_the_common_document(cluster: &Cluster) -> Result<()> {
    let own = direct(cluster, "node-a").get("/openapi/v3/apis/storage.k8s.io/v1").await?.success()?.json()?;
    ensure!(own["paths"].get(CSI_NODE_STATUS).is_none(), "1.35 has it, so that this test shows nothing");
    let document = agreed(cluster, "/openapi/v3/apis/storage.k8s.io/v1", "application/json").await?.json()?;
    ensure!(document["paths"].get(CSI_NODE_STATUS).is_some());
    Ok(())
}

pub(crate) async fn outdated_hash_is_sent_on_to_the_current_one(cluster: &Cluster) -> Result<()> {
    for client in fronts(cluster) {
        let index = index(&client).await?;
        let current = url(&index, "apis/apps/v1")?;
        // That of a bare server, which clients may have kept.
        let bare = self::index(&direct(cluster, "node-a")).await?;
        let outdated = url(&bare, "apis/apps/v1")?;
        ensure!(outdated != current);
        let moved = client.get(outdated).await?;
        ensure!(moved.status == 301 && moved.body.is_empty(), "{}: {}", moved.status, moved.text());
        ensure!(moved.header("location") == Some(current), "{:?}", moved.headers);
        let tag = format!("\"{}\"", current.split_once('=').context("a hash")?.1);
        let known = client.clone().with_header("if-none-match", &tag).get(current).await?;
        ensure!(known.status == 304 && known.body.is_empty(), "{}: {}", known.status, known.text());
        let unknown = client.get("/openapi/v3/apis/nobody.example.com/v1").await?;
        ensure!(unknown.status == 404, "{}: {}", unknown.status, unknown.text());
    }
    Ok(())
}

pub(crate) async fn kubectl_explains_and_validates_what_only_a_peer_serves(cluster: &Cluster) -> Result<()> {
    for node in cluster.nodes() {
        let kubectl = cluster.kubectl(node.name());
        for (resource, word) in [
            ("clustertrustbundles.spec.trustBundle", "trustBundle"),
            ("storageversionmigrations.spec.resource", "resource"),
            ("csinodes.status", "status"),
        ] {
            let told = kubectl.run(&["explain", resource]).await?.success()?;
            ensure!(told.contains(&format!("FIELD: {word}")), "{}: {told}", node.name());
        }
        let recursive = kubectl.run(&["explain", "--recursive", "clustertrustbundles"]).await?.success()?;
        ensure!(recursive.contains("signerName\t<string>"), "{recursive}");
        let old_form = kubectl.run(&["explain", "--output=plaintext-openapiv2", "clustertrustbundles"]).await?;
        ensure!(old_form.success()?.contains("ClusterTrustBundle"));

        let name = format!("strict-{}", node.name());
        let good = bundle(cluster, &name)?;
        let mut bad = good.clone();
        bad["spec"]["nonsense"] = true.into();
        let create = ["create", "--validate=strict", "-f", "-"];
        let refused = kubectl.run_with_input(&create, &bad.to_string()).await?.failure()?;
        ensure!(refused.contains("nonsense"), "{}: {refused}", node.name());
        let dry = ["apply", "--dry-run=server", "--validate=strict", "-f", "-"];
        kubectl.run_with_input(&dry, &good.to_string()).await?.success()?;
        kubectl.run_with_input(&create, &good.to_string()).await?.success()?;
        kubectl.run(&["delete", "clustertrustbundles", &name]).await?.success()?;
    }
    Ok(())
}

/// A CRD for as long as `check` takes.
async fn with_definition(cluster: &Cluster, definition: &Value, check: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    let admin = cluster.client(cluster.node("node-a").front(), &cluster.admin());
    admin.post(CRDS, definition).await?.success()?;
    let checked = check().await;
    let name = definition["metadata"]["name"].as_str().context("a name")?;
    admin.delete(&format!("{CRDS}/{name}")).await?.success()?;
    checked
}

/// The document of a key once it is the same through every front and has these paths.
async fn agreed_with(cluster: &Cluster, key: &str, paths: &[String]) -> Result<Value> {
    eventually(NOTICED, async || {
        let index = agreed_now(cluster, "/openapi/v3", "*/*").await?.json()?;
        let url = index["paths"][key]["serverRelativeURL"].as_str().with_context(|| format!("{key} is not listed"))?;
        let document = agreed_now(cluster, url, "application/json").await?.json()?;
        for path in paths {
            ensure!(document["paths"].get(path).is_some(), "the document of {key} lacks {path}");
        }
        Ok(document)
    })
    .await
}

pub(crate) async fn custom_resources_are_worded_alike_on_every_node(cluster: &Cluster) -> Result<()> {
    let group = "worded.peerfront.example";
    let mut definition = definition("words", group, &["v1"]);
    let word = json!({ "type": "string", "description": "how it is said" });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "word": word } } });
    definition["spec"]["versions"][0]["schema"] = schema;
    with_definition(cluster, &definition, async || {
        let key = format!("apis/{group}/v1");
        let own = |node| async move { index(&direct(cluster, node)).await };
        eventually(NOTICED, async || {
            let told = |index: &serde_json::Map<String, Value>| url(index, &key).map(ToOwned::to_owned);
            let (old, new) = (told(&own("node-a").await?)?, told(&own("node-c").await?)?);
            ensure!(old != new, "servers of two versions word it alike, so that this test shows nothing");
            Ok(())
        })
        .await?;
        agreed_with(cluster, &key, &[format!("/{key}/words")]).await?;
        eventually(NOTICED, async || {
            let document = agreed_now(cluster, "/openapi/v2", "application/json").await?.json()?;
            ensure!(document["paths"].get(format!("/{key}/words")).is_some(), "/openapi/v2 lacks it");
            Ok(())
        })
        .await?;
        for node in cluster.nodes() {
            let kubectl = cluster.kubectl(node.name());
            let told = kubectl.run(&["explain", "words.word"]).await?.success()?;
            ensure!(told.contains("how it is said"), "{}: {told}", node.name());
        }
        Ok(())
    })
    .await
}

pub(crate) async fn custom_resource_in_a_built_in_group_version_hides_nothing(cluster: &Cluster) -> Result<()> {
    let group_version = "apis/certificates.k8s.io/v1";
    let paths = ["certificatesigningrequests", "clustertrustbundles", "hidings"];
    let paths = paths.map(|resource| format!("/{group_version}/{resource}"));
    let definition = definition("hidings", "certificates.k8s.io", &["v1"]);
    with_definition(cluster, &definition, async || {
        agreed_with(cluster, group_version, &paths).await?;
        for node in cluster.nodes() {
            let told = cluster.kubectl(node.name()).run(&["explain", "clustertrustbundles.spec"]).await?.success()?;
            ensure!(told.contains("trustBundle"), "{}: {told}", node.name());
        }
        Ok(())
    })
    .await?;
    eventually(GONE, async || {
        for path in [&format!("/openapi/v3/{group_version}"), "/openapi/v2"] {
            let document = agreed_now(cluster, path, "application/json").await?;
            ensure!(!document.text().contains("hidings"), "{path} still has it");
        }
        Ok(())
    })
    .await
}

pub(crate) async fn who_may_not_read_openapi_gets_the_servers_own_answer(cluster: &Cluster) -> Result<()> {
    let of_nobody = [("Impersonate-User", "system:anonymous"), ("Impersonate-Group", "system:unauthenticated")];
    let index = index(&fronts(cluster)[0]).await?;
    let only_a_peers = url(&index, "apis/storagemigration.k8s.io/v1")?;
    for (what, identity, headers, status) in [
        ("nobody", Identity::anonymous(), [].as_slice(), 403),
        ("a wrong token", Identity::bearer("wrong"), &[], 401),
        ("nobody, impersonated", cluster.admin(), &of_nobody, 403),
    ] {
        for node in cluster.nodes() {
            let at = |server| {
                let client = cluster.client(server, &identity);
                headers.iter().fold(client, |client, (name, value)| client.with_header(name, value))
            };
            for path in ["/openapi/v3", "/openapi/v2", "/openapi/v3/api/v1", only_a_peers] {
                let direct = at(node.upstream()).get(path).await?;
                ensure!(direct.status == status, "{what} at {} itself: {}", node.name(), direct.text());
                for client in [at(node.front()), at(node.front()).h2()] {
                    ensure_same(&format!("{path} for {what}"), &client.get(path).await?, &direct)?;
                }
                let head = at(node.front()).send(Request::head(path).body(Bytes::new())?).await?;
                ensure!(head.status == status, "HEAD {path} for {what}: {}", head.status);
            }
        }
    }
    Ok(())
}

pub(crate) async fn documents_of_a_lost_server_go_on_being_served(cluster: &Cluster) -> Result<()> {
    let before = agreed(cluster, "/openapi/v3", "*/*").await?;
    let listed = index(&fronts(cluster)[0]).await?;
    let only_there = url(&listed, "apis/storagemigration.k8s.io/v1")?;
    let document = agreed(cluster, only_there, "application/json").await?;
    let v2 = agreed(cluster, "/openapi/v2", "*/*").await?;
    let node = cluster.node("node-c");
    node.upstream().kill().await?;
    let checked = async {
        for name in ["node-a", "node-b", "node-c"] {
            let admin = cluster.admin_port(name);
            eventually(NOTICED, async || {
                let told = admin.get("/readyz").await?.text();
                ensure!(told.contains("OpenAPI documents cannot be read: node-c"), "{told}");
                Ok(())
            })
            .await?;
        }
        for (path, expected) in [("/openapi/v3", &before), ("/openapi/v2", &v2)] {
            ensure!(agreed(cluster, path, "*/*").await?.body == expected.body, "{path} is another one");
        }
        for client in &fronts(cluster)[..2] {
            ensure!(client.get(only_there).await?.success()?.body == document.body, "{only_there} is another one");
        }
        // What nobody else publishes is not held beside the server that does.
        ensure_unavailable(&fronts(cluster)[2].get(only_there).await?)?;
        cluster.kubectl("node-a").run(&["explain", "storageversionmigrations.spec"]).await?.success()?;
        Ok(())
    };
    let checked = checked.await;
    node.upstream().start().await?;
    checked?;
    // A server that starts publishes less than it will, and nobody takes its word for it.
    let is_same = eventually(NOTICED, async || {
        let mut are_read = true;
        for (client, node) in fronts(cluster).iter().zip(cluster.nodes()) {
            if client.get("/openapi/v3").await?.success()?.body != before.body {
                return Ok(false);
            }
            are_read &= cluster.admin_port(node.name()).get("/readyz").await?.text().contains("[+]openapi");
        }
        ensure!(are_read, "node-c is not read yet");
        Ok(true)
    })
    .await?;
    ensure!(is_same, "the index is another one while node-c starts");
    Ok(())
}
