//! Loopback addresses and ports of a cluster's own.
//!
//! A cluster takes eight addresses of 127.0.0.0/8 in a row: the first for etcd, the controller manager, a
//! kubelet and a Prometheus, the next for one node each, with an etcd of its own if it has one. Where the search starts depends only on the cluster's directory, so the same directory finds
//! the same addresses unless somebody else has taken them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::Path;

use anyhow::{Result, bail};

/// The ports of every node and of the cluster, chosen so that a node looks like kubeadm's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) front: u16,
    pub(crate) upstream: u16,
    pub(crate) admin: u16,
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) controller_manager: u16,
    pub(crate) kubelet: u16,
    pub(crate) prometheus: u16,
    /// Held open by the harness for as long as the cluster is its own, so that no other takes the block meanwhile.
    claim: u16,
}

const PORTS: Ports = Ports {
    front: 6443,
    upstream: 6444,
    admin: 6440,
    etcd: 2379,
    etcd_peer: 2380,
    controller_manager: 10257,
    kubelet: 10250,
    prometheus: 9090,
    claim: 6439,
};

/// Ports are moved by this much when some program listens on one of them on all addresses.
const SHIFT: u16 = 10_000;
const SHIFTS: u16 = 5;
/// Blocks tried with one set of ports. A taken block is another cluster; this many in a row mean a taken port.
const BLOCKS: u32 = 64;

/// Where one etcd listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EtcdAddresses {
    pub(crate) client: SocketAddrV4,
    pub(crate) peer: SocketAddrV4,
}

/// A block of addresses that belongs to one cluster.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) first: Ipv4Addr,
    pub(crate) ports: Ports,
    _claim: TcpListener,
}

impl Block {
    /// Finds and claims a free block.
    pub(crate) fn claim(directory: &Path) -> Result<Self> {
        let mut hasher = DefaultHasher::new();
        directory.hash(&mut hasher);
        Self::claim_from(hasher.finish() as u32, PORTS)
    }

    fn claim_from(start: u32, wanted: Ports) -> Result<Self> {
        for shift in 0..SHIFTS {
            let ports = wanted.shifted(shift * SHIFT);
            for step in 0..BLOCKS {
                if let Some(block) = Self::try_claim(first_address(start.wrapping_add(step)), ports) {
                    return Ok(block);
                }
            }
        }
        bail!("no free loopback addresses: something listens on port {} of all of them", wanted.front)
    }

    fn try_claim(first: Ipv4Addr, ports: Ports) -> Option<Self> {
        let claim = TcpListener::bind((first, ports.claim)).ok()?;
        let block = Self { first, ports, _claim: claim };
        let of_cluster = [ports.etcd, ports.etcd_peer, ports.controller_manager, ports.kubelet, ports.prometheus]
            .map(|port| (first, port));
        let of_nodes = (0..6).flat_map(|node| ports.of_node().map(|port| (block.node(node), port)));
        of_cluster.into_iter().chain(of_nodes).all(|address| TcpListener::bind(address).is_ok()).then_some(block)
    }

    /// The address of the n-th node, counted from 0.
    pub(crate) fn node(&self, position: u8) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.to_bits() + 1 + u32::from(position))
    }

    /// What the etcd at one of the block's addresses listens on.
    pub(crate) fn etcd(&self, at: Ipv4Addr) -> EtcdAddresses {
        let address = |port| SocketAddrV4::new(at, port);
        EtcdAddresses { client: address(self.ports.etcd), peer: address(self.ports.etcd_peer) }
    }

    pub(crate) fn controller_manager(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.first, self.ports.controller_manager)
    }

    pub(crate) fn kubelet(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.first, self.ports.kubelet)
    }

    pub(crate) fn prometheus(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.first, self.ports.prometheus)
    }
}

impl Ports {
    fn shifted(self, by: u16) -> Self {
        Self {
            front: self.front + by,
            upstream: self.upstream + by,
            admin: self.admin + by,
            etcd: self.etcd + by,
            etcd_peer: self.etcd_peer + by,
            controller_manager: self.controller_manager + by,
            kubelet: self.kubelet + by,
            prometheus: self.prometheus + by,
            claim: self.claim + by,
        }
    }

    fn of_node(self) -> [u16; 5] {
        [self.front, self.upstream, self.admin, self.etcd, self.etcd_peer]
    }
}

/// The first address of a block: 127.1.0.0 to 127.254.255.248. 127.0.0.0/16 is left to the machine and its owner.
fn first_address(number: u32) -> Ipv4Addr {
    const BLOCKS_PER_SECOND_OCTET: u32 = 0x1_0000 / 8;
    let number = number % (254 * BLOCKS_PER_SECOND_OCTET);
    Ipv4Addr::from_bits(0x7f01_0000 + number * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stay_in_their_range() {
        assert_eq!(first_address(0), Ipv4Addr::new(127, 1, 0, 0));
        assert_eq!(first_address(254 * 8192 - 1), Ipv4Addr::new(127, 254, 255, 248));
        assert_eq!(first_address(254 * 8192), first_address(0));
    }

    #[test]
    fn claimed_block_is_not_given_twice() {
        let one = Block::claim_from(77_000, PORTS).unwrap();
        let two = Block::claim_from(77_000, PORTS).unwrap();
        assert_ne!(one.first, two.first);
        assert_eq!(one.node(0).octets()[3], one.first.octets()[3] + 1);
    }

    #[test]
    fn listening_server_keeps_its_block() {
        let free = Block::claim_from(78_000, PORTS).unwrap();
        let (node, port, first) = (free.node(2), free.ports.upstream, free.first);
        drop(free);
        let _server = TcpListener::bind((node, port)).unwrap();
        assert_ne!(Block::claim_from(78_000, PORTS).unwrap().first, first);
    }

    #[test]
    fn port_taken_on_all_addresses_moves_the_ports() {
        let server = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let admin = server.local_addr().unwrap().port();
        // Shifted around a port of the test's own, so that no other test loses its ports meanwhile.
        let wanted = Ports { admin, ..PORTS.shifted(1) };
        let found = (0..3).find_map(|shift| admin.checked_add(shift * SHIFT).map(|port| (shift, port)));
        assert!(found.is_some());
        let block = Block::claim_from(79_000, wanted).unwrap();
        assert_eq!(block.ports.admin, admin.wrapping_add(SHIFT));
    }
}
