//! Three machines and what kubeadm makes of them: a cluster of stacked control planes, without peerfront at first.

use std::net::SocketAddrV4;

use anyhow::{Context as _, Result};
use data_encoding::BASE64;
use peerfront_e2e::{Client, Identity, KeyPair};
use serde_json::Value;

use crate::Workshop;
use crate::life::{KUBELET_CONFIGURATION, cluster_configuration, node_registration};
use crate::node::Node;
use crate::readme::FOLDER;

/// What a further node shows to be let in, and the key of the certificates that it takes from the cluster. Both are of
/// clusters that live for minutes, in a network of their own.
pub(crate) const TOKEN: &str = "abcdef.0123456789abcdef";
pub(crate) const CERTIFICATE_KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Two cores carry three nodes: a busy one must not be taken for a dead one.
const PATIENT_ETCD: &str = "    extraArgs:
      - {name: heartbeat-interval, value: \"500\"}
      - {name: election-timeout, value: \"5000\"}
      - {name: unsafe-no-fsync, value: \"true\"}
";

/// The machines, in the order in which they came.
pub(crate) struct Machines(Vec<Node>);

impl Machines {
    /// Starts three of them.
    pub(crate) async fn start(workshop: &Workshop) -> Result<Self> {
        let start = |name, address| Node::start(&workshop.programs, name, address);
        let (n1, n2, n3) =
            tokio::try_join!(start("n1", "198.18.0.11"), start("n2", "198.18.0.12"), start("n3", "198.18.0.13"))?;
        Ok(Self(vec![n1, n2, n3]))
    }

    pub(crate) fn all(&self) -> &[Node] {
        &self.0
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Node> {
        self.0.iter().find(|node| node.name == name).with_context(|| format!("there is no {name}"))
    }

    /// Addresses of all.
    pub(crate) fn addresses(&self) -> Vec<&str> {
        self.0.iter().map(|node| node.address.as_str()).collect()
    }

    pub(crate) fn add(&mut self, node: Node) {
        self.0.push(node);
    }

    /// Ends a machine.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|node| node.name != name);
    }

    /// Makes the cluster.
    pub(crate) async fn form(&self) -> Result<()> {
        let (first, others) = self.0.split_first().context("no machine")?;
        first.write(&format!("{FOLDER}/init.yaml"), &init_configuration(first))?;
        let init = "kubeadm init --config=init.yaml --upload-certs --ignore-preflight-errors=all --skip-phases=preflight,addon";
        first.shell(&format!("cd {FOLDER}; {init}")).await?;
        for node in others {
            node.write(&format!("{FOLDER}/join.yaml"), &join_configuration(node))?;
            node.name_endpoint(&first.address)?;
            node.shell(&format!("cd {FOLDER}; kubeadm join --config=join.yaml --ignore-preflight-errors=all")).await?;
            node.name_endpoint(&node.address)?;
        }
        Ok(())
    }
}

impl Drop for Machines {
    /// The last one first: each puts settings of the kernel back to what it has found.
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

fn init_configuration(node: &Node) -> String {
    let (registration, cluster) = (node_registration(node), cluster_configuration());
    format!(
        "\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: {}, bindPort: 6443}}
bootstrapTokens: [{{token: {TOKEN}}}]
certificateKey: {CERTIFICATE_KEY}
{registration}---
{cluster}{PATIENT_ETCD}{KUBELET_CONFIGURATION}",
        node.address
    )
}

fn join_configuration(node: &Node) -> String {
    format!(
        "\
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken: {{token: {TOKEN}, apiServerEndpoint: \"cp.e2e:6443\", unsafeSkipCAVerification: true}}
controlPlane:
  localAPIEndpoint: {{advertiseAddress: {}, bindPort: 6443}}
  certificateKey: {CERTIFICATE_KEY}
{}",
        node.address,
        node_registration(node)
    )
}

/// A client of this node's address in the administrator's name, as the node's kubeconfig has it.
pub(crate) fn administrator(node: &Node) -> Result<Client> {
    let config: Value = serde_norway::from_str(&node.read("/etc/kubernetes/admin.conf")?)?;
    let decoded = |value: &Value| -> Result<String> {
        let encoded = value.as_str().context("a kubeconfig without certificates")?;
        Ok(String::from_utf8(BASE64.decode(encoded.as_bytes())?)?)
    };
    let user = &config["users"][0]["user"];
    let pair =
        KeyPair { certificate: decoded(&user["client-certificate-data"])?, key: decoded(&user["client-key-data"])? };
    let roots = decoded(&config["clusters"][0]["cluster"]["certificate-authority-data"])?;
    let address = SocketAddrV4::new(node.address.parse()?, 6443);
    Ok(Client::new(address, &roots, &Identity::certificate(&pair))?.h2())
}
