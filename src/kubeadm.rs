//! The files that put a peerfront on a kubeadm node, made for one node and one cluster.
//!
//! Input: what the operator says ([`Options`]) and, where kubeadm has run already, the server's manifest. Output: texts
//! that kubeadm, the kubelet and kubectl read, meant to be read by people, too. Nothing here asks a cluster.
//!
//! ```text
//! kubeadm-config.yaml                    what to add to kubeadm's configuration
//! patches/kube-apiserver+strategic.yaml  what kubeadm shall change in the server's static pod
//! manifests/kube-peerfront.yaml          static pod of peerfront (not in the sidecar variant)
//! rbac.yaml, flowschema.yaml             once per cluster
//! ```
//!
//! The same files for a cluster with kubeadm's defaults lie in the folder `kubeadm` of the repository.

mod cluster;
mod configuration;
mod container;
mod files;
mod options;
mod pod;

use std::io;
use std::path::{Path, PathBuf};

use crate::settings;

pub use options::{ConfigApi, Options, Variant, Version};

/// Rights of peerfront itself; the same for every cluster.
const RBAC: &str = include_str!("../kubeadm/rbac.yaml");
/// Priority of peerfront's own requests; the same for every cluster.
const FLOW_SCHEMA: &str = include_str!("../kubeadm/flowschema.yaml");

/// Why nothing was rendered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Options that do not go together.
    #[error("{0}")]
    Options(String),
    /// peerfront could not take the place of the server that the manifest describes.
    #[error("peerfront could not run on this node")]
    Settings(#[from] settings::Error),
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not YAML.
    #[error("{} is not a YAML map", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_norway::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A file of the output: its path below the output directory, and its text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rendered {
    /// Path below the output directory.
    pub path: &'static str,
    /// What stands in it.
    pub text: String,
}

/// Makes all files.
///
/// # Errors
/// If the options do not go together, or the server has a flag that peerfront cannot follow.
pub fn render(options: &Options) -> Result<Vec<Rendered>, Error> {
    let cluster = cluster::Cluster::load(options)?;
    let node = files::Node::load(options)?;
    let file = |path, text: String| Rendered { path, text };
    let configuration = file("kubeadm-config.yaml", configuration::kubeadm(options, &node, &cluster));
    if options.remove {
        return Ok(vec![configuration]);
    }
    let mut all = vec![
        configuration,
        file("patches/kube-apiserver+strategic.yaml", pod::patch(options, &node)),
        file("rbac.yaml", RBAC.to_owned()),
        file("flowschema.yaml", FLOW_SCHEMA.to_owned()),
    ];
    if options.variant == Variant::Pod {
        all.push(file("manifests/kube-peerfront.yaml", pod::static_pod(options, &node)));
    }
    Ok(all)
}

/// Makes all files and writes them; returns their paths. A file of the other variant is left as it is.
///
/// # Errors
/// As [`render`], or if a file cannot be written.
pub fn write(options: &Options) -> Result<Vec<PathBuf>, Error> {
    render(options)?.into_iter().map(|file| write_file(&options.output_dir.join(file.path), &file.text)).collect()
}

fn write_file(path: &Path, text: &str) -> Result<PathBuf, Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|source| Error::Write { path: path.to_owned(), source })?;
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests;
