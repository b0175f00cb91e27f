//! Deletion of a namespace by a controller manager that knows the oldest server only.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use peerfront_e2e::{Client, Cluster, Topology};
use serde_json::{Value, json};

use crate::support::eventually;

const NAMESPACE: &str = "doomed";

/// An empty request signed by its own key, as kubelet makes them:
/// `openssl req -new -key P256-KEY -subj / -outform DER | base64 -w0`.
const CERTIFICATE_REQUEST: &str = "MIG6MGICAQAwADBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNV1NNteHRQR+QUikW2BwX0WBpd45Ve3IzdqxmZs+\
    G0tamYmjEgjGaLE/jT5/mL3qGH4wB66nf8MDOVVrbi1HoWgADAKBggqhkjOPQQDAgNIADBFAiAYHBTZe7PRbzbYnQxU54FbXtS0D+E/m5JjwwZH5/\
    Y3IAIhAIxG1Xzhwl7F7IgPQdYe9xP0hGKb4ibB2WoWUOF8rKEP";

/// Makes the namespace, and in it what only Kubernetes 1.37 serves.
pub(crate) async fn fill(cluster: &Cluster, namespace: &str, old: &Client, new: &Client) -> Result<()> {
    old.post("/api/v1/namespaces", &json!({ "metadata": { "name": namespace } })).await?.success()?;
    let configuration = json!({ "metadata": { "name": "ordinary" } });
    old.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &configuration).await?.success()?;
    let collection = format!("/apis/certificates.k8s.io/v1/namespaces/{namespace}/podcertificaterequests");
    // The newer server may not have heard of the namespace yet.
    let make = async || new.post(&collection, &pod_certificate_request()).await?.success().map(drop);
    eventually(Duration::from_secs(10), make).await?;
    let stored = keys(cluster, namespace).await?;
    ensure!(stored.iter().any(|key| key.contains("/podcertificaterequests/")), "{stored:?}");
    ensure!(stored.iter().any(|key| key.contains("/configmaps/")), "{stored:?}");
    Ok(())
}

fn pod_certificate_request() -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "PodCertificateRequest",
        "metadata": { "name": "newer" },
        "spec": {
            "signerName": "peerfront.example/nobody",
            "podName": "pod", "podUID": "1",
            "serviceAccountName": "default", "serviceAccountUID": "2",
            "nodeName": "node", "nodeUID": "3",
            "stubPKCS10Request": CERTIFICATE_REQUEST,
        },
    })
}

/// What is stored of the namespace and in it, whatever any server knows of it.
pub(crate) async fn keys(cluster: &Cluster, namespace: &str) -> Result<Vec<String>> {
    let mut keys = cluster.etcd().keys("/registry/").await?;
    keys.retain(|key| key.split('/').any(|part| part == namespace));
    Ok(keys)
}

pub(crate) async fn namespace_with_a_resource_of_a_newer_server_goes_away(cluster: &Cluster) -> Result<()> {
    let admin = cluster.client(cluster.node("node-a").front(), &cluster.admin());
    fill(cluster, NAMESPACE, &admin, &admin).await?;
    let kubectl = cluster.kubectl("node-a");
    kubectl.run(&["delete", "namespace", NAMESPACE, "--timeout=50s"]).await?.success()?;
    let left = keys(cluster, NAMESPACE).await?;
    ensure!(left.is_empty(), "left in etcd: {left:?}");
    Ok(())
}

/// The same in a cluster of its own whose nodes have no front.
pub(crate) async fn without_peerfront_the_object_is_orphaned(_: &Cluster) -> Result<()> {
    let versions = ["1.35.4".parse()?, "1.37.2".parse()?];
    let topology = Topology::load("mixed")?.with_versions(&versions)?.without_fronts();
    let cluster = Cluster::start(topology).await?;
    let [old, new] = ["node-a", "node-b"].map(|node| cluster.client(cluster.node(node).upstream(), &cluster.admin()));
    fill(&cluster, NAMESPACE, &old, &new).await?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}");
    old.delete(&path).await?.success()?;
    let gone = async || match old.get(&path).await?.status.as_u16() {
        404 => Ok(()),
        status => bail!("the namespace is still there: {status}"),
    };
    eventually(Duration::from_secs(50), gone).await?;
    let left = keys(&cluster, NAMESPACE).await?;
    let orphan = format!("/registry/podcertificaterequests/{NAMESPACE}/newer");
    ensure!(left == [orphan], "left in etcd: {left:?}");
    cluster.stop().await
}
