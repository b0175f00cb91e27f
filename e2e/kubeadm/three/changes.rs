//! Changes of an installed cluster that are not upgrades: certificates anew, a node less, a node more.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::eventually;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::cluster::{Cluster, Others};
use super::machines::{CERTIFICATE_KEY, TOKEN, administrator};

use crate::Workshop;
use crate::checks::{self, SETTLED};
use crate::life::NETWORK;
use crate::node::Node;
use crate::readme::INSTALL;

/// When a node that has left is forgotten: after five minutes, and a little later on a busy machine.
const FORGOTTEN: Duration = Duration::from_secs(420);

/// What the administrator of the README fills in.
const JOIN: &str = "kubeadm join cluster.example:6443 ";

impl Cluster<'_> {
    /// Server and front of a node read certificates made anew.
    pub(super) async fn renew(&self, name: &str) -> Result<()> {
        let node = self.machines.get(name)?;
        let before = shown(node).await?;
        let renew = async |node: &Node| {
            self.readme.follow(node, "Renew certificates", &[]).await?;
            checks::with_front(node, self.readme, self.version, &self.machines.addresses()).await
        };
        self.stage_like_a_restart("renewal of certificates", name, renew).await?;
        let replace = async |node: &Node| {
            self.readme.follow(node, "Replace peerfront", &[]).await?;
            checks::with_front(node, self.readme, self.version, &self.machines.addresses()).await
        };
        self.stage_like_a_restart("restart of the front", name, replace).await?;
        let (now, file) = (shown(node).await?, node.read("/etc/kubernetes/pki/apiserver.crt")?);
        ensure!(now == CertificateDer::from_pem_slice(file.as_bytes())?, "{name} does not show its new certificate");
        ensure!(now != before, "{name} has no new certificate");
        Ok(())
    }

    /// A node goes, with what kubeadm and the README have for it.
    pub(super) async fn leave(&mut self, name: &str) -> Result<()> {
        // By now the balancer in front of the nodes sends the administrator elsewhere.
        let first = self.machines.addresses().first().copied().context("no node")?;
        self.machines.get(name)?.name_endpoint(first)?;
        let leave = async |node: &Node| self.readme.follow(node, "A node that leaves", &[]).await.map(drop);
        self.stage("leave", name, Others::AwareOfEtcd, leave).await?;
        self.load.remove(name);
        self.machines.remove(name);
        self.machines.get("n1")?.run(&["kubectl", "delete", "node", name]).await?;
        self.check_all().await
    }

    /// A node comes, with peerfront from the beginning; the others find it.
    pub(super) async fn join(&mut self, workshop: &Workshop, name: &str, address: &str) -> Result<()> {
        let node = Node::start(&workshop.programs, name, address).await?;
        node.install("kubeadm", workshop.programs.path("kubeadm", self.version)?)?;
        let first = self.machines.get("n1")?;
        node.name_endpoint(&first.address)?;
        let printed = first.shell("kubeadm token create --print-join-command").await?;
        let hash = printed.split_whitespace().find(|word| word.starts_with("sha256:")).context("no hash")?;
        let join = format!("TOKEN={TOKEN} HASH={hash} KEY={CERTIFICATE_KEY}\nkubeadm join cp.e2e:6443 ");
        let join = format!("{join}--ignore-preflight-errors=all ");
        self.readme.follow(&node, INSTALL, &[]).await?;
        self.machines.add(node);
        let join = async |node: &Node| {
            self.readme.follow(node, "A node that joins", &[NETWORK, (JOIN, &join)]).await?;
            node.name_endpoint(address)?;
            self.check_all().await
        };
        self.stage("join", name, Others::AwareOfEtcd, join).await?;
        self.load.add(name, administrator(self.machines.get(name)?)?);
        for node in self.machines.all().iter().filter(|node| node.name != name) {
            let found = async || {
                let peers = peers(node).await?;
                let line = format!("{name} at {address}:6443: front, found by its Lease, available, ");
                ensure!(peers.iter().any(|peer| peer.starts_with(&line)), "{peers:?}");
                Ok(())
            };
            eventually(SETTLED, found).await.with_context(|| format!("{} does not know {name}", node.name))?;
        }
        Ok(())
    }

    /// The others forget a node that has left: what its server served stays listed for five minutes, in case it comes back.
    pub(super) async fn is_forgotten(&self, name: &str) -> Result<()> {
        for node in self.machines.all() {
            let forgotten = async || {
                let peers = peers(node).await?;
                ensure!(!peers.iter().any(|peer| peer.starts_with(&format!("{name} at "))), "{peers:?}");
                Ok(())
            };
            eventually(FORGOTTEN, forgotten).await.with_context(|| format!("{} knows {name}", node.name))?;
        }
        Ok(())
    }
}

/// The certificate that clients of a node are shown.
async fn shown(node: &Node) -> Result<CertificateDer<'static>> {
    let stream = administrator(node)?.dial().await?;
    let chain = stream.get_ref().1.peer_certificates().context("no certificate")?;
    Ok(chain.first().context("no certificate")?.clone().into_owned())
}

/// The lines in which a front tells of its peers.
async fn peers(node: &Node) -> Result<Vec<String>> {
    let page =
        node.shell("exec 3<>/dev/tcp/127.0.0.1/6440; printf 'GET /statusz HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3").await?;
    let lines = page.lines().skip_while(|line| *line != "Peers:").skip(1).take_while(|line| !line.is_empty());
    Ok(lines.map(str::to_owned).collect())
}
