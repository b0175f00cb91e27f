use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::{Cluster, Directory, Node, Server, start, write_kubeconfig};
use crate::addresses::Block;
use crate::components::{self, Addresses, Context, Peer};
use crate::pki::Pki;
use crate::process::{self, Records, Warden};
use crate::programs;
use crate::progress::{Progress, Terminal};
use crate::topology::{NodeTopology, Storage, Topology};

/// Folder of the running processes' ids.
pub(super) const RECORDS: &str = "pids";
/// Says that a directory is a cluster's and may be emptied for the next one.
const MARK: &str = ".peerfront-cluster";

/// How to start a cluster.
#[derive(Debug)]
pub struct ClusterBuilder {
    topology: Topology,
    directory: Option<PathBuf>,
    peerfront: Option<PathBuf>,
    terminal: Terminal,
}

/// The programs of a topology, built.
struct Programs {
    etcd: PathBuf,
    kubectl: PathBuf,
    kube_apiservers: Vec<PathBuf>,
    controller_manager: Option<PathBuf>,
}

impl ClusterBuilder {
    pub(super) fn new(topology: Topology) -> Self {
        Self { topology, directory: None, peerfront: None, terminal: Terminal::Quiet }
    }

    /// Writes here and leaves it there. What a cluster has written here before is removed; anything else is an error.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// The peerfront to run: `env!("CARGO_BIN_EXE_peerfront")` in a test of the product.
    #[must_use]
    pub fn peerfront(mut self, program: impl Into<PathBuf>) -> Self {
        self.peerfront = Some(program.into());
        self
    }

    /// Shows progress on stderr as well as in the log.
    #[must_use]
    pub fn show_progress(mut self) -> Self {
        self.terminal = Terminal::Shown;
        self
    }

    /// Builds what is missing, starts everything and waits until all of it is ready.
    ///
    /// # Errors
    /// Says what did not start and why, with the end of its log. Nothing is left running.
    pub async fn start(self) -> Result<Cluster> {
        programs::require_tools()?;
        let directory = self.make_directory()?;
        let path = directory.path().to_owned();
        std::fs::create_dir_all(path.join("logs")).context("create the folder of logs")?;
        let progress = Progress::create(&path.join("logs/harness.log"), self.terminal)?;
        let records = Records::create(path.join(RECORDS))?;
        let temporary = matches!(directory, Directory::Temporary(_)).then_some(path.as_path());
        let warden = Warden::start(&records, temporary)?;
        let programs = self.programs(&progress, &records).await?;
        let cluster = self.assemble(directory, progress, (records, warden), programs)?;
        start::everything(&cluster).await?;
        Ok(cluster)
    }

    fn make_directory(&self) -> Result<Directory> {
        let Some(path) = &self.directory else {
            let directory = tempfile::Builder::new().prefix("peerfront-e2e-").tempdir()?;
            return Ok(Directory::Temporary(directory));
        };
        // Programs are started with these paths from whatever folder they like.
        let path = std::path::absolute(path)?;
        if process::is_any_recorded_alive(&path.join(RECORDS)) {
            bail!("a cluster runs in {}", path.display());
        }
        empty(&path)?;
        std::fs::create_dir_all(&path).with_context(|| format!("create {}", path.display()))?;
        std::fs::write(path.join(MARK), "").with_context(|| format!("write to {}", path.display()))?;
        Ok(Directory::Given(path))
    }

    async fn programs(&self, progress: &Progress, records: &Records) -> Result<Programs> {
        let topology = &self.topology;
        let mut wanted = vec![("etcd", topology.etcd.clone())];
        wanted.extend(topology.nodes.iter().map(|node| ("kube-apiserver", node.version.clone())));
        wanted.push(("kubectl", topology.kubectl_version()));
        if let Some(manager) = &topology.controller_manager {
            let version = manager.version.clone().unwrap_or_else(|| topology.oldest_version());
            wanted.push(("kube-controller-manager", version));
        }
        let names: Vec<String> = wanted.iter().map(|(program, version)| format!("{program} {version}")).collect();
        progress.say(&format!("programs: {}", names.join(", ")));
        let mut built = programs::build(&wanted, records).await?.into_iter();
        let mut next = || built.next().context("the builder answered too little");
        Ok(Programs {
            etcd: next()?,
            kube_apiservers: topology.nodes.iter().map(|_| next()).collect::<Result<_>>()?,
            kubectl: next()?,
            controller_manager: topology.controller_manager.as_ref().map(|_| next()).transpose()?,
        })
    }

    fn assemble(
        self,
        directory: Directory,
        progress: Progress,
        (records, warden): (Records, Warden),
        programs: Programs,
    ) -> Result<Cluster> {
        let path = directory.path().to_owned();
        let block = Block::claim(&path)?;
        let addresses: Vec<Addresses> =
            (0..).zip(&self.topology.nodes).map(|(position, node)| addresses(&block, position, node)).collect();
        let mut serving: Vec<IpAddr> = vec![IpAddr::from([127, 0, 0, 1]), IpAddr::V4(block.first)];
        serving.extend(addresses.iter().map(|node| IpAddr::V4(*node.front.ip())));
        let pki = Pki::create(&path.join("pki"), &serving)?;
        let context = Context { directory: &path, pki: &pki, records: &records };
        let etcds = self.etcds(&context, &block, &addresses, &programs.etcd);
        let nodes = self.nodes(&context, &addresses, programs.kube_apiservers)?;
        let controller_manager = match programs.controller_manager {
            Some(program) => Some(self.controller_manager(&context, program, &nodes, block.controller_manager())?),
            None => None,
        };
        let kubectl = link_kubectl(&path, &programs.kubectl)?;
        Ok(Cluster { directory, pki, progress, kubectl, controller_manager, nodes, etcds, records, warden, block })
    }

