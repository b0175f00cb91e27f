//! Clients of Kubernetes that list what they discover, each in its own way; what they list is the same through every
//! node, and all of it.

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context as _, Result, ensure};

use crate::cluster::Cluster;
use crate::discovery::Resource;
use crate::kubectl::Kubectl;
use crate::programs;

pub use table::{AGGREGATED, LEGACY, MANAGER, OPENAPI, all};

/// A client, and what of it reads discovery.
#[derive(Clone, Copy, Debug)]
pub struct Lister {
    /// The program.
    pub program: Program,
    /// What it is told to do.
    pub task: Task,
}

/// How a program comes here.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// Built by `e2e/kubernetes/build`: name and version.
    Built(&'static str, &'static str),
    /// Installed by `e2e/clients/install`.
    Installed(&'static str),
}

/// What a program is told to do, and with that, which part of discovery it prints.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// `kubectl api-resources`: each resource in one version.
    ApiResources,
    /// `kubectl api-versions`: group versions.
    ApiVersions,
    /// A reader of `discovery-client`: everything.
    Read(&'static str),
    /// The `mapper` of `discovery-client`: no subresources.
    Map,
    /// The capabilities that a chart sees: group versions and kinds.
    Capabilities,
    /// The start of a manager with a controller for each resource that can be listed and watched.
    Manage,
    /// A client of another language: everything.
    List,
    /// The same of one version of each group, the client's choice.
    ListPreferred,
}

impl fmt::Display for Lister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.program {
            Program::Built(name, version) => write!(f, "{name} {version}")?,
            Program::Installed(name) => f.write_str(name)?,
        }
        match self.task {
            Task::ApiResources => f.write_str(" api-resources"),
            Task::ApiVersions => f.write_str(" api-versions"),
            Task::Read(reader) => write!(f, " {reader}"),
            Task::Map => f.write_str(" mapper"),
            Task::Capabilities | Task::Manage | Task::List | Task::ListPreferred => Ok(()),
        }
    }
}

impl Lister {
    /// Builds or installs the program if it is missing.
    ///
    /// # Errors
    /// If that fails.
    pub async fn prepare(&self, cluster: &Cluster) -> Result<std::path::PathBuf> {
        match self.program {
            Program::Built(name, version) => cluster.build(name, &version.parse()?).await,
            Program::Installed(name) => cluster.install(name).await,
        }
    }

    /// What the client lists as the administrator through a node's front, one line each.
    ///
    /// # Errors
    /// If it fails.
    pub async fn lines(&self, cluster: &Cluster, node: &str, resources: &[Resource]) -> Result<BTreeSet<String>> {
        // Nothing of what another run has cached.
        let home = tempfile::tempdir()?;
        let folder = home.path().to_string_lossy();
        let client = cluster.kubectl(node).replaced_by(&self.prepare(cluster).await?);
        let client = ["HOME", "KUBECACHEDIR"].iter().fold(client, |client, name| client.variable(name, &folder));
        self.run(&client, resources).await.with_context(|| format!("{self} through {node}"))
    }

    async fn run(&self, client: &Kubectl, resources: &[Resource]) -> Result<BTreeSet<String>> {
        let run = async |arguments: &[&str]| client.run(arguments).await?.success();
        let lines = |text: String| text.lines().map(|line| line.trim().to_owned()).collect();
        match self.task {
            Task::ApiResources => {
                let table = run(&["api-resources", "--no-headers"]).await?;
                table.lines().map(|row| name_and_version(row).with_context(|| row.to_owned())).collect()
            }
            Task::ApiVersions => run(&["api-versions"]).await.map(lines),
            Task::Read(reader) => run(&[reader]).await.map(lines),
            Task::Map => run(&["mapper"]).await.map(lines),
            Task::Capabilities => {
                let chart = programs::repository().join("e2e/clients/chart");
                let chart = chart.to_string_lossy();
                let text = run(&["install", "--dry-run=server", "capabilities", &chart]).await?;
                Ok(text.lines().filter_map(|line| line.trim().strip_prefix("capability ")).map(str::to_owned).collect())
            }
            Task::Manage => {
                let watched = watched(resources).map(|own| format!("{}.{}.{}", own.name, own.version(), own.group()));
                let watched: Vec<String> = watched.collect();
                run(&watched.iter().map(String::as_str).collect::<Vec<_>>()).await.map(lines)
            }
            Task::List | Task::ListPreferred => run(&[]).await.map(lines),
        }
    }

    /// Whether a client has listed all of these resources, as far as it lists such, and nothing else.
    ///
    /// # Errors
    /// Tells what is missing and what is too much.
    pub fn check(&self, seen: &BTreeSet<String>, resources: &[Resource]) -> Result<()> {
        let expected: BTreeSet<String> = match self.task {
            Task::ApiVersions => resources.iter().map(|own| own.group_version.clone()).collect(),
            Task::Read(_) | Task::List => resources.iter().map(line).collect(),
            Task::Map => resources.iter().filter(|own| !own.is_subresource()).map(line).collect(),
            Task::Manage => watched(resources).map(line).collect(),
            Task::Capabilities => {
                let kinds = resources.iter().map(|own| format!("{}/{}", own.group_version, own.kind));
                resources.iter().map(|own| own.group_version.clone()).chain(kinds).collect()
            }
            Task::ApiResources => {
                let mut chosen = BTreeMap::new();
                let all = resources.iter().filter(|own| !own.is_subresource());
                for own in all {
                    let chosen = chosen.entry((own.group(), &own.name)).or_insert_with(|| line(own));
                    if seen.contains(&line(own)) {
                        *chosen = line(own);
                    }
                }
                chosen.into_values().collect()
            }
            Task::ListPreferred => {
                let mut versions: BTreeMap<&str, &str> = BTreeMap::new();
                for own in resources {
                    let version = versions.entry(own.group()).or_insert(&own.group_version);
                    if seen.contains(&line(own)) {
                        *version = &own.group_version;
                    }
                }
                resources.iter().filter(|own| versions[own.group()] == own.group_version).map(line).collect()
            }
        };
        let missing: Vec<_> = expected.difference(seen).collect();
        let strange: Vec<_> = seen.difference(&expected).collect();
        ensure!(missing.is_empty() && strange.is_empty(), "{self}: missing {missing:#?}, too much {strange:#?}");
        Ok(())
    }
}

/// The resources that an informer can be made for.
fn watched(resources: &[Resource]) -> impl Iterator<Item = &Resource> {
    resources.iter().filter(|own| !own.is_subresource() && own.has_verb("list") && own.has_verb("watch"))
}

fn line(resource: &Resource) -> String {
    format!("{} {}", resource.group_version, resource.name)
}

/// A row of `kubectl api-resources`: NAME, SHORTNAMES (may be absent), APIVERSION, NAMESPACED, KIND.
fn name_and_version(row: &str) -> Option<String> {
    let words: Vec<&str> = row.split_whitespace().collect();
    let namespaced = words.iter().position(|word| ["true", "false"].contains(word))?;
    let version = words.get(namespaced.checked_sub(1)?)?;
    Some(format!("{version} {}", words.first()?))
}

#[cfg(test)]
mod tests;
