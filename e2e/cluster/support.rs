//! What the tests of this program share: waiting, and answers that several of them expect.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
pub(crate) use peerfront_e2e::eventually;
use peerfront_e2e::{Client, Response};
use serde_json::Value;

/// Accept of a client that reads aggregated discovery.
pub(crate) const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Trust bundles: Kubernetes 1.37 is the first to serve them by default.
pub(crate) const BUNDLES: &str = "/apis/certificates.k8s.io/v1/clustertrustbundles";

/// Longest time in which a front may notice what has changed on a server, on a busy machine.
pub(crate) const NOTICED: Duration = Duration::from_secs(20);

/// Longest time that a client waits to be told that nobody can serve it.
pub(crate) const REFUSED: Duration = Duration::from_secs(10);

/// Expects the answer for what nobody can serve now: a `Status` 503 that says when to ask again.
pub(crate) fn ensure_unavailable(answer: &Response) -> Result<()> {
    ensure!(answer.status == 503, "{}: {}", answer.status, answer.text());
    let after: u32 = answer.header("retry-after").context("no Retry-After")?.parse()?;
    ensure!((1..=60).contains(&after), "Retry-After: {after}");
    let status = answer.json()?;
    ensure!(
        status["kind"] == "Status" && status["reason"] == "ServiceUnavailable" && status["code"] == 503,
        "{status}"
    );
    Ok(())
}

/// Whether two servers said the same.
pub(crate) fn ensure_same(what: &str, seen: &Response, expected: &Response) -> Result<()> {
    let (seen, expected) = ((seen.status, seen.text()), (expected.status, expected.text()));
    ensure!(seen == expected, "{what}:\n  {seen:?}\ninstead of\n  {expected:?}");
    Ok(())
}

/// The aggregated discovery document at `/apis`.
pub(crate) async fn discovery(client: &Client) -> Result<Response> {
    client.clone().with_header("accept", AGGREGATED).get("/apis").await?.success()
}

/// The group's versions of such a document; none if it does not list the group.
pub(crate) fn versions_of(document: &Value, group: &str) -> Vec<Value> {
    let groups = document["items"].as_array().into_iter().flatten();
    let found = groups.filter(|item| item["metadata"]["name"].as_str().unwrap_or_default() == group);
    found.flat_map(|item| item["versions"].as_array().cloned().unwrap_or_default()).collect()
}

/// A trust bundle, of the least that makes one.
pub(crate) fn bundle(cluster: &peerfront_e2e::Cluster, name: &str) -> Result<Value> {
    let authority = std::fs::read_to_string(cluster.pki().file("ca.crt"))?;
    Ok(serde_json::json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "ClusterTrustBundle",
        "metadata": { "name": name },
        "spec": { "trustBundle": authority },
    }))
}
