//! What to add to kubeadm's configuration.

use std::fmt::Write as _;

use super::cluster::Cluster;
use super::files::Node;
use super::options::{ConfigApi, Options, Version};

/// The whole file: two documents that `kubeadm init --config` reads by themselves.
pub(super) fn kubeadm(options: &Options, node: &Node, cluster: &Cluster) -> String {
    format!("{}---\n{}", init_configuration(options, node, cluster.api()), cluster_configuration(cluster))
}

/// What is of this node only.
fn init_configuration(options: &Options, node: &Node, api: ConfigApi) -> String {
    let mut text = String::new();
    if api == ConfigApi::V1 {
        text.push_str(
            "# kubeadm 1.37 takes this API version only with --allow-experimental-api; v1beta4 works, too.\n",
        );
    }
    let _ = write!(text, "{WHAT}apiVersion: {api}\nkind: InitConfiguration\n");
    if let Some(address) = options.advertise_address.or(node.advertise_address) {
        let _ = write!(
            text,
            "# Of this node only: each node has its own.\nlocalAPIEndpoint:\n  advertiseAddress: \"{address}\"\n  bindPort: {}\n",
            node.port
        );
    }
    if !options.remove {
        let _ = write!(text, "{PATCHES}patches:\n  directory: {}\n", options.patches_dir.display());
    }
    text
}

fn cluster_configuration(cluster: &Cluster) -> String {
    match cluster {
        Cluster::Running { text, .. } => text.clone(),
        Cluster::New { api, arguments } => {
            let mut text = format!("apiVersion: {api}\nkind: ClusterConfiguration\napiServer:\n  extraArgs:\n");
            arguments.iter().for_each(|argument| text.push_str(&argument.yaml(*api)));
            text
        }
    }
}

const WHAT: &str = "\
# kubeadm's configuration with what lets peerfront hold the server's port. For a new cluster, add the rest of your own.
";

const PATCHES: &str = "\
# The patches must lie there on every control-plane node. When a node joins, name the folder again (kubeadm join --patches,
# or this key in JoinConfiguration), and when one is upgraded (kubeadm upgrade apply --patches, kubeadm upgrade node
# --patches).
";

/// One of the server's flags.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    why: &'static str,
    pub(super) name: &'static str,
    pub(super) value: &'static str,
}

impl Argument {
    /// An item of the list that extraArgs is from v1beta4 on, or an entry of the map that it was before.
    fn yaml(&self, api: ConfigApi) -> String {
        let Self { why, name, value } = self;
        match api {
            ConfigApi::V1beta3 => format!("    # {why}\n    {name}: {value}\n"),
            ConfigApi::V1beta4 | ConfigApi::V1 => format!("    # {why}\n    - name: {name}\n      value: {value}\n"),
        }
    }
}

/// What servers of this version are given.
pub(super) fn arguments(version: Version, has_upstream_proxy: bool) -> Vec<Argument> {
    let mut all = vec![Argument {
        why: "The port and the advertise address, which is each node's own, stay: only the socket moves.",
        name: "bind-address",
        value: "127.0.0.1",
    }];
    if version.has_uid_headers() {
        all.push(Argument {
            why: "The UID of certificate users. kube-apiserver knows the flag from 1.33 on.",
            name: "requestheader-uid-headers",
            value: "X-Remote-Uid",
        });
    }
    if has_upstream_proxy {
        all.push(Argument {
            why: "Upstream's own proxy, from 1.36 on: nodes without peerfront and those with it find each other.",
            name: "peer-ca-file",
            value: "/etc/kubernetes/pki/ca.crt",
        });
    }
    all
}
