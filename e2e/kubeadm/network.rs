//! The network of the nodes: a namespace of this program's own, with a bridge.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Error, Result, bail};

/// Set in the program that runs inside.
const INSIDE: &str = "E2E_KUBEADM_NAMESPACE";
/// This program's own address among the nodes; addresses for benchmarks of networks, which nobody routes.
const GATEWAY: &str = "198.18.0.1";

/// Whether this program runs in namespaces of its own already.
pub(crate) fn is_own() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs this program anew in namespaces of its own, unless it is there already.
///
/// # Errors
/// If there can be no such namespace: that takes root.
pub(crate) fn enter_own_namespace() -> Result<()> {
    if !is_own() {
        let program = std::env::current_exe().context("find this program")?;
        let mut inside = Command::new("unshare");
        inside.args(["--net", "--mount", "--"]).arg(program).args(std::env::args_os().skip(1)).env(INSIDE, "1");
        // Returns only if it fails.
        return Err(inside.exec()).context("run unshare; install it with: apt-get install util-linux");
    }
    ip(&["link", "set", "lo", "up"])?;
    ip(&["link", "add", "nodes", "type", "bridge"])?;
    ip(&["addr", "add", &format!("{GATEWAY}/24"), "dev", "nodes"])?;
    ip(&["link", "set", "nodes", "up"])
}

pub(crate) fn failed(error: &Error) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "the nodes cannot be prepared: {error:#}");
    ExitCode::FAILURE
}

/// Puts a cable between the bridge and the namespace of a process.
///
/// # Errors
/// If the kernel does not.
pub(crate) fn connect(name: &str, process: u32, address: &str) -> Result<()> {
    let process = process.to_string();
    ip(&["link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", &process])?;
    ip(&["link", "set", name, "master", "nodes", "up"])?;
    let inside = |arguments: &[&str]| {
        let prefix = ["--target", &process, "--net", "--", "ip"];
        run("nsenter", &[prefix.as_slice(), arguments].concat())
    };
    inside(&["addr", "add", &format!("{address}/24"), "dev", "eth0"])?;
    inside(&["link", "set", "eth0", "up"])?;
    inside(&["route", "add", "default", "via", GATEWAY])
}

fn ip(arguments: &[&str]) -> Result<()> {
    run("ip", arguments).context("install it with: apt-get install iproute2")
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program).args(arguments).output().with_context(|| format!("run {program}"))?;
    if !output.status.success() {
        bail!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
