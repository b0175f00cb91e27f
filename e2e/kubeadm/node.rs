//! One machine: namespaces, a disk in a folder, a container runtime.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use peerfront_e2e::eventually;
use tokio::process::Command;

use crate::control_groups::ControlGroups;
use crate::images;
use crate::network;
use crate::programs::{NEWEST, OLD, Programs, repository};
use crate::readme::FOLDER;

/// Longest time that a command in a node may take; kubeadm waits up to five minutes by itself.
const LONGEST: Duration = Duration::from_secs(420);

/// Settings of the whole kernel that kubelets change.
const KERNEL: [&str; 3] = ["vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"];

/// A node on its own address, which ends when it is dropped.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) address: String,
    directory: PathBuf,
    /// First process inside, as this program sees it.
    process: u32,
    /// Its parent outside; the end of its input ends the node.
    unshare: Child,
    kernel: Vec<(PathBuf, Vec<u8>)>,
    /// Dropped after the node has ended.
    _groups: ControlGroups,
}

impl Node {
    /// Starts a node with the images of Kubernetes' programs in it; that of peerfront lies beside them as an archive.
    pub(crate) async fn start(programs: &Programs, name: &str, address: &str) -> Result<Self> {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubeadm").join(name);
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("empty {}", directory.display()));
            }
            _ => std::fs::create_dir_all(&directory)?,
        }
        let write = |file: &str, text: &str| std::fs::write(directory.join(file), text);
        write("hosts", &hosts(name, address, address))?;
        write("resolv.conf", "")?;
        write("containerd.toml", &containerd())?;
        let bin = programs_of_a_node(programs, &directory)?;
        let mut archives = images::of_kubernetes(programs, &directory.join("images"))?;
        archives.push(images::of_toolbox(&directory.join("images"))?);
        let peerfront = images::of_peerfront(programs, &directory.join("images"))?;
        let kernel = KERNEL.iter().map(|name| Path::new("/proc/sys").join(name));
        let kernel = kernel.map(|path| Ok((path.clone(), std::fs::read(path)?))).collect::<Result<_>>()?;
        let groups = ControlGroups::create(&format!("e2e-{name}-{}", std::process::id()))?;
        let (unshare, process) = spawn(&groups, name, &directory, &bin)?;
        let (name, address) = (name.to_owned(), address.to_owned());
        let node = Self { name, address, directory, process, unshare, kernel, _groups: groups };
        node.link(&peerfront, &format!("{FOLDER}/peerfront-image.tar"))?;
        node.link(&repository().join("kubeadm"), &format!("{FOLDER}/kubeadm"))?;
        network::connect(&node.name, process, &node.address)?;
        eventually(Duration::from_secs(60), async || node.run(&["ctr", "version"]).await.map(drop)).await?;
        for archive in archives {
            let archive = archive.to_string_lossy().into_owned();
            node.run(&["ctr", "--namespace=k8s.io", "images", "import", &archive]).await?;
        }
        Ok(node)
    }

    /// Runs a command inside to its end and returns what it printed.
    pub(crate) async fn run(&self, command: &[&str]) -> Result<String> {
        let what = command.join(" ");
        let process = self.process.to_string();
        let mut inside = Command::new("nsenter");
        inside
            .args(["--target", &process, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--"])
            .args(command)
            .env_clear()
            .env("PATH", format!("{}/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", self.directory.display()))
            .env("HOME", "/root")
            .env("KUBECONFIG", "/etc/kubernetes/admin.conf")
            .env("KUBECACHEDIR", "/run/kubectl")
            .env("CONTAINERD_ADDRESS", "/run/containerd/containerd.sock")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = tokio::time::timeout(LONGEST, inside.output()).await.with_context(|| what.clone())?;
        let output = output.with_context(|| what.clone())?;
        let (printed, complaints) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr).into_owned());
        if !output.status.success() {
            bail!("{what}: {}\n{complaints}{printed}", output.status);
        }
        Ok(printed.into_owned())
    }

    /// Runs a line of shell inside.
    pub(crate) async fn shell(&self, line: &str) -> Result<String> {
        self.run(&["bash", "-euo", "pipefail", "-c", line]).await
    }

    /// Shows what was written last by those who may know what went wrong.
    pub(crate) fn show_logs(&self) {
        for (name, lines) in [("kubelet.log", 20), ("containerd.log", 5), ("node.log", 20)] {
            let text = std::fs::read_to_string(self.directory.join(name)).unwrap_or_default();
            let last: Vec<&str> = text.lines().rev().take(lines).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            let _ = writeln!(std::io::stderr(), "--- {name}\n{}", last.join("\n"));
        }
    }

    /// Writes a file inside.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<()> {
        let file = self.directory.join(path.trim_start_matches('/'));
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&file, text).with_context(|| format!("write {}", file.display()))
    }

    /// Puts a program of another version on the node's path.
    pub(crate) fn install(&self, name: &str, program: &Path) -> Result<()> {
        let link = self.directory.join("bin").join(name);
        std::fs::remove_file(&link).with_context(|| format!("remove {}", link.display()))?;
        std::os::unix::fs::symlink(program, &link).with_context(|| format!("link {}", link.display()))
    }

    /// Lets the name of the control plane mean this address: at first the node's own.
    pub(crate) fn name_endpoint(&self, address: &str) -> Result<()> {
        // Written in place, because the file itself is mounted inside.
        std::fs::write(self.directory.join("hosts"), hosts(&self.name, &self.address, address)).context("write hosts")
    }

    /// Makes a file or folder of the machine known inside under this path.
    fn link(&self, target: &Path, path: &str) -> Result<()> {
        let link = self.directory.join(path.trim_start_matches('/'));
        std::os::unix::fs::symlink(target, &link).with_context(|| format!("link {}", link.display()))
    }

    /// Reads a file inside.
    pub(crate) fn read(&self, path: &str) -> Result<String> {
        let file = self.directory.join(path.trim_start_matches('/'));
        std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.unshare.stdin.take());
        let _ = self.unshare.wait();
        // Images can be had again, and take much of the disk. Logs stay.
        for folder in ["images", "var/lib/containerd"] {
            let _ = std::fs::remove_dir_all(self.directory.join(folder));
        }
        for (path, before) in &self.kernel {
            let _ = std::fs::write(path, before);
        }
    }
}

