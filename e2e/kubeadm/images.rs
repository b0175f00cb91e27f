//! Images of the real programs for a node, under the names that kubeadm asks for.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::programs::{ETCD, NEW, NEWEST, OLD, Programs, repository};

/// What the node's containerd calls the image that holds a pod's namespaces; its configuration names it.
pub(crate) const PAUSE: &str = "registry.k8s.io/pause:3.10.2";

/// Makes the archives of all images in a folder.
pub(crate) fn make(programs: &Programs, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)?;
    let mut archives = vec![programs.peerfront_image.clone()];
    let mut image = |name: &str, program: &Path, inside: &str| {
        let archive = folder.join(format!("{}.tar", name.replace(['/', ':'], "-")));
        let mut script = Command::new(repository().join("e2e/kubeadm/image"));
        script.arg(name).arg(&archive).arg(format!("{}={inside}", program.display()));
        let output = script.output().context("run e2e/kubeadm/image")?;
        ensure!(output.status.success(), "image {name}: {}", String::from_utf8_lossy(&output.stderr));
        archives.push(archive);
        anyhow::Ok(())
    };
    for version in [OLD, NEW] {
        for program in ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
            let name = format!("registry.k8s.io/{program}:v{version}");
            image(&name, programs.path(program, version)?, &format!("/usr/local/bin/{program}"))?;
        }
    }
    image(&format!("registry.k8s.io/etcd:{ETCD}-0"), programs.path("etcd", ETCD)?, "/usr/local/bin/etcd")?;
    image(PAUSE, programs.path("pause", NEWEST)?, "/pause")?;
    Ok(archives)
}
