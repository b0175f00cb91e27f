//! What servers serve, and what only some of them do.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::Request;
use peerfront_e2e::Client;
use serde_json::Value;

/// The aggregated form that kubectl asks for first.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Paths of resources that can be listed cluster-wide.
pub(crate) type Resources = BTreeSet<String>;

/// The list of all groups, byte for byte.
pub(crate) async fn merged(client: &Client) -> Result<Bytes> {
    let request = Request::get("/apis").header("accept", AGGREGATED).body(Bytes::new())?;
    Ok(client.send(request).await?.success()?.body)
}

/// What can be listed.
pub(crate) async fn resources(client: &Client) -> Result<Resources> {
    let document: Value = serde_json::from_slice(&merged(client).await?)?;
    let items = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut found = Resources::new();
    for group in items(&document, "items") {
        for version in items(&group, "versions") {
            for resource in items(&version, "resources") {
                if resource["scope"] == "Cluster" && items(&resource, "verbs").contains(&"list".into()) {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let [group, version] = [&group["metadata"]["name"], &version["version"]].map(text);
                    found.insert(format!("/apis/{group}/{version}/{}", text(&resource["resource"])));
                }
            }
        }
    }
    Ok(found)
}

/// The first that has been added.
pub(crate) fn added(before: &Resources, now: &Resources) -> Result<String> {
    now.difference(before).next().cloned().context("nothing new is served")
}
