//! Images of the real programs for a node, under the names that kubeadm asks for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::Workshop;
use crate::programs::{ETCD, NEWEST, Programs, repository, versions};

/// What the node's containerd calls the image that holds a pod's namespaces; its configuration names it.
pub(crate) const PAUSE: &str = "registry.k8s.io/pause:3.10.2";

/// Makes the archives of Kubernetes' images in a folder.
pub(crate) fn of_kubernetes(programs: &Programs, folder: &Path) -> Result<Vec<PathBuf>> {
    let image =
        |name: &str, program: &Path, inside: &str| archive(name, folder, &[format!("{}={inside}", program.display())]);
    let mut archives = Vec::new();
    for version in versions() {
        for program in ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
            let name = format!("registry.k8s.io/{program}:v{version}");
            archives.push(image(&name, programs.path(program, version)?, &format!("/usr/local/bin/{program}"))?);
        }
    }
    let etcd = format!("registry.k8s.io/etcd:{ETCD}-0");
    archives.push(image(&etcd, programs.path("etcd", ETCD)?, "/usr/local/bin/etcd")?);
    archives.push(image(PAUSE, programs.path("pause", NEWEST)?, "/pause")?);
    Ok(archives)
}

/// Makes the archive of a pod's image that has a shell, and what `kubectl cp` asks for.
pub(crate) fn of_toolbox(folder: &Path) -> Result<PathBuf> {
    let mut files: Vec<String> = Vec::new();
    for program in ["/bin/sh", "/bin/cat", "/bin/sleep", "/bin/tar"] {
        for file in linked(Path::new(program), program)? {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    archive("localhost/toolbox:1", folder, &files)
}

/// The archive of peerfront's image: that of the Dockerfile, or one made here of the program under test and the libraries
/// it is linked with.
pub(crate) fn of_peerfront(programs: &Programs, folder: &Path) -> Result<PathBuf> {
    if let Some(shipped) = &programs.shipped {
        return Ok(shipped.image.clone());
    }
    let files = linked(&programs.peerfront, "/peerfront")?;
    archive(concat!("localhost/peerfront:", env!("CARGO_PKG_VERSION")), folder, &files)
}

/// A program under this path of an image, and the libraries it is linked with.
fn linked(program: &Path, inside: &str) -> Result<Vec<String>> {
    let output = Command::new("ldd").arg(program).output();
    let output = output.context("run ldd; install it with: apt-get install libc-bin")?;
    ensure!(output.status.success(), "ldd {}: {}", program.display(), String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout)?;
    let libraries = listed.split_whitespace().filter(|word| word.starts_with('/'));
    let libraries = libraries.map(|library| format!("{library}={library}"));
    Ok([format!("{}={inside}", program.display())].into_iter().chain(libraries).collect())
}

/// Makes the archive of one image, of files with their paths in it.
fn archive(name: &str, folder: &Path, files: &[String]) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let archive = folder.join(format!("{}.tar", name.replace(['/', ':'], "-")));
    let output = Command::new(repository().join("e2e/kubeadm/image")).arg(name).arg(&archive).args(files).output();
    let output = output.context("run e2e/kubeadm/image")?;
    ensure!(output.status.success(), "image {name}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(archive)
}

/// What the image of the Dockerfile may take, in bytes, as a registry keeps it and a node pulls it: compressed.
const LARGEST: usize = 15_000_000;

/// One layer with one program, which says what it is and is asked whether it lives.
pub(crate) async fn image_of_peerfront_is_small_and_says_what_it_is(workshop: &Workshop) -> Result<()> {
    let archive = &workshop.programs.shipped.as_ref().context("the Dockerfile's image was not built")?.image;
    let size = Command::new("gzip").arg("-c").arg(archive).output().context("run gzip")?.stdout.len();
    ensure!((1_000_000..LARGEST).contains(&size), "{} has {size} bytes when compressed", archive.display());
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

/// Crates that cargo links into the program, as `NAME VERSION`.
fn linked_crates() -> Result<BTreeSet<String>> {
    let tree =
        ["tree", "--locked", "--edges=normal", "--target=x86_64-unknown-linux-gnu", "--prefix=none", "--format={p}"];
    let output = Command::new(env!("CARGO")).current_dir(repository()).args(tree).output().context("run cargo")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let words = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ").replacen(" v", " ", 1);
    Ok(String::from_utf8(output.stdout)?.lines().filter(|line| !line.is_empty()).map(words).collect())
}

/// Every crate of the program in its version, and none that tests alone need.
pub(crate) async fn sbom_lists_every_crate_of_the_program(workshop: &Workshop) -> Result<()> {
    let sbom = &workshop.programs.shipped.as_ref().context("the SBOM was not made")?.sbom;
    let text = std::fs::read_to_string(sbom)?;
    ensure!(!text.contains(env!("CARGO_MANIFEST_DIR")), "it tells where it was made");
    let sbom: Value = serde_json::from_str(&text)?;
    ensure!(sbom["bomFormat"] == "CycloneDX", "{}", sbom["bomFormat"]);
    let program = &sbom["metadata"]["component"];
    let named = |component: &Value| {
        let word = |key: &str| component[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}", word("name"), word("version"))
    };
    let mut listed: BTreeSet<String> = sbom["components"].as_array().into_iter().flatten().map(named).collect();
    listed.insert(named(program));
    let linked = linked_crates()?;
    let missing: Vec<_> = linked.difference(&listed).collect();
    ensure!(linked.len() > 100 && missing.is_empty(), "not listed: {missing:?}");
    let of_tests =
        ["proptest ", "rcgen ", "peerfront-e2e "].map(|name| listed.iter().find(|one| one.starts_with(name)));
    ensure!(of_tests == [None; 3], "listed: {of_tests:?}");
    Ok(())
}
