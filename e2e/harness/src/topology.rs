//! What a cluster is made of, read from `e2e/topologies` in layers.
//!
//! `defaults.yaml`, then the named file, then `PEERFRONT_E2E_*` from the environment (camelCase keys as
//! SCREAMING_SNAKE_CASE, `__` between levels), then what the caller overrides. Unknown keys are refused.

mod version;

use std::net::Ipv4Addr;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use config::{Case, Config, Environment, File};
use serde::Deserialize;

pub use version::Version;

/// A whole cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Topology {
    /// Version of etcd.
    pub etcd: Version,
    /// Version of kubectl; absent: the newest of the nodes', which knows every resource.
    pub kubectl: Option<Version>,
    /// Whether nodes have a peerfront, unless they say otherwise.
    pub front: bool,
    /// Whether nodes run upstream's own proxy, unless they say otherwise.
    pub upstream_proxy: bool,
    /// Whether fronts are told of each other by `--peers`; else they find each other through Leases.
    pub static_peers: bool,
    /// The control-plane nodes, one to six.
    pub nodes: Vec<NodeTopology>,
    /// Absent: no kube-controller-manager.
    pub controller_manager: Option<ControllerManagerTopology>,
}

/// One control-plane node.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeTopology {
    /// The node's hostname, and with it its kube-apiserver's identity.
    pub name: String,
    /// Version of its kube-apiserver.
    pub version: Version,
    /// Loopback address; absent: one of the cluster's own block.
    pub address: Option<Ipv4Addr>,
    /// Whether the node has a peerfront; absent: what the cluster says.
    pub front: Option<bool>,
    /// Whether its kube-apiserver runs upstream's own proxy; absent: what the cluster says.
    pub upstream_proxy: Option<bool>,
    /// Where its kube-apiserver keeps its objects; absent: with all others.
    #[serde(default)]
    pub etcd: Storage,
    /// Flags of kube-apiserver added after, and so winning over, those of the harness.
    #[serde(default)]
    pub kube_apiserver_flags: Vec<String>,
    /// The same for peerfront.
    #[serde(default)]
    pub peerfront_flags: Vec<String>,
}

/// The etcd of a node's kube-apiserver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Storage {
    /// The cluster's, as in production.
    #[default]
    Shared,
    /// One that no other server uses: servers many releases apart cannot read each other's objects.
    Own,
}

/// The kube-controller-manager.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControllerManagerTopology {
    /// Absent: the oldest of the nodes' versions.
    pub version: Option<Version>,
    /// The node it talks to, through the front if that node has one; absent: the first.
    pub node: Option<String>,
    /// Flags added after those of the harness.
    #[serde(default)]
    pub flags: Vec<String>,
}

impl Topology {
    /// Reads `e2e/topologies/NAME.yaml` over the defaults.
    ///
    /// # Errors
    /// Fails for a name without a file, an unknown key, and a cluster that cannot be.
    pub fn load(name: &str) -> Result<Self> {
        Self::load_with(name, &[])
    }

    /// The same with overrides such as `("nodes[0].version", "1.36.3")`, which win over all else.
    ///
    /// # Errors
    /// As [`Topology::load`].
    pub fn load_with(name: &str, overrides: &[(&str, &str)]) -> Result<Self> {
        let folder = folder();
        let mut builder = Config::builder()
            .add_source(File::from(folder.join("defaults.yaml")))
            .add_source(File::from(folder.join(format!("{name}.yaml"))))
            .add_source(
                Environment::with_prefix("PEERFRONT_E2E")
                    .prefix_separator("_")
                    .separator("__")
                    .convert_case(Case::Camel),
            );
        for (key, value) in overrides {
            builder = builder.set_override(key, *value).with_context(|| format!("override of {key}"))?;
        }
        let topology: Self = builder
            .build()
            .and_then(Config::try_deserialize)
            .with_context(|| format!("topology {name} in {}", folder.display()))?;
        topology.check()?;
        Ok(topology)
    }

    /// The cluster with one node for each version, in this order and named `node-a`, `node-b` and so on.
    ///
    /// # Errors
    /// Fails for no version and for more than six.
    pub fn with_versions(mut self, versions: &[Version]) -> Result<Self> {
        let node = |(name, version): (char, &Version)| NodeTopology {
            name: format!("node-{name}"),
            version: version.clone(),
            address: None,
            front: None,
            upstream_proxy: None,
            etcd: Storage::Shared,
            kube_apiserver_flags: Vec::new(),
            peerfront_flags: Vec::new(),
        };
        self.nodes = ('a'..).zip(versions).map(node).collect();
        self.check()?;
        Ok(self)
    }

    /// The cluster without any peerfront.
    #[must_use]
    pub fn without_fronts(mut self) -> Self {
        self.front = false;
        self.nodes.iter_mut().for_each(|node| node.front = None);
        self
    }

