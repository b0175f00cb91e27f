//! Whether the port can be had beside the other listeners of this node.

use std::net::{IpAddr, SocketAddr};

use super::Resolver;
use crate::settings::{Error, ServingSettings, UpstreamSettings};

impl Resolver<'_> {
    /// Refuses to listen where another listener of this node already is, which binding would only call "in use".
    pub(super) fn check_port(
        &self,
        serving: &ServingSettings,
        upstream: &UpstreamSettings,
        admin: SocketAddr,
    ) -> Result<(), Error> {
        for address in &serving.bind_addresses {
            let wanted = SocketAddr::new(*address, serving.secure_port);
            if let Some(listener) = self.listener.filter(|listener| collide(wanted, *listener)) {
                return Err(Error::Relation(format!(
                    "cannot listen on {wanted} (--bind-address, --secure-port): by its manifest kube-apiserver \
                     listens on {listener}; set --bind-address=127.0.0.1 in the manifest, and listen on this node's \
                     own address"
                )));
            }
            if wanted == upstream.address || upstream.address.ip().is_loopback() && collide(wanted, upstream.address) {
                return Err(Error::Relation(format!(
                    "cannot listen on {wanted} (--bind-address, --secure-port): kube-apiserver has {} (--upstream), \
                     and {address} cannot be bound beside it on the same port; set --bind-address to this node's own \
                     address",
                    upstream.address
                )));
            }
            if collide(wanted, admin) {
                return Err(Error::Relation(format!(
                    "cannot listen on {wanted} (--bind-address, --secure-port): --admin-bind-address is {admin}"
                )));
            }
        }
        Ok(())
    }

    /// kube-apiserver advertises its own port to pods, whatever stands before it.
    pub(super) fn advertised_port_differs(&self, serving: &ServingSettings) -> Option<String> {
        let port = self.listener?.port();
        (port != serving.secure_port).then(|| {
            format!(
                "kube-apiserver advertises port {port} in the endpoints of the kubernetes Service, while peerfront \
                 listens on {}: pods go past peerfront or find nothing; set --secure-port={port}",
                serving.secure_port
            )
        })
    }
}

/// Whether two listeners on one node cannot both be bound. `::` covers IPv4 as well, port 0 nothing.
fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let covers = |all: IpAddr, one: IpAddr| all.is_unspecified() && (all.is_ipv6() || one.is_ipv4());
    a.port() == b.port() && a.port() != 0 && (a.ip() == b.ip() || covers(a.ip(), b.ip()) || covers(b.ip(), a.ip()))
}
