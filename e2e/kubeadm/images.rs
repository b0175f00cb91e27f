//! Images of the real programs for a node, under the names that kubeadm asks for.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::Workshop;
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

/// What the image of the Dockerfile may take, in bytes; it is copied to every control-plane node.
const LARGEST: u64 = 15_000_000;

/// One layer with one program, which says what it is and is asked whether it lives.
pub(crate) async fn image_of_peerfront_is_small_and_says_what_it_is(workshop: &Workshop) -> Result<()> {
    let archive = &workshop.programs.peerfront_image;
    let size = std::fs::metadata(archive)?.len();
    ensure!(size < LARGEST, "{} has {size} bytes", archive.display());
    let document = |name: &str| -> Result<Value> {
        let output = Command::new("tar").arg("-xOf").arg(archive).arg(name).output().context("run tar")?;
        ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let manifest = document("manifest.json")?;
    let config = document(manifest[0]["Config"].as_str().context("an image without a configuration")?)?;
    let (layers, settings) = (&config["rootfs"]["diff_ids"], &config["config"]);
    ensure!(layers.as_array().is_some_and(|layers| layers.len() == 1), "layers: {layers}");
    ensure!(settings["Entrypoint"] == json!(["/peerfront"]), "{settings}");
    ensure!(settings["Healthcheck"]["Test"] == json!(["CMD", "/peerfront", "healthcheck"]), "{settings}");
    let labels = &settings["Labels"];
    ensure!(labels["org.opencontainers.image.title"] == "peerfront", "{labels}");
    ensure!(labels["org.opencontainers.image.version"] == env!("CARGO_PKG_VERSION"), "{labels}");
    Ok(())
}
