use std::net::SocketAddrV4;

use anyhow::Result;

use crate::components::Addresses;
use crate::process::Process;
use crate::topology::Version;

/// A process that listens.
#[derive(Debug)]
pub struct Server {
    address: SocketAddrV4,
    process: Process,
}

/// A control-plane node: a kube-apiserver and, unless the topology says otherwise, a peerfront.
#[derive(Debug)]
pub struct Node {
    addresses: Addresses,
    version: Version,
    front: Option<Server>,
    upstream: Server,
}

impl Server {
    pub(super) fn new(address: SocketAddrV4, process: Process) -> Self {
        Self { address, process }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// The process, for more than what stands below.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// See [`Process::start`].
    ///
    /// # Errors
    /// As there.
    pub async fn start(&self) -> Result<()> {
        self.process.start().await
    }

    /// See [`Process::stop`].
    ///
    /// # Errors
    /// As there.
    pub async fn stop(&self) -> Result<()> {
        self.process.stop().await
    }

    /// See [`Process::kill`].
    ///
    /// # Errors
    /// As there.
    pub async fn kill(&self) -> Result<()> {
        self.process.kill().await
    }

    /// See [`Process::restart`].
    ///
    /// # Errors
    /// As there.
    pub async fn restart(&self) -> Result<()> {
        self.process.restart().await
    }
}

impl Node {
    pub(super) fn new(addresses: Addresses, version: Version, front: Option<Server>, upstream: Server) -> Self {
        Self { addresses, version, front, upstream }
    }

    /// Its hostname.
    pub fn name(&self) -> &str {
        &self.addresses.name
    }

    /// Version of its kube-apiserver.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Its kube-apiserver.
    pub fn upstream(&self) -> &Server {
        &self.upstream
    }

    /// Its peerfront.
    ///
    /// # Panics
    /// If it has none.
    pub fn front(&self) -> &Server {
        self.front.as_ref().expect("a node with a front")
    }

    /// Its peerfront, if it has one.
    pub fn front_if_any(&self) -> Option<&Server> {
        self.front.as_ref()
    }

    /// The admin port of its peerfront.
    ///
    /// # Panics
    /// If it has none.
    pub fn admin(&self) -> SocketAddrV4 {
        assert!(self.front.is_some(), "{} has no front", self.name());
        self.addresses.admin
    }

    /// The etcd that its kube-apiserver uses.
    pub(super) fn etcd(&self) -> SocketAddrV4 {
        self.addresses.etcd
    }

    /// What a client of this node talks to: the front, else the kube-apiserver.
    pub fn entrance(&self) -> &Server {
        self.front.as_ref().unwrap_or(&self.upstream)
    }
}
