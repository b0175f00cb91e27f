//! Watches of what the local server serves and of what only a peer serves.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use peerfront_e2e::{Client, Cluster, Protocol, Streaming};
use serde_json::{Value, json};

use crate::support::{BUNDLES, bundle};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A collection to watch through the oldest node.
struct Watched {
    collection: &'static str,
    object: fn(&Cluster, &str) -> Result<Value>,
}

/// One that the local server serves, and one that only a peer does.
const WATCHED: [Watched; 2] = [
    Watched { collection: CONFIG_MAPS, object: |_, name| Ok(json!({ "metadata": { "name": name } })) },
    Watched { collection: BUNDLES, object: bundle },
];

impl Watched {
    /// The path of a watch that sees only what comes after now.
    async fn path_from_now(&self, client: &Client) -> Result<String> {
        let list = client.get(&format!("{}?limit=1", self.collection)).await?.success()?.json()?;
        let version = list["metadata"]["resourceVersion"].as_str().context("a resource version")?;
        Ok(format!("{}?watch=true&resourceVersion={version}", self.collection))
    }
}

/// A name and a type of event.
async fn next_event(watch: &mut Streaming, within: Duration) -> Result<String> {
    let line = watch.next_line(within).await?.context("the watch ended")?;
    let event: Value = serde_json::from_str(&line)?;
    Ok(format!("{} {}", event["type"], event["object"]["metadata"]["name"]).replace('"', ""))
}

/// What comes only with the next event, or when a buffer is full, comes too late.
pub(crate) async fn each_event_of_a_watch_comes_at_once(cluster: &Cluster) -> Result<()> {
    const AT_ONCE: Duration = Duration::from_secs(2);
    let admin = cluster.client(cluster.node("node-a").front(), &cluster.admin());
    for watched in &WATCHED {
        for client in [admin.clone(), admin.clone().h2()] {
            let mut watch = client.stream(&watched.path_from_now(&client).await?).await?;
            ensure!(watch.status() == 200);
            for name in ["first", "second", "third"] {
                let object = (watched.object)(cluster, name)?;
                client.post(watched.collection, &object).await?.success()?;
                let event = next_event(&mut watch, AT_ONCE).await?;
                ensure!(event == format!("ADDED {name}"), "{event}");
                client.delete(&format!("{}/{name}", watched.collection)).await?.success()?;
                let event = next_event(&mut watch, AT_ONCE).await?;
                ensure!(event == format!("DELETED {name}"), "{event}");
            }
        }
    }
    Ok(())
}

pub(crate) async fn five_hundred_watches_of_a_resource_all_get_an_event(cluster: &Cluster) -> Result<()> {
    let admin = cluster.client(cluster.node("node-a").front(), &cluster.admin());
    for watched in &WATCHED {
        // A connection carries a hundred streams at most.
        for (protocol, connections, streams) in [(Protocol::H1, 500, 1), (Protocol::H2, 5, 100)] {
            let client = admin.clone().protocol(protocol);
            let path = watched.path_from_now(&client).await?;
            let mut watches = open(&client, &path, connections, streams).await?;
            let name = "seen-by-all";
            client.post(watched.collection, &(watched.object)(cluster, name)?).await?.success()?;
            let events = watches.iter_mut().map(|watch| next_event(watch, Duration::from_secs(30)));
            let events = try_join_all(events).await.with_context(|| format!("{protocol:?} {}", watched.collection))?;
            ensure!(events.len() == 500 && events.iter().all(|event| event == "ADDED seen-by-all"), "{events:?}");
            drop(watches);
            client.delete(&format!("{}/{name}", watched.collection)).await?.success()?;
        }
    }
    Ok(())
}

/// Opens watches, so many on each of so many connections.
async fn open(client: &Client, path: &str, connections: usize, streams: usize) -> Result<Vec<Streaming>> {
    const AT_ONCE: usize = 20;
    let opened = stream::iter(0..connections).map(|_| async {
        let mut connection = client.connect().await?;
        let mut watches = Vec::with_capacity(streams);
        for _ in 0..streams {
            let watch = connection.get(path).await?;
            ensure!(watch.status() == 200, "{}", watch.status());
            watches.push(watch);
        }
        Ok(watches)
    });
    let watches: Vec<Vec<Streaming>> = opened.buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(watches.into_iter().flatten().collect())
}
