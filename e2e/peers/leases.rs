//! The Leases that fronts keep.

use std::io::Read as _;
use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use peerfront_e2e::{Client, Cluster, eventually};
use serde_json::{Value, json};

use crate::interop::{NOTICED, ONLY_C, at};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// The Leases of fronts, read at the plain server, by host name.
async fn leases(admin: &Client) -> Result<Vec<(String, Value)>> {
    let selector = "?labelSelector=app.kubernetes.io/name%3Dkube-peerfront";
    let list = admin.get(&format!("{LEASES}{selector}")).await?.success()?.json()?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let named = items.into_iter().map(|lease| {
        let hostname = lease["metadata"]["labels"]["kubernetes.io/hostname"].as_str().unwrap_or_default();
        (hostname.to_owned(), lease)
    });
    Ok(named.collect())
}

async fn lease_of(admin: &Client, node: &str) -> Result<Value> {
    let all = leases(admin).await?;
    let own = all.into_iter().find(|(hostname, _)| hostname == node);
    own.map(|(_, lease)| lease).with_context(|| format!("{node} keeps no Lease"))
}

pub(crate) async fn lease_says_who_and_where_and_goes_at_a_clean_stop(cluster: &Cluster) -> Result<()> {
    let admin = at(cluster, "node-b");
    let node = cluster.node("node-c");
    let lease = eventually(NOTICED, async || lease_of(&admin, "node-c").await).await?;
    let (metadata, spec) = (&lease["metadata"], &lease["spec"]);
    let address = node.front().address().to_string();
    ensure!(metadata["annotations"]["kubernetes.io/peer-advertise-address"] == address.as_str(), "{lease}");
    ensure!(metadata["annotations"]["kube-peerfront/served-hash"].as_str().is_some(), "{lease}");
    ensure!(spec["leaseDurationSeconds"] == 15, "{lease}");
    let renewed = async || {
        let now = lease_of(&admin, "node-c").await?;
        ensure!(now["spec"]["renewTime"] != spec["renewTime"], "not renewed: {now}");
        Ok(())
    };
    eventually(NOTICED, renewed).await?;
    node.front().stop().await?;
    let left = lease_of(&admin, "node-c").await;
    node.front().start().await?;
    ensure!(left.is_err(), "still there after a clean stop: {left:?}");
    let again = eventually(NOTICED, async || lease_of(&admin, "node-c").await).await?;
    ensure!(again["spec"]["holderIdentity"] != spec["holderIdentity"], "the same holder after a restart: {again}");
    Ok(())
}

/// node-a knows that node-c is there.
async fn served(cluster: &Cluster) -> Result<()> {
    let admin = at(cluster, "node-a");
    eventually(NOTICED, async || admin.get(ONLY_C).await?.success().map(drop)).await
}

pub(crate) async fn deleted_lease_comes_back(cluster: &Cluster) -> Result<()> {
    let admin = at(cluster, "node-b");
    served(cluster).await?;
    let lease = eventually(NOTICED, async || lease_of(&admin, "node-c").await).await?;
    let name = lease["metadata"]["name"].as_str().context("no name")?;
    admin.delete(&format!("{LEASES}/{name}")).await?.success()?;
    // Nobody is forgotten meanwhile.
    at(cluster, "node-a").get(ONLY_C).await?.success()?;
    let back = async || {
        let now = lease_of(&admin, "node-c").await?;
        ensure!(now["metadata"]["uid"] != lease["metadata"]["uid"], "not deleted: {now}");
        Ok(())
    };
    eventually(NOTICED, back).await?;
    at(cluster, "node-a").get(ONLY_C).await?.success().map(drop)
}

/// A Lease that names an address where nobody proves to be a server of the control plane: the front greets in TLS and
/// sends nothing else.
pub(crate) async fn forged_lease_gets_no_request(cluster: &Cluster) -> Result<()> {
    served(cluster).await?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let admin = at(cluster, "node-b");
    let name = "kube-peerfront-aaaaaaaaaaaaaaaaaaaaaaaaaa";
    let lease = json!({
        "metadata": {
            "name": name,
            "labels": { "app.kubernetes.io/name": "kube-peerfront", "kubernetes.io/hostname": "forged" },
            "annotations": { "kubernetes.io/peer-advertise-address": address },
        },
        "spec": { "holderIdentity": "forged", "leaseDurationSeconds": 15 },
    });
    admin.post(LEASES, &lease).await?.success()?;
    let greeting = tokio::task::spawn_blocking(move || first_bytes(&listener));
    let checked = tokio::time::timeout(NOTICED, greeting).await.context("nobody connects")??;
    admin.delete(&format!("{LEASES}/{name}")).await?.success()?;
    let bytes = checked?;
    // A TLS handshake record, and no server name but the one that must be proven.
    ensure!(bytes.first() == Some(&0x16), "not TLS: {bytes:02x?}");
    let text = String::from_utf8_lossy(&bytes);
    ensure!(text.contains("kubernetes.default.svc"), "{text}");
    at(cluster, "node-a").get(ONLY_C).await?.success().map(drop)
}

/// What the first client says before it is answered with what is no TLS.
fn first_bytes(listener: &TcpListener) -> Result<Vec<u8>> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut bytes = vec![0; 4096];
    let read = stream.read(&mut bytes)?;
    bytes.truncate(read);
    std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
    let mut rest = Vec::new();
    // An alert, or the end of the connection; nothing that could be a request.
    stream.read_to_end(&mut rest).ok();
    if rest.first().is_some_and(|first| *first != 0x15) {
        bail!("more than a handshake: {rest:02x?}");
    }
    Ok(bytes)
}

pub(crate) async fn restarted_front_finds_everybody_again(cluster: &Cluster) -> Result<()> {
    let front = cluster.node("node-a").front();
    front.kill().await?;
    front.start().await?;
    // Ready only once all Leases were listed and everybody was heard.
    at(cluster, "node-a").get(ONLY_C).await?.success().map(drop)
}
