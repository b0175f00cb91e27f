//! Clusters of real kube-apiservers, each with a peerfront in front of it, on loopback addresses of their own.
//!
//! [`Topology`] says what a cluster is made of, [`Cluster`] runs it, [`Client`] and [`Kubectl`] talk to it, and
//! [`EtcdClient`] looks at what is really stored, and stores what no API takes. Everything a cluster writes stays in its
//! directory:
//!
//! ```text
//! pki/                       kubeadm's file names, admin.crt and admin.key
//! node-a.kubeconfig          through peerfront
//! node-a-direct.kubeconfig   past it
//! logs/                      one file per process, and harness.log
//! pids/                      one file per running process: its id and start time
//! etcd/, node-a-etcd/        data, thrown away with the cluster
//! pod/                       where commands in the pod start, if there is one
//! ```
//!
//! No process outlives its cluster: dropping it ends them, and a [warden](process) does when this program dies first.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use peerfront_e2e::{Cluster, Identity, Topology};
//!
//! let cluster = Cluster::builder(Topology::load("mixed")?).peerfront("target/debug/peerfront").start().await?;
//! let node = cluster.node("node-a");
//! let client = cluster.client(node.front(), &Identity::anonymous()).h2();
//! assert_eq!(client.get("/version").await?.status, 200);
//! cluster.node("node-c").upstream().kill().await?;
//! # Ok(())
//! # }
//! ```

mod addresses;
mod components;
mod kubeconfig;
mod programs;
mod progress;
mod waiting;

pub mod client;
pub mod cluster;
pub mod discovery;
pub mod etcd;
pub mod kubectl;
pub mod listers;
pub mod pki;
pub mod process;
pub mod runner;
pub mod suite;
pub mod topology;

pub use client::{Client, Connection, Identity, Protocol, Response, Streaming};
pub use cluster::{Cluster, ClusterBuilder, Node, Pod, Server};
pub use etcd::EtcdClient;
pub use kubeconfig::User;
pub use kubectl::{Kubectl, KubectlOutput};
pub use pki::{KeyPair, Pki, Subject};
pub use process::Process;
pub use topology::{Topology, Version};
pub use waiting::eventually;
