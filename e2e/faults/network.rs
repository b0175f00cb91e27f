//! A network namespace with nothing but loopback, in which routing rules drop what an address sends or is sent.

use std::io::Write as _;
use std::net::SocketAddrV4;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Error, Result, bail};

/// A device without another end: what is routed to it is gone, and its sender is told nothing.
const NOWHERE: &str = "nowhere";
/// Number of the routing table that leads there.
const TABLE: &str = "99";

/// Set in the program that runs inside.
const INSIDE: &str = "E2E_FAULTS_NAMESPACE";

/// Runs this program anew in a namespace of its own, unless it is there already.
///
/// # Errors
/// If there can be no such namespace: that takes root.
pub(crate) fn enter_own_namespace() -> Result<()> {
    if std::env::var_os(INSIDE).is_none() {
        let program = std::env::current_exe().context("find this program")?;
        let mut inside = Command::new("unshare");
        inside.args(["--net", "--"]).arg(program).args(std::env::args_os().skip(1)).env(INSIDE, "1");
        // Returns only if it fails.
        return Err(inside.exec()).context("run unshare; install it with: apt-get install util-linux");
    }
    ip(&["link", "set", "lo", "up"])?;
    // The rule that finds local addresses is always the first; behind others it leaves room for them.
    ip(&["rule", "add", "pref", "1000", "lookup", "local"])?;
    ip(&["rule", "del", "pref", "0"])?;
    ip(&["link", "add", NOWHERE, "type", "veth"])?;
    ip(&["link", "set", NOWHERE, "arp", "off", "up"])?;
    let local_addresses = format!("/proc/sys/net/ipv4/conf/{NOWHERE}/route_localnet");
    std::fs::write(&local_addresses, "1").with_context(|| format!("write {local_addresses}"))?;
    ip(&["route", "add", "table", TABLE, "default", "dev", NOWHERE])
}

pub(crate) fn failed(error: &Error) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "no network namespace of its own: {error:#}");
    ExitCode::FAILURE
}

/// Which packets are dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dropped {
    /// Those that a server sends: it gets requests, and nobody gets its answers.
    FromServer,
    /// Those that are sent to it: it gets nothing, and can itself ask others.
    ToServer,
}

/// While it lives, packets are dropped, not refused: whoever asks the server waits.
pub(crate) struct Silence {
    rules: Vec<Vec<String>>,
}

impl Silence {
    /// Silences servers.
    ///
    /// # Errors
    /// If the kernel takes no such rule.
    pub(crate) fn of(servers: &[SocketAddrV4], dropped: Dropped) -> Result<Self> {
        let mut silence = Self { rules: Vec::new() };
        for server in servers {
            let (ip_address, port) = (server.ip().to_string(), server.port().to_string());
            let rule = match dropped {
                Dropped::FromServer => ["from", &ip_address, "ipproto", "tcp", "sport", &port, "blackhole"].to_vec(),
                Dropped::ToServer => ["to", &ip_address, "ipproto", "tcp", "dport", &port, "lookup", TABLE].to_vec(),
            };
            let rule: Vec<String> = rule.into_iter().map(str::to_owned).collect();
            run_rule("add", &rule)?;
            silence.rules.push(rule);
        }
        Ok(silence)
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        for rule in &self.rules {
            if let Err(error) = run_rule("del", rule) {
                let _ = writeln!(std::io::stderr(), "a rule stays: {error:#}");
            }
        }
    }
}

fn run_rule(verb: &str, rule: &[String]) -> Result<()> {
    let mut arguments = vec!["rule", verb, "pref", "10"];
    arguments.extend(rule.iter().map(String::as_str));
    ip(&arguments)
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(arguments).output();
    let output = output.context("run ip; install it with: apt-get install iproute2")?;
    if !output.status.success() {
        bail!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
