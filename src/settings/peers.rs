//! `--peers`: the other nodes, known without asking the cluster.

use std::net::SocketAddr;

use crate::apimachinery::peer::PeerKind;

use super::StaticPeer;

/// How an entry is written, for errors.
pub(super) const FORM: &str = "name=ip:port or name=plain:ip:port, an IPv6 address in brackets";

/// Reads `name=ip:port` or `name=plain:ip:port`.
pub(super) fn parse(text: &str) -> Option<StaticPeer> {
    let (hostname, rest) = text.split_once('=')?;
    let (kind, address) = match rest.strip_prefix("plain:") {
        Some(address) => (PeerKind::Plain, address),
        None => (PeerKind::Front, rest),
    };
    let hostname = hostname.trim();
    let address: SocketAddr = address.trim().parse().ok()?;
    let usable = !hostname.is_empty() && address.port() != 0 && !address.ip().is_unspecified();
    usable.then(|| StaticPeer { hostname: hostname.to_owned(), address, kind })
}

/// The first two entries that name the same server or the same address.
pub(super) fn duplicate(peers: &[StaticPeer]) -> Option<(&StaticPeer, &StaticPeer)> {
    let same = |a: &StaticPeer, b: &StaticPeer| a.hostname == b.hostname || a.address == b.address;
    peers.iter().enumerate().find_map(|(at, peer)| {
        let earlier = peers[..at].iter().find(|earlier| same(earlier, peer))?;
        Some((earlier, peer))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_can_be_read() {
        let table = [
            ("node-b=10.0.0.2:6443", ("node-b", "10.0.0.2:6443", PeerKind::Front)),
            ("node-b=plain:10.0.0.2:6443", ("node-b", "10.0.0.2:6443", PeerKind::Plain)),
            ("node-b=[fd00::2]:6443", ("node-b", "[fd00::2]:6443", PeerKind::Front)),
            ("node-b=plain:[fd00::2]:6443", ("node-b", "[fd00::2]:6443", PeerKind::Plain)),
        ];
        for (text, (hostname, address, kind)) in table {
            let peer = StaticPeer { hostname: hostname.to_owned(), address: address.parse().unwrap(), kind };
            assert_eq!(parse(text), Some(peer.clone()), "{text}");
            assert_eq!(peer.to_string(), text);
        }
    }

    #[test]
    fn entries_that_cannot_be_read() {
        for text in [
            "",
            "node-b",
            "10.0.0.2:6443",
            "=10.0.0.2:6443",
            "node-b=10.0.0.2",
            "node-b=node-b.example:6443",
            "node-b=fd00::2:6443",
            "node-b=10.0.0.2:0",
            "node-b=0.0.0.0:6443",
            "node-b=https://10.0.0.2:6443",
            "node-b=front:10.0.0.2:6443",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
