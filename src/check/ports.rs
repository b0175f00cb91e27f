//! Who holds the ports of this node.

use std::net::{IpAddr, SocketAddr};

use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::{FDTarget, all_processes};

use super::Finding;
use crate::settings::Settings;

/// This program, and the one behind it, as the kernel names processes.
const PEERFRONT: &str = "peerfront";
const KUBE_APISERVER: &str = "kube-apiserver";

pub(super) fn check(settings: &Settings) -> Vec<Finding> {
    let sockets: Vec<TcpNetEntry> = match procfs::net::tcp() {
        Ok(sockets) => sockets.into_iter().chain(procfs::net::tcp6().into_iter().flatten()).collect(),
        Err(error) => return vec![Finding::warning(format!("who holds the ports cannot be seen: {error}"), "")],
    };
    let serving = &settings.serving;
    let own = serving.bind_addresses.iter().map(|address| SocketAddr::new(*address, serving.secure_port));
    let mut findings: Vec<Finding> =
        own.chain([settings.admin_bind_address]).map(|address| own_port(address, &sockets)).collect();
    findings.push(upstream_port(settings.upstream.address, &sockets));
    findings
}

/// Free, or this program's already.
fn own_port(address: SocketAddr, sockets: &[TcpNetEntry]) -> Finding {
    match holder(address, sockets) {
        None => Finding::good(format!("{address} is free")),
        Some(name) if name == PEERFRONT => Finding::good(format!("{address} is held by {name}")),
        Some(name) if name == KUBE_APISERVER => Finding::bad(
            format!("{address} is held by {name}"),
            "let it listen on 127.0.0.1 only: --bind-address=127.0.0.1 in its manifest",
        ),
        Some(name) => Finding::bad(format!("{address} is held by {name}"), "stop it, or give it another port"),
    }
}

fn upstream_port(address: SocketAddr, sockets: &[TcpNetEntry]) -> Finding {
    match holder(address, sockets) {
        Some(name) if name == PEERFRONT => Finding::bad(
            format!("{address} (--upstream) is held by {name} itself"),
            "name the kube-apiserver's address",
        ),
        Some(name) => Finding::good(format!("{address} (--upstream) is held by {name}")),
        None => Finding::bad(
            format!("nobody listens on {address} (--upstream)"),
            "start the kube-apiserver of this node; its own log says why it does not run",
        ),
    }
}

/// Name of the process that connections to this address reach.
fn holder(address: SocketAddr, sockets: &[TcpNetEntry]) -> Option<String> {
    let reaches = |socket: &&TcpNetEntry| {
        let at = socket.local_address;
        let any = at.ip().is_unspecified() && (at.is_ipv6() || address.is_ipv4());
        socket.state == TcpState::Listen && at.port() == address.port() && (same(at.ip(), address.ip()) || any)
    };
    let socket = sockets.iter().find(reaches)?;
    Some(process_with(socket.inode).unwrap_or_else(|| "a process that cannot be seen from here".to_owned()))
}

fn same(a: IpAddr, b: IpAddr) -> bool {
    a.to_canonical() == b.to_canonical()
}

fn process_with(inode: u64) -> Option<String> {
    for process in all_processes().ok()?.flatten() {
        let has = |target: FDTarget| matches!(target, FDTarget::Socket(socket) if socket == inode);
        if process.fd().into_iter().flatten().flatten().any(|descriptor| has(descriptor.target)) {
            return Some(process.stat().ok()?.comm);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;
    use std::net::TcpListener;

    fn sockets() -> Vec<TcpNetEntry> {
        procfs::net::tcp().unwrap()
    }

    #[test]
    fn port_of_another_program_is_bad_and_a_free_one_good() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let own = procfs::process::Process::myself().unwrap().stat().unwrap().comm;
        let finding = own_port(address, &sockets());
        assert_eq!(finding.verdict, Verdict::Bad, "{finding}");
        assert!(finding.what.ends_with(&own), "{finding}");
        assert_eq!(upstream_port(address, &sockets()).verdict, Verdict::Good);
        // Without the listener, whose port another test may get at once.
        assert_eq!(own_port(address, &[]).verdict, Verdict::Good);
        assert_eq!(upstream_port(address, &[]).verdict, Verdict::Bad);
    }

    #[test]
    fn port_on_every_address_is_held_on_each() {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let address = SocketAddr::new(IpAddr::from([127, 0, 0, 9]), listener.local_addr().unwrap().port());
        assert_eq!(own_port(address, &sockets()).verdict, Verdict::Bad);
    }
}