fn hosts(name: &str, address: &str, endpoint: &str) -> String {
    format!("127.0.0.1 localhost\n{address} {name}\n{endpoint} cp.e2e\n")
}

/// Starts the script `node`; returns its parent and itself.
fn spawn(groups: &ControlGroups, name: &str, directory: &Path, bin: &Path) -> Result<(Child, u32)> {
    let log = std::fs::File::create(directory.join("node.log"))?;
    let mut unshare = std::process::Command::new("bash")
        .args(["-c", &groups.script(), "enter", "unshare"])
        .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--fork", "--mount-proc"])
        .arg(repository().join("e2e/kubeadm/node"))
        .arg(name)
        .args([directory, bin])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .context("start a node")?;
    let stdout = unshare.stdout.take().context("a node without output")?;
    let mut first = String::new();
    BufReader::new(stdout).read_line(&mut first)?; // Returns at the latest when the script ends.
    if first.trim_end() != "up" {
        let said = std::fs::read_to_string(directory.join("node.log")).unwrap_or_default();
        bail!("a node does not start: {said}");
    }
    let id = unshare.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
    let process = children.split_whitespace().next().context("a node without a first process")?.parse()?;
    Ok((unshare, process))
}

/// A folder with what an administrator finds on the path.
fn programs_of_a_node(programs: &Programs, directory: &Path) -> Result<PathBuf> {
    let bin = directory.join("bin");
    std::fs::create_dir_all(&bin)?;
    for (name, program) in [
        ("kubelet", programs.path("kubelet", OLD)?),
        ("kubeadm", programs.path("kubeadm", OLD)?),
        ("kubectl", programs.path("kubectl", NEWEST)?),
        ("peerfront", programs.peerfront.as_path()),
    ] {
        std::os::unix::fs::symlink(program, bin.join(name))?;
    }
    Ok(bin)
}

/// `restrict_oom_score_adj`: this program may itself be forbidden to lower it.
/// Source: <https://github.com/containerd/containerd/blob/v1.6.20/docs/cri/config.md>
fn containerd() -> String {
    format!(
        r#"version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{}"
  disable_apparmor = true
  restrict_oom_score_adj = true
"#,
        images::PAUSE
    )
}
