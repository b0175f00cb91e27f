//! What a kube-apiserver says of itself in its legacy discovery documents, the one form that every release speaks.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::client::Client;

/// A resource in one group version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Resource {
    /// Such as `v1` or `apps/v1`.
    #[serde(skip)]
    pub group_version: String,
    /// Such as `pods` or `pods/log`.
    pub name: String,
    /// Such as `Pod`.
    pub kind: String,
    /// Whether its objects lie in namespaces.
    pub namespaced: bool,
    /// What can be done with it, such as `list`.
    pub verbs: Vec<String>,
}

impl Resource {
    /// The group; empty for the core group.
    pub fn group(&self) -> &str {
        self.group_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version.
    pub fn version(&self) -> &str {
        self.group_version.split_once('/').map_or(&self.group_version, |(_, version)| version)
    }

    /// Whether it is a part of another resource, such as `pods/log`.
    pub fn is_subresource(&self) -> bool {
        self.name.contains('/')
    }

    /// Whether this can be done with it.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|own| own == verb)
    }

    /// The path of its group version.
    pub fn prefix(&self) -> String {
        let root = if self.group().is_empty() { "api" } else { "apis" };
        format!("/{root}/{}", self.group_version)
    }
}

/// All resources of all servers, each once, as the first that has it says; by group version and name.
///
/// # Errors
/// If a server does not answer as servers do.
pub async fn of_servers(servers: &[Client]) -> Result<BTreeMap<(String, String), Resource>> {
    let mut all = BTreeMap::new();
    for server in servers {
        for resource in of_server(server).await? {
            all.entry((resource.group_version.clone(), resource.name.clone())).or_insert(resource);
        }
    }
    Ok(all)
}

/// All resources of one server. What another one has registered in the etcd they share is listed and not served: it
/// does not count.
async fn of_server(server: &Client) -> Result<Vec<Resource>> {
    let mut found = Vec::new();
    for group_version in group_versions(server).await? {
        let root = if group_version.contains('/') { "apis" } else { "api" };
        let document = server.get(&format!("/{root}/{group_version}")).await?;
        if document.status == 404 {
            continue;
        }
        let resources = document.success()?.json()?["resources"].take();
        let resources: Vec<Resource> = serde_json::from_value(resources).context(group_version.clone())?;
        found.extend(resources.into_iter().map(|own| Resource { group_version: group_version.clone(), ..own }));
    }
    Ok(found)
}

async fn group_versions(server: &Client) -> Result<Vec<String>> {
    let core = server.get("/api").await?.success()?.json()?;
    let groups = server.get("/apis").await?.success()?.json()?;
    let core = core["versions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let versions = groups["groups"].as_array().into_iter().flatten().filter_map(|group| group["versions"].as_array());
    let others = versions.flatten().filter_map(|version| version["groupVersion"].as_str());
    Ok(core.chain(others).map(str::to_owned).collect())
}
