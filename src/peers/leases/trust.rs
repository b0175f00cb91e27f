//! Which addresses a Lease may name; pure.
//!
//! Whoever may write Leases in `kube-system` could otherwise have every front send requests anywhere. The TLS handshake
//! is the real guard: what does not prove `kubernetes.default.svc` under `--peer-ca-file` gets no byte of a request.
//! This is the one before it, which keeps even connections away from where no peer can be.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

/// Judges addresses that Leases name. Static peers are not judged: the operator named them.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Networks that peers may be in; none means all but those that no peer can be in.
    pub cidrs: Vec<IpNet>,
    /// This front's own addresses and its upstream's: a peer there would be this node itself.
    pub own: BTreeSet<SocketAddr>,
}

/// Why an address is no peer's.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Distrust {
    /// It is this front's own or its upstream's.
    #[error("it is this node's own")]
    Own,
    /// No other node can be reached at it.
    #[error("it is loopback, link-local, multicast or unspecified")]
    NotOfANode,
    /// `--peer-cidrs` leaves it out.
    #[error("it is in no network of --peer-cidrs")]
    OtherNetwork,
    /// There is no such port.
    #[error("its port is 0")]
    NoPort,
}

impl Trust {
    /// Whether a peer may be at the address.
    ///
    /// # Errors
    /// Why not.
    pub fn judge(&self, address: SocketAddr) -> Result<(), Distrust> {
        let ip = address.ip().to_canonical();
        let canonical = SocketAddr::new(ip, address.port());
        if canonical.port() == 0 {
            return Err(Distrust::NoPort);
        }
        if self.own.iter().any(|own| SocketAddr::new(own.ip().to_canonical(), own.port()) == canonical) {
            return Err(Distrust::Own);
        }
        let is_never_a_node = ip.is_unspecified() || ip.is_multicast() || is_broadcast(ip);
        let is_listed = self.cidrs.iter().any(|network| network.contains(&ip));
        match (is_never_a_node, self.cidrs.is_empty()) {
            (true, _) => Err(Distrust::NotOfANode),
            (false, true) if ip.is_loopback() || is_link_local(ip) => Err(Distrust::NotOfANode),
            (false, false) if !is_listed => Err(Distrust::OtherNetwork),
            (false, _) => Ok(()),
        }
    }
}

fn is_broadcast(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.is_broadcast())
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(cidrs: &[&str], address: &str) -> Result<(), Distrust> {
        let own = ["10.0.0.1:6443", "127.0.0.1:6443"].map(|address| address.parse().unwrap());
        let cidrs = cidrs.iter().map(|network| network.parse().unwrap()).collect();
        Trust { cidrs, own: own.into() }.judge(address.parse().unwrap())
    }

    #[test]
    fn only_other_nodes_may_be_peers() {
        let table = [
            ("10.0.0.2:6443", Ok(())),
            ("[fd00::2]:6443", Ok(())),
            ("10.0.0.1:7443", Ok(())),
            ("10.0.0.1:6443", Err(Distrust::Own)),
            ("[::ffff:10.0.0.1]:6443", Err(Distrust::Own)),
            ("127.0.0.1:6443", Err(Distrust::Own)),
            ("127.0.0.2:6443", Err(Distrust::NotOfANode)),
            ("[::1]:6443", Err(Distrust::NotOfANode)),
            ("[::ffff:127.0.0.2]:6443", Err(Distrust::NotOfANode)),
            ("169.254.169.254:80", Err(Distrust::NotOfANode)),
            ("[fe80::1]:6443", Err(Distrust::NotOfANode)),
            ("0.0.0.0:6443", Err(Distrust::NotOfANode)),
            ("[::]:6443", Err(Distrust::NotOfANode)),
            ("224.0.0.1:6443", Err(Distrust::NotOfANode)),
            ("[ff02::1]:6443", Err(Distrust::NotOfANode)),
            ("255.255.255.255:6443", Err(Distrust::NotOfANode)),
            ("10.0.0.2:0", Err(Distrust::NoPort)),
        ];
        for (address, expected) in table {
            assert_eq!(judge(&[], address), expected, "{address}");
        }
    }

    #[test]
    fn networks_narrow_and_widen() {
        assert_eq!(judge(&["10.0.0.0/24", "127.0.0.0/8"], "10.0.0.2:6443"), Ok(()));
        assert_eq!(judge(&["10.0.0.0/24", "127.0.0.0/8"], "127.0.0.2:6443"), Ok(()));
        assert_eq!(judge(&["10.0.0.0/24"], "10.0.1.2:6443"), Err(Distrust::OtherNetwork));
        assert_eq!(judge(&["10.0.0.0/24"], "127.0.0.2:6443"), Err(Distrust::OtherNetwork));
        assert_eq!(judge(&["0.0.0.0/0"], "0.0.0.0:6443"), Err(Distrust::NotOfANode));
        assert_eq!(judge(&["0.0.0.0/0"], "10.0.0.1:6443"), Err(Distrust::Own));
    }
}
