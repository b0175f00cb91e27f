//! One view of a cluster whose servers speak every discovery form there has been: legacy documents alone (1.26), v2beta1
//! (1.29) and v2 (1.35, 1.37). Whatever one of them serves, every client of every age and language lists through every
//! node, in whatever order the servers and their fronts have started; what is listed can be explained and asked for.
//!
//! Only `./e2e/test --full` runs this: the old servers and all these clients take long to build.

mod kinds;
mod order;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use peerfront_e2e::discovery::{self, Resource};
use peerfront_e2e::listers::{self, Lister};
use peerfront_e2e::suite::{self, Test};
use peerfront_e2e::{Cluster, Topology, eventually};
use tokio::sync::Mutex;

use order::Order;

/// Longest time in which all fronts come to one view after the last of them has started, on a busy machine.
const SETTLED: Duration = Duration::from_secs(60);
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What all tests share.
struct Versions {
    cluster: Cluster,
    /// Everything that any server serves.
    resources: Vec<Resource>,
    order: Mutex<Order>,
    /// What each client has listed first.
    seen: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

fn main() -> ExitCode {
    let mut tests: Vec<Test<Versions>> = Vec::new();
    for (row, order) in Order::ALL.into_iter().enumerate() {
        tests.extend(listers::all().into_iter().enumerate().map(|(column, lister)| list(order, lister, row + column)));
    }
    tests.extend([
        Test::new("kinds/are_explained_alike", |versions: &Versions| Box::pin(kinds::are_explained_alike(versions))),
        Test::new("kinds/of_one_server_are_checked_and_made_through_every_node", |versions: &Versions| {
            Box::pin(kinds::of_one_server_are_checked_and_made_through_every_node(versions))
        }),
        Test::new("requests/for_whatever_is_listed_are_answered", |versions: &Versions| {
            Box::pin(requests::for_whatever_is_listed_are_answered(versions))
        }),
    ]);
    suite::run(tests, 1, Versions::start(), async |versions: Versions| versions.cluster.stop().await)
}

/// A client lists everything after a start in this order. The number chooses the node: over all orders and clients, every
/// two of order, client and node meet.
fn list(order: Order, lister: Lister, number: usize) -> Test<Versions> {
    Test::new(format!("{order}/{lister}"), move |versions: &Versions| {
        Box::pin(async move {
            versions.start_in(order).await?;
            let nodes = versions.cluster.nodes();
            versions.list(lister, nodes[number % nodes.len()].name()).await
        })
    })
}

impl Versions {
    async fn start() -> Result<Self> {
        let cluster = Cluster::builder(Topology::load("versions")?)
            .peerfront(env!("CARGO_BIN_EXE_peerfront"))
            .directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/versions"))
            .show_progress()
            .start()
            .await?;
        let servers = cluster.nodes().iter().map(|node| cluster.client(node.upstream(), &cluster.admin()));
        let resources = discovery::of_servers(&servers.collect::<Vec<_>>()).await?.into_values().collect();
        let (order, seen) = (Mutex::new(Order::OF_THE_HARNESS), Mutex::default());
        let versions = Self { cluster, resources, order, seen };
        versions.wait_until_settled().await?;
        Ok(versions)
    }

    /// Stops and starts everything in this order, unless it has started so.
    async fn start_in(&self, order: Order) -> Result<()> {
        let mut current = self.order.lock().await;
        if *current != order {
            order.restart(&self.cluster).await?;
            *current = order;
            self.wait_until_settled().await?;
        }
        Ok(())
    }

    /// Waits until all fronts list one thing, and every group version that any server serves is in it, and in their OpenAPI
    /// too, which follows a server that starts some seconds later.
    async fn wait_until_settled(&self) -> Result<()> {
        eventually(SETTLED, async || {
            let mut tags = BTreeSet::new();
            for node in self.cluster.nodes() {
                let client = self.cluster.client(node.front(), &self.cluster.admin());
                let answer = client.with_header("accept", AGGREGATED).get("/apis").await?.success()?;
                tags.insert(answer.header("etag").unwrap_or_default().to_owned());
                let listed = group_versions(&answer.json()?);
                let mut grouped = self.resources.iter().filter(|own| !own.group().is_empty());
                let missing = grouped.find(|own| !listed.contains(&own.group_version));
                ensure!(missing.is_none(), "{} does not list {missing:?}", node.name());
                self.is_published(node.name()).await?;
            }
            ensure!(tags.len() == 1, "the nodes' documents differ");
            Ok(())
        })
        .await
    }

    /// Whether a front's OpenAPI documents have every group version. A server's `/openapi/v2` is read no more often than
    /// every ten seconds, so it follows later than the index.
    async fn is_published(&self, node: &str) -> Result<()> {
        let client = self.cluster.client(self.cluster.node(node).front(), &self.cluster.admin());
        let (index, v2) = ("/openapi/v3", "/openapi/v2");
        let index = client.get(index).await?.success()?.json()?["paths"].to_string();
        let paths = client.get(v2).await?.success()?.json()?["paths"].to_string();
        let missing = self.resources.iter().find(|own| {
            let root = if own.group().is_empty() { "api" } else { "apis" };
            let path = format!("{root}/{}", own.group_version);
            !index.contains(&format!("\"{path}\"")) || !paths.contains(&format!("\"/{path}/"))
        });
        ensure!(missing.is_none(), "{node} does not publish {missing:?}");
        Ok(())
    }

    async fn list(&self, lister: Lister, node: &str) -> Result<()> {
        let lines = lister.lines(&self.cluster, node, &self.resources).await?;
        lister.check(&lines, &self.resources)?;
        let mut seen = self.seen.lock().await;
        let first = seen.entry(lister.to_string()).or_insert_with(|| lines.clone());
        ensure!(*first == lines, "{lister} lists {lines:?} through {node}, and has listed {first:?} before");
        Ok(())
    }
}

/// The group versions of an aggregated document.
fn group_versions(document: &serde_json::Value) -> BTreeSet<String> {
    let groups = document["items"].as_array().into_iter().flatten();
    let versions = groups.flat_map(|group| {
        let name = group["metadata"]["name"].as_str().unwrap_or_default();
        let versions = group["versions"].as_array().into_iter().flatten();
        versions.map(move |version| format!("{name}/{}", version["version"].as_str().unwrap_or_default()))
    });
    versions.collect()
}