    /// The shared one, then those of single nodes.
    fn etcds(&self, context: &Context<'_>, block: &Block, addresses: &[Addresses], program: &Path) -> Vec<Server> {
        let etcd = |name: &str, at: Ipv4Addr| {
            let listens = block.etcd(at);
            Server::new(listens.client, components::etcd(context, program.to_owned(), name.to_owned(), listens))
        };
        let own = self.topology.nodes.iter().zip(addresses).filter(|(node, _)| node.etcd == Storage::Own);
        let own = own.map(|(node, addresses)| etcd(&format!("{}-etcd", node.name), *addresses.etcd.ip()));
        std::iter::once(etcd("etcd", block.first)).chain(own).collect()
    }

    fn nodes(&self, context: &Context<'_>, addresses: &[Addresses], programs: Vec<PathBuf>) -> Result<Vec<Node>> {
        let peers: Vec<Option<Peer>> =
            self.topology.nodes.iter().zip(addresses).map(|(node, addresses)| self.peer(node, addresses)).collect();
        let mut nodes = Vec::new();
        for (position, (node, program)) in self.topology.nodes.iter().zip(programs).enumerate() {
            let own = &addresses[position];
            let others = peers.iter().enumerate().filter(|(other, _)| *other != position);
            let others: Vec<Peer> = others.filter_map(|(_, peer)| peer.clone()).collect();
            let others = if self.topology.static_peers { others } else { Vec::new() };
            let front = self.front(context, node, own, &others)?;
            let entrance = if front.is_some() { own.front } else { own.upstream };
            let upstream_proxy = self.topology.has_upstream_proxy(node).then_some(entrance);
            let upstream = components::kube_apiserver(context, program, node, own, upstream_proxy)?;
            let upstream = Server::new(own.upstream, upstream);
            let admin = context.pki.admin().into();
            if let Some(front) = &front {
                write_kubeconfig(context.directory, context.pki, &node.name, front, admin)?;
            }
            let direct = format!("{}-direct", node.name);
            write_kubeconfig(context.directory, context.pki, &direct, &upstream, admin)?;
            nodes.push(Node::new(own.clone(), node.version.clone(), front, upstream));
        }
        Ok(nodes)
    }

    fn front(
        &self,
        context: &Context<'_>,
        node: &NodeTopology,
        addresses: &Addresses,
        peers: &[Peer],
    ) -> Result<Option<Server>> {
        if !self.topology.has_front(node) {
            return Ok(None);
        }
        let program = self.peerfront.clone().with_context(|| format!("{} has a front, but no program", node.name))?;
        Ok(Some(Server::new(addresses.front, components::front(context, program, node, addresses, peers))))
    }

    /// How the other fronts reach this node; not at all if it has neither a front nor upstream's own proxy.
    fn peer(&self, node: &NodeTopology, addresses: &Addresses) -> Option<Peer> {
        let name = node.name.clone();
        if self.topology.has_front(node) {
            Some(Peer::Front { name, address: addresses.front })
        } else if self.topology.has_upstream_proxy(node) {
            Some(Peer::Plain { name, address: addresses.upstream })
        } else {
            None
        }
    }

    fn controller_manager(
        &self,
        context: &Context<'_>,
        program: PathBuf,
        nodes: &[Node],
        address: SocketAddrV4,
    ) -> Result<Server> {
        let manager = self.topology.controller_manager.clone().unwrap_or_default();
        let node = match &manager.node {
            Some(name) => nodes.iter().find(|node| node.name() == name),
            None => nodes.first(),
        };
        let server = node.context("the controller manager's node")?.entrance();
        let read = |name: &str| std::fs::read_to_string(context.pki.file(name)).with_context(|| format!("read {name}"));
        let user =
            crate::pki::KeyPair { certificate: read("controller-manager.crt")?, key: read("controller-manager.key")? };
        let kubeconfig =
            write_kubeconfig(context.directory, context.pki, "controller-manager", server, (&user).into())?;
        let process = components::controller_manager(context, program, address, &kubeconfig, &manager.flags)?;
        Ok(Server::new(address, process))
    }
}

fn addresses(block: &Block, position: u8, node: &NodeTopology) -> Addresses {
    let ip = node.address.unwrap_or_else(|| block.node(position));
    let at = |port| SocketAddrV4::new(ip, port);
    Addresses {
        name: node.name.clone(),
        front: at(block.ports.front),
        admin: at(block.ports.admin),
        upstream: at(block.ports.upstream),
        etcd: block.etcd(if node.etcd == Storage::Own { ip } else { block.first }).client,
    }
}

/// Puts kubectl where people find it under its own name, as a plugin or a script of theirs needs it.
fn link_kubectl(directory: &Path, program: &Path) -> Result<PathBuf> {
    let folder = directory.join("bin");
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let link = folder.join("kubectl");
    std::os::unix::fs::symlink(program, &link).with_context(|| format!("create {}", link.display()))?;
    Ok(link)
}

/// Removes what a cluster has written here, and refuses to remove anything else.
fn empty(path: &Path) -> Result<()> {
    let is_empty = std::fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
    if is_empty {
        return Ok(());
    }
    if !path.join(MARK).is_file() {
        bail!("{} holds something else than a cluster; name another directory", path.display());
    }
    std::fs::remove_dir_all(path).with_context(|| format!("empty {}", path.display()))
}
