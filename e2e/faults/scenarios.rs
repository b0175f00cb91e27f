//! What fails, and what must hold meanwhile: no wrong 404, nothing sent twice, every refusal a Status that says when to
//! ask again, and what the local server serves undisturbed.

use std::io::Write as _;
use std::net::SocketAddrV4;
use std::time::Duration;

use anyhow::{Result, ensure};
use peerfront_e2e::{Client, Cluster, eventually};
use tokio::time::{Instant, sleep};

use crate::counters;
use crate::network::{Dropped, Silence};
use crate::traffic::{LOCAL, Ledger, MIGRATIONS, Traffic, is_served};

/// Longest time until routes and discovery are right again, on a busy machine.
const RIGHT_AGAIN: Duration = Duration::from_secs(60);
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub(crate) fn at(cluster: &Cluster, node: &str) -> Client {
    cluster.client(cluster.node(node).front(), &cluster.admin())
}

fn fronts(cluster: &Cluster, nodes: &[&str]) -> Vec<SocketAddrV4> {
    nodes.iter().map(|node| cluster.node(node).front().address()).collect()
}

/// Whether a front lists the group that only node-c serves, and how fresh it says that it is.
async fn freshness(admin: &Client) -> Result<Option<String>> {
    let document = admin.clone().with_header("accept", AGGREGATED).get("/apis").await?.success()?.json()?;
    let groups = document["items"].as_array().cloned().unwrap_or_default();
    let group = groups.into_iter().find(|group| group["metadata"]["name"] == "storagemigration.k8s.io");
    Ok(group.map(|group| group["versions"][0]["freshness"].as_str().unwrap_or_default().to_owned()))
}

pub(crate) async fn served(admin: &Client) -> Result<()> {
    eventually(RIGHT_AGAIN, async || {
        admin.get(MIGRATIONS).await?.success()?;
        ensure!(freshness(admin).await?.as_deref() == Some("Current"), "not current");
        Ok(())
    })
    .await
}

/// Waits until a front refuses and says that nobody live serves it; seconds until then.
async fn refused(admin: &Client) -> Result<f64> {
    let began = Instant::now();
    eventually(RIGHT_AGAIN, async || {
        ensure!(!is_served(&admin.get(MIGRATIONS).await?, 200)?, "still served");
        ensure!(freshness(admin).await?.as_deref() == Some("Stale"), "not stale");
        Ok(())
    })
    .await?;
    Ok(began.elapsed().as_secs_f64())
}

fn report(what: &str, noticed: f64, healed: Instant, [local, reader, writer]: [Ledger; 3]) {
    let _ = writeln!(
        std::io::stderr(),
        "{what}: noticed after {noticed:.1} s, right again after {:.1} s; local {local:?}, reader {reader:?}, \
         writer {writer:?}",
        healed.elapsed().as_secs_f64()
    );
}

/// Requests that node-a's front has refused because nobody live serves them.
async fn unresolved(cluster: &Cluster) -> Result<u64> {
    counters::sum(cluster, "apiserver_peer_proxy_errors_total", r#"type="endpoint_resolution""#).await
}

/// Runs traffic at node-a while something fails and is mended again.
async fn through(
    cluster: &Cluster,
    what: &'static str,
    fail: impl AsyncFnOnce() -> Result<()>,
    mend: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    let admin = at(cluster, "node-a");
    served(&admin).await?;
    let counted = unresolved(cluster).await?;
    let traffic = Traffic::start(&admin, what);
    fail().await?;
    let noticed = refused(&admin).await;
    let healed = Instant::now();
    mend().await?;
    let noticed = noticed?;
    served(&admin).await?;
    report(what, noticed, healed, traffic.finish().await?);
    ensure!(unresolved(cluster).await? > counted, "what was refused is not counted");
    Ok(())
}

pub(crate) async fn node_whose_packets_are_dropped_and_let_through_again(cluster: &Cluster) -> Result<()> {
    dropped(cluster, "dropped", &["node-c"], Dropped::FromServer).await
}

pub(crate) async fn node_that_no_packet_reaches_and_that_is_reached_again(cluster: &Cluster) -> Result<()> {
    dropped(cluster, "unreached", &["node-c"], Dropped::ToServer).await
}

pub(crate) async fn all_peers_whose_packets_are_dropped(cluster: &Cluster) -> Result<()> {
    dropped(cluster, "all-dropped", &["node-b", "node-c"], Dropped::FromServer).await
}

async fn dropped(cluster: &Cluster, what: &'static str, nodes: &[&str], packets: Dropped) -> Result<()> {
    let silence = std::cell::Cell::new(None);
    let fail = async || {
        silence.set(Some(Silence::of(&fronts(cluster, nodes), packets)?));
        Ok(())
    };
    let mend = async || {
        drop(silence.take());
        Ok(())
    };
    through(cluster, what, fail, mend).await
}

/// Leases cannot be renewed and nothing can be written, but nobody is forgotten.
pub(crate) async fn etcd_that_stands_still_for_thirty_seconds(cluster: &Cluster) -> Result<()> {
    let admin = at(cluster, "node-a").with_timeout(Duration::from_secs(90));
    served(&admin).await?;
    let etcd = cluster.etcd_process();
    etcd.freeze()?;
    let (mut seen, mut asked) = (Vec::new(), Vec::new());
    let until = Instant::now() + Duration::from_secs(30);
    while Instant::now() < until {
        let clients = ["node-a", "node-b"].map(|node| at(cluster, node).with_timeout(Duration::from_secs(1)));
        let [a, b] = &clients;
        let answers = tokio::join!(a.get(MIGRATIONS), a.get(LOCAL), b.get(MIGRATIONS), b.get(LOCAL));
        asked.extend([answers.0, answers.1, answers.2, answers.3]);
        seen.push(freshness(&admin).await);
        sleep(Duration::from_millis(200)).await;
    }
    etcd.thaw()?;
    for freshness in seen {
        ensure!(freshness?.is_some(), "what node-c serves was forgotten");
    }
    // A server that waits for etcd does not answer; one that does says why.
    for answer in asked.into_iter().flatten().filter(|answer| answer.status != 200) {
        let status = answer.json()?;
        ensure!(answer.status.is_server_error() && status["kind"] == "Status", "{}: {status}", answer.status);
    }
    let healed = Instant::now();
    served(&admin).await?;
    let _ = writeln!(std::io::stderr(), "etcd stood still: right again after {:?}", healed.elapsed());
    Ok(())
}

pub(crate) async fn node_that_leaves_and_joins_again(cluster: &Cluster) -> Result<()> {
    let front = cluster.node("node-c").front();
    through(cluster, "left", async || front.stop().await, async || front.start().await).await
}

pub(crate) async fn front_that_is_killed_and_comes_back(cluster: &Cluster) -> Result<()> {
    let front = cluster.node("node-c").front();
    through(cluster, "killed", async || front.kill().await, async || front.start().await).await
}
