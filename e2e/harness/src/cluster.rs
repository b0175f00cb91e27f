//! A running cluster and its nodes.

mod builder;
mod node;
mod pod;
mod prometheus;
mod start;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::addresses::Block;
use crate::client::{Client, Identity};
use crate::components;
use crate::etcd::EtcdClient;
use crate::kubeconfig::{self, User};
use crate::kubectl::Kubectl;
use crate::pki::{Pki, write_private};
use crate::process::{self, Process, Records, Warden};
use crate::programs;
use crate::progress::Progress;
use crate::topology::{Topology, Version};

pub use builder::ClusterBuilder;
pub use node::{Node, Server};
pub use pod::Pod;

/// A cluster of real servers. Dropping it ends them; its directory goes too if it was a temporary one, unless a test
/// has failed.
///
/// A cluster in a `static` is never dropped: give it a [directory](ClusterBuilder::directory), and the warden ends
/// its processes when the test program ends.
#[derive(Debug)]
pub struct Cluster {
    pki: Pki,
    progress: Progress,
    kubectl: PathBuf,
    // Invariant: dropped in this order, what calls before what is called, then the warden, then their directory.
    controller_manager: Option<Server>,
    nodes: Vec<Node>,
    /// The shared one, then those of single nodes.
    etcds: Vec<Server>,
    records: Records,
    warden: Warden,
    directory: Directory,
    block: Block,
}

/// Where a cluster writes.
#[derive(Debug)]
enum Directory {
    Temporary(tempfile::TempDir),
    Given(PathBuf),
}

impl Directory {
    fn path(&self) -> &Path {
        match self {
            Self::Temporary(directory) => directory.path(),
            Self::Given(path) => path,
        }
    }
}

impl Cluster {
    /// Starts a cluster in a temporary directory; one with fronts needs [`Cluster::builder`], to say which.
    ///
    /// # Errors
    /// As [`ClusterBuilder::start`].
    pub async fn start(topology: Topology) -> Result<Self> {
        Self::builder(topology).start().await
    }

    /// A cluster to be started.
    pub fn builder(topology: Topology) -> ClusterBuilder {
        ClusterBuilder::new(topology)
    }

    /// Where the cluster writes.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The certificates.
    pub fn pki(&self) -> &Pki {
        &self.pki
    }

    /// All nodes, in the topology's order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of this name.
    ///
    /// # Panics
    /// If there is none.
    pub fn node(&self, name: &str) -> &Node {
        self.nodes.iter().find(|node| node.name() == name).expect("a node of this name in the cluster")
    }

    /// The store, to stop it or let it stand still.
    pub fn etcd_process(&self) -> &Process {
        self.shared_etcd().process()
    }

    /// The kube-controller-manager.
    pub fn controller_manager(&self) -> Option<&Server> {
        self.controller_manager.as_ref()
    }

    /// What is really stored in the etcd that the nodes share.
    pub fn etcd(&self) -> EtcdClient {
        EtcdClient::new(Client::plain(self.shared_etcd().address()))
    }

    /// The administrator.
    pub fn admin(&self) -> Identity {
        Identity::certificate(self.pki.admin())
    }

    /// A client of a server, over HTTP/1.1 until told otherwise.
    ///
    /// # Panics
    /// If the identity's certificate and key do not fit together.
    pub fn client(&self, server: &Server, identity: &Identity) -> Client {
        Client::new(server.address(), self.pki.ca().certificate(), identity).expect("a usable identity")
    }

    /// A client of an admin port, which is plain HTTP.
    ///
    /// # Panics
    /// If the node has no front.
    pub fn admin_port(&self, node: &str) -> Client {
        Client::plain(self.node(node).admin())
    }

    /// Where the node's front keeps what servers said last.
    pub fn cache_directory(&self, node: &str) -> PathBuf {
        components::cache_directory(self.directory(), node)
    }

    /// The administrator's kubeconfig through the node's front.
    pub fn kubeconfig_front(&self, node: &str) -> PathBuf {
        self.directory().join(format!("{node}.kubeconfig"))
    }

    /// The administrator's kubeconfig past the node's front.
    pub fn kubeconfig_direct(&self, node: &str) -> PathBuf {
        self.directory().join(format!("{node}-direct.kubeconfig"))
    }

