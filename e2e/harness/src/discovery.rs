//! What kube-apiservers serve, by the legacy documents of their group versions, the one form that every release speaks.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::client::Client;

/// Accept of a client that takes an aggregated list, or else a legacy one.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

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
/// A server's lists of groups are not to be trusted: in its legacy one stand the group versions that somebody has last
/// registered in the shared etcd, which it may not serve, and its own may be missing there. So each server is asked for
/// every group version that anybody lists in any form, and serves those whose document it has.
///
/// # Errors
/// If a server does not answer as servers do.
pub async fn of_servers(servers: &[Client]) -> Result<BTreeMap<(String, String), Resource>> {
    let mut listed = BTreeSet::new();
    for server in servers {
        listed.extend(group_versions(server).await?);
    }
    let mut all = BTreeMap::new();
    for server in servers {
        for group_version in &listed {
            for resource in resources(server, group_version).await? {
                all.entry((group_version.clone(), resource.name.clone())).or_insert(resource);
            }
        }
    }
    Ok(all)
}

/// The resources of a group version at one server; none if it does not serve it.
async fn resources(server: &Client, group_version: &str) -> Result<Vec<Resource>> {
    let root = if group_version.contains('/') { "apis" } else { "api" };
    let document = server.get(&format!("/{root}/{group_version}")).await?;
    if document.status == 404 {
        return Ok(Vec::new());
    }
    let resources = document.success()?.json()?["resources"].take();
    let resources: Vec<Resource> = serde_json::from_value(resources).context(group_version.to_owned())?;
    Ok(resources.into_iter().map(|own| Resource { group_version: group_version.to_owned(), ..own }).collect())
}

/// What a server lists, in the legacy form and in an aggregated one if it has any.
async fn group_versions(server: &Client) -> Result<BTreeSet<String>> {
    let core = server.get("/api").await?.success()?.json()?;
    let legacy = server.get("/apis").await?.success()?.json()?;
    let aggregated = server.clone().with_header("accept", AGGREGATED).get("/apis").await?.success()?.json()?;
    let mut listed: BTreeSet<String> = strings(&core["versions"], |version| Some(version));
    for group in legacy["groups"].as_array().into_iter().flatten() {
        listed.extend(strings(&group["versions"], |version| version.get("groupVersion")));
    }
    for group in aggregated["items"].as_array().into_iter().flatten() {
        let name = group["metadata"]["name"].as_str().context("a group without a name")?;
        let versions = strings(&group["versions"], |version| version.get("version"));
        listed.extend(versions.into_iter().map(|version| format!("{name}/{version}")));
    }
    Ok(listed)
}

fn strings(list: &Value, of: impl Fn(&Value) -> Option<&Value>) -> BTreeSet<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| of(item)?.as_str()).map(str::to_owned).collect()
}
