//! Which files of the node peerfront reads, and on which port the server is.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::options::Options;
use crate::settings::{Error, Flags, KeyPairFiles, Peering, Settings, defaults, names};

/// Where kubeadm writes the server's manifest.
pub(super) const MANIFEST: &str = "/etc/kubernetes/manifests/kube-apiserver.yaml";
/// The CA of every serving certificate of a kubeadm cluster.
const PEER_CA: &str = "/etc/kubernetes/pki/ca.crt";

/// What peerfront reads in a cluster with kubeadm's defaults.
/// Source: <https://github.com/kubernetes/kubernetes/blob/v1.36.3/cmd/kubeadm/app/phases/controlplane/manifests.go>
const KUBEADM: &[&str] = &[
    "/etc/kubernetes/pki/apiserver.crt",
    "/etc/kubernetes/pki/apiserver.key",
    PEER_CA,
    "/etc/kubernetes/pki/front-proxy-ca.crt",
    "/etc/kubernetes/pki/front-proxy-client.crt",
    "/etc/kubernetes/pki/front-proxy-client.key",
];

/// What the node has for peerfront.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Every file that peerfront reads, the manifest first, without repetition.
    pub(super) files: Vec<PathBuf>,
    /// The server's port, which is peerfront's, too.
    pub(super) port: u16,
    /// CA of the other nodes' serving certificates.
    pub(super) peer_ca: PathBuf,
    /// Its address as the manifest has it.
    pub(super) advertise_address: Option<IpAddr>,
}

impl Node {
    /// From the server's manifest if there is one, else as kubeadm is going to make it.
    pub(super) fn load(options: &Options) -> Result<Self, Error> {
        let Some(manifest) = &options.kube_apiserver_manifest else {
            let files = std::iter::once(MANIFEST).chain(KUBEADM.iter().copied()).map(PathBuf::from);
            return Ok(Self {
                files: files.collect(),
                port: defaults::SECURE_PORT,
                peer_ca: PEER_CA.into(),
                advertise_address: None,
            });
        };
        let settings = Settings::load(&flags(manifest), std::iter::empty(), OsStr::new("node"))?;
        let peer_ca = match &settings.peering {
            Peering::On(peering) => peering.ca_file.clone(),
            Peering::Off(_) => settings.authentication.client_ca_file.clone().unwrap_or_else(|| PEER_CA.into()),
        };
        let mut files = vec![PathBuf::from(MANIFEST)];
        for file in read_by(&settings).into_iter().chain([peer_ca.clone()]) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        Ok(Self {
            files,
            port: settings.upstream.address.port(),
            peer_ca,
            advertise_address: settings.advertise_address,
        })
    }
}

/// Port 0, because the server may still hold its port on every address.
fn flags(manifest: &Path) -> Flags {
    let given = [(names::MANIFEST, manifest.display().to_string()), ("secure-port", "0".to_owned())];
    Flags(given.into_iter().filter_map(|(flag, value)| Some((names::by_flag(flag)?, vec![value]))).collect())
}

/// Every file that these settings name, but for the manifest.
fn read_by(settings: &Settings) -> Vec<PathBuf> {
    let authentication = &settings.authentication;
    let pairs = std::iter::once(&settings.serving.certificate)
        .chain(settings.serving.sni_certificates.iter().map(|sni| &sni.files))
        .chain(std::iter::once(&settings.proxy_client));
    let mut files: Vec<PathBuf> = pairs
        .flat_map(|KeyPairFiles { certificate, private_key }| [certificate.clone(), private_key.clone()])
        .collect();
    files.extend(authentication.client_ca_file.clone());
    files.extend(authentication.request_header.as_ref().map(|request_header| request_header.client_ca_file.clone()));
    files.push(settings.upstream.ca_file.clone());
    files
}
