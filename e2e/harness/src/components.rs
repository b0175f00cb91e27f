//! The flags of every program of a cluster, as kubeadm sets them where it does.

mod controller_manager;
mod etcd;
mod front;
mod kube_apiserver;
mod kubelet_standin;
mod prometheus;

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::client::{Client, Identity};
use crate::pki::Pki;
use crate::process::{Process, Ready, Records, Spec};

pub(crate) use controller_manager::controller_manager;
pub(crate) use etcd::etcd;
pub(crate) use front::{Peer, front};
pub(crate) use kube_apiserver::kube_apiserver;
pub(crate) use kubelet_standin::kubelet_standin;
pub(crate) use prometheus::prometheus;

/// What all programs of a cluster need to know.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) pki: &'a Pki,
    pub(crate) records: &'a Records,
}

/// A node's name and addresses.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    pub(crate) name: String,
    pub(crate) front: SocketAddrV4,
    pub(crate) admin: SocketAddrV4,
    pub(crate) upstream: SocketAddrV4,
    /// The etcd that its kube-apiserver uses.
    pub(crate) etcd: SocketAddrV4,
}

impl Context<'_> {
    fn process(&self, name: String, program: PathBuf, hostname: Option<&str>, flags: Flags, ready: Ready) -> Process {
        let log = self.directory.join("logs").join(format!("{name}.log"));
        let hostname = hostname.map(str::to_owned);
        Process::new(Spec { name, program, arguments: flags.0, hostname, log, ready }, self.records.clone())
    }

    /// A program is ready when this path answers 200 to the administrator.
    fn answers(&self, address: SocketAddrV4, path: &str) -> Result<Ready> {
        let client = Client::new(address, self.pki.ca().certificate(), &Identity::certificate(self.pki.admin()))?;
        Ok(Ready::Answers { client, path: path.to_owned() })
    }
}

/// Where a node's front keeps what servers said last, in the directory of its cluster.
pub(crate) fn cache_directory(cluster: &Path, node: &str) -> PathBuf {
    cluster.join("cache").join(node)
}

/// `--name=value` for a command line.
#[derive(Debug, Default)]
struct Flags(Vec<OsString>);

impl Flags {
    fn set(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        let mut flag = OsString::from(format!("--{name}="));
        flag.push(value);
        self.0.push(flag);
        self
    }

    fn extend(mut self, flags: &[String]) -> Self {
        self.0.extend(flags.iter().map(OsString::from));
        self
    }
}
