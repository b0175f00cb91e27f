//! The real programs, and peerfront: the one under test or, in the long pass, the one of its image.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

/// Version that the node begins with.
pub(crate) const OLD: &str = "1.35.4";
/// Version that it is upgraded to.
pub(crate) const NEW: &str = "1.36.3";
/// The newest, which the long pass ends with.
pub(crate) const NEWEST: &str = "1.37.2";
/// Version of etcd, before and after.
pub(crate) const ETCD: &str = "3.6.16";

/// Versions of the control plane that a node may have.
pub(crate) fn versions() -> &'static [&'static str] {
    if is_full() { &[OLD, NEW, NEWEST] } else { &[OLD, NEW] }
}

/// Whether everything is tested, and not only the short pass.
pub(crate) fn is_full() -> bool {
    std::env::var("E2E_FULL").is_ok_and(|full| full == "1")
}

/// Where each program is.
pub(crate) struct Programs {
    paths: BTreeMap<String, PathBuf>,
    /// peerfront, as it is on the path of a node.
    pub(crate) peerfront: PathBuf,
    /// What is shipped; none in the short pass, which wraps the program under test by itself.
    pub(crate) shipped: Option<Shipped>,
}

/// What `e2e/image/build` makes besides the program.
pub(crate) struct Shipped {
    /// The archive of the Dockerfile's image.
    pub(crate) image: PathBuf,
    /// The crates that the program is made of.
    pub(crate) sbom: PathBuf,
}

impl Programs {
    /// Builds what is missing.
    ///
    /// # Errors
    /// If something cannot be built, or a tool of the machine is missing.
    pub(crate) fn build() -> Result<Self> {
        for (tool, package) in
            [("containerd", "containerd"), ("runc", "runc"), ("nsenter", "util-linux"), ("ss", "iproute2")]
        {
            require(tool, package)?;
        }
        let mut wanted = vec![format!("kubelet@{OLD}"), format!("kubectl@{NEWEST}")];
        for version in versions() {
            for program in ["kubeadm", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
                wanted.push(format!("{program}@{version}"));
            }
        }
        wanted.extend([format!("etcd@{ETCD}"), format!("pause@{NEWEST}")]);
        if !is_full() {
            let paths = lines("e2e/kubernetes/build", &wanted)?;
            return Ok(Self { paths, peerfront: env!("CARGO_BIN_EXE_peerfront").into(), shipped: None });
        }
        require("dockerd", "docker.io")?;
        let paths = lines("e2e/kubernetes/build", &wanted)?;
        let made = lines("e2e/image/build", &[])?;
        let made = |name: &str| made.get(name).cloned().with_context(|| format!("no {name} was built"));
        let shipped = Shipped { image: made("image")?, sbom: made("sbom")? };
        Ok(Self { paths, peerfront: made("program")?, shipped: Some(shipped) })
    }

    /// The program of this version.
    pub(crate) fn path(&self, program: &str, version: &str) -> Result<&Path> {
        let name = format!("{program}@{version}");
        self.paths.get(&name).map(PathBuf::as_path).with_context(|| format!("{name} was not built"))
    }
}

/// The root of the repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a script prints as `NAME PATH`.
fn lines(script: &str, arguments: &[String]) -> Result<BTreeMap<String, PathBuf>> {
    let mut command = Command::new(repository().join(script));
    let output = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("run {script}"))?;
    ensure!(output.status.success(), "{script} failed: {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, path)| (name.to_owned(), path.into()))
        .collect())
}

fn require(tool: &str, package: &str) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()) {
        return Ok(());
    }
    bail!("{tool} is not installed; install it with: apt-get install {package}")
}
