//! What the operator says about the cluster and the node.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use ipnet::IpNet;

use super::Error;

/// First kubeadm that reads v1beta4.
/// Source: <https://github.com/kubernetes/kubernetes/blob/v1.37.2/cmd/kubeadm/app/util/config/common.go>
const FIRST_V1BETA4: u32 = 31;
/// First kubeadm that reads v1, and that reads v1beta3 no longer. Source: as above.
const FIRST_V1: u32 = 37;
/// First kube-apiserver that takes `--requestheader-uid-headers` without a feature gate.
/// Source: <https://github.com/kubernetes/kubernetes/blob/v1.33.0/pkg/features/kube_features.go>
const FIRST_UID_HEADERS: u32 = 33;
/// First kube-apiserver that has upstream's own proxy switched on.
const FIRST_UPSTREAM_PROXY: u32 = 36;

/// Options of `peerfront kubeadm render`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Directory to write to; made if missing
    #[arg(long, value_name = "DIRECTORY")]
    pub output_dir: PathBuf,
    /// Version of the cluster's oldest kube-apiserver and of the kubeadm that reads the configuration, such as 1.36
    /// [default: that of --cluster-configuration]
    #[arg(long, value_name = "VERSION", required_unless_present = "cluster_configuration")]
    pub kubernetes_version: Option<Version>,
    /// ClusterConfiguration to add to, as ConfigMap kubeadm-config has it; without it the additions stand alone
    #[arg(long, value_name = "FILE")]
    pub cluster_configuration: Option<PathBuf>,
    /// Take the additions out of --cluster-configuration again, and write nothing else
    #[arg(long, requires = "cluster_configuration")]
    pub remove: bool,
    /// API version of kubeadm's configuration [default: v1beta4, before Kubernetes 1.31 v1beta3]
    #[arg(long, value_enum, value_name = "VERSION", conflicts_with = "cluster_configuration")]
    pub config_api: Option<ConfigApi>,
    /// The server's manifest on this node; without it kubeadm has not run yet and its defaults are taken
    #[arg(long, value_name = "FILE")]
    pub kube_apiserver_manifest: Option<PathBuf>,
    /// This node's address, for kubeadm to advertise [default: that of the manifest, else kubeadm's choice]
    #[arg(long, value_name = "IP")]
    pub advertise_address: Option<IpAddr>,
    /// All addresses to listen on, such as both of a dual-stack node, or its own and a virtual one [default: the
    /// advertise address]
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    pub bind_address: Vec<IpAddr>,
    /// Networks that control-plane nodes are in [default: all but loopback, link-local and multicast]
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    pub peer_cidrs: Vec<IpNet>,
    /// Image of peerfront
    #[arg(long, value_name = "IMAGE", default_value = concat!("localhost/peerfront:", env!("CARGO_PKG_VERSION")))]
    pub image: String,
    /// Where peerfront runs
    #[arg(long, value_enum, default_value = "pod")]
    pub variant: Variant,
    /// Folder on the node that holds the patches
    #[arg(long, value_name = "DIRECTORY", default_value = "/etc/kubernetes/peerfront/patches")]
    pub patches_dir: PathBuf,
    /// Let the servers run upstream's own proxy as well (1.36 or newer)
    #[arg(long)]
    pub upstream_proxy: bool,
}

/// Where peerfront runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Variant {
    /// In a static pod of its own: a restart of one leaves the other alone.
    Pod,
    /// In the server's static pod, by kubeadm's patch: nothing to install beside kubeadm's own manifests.
    Sidecar,
}

/// API version of kubeadm's configuration.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ConfigApi {
    /// Up to kubeadm 1.36.
    V1beta3,
    /// From kubeadm 1.31 on.
    V1beta4,
    /// From kubeadm 1.37 on, which takes it with `--allow-experimental-api` only.
    V1,
}

impl fmt::Display for ConfigApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1beta3 => "kubeadm.k8s.io/v1beta3",
            Self::V1beta4 => "kubeadm.k8s.io/v1beta4",
            Self::V1 => "kubeadm.k8s.io/v1",
        })
    }
}

/// The minor version of a Kubernetes 1 release.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Version(u32);

impl Version {
    /// Whether servers take `--requestheader-uid-headers`.
    pub(super) fn has_uid_headers(self) -> bool {
        self.0 >= FIRST_UID_HEADERS
    }
}

/// Reads `1.36`, `v1.36` and `v1.36.3`, pre-releases included.
impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let minor = text.strip_prefix('v').unwrap_or(text).strip_prefix("1.").and_then(|rest| rest.split('.').next());
        let minor = minor.and_then(|minor| minor.parse().ok());
        minor.map(Self).ok_or_else(|| "a version of Kubernetes looks like 1.36 or v1.36.3".to_owned())
    }
}

impl Version {
    /// Checks that upstream's own proxy can be switched on.
    pub(super) fn check_upstream_proxy(self) -> Result<(), Error> {
        let Self(minor) = self;
        if minor >= FIRST_UPSTREAM_PROXY {
            return Ok(());
        }
        Err(Error::Options(format!(
            "--upstream-proxy: kube-apiserver has it switched on from 1.{FIRST_UPSTREAM_PROXY} on, and 1.{minor} does not"
        )))
    }

    /// The API version to write kubeadm's configuration in.
    pub(super) fn config_api(self, wanted: Option<ConfigApi>) -> Result<ConfigApi, Error> {
        let Self(minor) = self;
        let default = if minor < FIRST_V1BETA4 { ConfigApi::V1beta3 } else { ConfigApi::V1beta4 };
        let api = wanted.unwrap_or(default);
        let is_read = match api {
            ConfigApi::V1beta3 => minor < FIRST_V1,
            ConfigApi::V1beta4 => minor >= FIRST_V1BETA4,
            ConfigApi::V1 => minor >= FIRST_V1,
        };
        if !is_read {
            return Err(Error::Options(format!("--config-api: kubeadm 1.{minor} does not read {api}, but {default}")));
        }
        Ok(api)
    }
}