    /// Writes a kubeconfig of another user on a server.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_kubeconfig<'a>(&self, name: &str, server: &Server, user: impl Into<User<'a>>) -> Result<PathBuf> {
        write_kubeconfig(self.directory(), &self.pki, name, server, user.into())
    }

    /// kubectl as the administrator through the node's front.
    pub fn kubectl(&self, node: &str) -> Kubectl {
        self.kubectl_with(self.kubeconfig_front(node))
    }

    /// kubectl as the administrator past the node's front.
    pub fn kubectl_direct(&self, node: &str) -> Kubectl {
        self.kubectl_with(self.kubeconfig_direct(node))
    }

    /// kubectl as somebody else.
    pub fn kubectl_with(&self, kubeconfig: PathBuf) -> Kubectl {
        let cache = self.directory().join("kubectl-cache");
        Kubectl::new(self.kubectl.clone(), kubeconfig, cache, self.records.clone())
    }

    /// A program of `e2e/kubernetes/build`, which is built if it is missing.
    ///
    /// # Errors
    /// If it cannot be built.
    pub async fn build(&self, program: &str, version: &Version) -> Result<PathBuf> {
        Ok(programs::build(&[(program, version.clone())], &self.records).await?.swap_remove(0))
    }

    /// A client of `e2e/clients/install`, which is installed if it is missing.
    ///
    /// # Errors
    /// If it cannot be installed; says which command installs its language.
    pub async fn install(&self, client: &str) -> Result<PathBuf> {
        programs::install(client, &self.records).await
    }

    /// A token of a service account, which is made with its namespace if it is missing; valid for an hour.
    ///
    /// # Errors
    /// If the first node's server refuses.
    pub async fn service_account_token(&self, namespace: &str, name: &str) -> Result<String> {
        let first = self.nodes.first().context("a cluster without nodes")?;
        let admin = self.client(first.upstream(), &self.admin());
        create(&admin, "/api/v1/namespaces", namespace).await?;
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        create(&admin, &accounts, name).await?;
        let request = json!({ "spec": { "expirationSeconds": 3600, "audiences": null } });
        let answer = admin.post(&format!("{accounts}/{name}/token"), &request).await?.success()?.json()?;
        answer["status"]["token"].as_str().map(str::to_owned).context("an answer without a token")
    }

    /// The processes that have ended by themselves.
    pub fn ended(&self) -> Vec<&Process> {
        self.processes().filter(|process| process.ended().is_some()).collect()
    }

    /// Ends everything as an operator would; dropping a cluster is quicker.
    ///
    /// # Errors
    /// If a process cannot be signaled.
    pub async fn stop(self) -> Result<()> {
        self.progress.say("stopping");
        let callers = self.controller_manager.iter().chain(self.nodes.iter().filter_map(Node::front_if_any));
        let upstreams = self.nodes.iter().map(Node::upstream);
        for group in [callers.collect::<Vec<_>>(), upstreams.collect(), self.etcds.iter().collect()] {
            for server in &group {
                server.process().ask_to_end()?;
            }
            for server in group {
                server.process().stop().await?;
            }
        }
        Ok(())
    }

    /// Leaves everything running when this program ends; [`Cluster::stop_detached`] ends it.
    pub fn detach(mut self) -> PathBuf {
        self.processes().for_each(Process::release);
        self.warden.dismiss();
        match std::mem::replace(&mut self.directory, Directory::Given(PathBuf::new())) {
            Directory::Temporary(directory) => directory.keep(),
            Directory::Given(path) => path,
        }
    }

    /// Ends the processes that a cluster in this directory has recorded, and no other; returns their names.
    ///
    /// # Errors
    /// If one cannot be signaled.
    pub async fn stop_detached(directory: &Path) -> Result<Vec<String>> {
        process::end_recorded(&directory.join(builder::RECORDS)).await
    }

    fn shared_etcd(&self) -> &Server {
        self.etcds.first().expect("every cluster has one")
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        let of_nodes = self.nodes.iter().flat_map(|node| node.front_if_any().into_iter().chain([node.upstream()]));
        self.controller_manager.iter().chain(of_nodes).chain(&self.etcds).map(Server::process)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The processes end when their fields are dropped, right after this.
        let Directory::Temporary(directory) = &mut self.directory else { return };
        if std::thread::panicking() {
            directory.disable_cleanup(true);
            let logs = directory.path().join("logs");
            let _ = writeln!(std::io::stderr(), "the cluster's logs are in {}", logs.display());
        }
    }
}

/// Creates an object that may be there already.
async fn create(admin: &Client, collection: &str, name: &str) -> Result<()> {
    let response = admin.post(collection, &json!({ "metadata": { "name": name } })).await?;
    if response.status == 409 { Ok(()) } else { response.success().map(drop) }
}

fn write_kubeconfig(directory: &Path, pki: &Pki, name: &str, server: &Server, user: User<'_>) -> Result<PathBuf> {
    let path = directory.join(format!("{name}.kubeconfig"));
    let url = format!("https://{}", server.address());
    write_private(&path, &kubeconfig::render(&url, pki.ca().certificate(), user))?;
    Ok(path)
}
