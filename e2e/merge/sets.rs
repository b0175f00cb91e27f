//! One set after the other.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Client, Cluster, Response, eventually};
use serde_json::{Value, json};

use crate::documents::{WAYS, groups, mark};
use crate::peers::Peer;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const LOCAL: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer";
const PEERS: usize = 3;
const SETS: usize = 35;
/// Time for a set to arrive, on a busy machine.
const ARRIVED: Duration = Duration::from_secs(60);

pub(crate) async fn front_publishes_what_upstream_publishes(cluster: &Cluster) -> Result<()> {
    let node = cluster.node("node-a");
    let direct = cluster.client(node.upstream(), &cluster.admin());
    let front = cluster.client(node.front(), &cluster.admin());
    install(&direct).await?;
    let mut captures = Vec::new();
    for node in cluster.nodes() {
        captures.push(capture(&cluster.client(node.upstream(), &cluster.admin())).await?);
    }
    let mut peers = Vec::new();
    for number in 0..PEERS {
        peers.push(Peer::start(cluster, &format!("made-{number}")).await?);
    }
    let (direct_list, front_list) =
        [&direct, &front].map(|client| client.clone().with_header("accept", AGGREGATED)).into();
    for set in 0..SETS {
        for (number, peer) in peers.iter().enumerate() {
            // Each way to make a set meets every pair of a peer and a capture.
            let groups = groups(set, number, &captures[(set / WAYS + number) % captures.len()]);
            if set == 0 {
                peer.register(cluster, &direct).await?;
            }
            peer.list(&direct, groups, set + 1).await?;
        }
        let expected = arrived(&direct_list, set).await.with_context(|| format!("set {set} at the server"))?;
        let seen = arrived(&front_list, set).await.with_context(|| format!("set {set} at the front"))?;
        ensure!(seen.body == expected.body, "set {set}: {}", first_difference(&seen, &expected)?);
        ensure!(seen.header("etag") == expected.header("etag"), "set {set}: {:?}", seen.header("etag"));
    }
    let _ = writeln!(std::io::stderr(), "{SETS} sets of {PEERS} documents");
    Ok(())
}

/// What a server lists by itself.
async fn capture(direct: &Client) -> Result<Vec<Value>> {
    let list = direct.clone().with_header("accept", LOCAL).get("/apis").await?.success()?.json()?;
    Ok(list["items"].as_array().context("items")?.clone())
}

/// A CRD, and a group version of a server that is not there.
async fn install(admin: &Client) -> Result<()> {
    let names = json!({ "plural": "widgets", "singular": "widget", "kind": "Widget" });
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": schema });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced", "names": names, "versions": [version] },
    });
    admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await?.success()?;
    let api_service = json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": { "name": "v1.aggregated.example.com" },
        "spec": { "group": "aggregated.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
                  "insecureSkipTLSVerify": true, "service": { "namespace": "default", "name": "nobody" } },
    });
    admin.post("/apis/apiregistration.k8s.io/v1/apiservices", &api_service).await?.success()?;
    eventually(ARRIVED, async || {
        let document = admin.clone().with_header("accept", LOCAL).get("/apis").await?.success()?.text();
        ensure!(document.contains("widgets"), "the CRD is not listed yet");
        Ok(())
    })
    .await
}

/// The document once it has this set's marks and no other's.
async fn arrived(client: &Client, set: usize) -> Result<Response> {
    eventually(ARRIVED, async || {
        let answer = client.get("/apis").await?.success()?;
        let text = answer.text();
        for peer in 0..PEERS {
            ensure!(text.contains(&mark(set, peer)), "peer {peer} is not in");
            let is_old = set > 0 && text.contains(&mark(set - 1, peer));
            ensure!(!is_old, "peer {peer} is in as before");
        }
        Ok(answer)
    })
    .await
}

fn first_difference(seen: &Response, expected: &Response) -> Result<String> {
    let [seen, expected] = [seen.json()?, expected.json()?];
    let names = |document: &Value| -> Vec<String> {
        let items = document["items"].as_array().into_iter().flatten();
        items.map(|group| group["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    if names(&seen) != names(&expected) {
        return Ok(format!("groups {:?} instead of {:?}", names(&seen), names(&expected)));
    }
    let pairs = seen["items"].as_array().into_iter().flatten().zip(expected["items"].as_array().into_iter().flatten());
    let different = pairs.into_iter().find(|(one, other)| one != other);
    Ok(different.map_or("fields in another order".to_owned(), |(one, other)| format!("{one}\ninstead of\n{other}")))
}