    /// The node of this name, to change it.
    ///
    /// # Panics
    /// If there is none.
    pub fn node_mut(&mut self, name: &str) -> &mut NodeTopology {
        self.nodes.iter_mut().find(|node| node.name == name).expect("a node of this name in the topology")
    }

    /// Version of kubectl.
    pub fn kubectl_version(&self) -> Version {
        self.kubectl.clone().unwrap_or_else(|| self.newest_version())
    }

    /// The oldest of the nodes' versions.
    ///
    /// # Panics
    /// If there is no node, which no loaded topology is.
    pub fn oldest_version(&self) -> Version {
        self.nodes.iter().map(|node| node.version.clone()).min().expect("a topology with nodes")
    }

    /// The newest of the nodes' versions.
    ///
    /// # Panics
    /// If there is no node, which no loaded topology is.
    pub fn newest_version(&self) -> Version {
        self.nodes.iter().map(|node| node.version.clone()).max().expect("a topology with nodes")
    }

    /// Whether this node has a peerfront.
    pub fn has_front(&self, node: &NodeTopology) -> bool {
        node.front.unwrap_or(self.front)
    }

    /// Whether this node's kube-apiserver runs upstream's own proxy.
    pub fn has_upstream_proxy(&self, node: &NodeTopology) -> bool {
        node.upstream_proxy.unwrap_or(self.upstream_proxy)
    }

    fn check(&self) -> Result<()> {
        if self.nodes.is_empty() || self.nodes.len() > 6 {
            bail!("a cluster has one to six nodes, not {}", self.nodes.len());
        }
        for (position, node) in self.nodes.iter().enumerate() {
            if self.nodes[..position].iter().any(|other| other.name == node.name) {
                bail!("two nodes are named {}", node.name);
            }
            if !node.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
                bail!("{} is no node name", node.name);
            }
        }
        match self.controller_manager.as_ref().and_then(|manager| manager.node.as_ref()) {
            Some(name) if !self.nodes.iter().any(|node| node.name == *name) => {
                bail!("the controller manager's node {name} is not in the cluster")
            }
            _ => Ok(()),
        }
    }
}

fn folder() -> PathBuf {
    crate::programs::repository().join("e2e/topologies")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_cluster_has_three_versions_and_the_oldest_controller_manager() {
        let topology = Topology::load("mixed").unwrap();
        let nodes: Vec<_> = topology.nodes.iter().map(|n| format!("{} {}", n.name, n.version)).collect();
        assert_eq!(nodes, ["node-a 1.35.4", "node-b 1.36.3", "node-c 1.37.2"]);
        assert!(topology.nodes.iter().all(|node| topology.has_front(node) && !topology.has_upstream_proxy(node)));
        assert_eq!(topology.oldest_version().to_string(), "1.35.4");
        assert_eq!(topology.kubectl_version().to_string(), "1.37.2");
        assert!(topology.controller_manager.is_some());
    }

    #[test]
    fn old_servers_have_an_etcd_of_their_own() {
        let topology = Topology::load("versions").unwrap();
        let own = topology.nodes.iter().filter(|node| node.etcd == Storage::Own);
        assert_eq!(own.map(|node| node.version.minor).collect::<Vec<_>>(), [26, 29]);
        assert!(Topology::load_with("versions", &[("nodes[0].etcd", "none")]).is_err());
    }

    #[test]
    fn every_topology_loads() {
        for entry in std::fs::read_dir(folder()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            if name != "defaults" {
                Topology::load(name).unwrap();
            }
        }
    }

    #[test]
    fn overrides_win() {
        let topology =
            Topology::load_with("mixed", &[("nodes[1].version", "1.34.4"), ("front", "false"), ("etcd", "3.5.0")])
                .unwrap();
        assert_eq!(topology.nodes[1].version.to_string(), "1.34.4");
        assert_eq!(topology.nodes[1].name, "node-b");
        assert_eq!(topology.etcd.to_string(), "3.5.0");
        assert!(!topology.front);
    }

    #[test]
    fn unknown_keys_are_refused() {
        let error = Topology::load_with("mixed", &[("upstreamproxy", "true")]).unwrap_err();
        assert!(format!("{error:#}").contains("upstreamproxy"), "{error:#}");
    }

    #[test]
    fn versions_replace_the_nodes() {
        let versions = ["1.36.3", "1.37.2"].map(|v| v.parse().unwrap());
        let topology = Topology::load("mixed").unwrap().with_versions(&versions).unwrap();
        assert_eq!(topology.nodes.len(), 2);
        assert_eq!(topology.nodes[1].name, "node-b");
        assert_eq!(topology.oldest_version(), versions[0]);
        assert!(Topology::load("mixed").unwrap().with_versions(&[]).is_err());
    }

    #[test]
    fn controller_manager_needs_a_node_of_the_cluster() {
        assert!(Topology::load_with("mixed", &[("controllerManager.node", "node-x")]).is_err());
    }
}
