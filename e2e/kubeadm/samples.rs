//! The samples of kubeadm/, read by real kubeadm of three versions.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::Workshop;
use crate::programs::{NEW, NEWEST, OLD, repository};

/// Runs kubeadm in a mount namespace in which /etc/kubernetes is this folder.
fn kubeadm(program: &Path, folder: &Path, arguments: &[&str]) -> Result<std::process::Output> {
    Command::new("unshare")
        .args([
            "--mount",
            "bash",
            "-euc",
            "mkdir -p /etc/kubernetes; mount --bind \"$1\" /etc/kubernetes; shift; exec \"$@\"",
            "in",
        ])
        .arg(folder)
        .arg(program)
        .args(arguments)
        .output()
        .context("run kubeadm")
}

pub(crate) async fn every_kubeadm_takes_the_samples_it_reads(workshop: &Workshop) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (version, sample, is_read) in [
        (OLD, "v1beta3", true),
        (OLD, "v1beta4", true),
        (NEW, "v1beta3", true),
        (NEW, "v1beta4", true),
        (NEW, "v1", false),
        (NEWEST, "v1beta3", false),
        (NEWEST, "v1beta4", true),
        (NEWEST, "v1", true),
    ] {
        let file = repository().join(format!("kubeadm/kubeadm-config.{sample}.yaml"));
        let file = file.to_string_lossy();
        let mut arguments = vec!["config", "validate", "--config", &file];
        if sample == "v1" {
            arguments.push("--allow-experimental-api");
        }
        let output = kubeadm(workshop.programs.path("kubeadm", version)?, folder.path(), &arguments)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success() == is_read, "kubeadm {version} reads {sample}: {said}");
        ensure!(!is_read || !said.contains("unknown field"), "kubeadm {version}, {sample}: {said}");
    }
    Ok(())
}

/// kubeadm writes the server's manifest from the sample and the patch: of the pod, and of the sidecar.
pub(crate) async fn manifest_of_the_server_is_as_the_front_needs_it(workshop: &Workshop) -> Result<()> {
    for version in [OLD, NEW, NEWEST] {
        for (patches, containers) in [
            ("kubeadm/patches", &["kube-apiserver"][..]),
            ("kubeadm/sidecar/patches", &["kube-apiserver", "kube-peerfront"]),
        ] {
            let pod = manifest(workshop, version, patches)?;
            let what = format!("kubeadm {version} with {patches}");
            let found: Vec<&Value> = pod["spec"]["containers"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|container| &container["name"])
                .collect();
            ensure!(found == containers, "{what}: {found:?}");
            let server = &pod["spec"]["containers"][0];
            for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
                let get = &server[probe]["httpGet"];
                ensure!(get["host"] == "127.0.0.1" && get["path"].is_string(), "{what}: {get}");
            }
            let flags = server["command"].to_string();
            for flag in [
                "--bind-address=127.0.0.1",
                "--advertise-address=198.18.0.11",
                "--requestheader-uid-headers=X-Remote-Uid",
            ] {
                ensure!(flags.matches(flag).count() == 1, "{what}: {flags}");
            }
        }
    }
    Ok(())
}

fn manifest(workshop: &Workshop, version: &str, patches: &str) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let sample = std::fs::read_to_string(repository().join("kubeadm/kubeadm-config.v1beta4.yaml"))?;
    let patches = repository().join(patches);
    let local =
        "localAPIEndpoint: {advertiseAddress: 198.18.0.11}\nnodeRegistration: {criSocket: \"unix:///run/none\"}\n";
    let configuration = sample.replace("/etc/kubernetes/peerfront/patches", &patches.to_string_lossy()).replacen(
        "kind: InitConfiguration\n",
        &format!("kind: InitConfiguration\n{local}"),
        1,
    ) + &format!("kubernetesVersion: v{version}\n");
    std::fs::write(folder.path().join("config.yaml"), configuration)?;
    let arguments = ["init", "phase", "control-plane", "apiserver", "--config=/etc/kubernetes/config.yaml"];
    let output = kubeadm(workshop.programs.path("kubeadm", version)?, folder.path(), &arguments)?;
    ensure!(output.status.success(), "kubeadm {version}: {}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.path().join("manifests/kube-apiserver.yaml"))?;
    Ok(serde_norway::from_str(&text)?)
}
