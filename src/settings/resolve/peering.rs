//! Whether and how this front works with peers.

use std::net::{IpAddr, SocketAddr};

use super::{Resolver, path, text};
use crate::settings::{Error, Peering, PeeringSettings, StaticPeer, defaults, peers};

impl Resolver<'_> {
    pub(super) fn peering(
        &self,
        advertise: Option<IpAddr>,
        secure_port: u16,
        hostname: &str,
    ) -> Result<Peering, Error> {
        let file = self.file();
        let pair = self.peer_advertise_pair()?;
        let static_peers = self.static_peers(hostname)?;
        let cidrs =
            self.each("peer-cidrs", &file.peer_cidrs, "a network such as 10.0.0.0/24", |text| text.parse().ok())?;
        if file.feature_gates.get(defaults::INTEROPERABILITY_GATE) == Some(&false) {
            return Ok(Peering::Off(format!("feature gate {} is off", defaults::INTEROPERABILITY_GATE)));
        }
        let Some(ca_file) = path(&file.peer_ca_file) else {
            if file.peers.is_empty() {
                return Ok(Peering::Off("--peer-ca-file is not set".to_owned()));
            }
            return Err(Error::Missing {
                flag: "peer-ca-file",
                advice: "--peers are given, but without the CA of their serving certificates nothing can be sent to \
                         them; in a kubeadm cluster it is /etc/kubernetes/pki/ca.crt",
            });
        };
        if path(&file.requestheader_client_ca_file).is_none() {
            return Err(Error::Missing {
                flag: "requestheader-client-ca-file",
                advice: "--peer-ca-file is set, and without the CA of front proxies a request that a peer forwarded \
                         could not be told from a client's and would be forwarded again; in a kubeadm cluster it is \
                         /etc/kubernetes/pki/front-proxy-ca.crt",
            });
        }
        let advertise_address = pair.or(advertise.map(|address| SocketAddr::new(address, secure_port)));
        let advertise_address = advertise_address.ok_or(Error::Missing {
            flag: "advertise-address",
            advice: "peers must be told an address, and --bind-address names none of this node's own",
        })?;
        Ok(Peering::On(PeeringSettings { ca_file, advertise_address, static_peers, cidrs }))
    }

    fn peer_advertise_pair(&self) -> Result<Option<SocketAddr>, Error> {
        let file = self.file();
        let (ip, port) = match (text(&file.peer_advertise_ip), file.peer_advertise_port) {
            (None, None) => return Ok(None),
            (Some(ip), Some(port)) => (ip, port),
            (ip, _) => {
                let (set, missing) = match ip {
                    Some(_) => ("peer-advertise-ip", "peer-advertise-port"),
                    None => ("peer-advertise-port", "peer-advertise-ip"),
                };
                let origin = self.merged.origin(set);
                return Err(Error::Relation(format!(
                    "--{set} ({origin}) needs --{missing} beside it: set both or none"
                )));
            }
        };
        let expected = "an address that peers can reach";
        let address = self.ip("peer-advertise-ip", ip)?;
        if address.is_unspecified() {
            return Err(self.value("peer-advertise-ip", ip, expected));
        }
        match u16::try_from(port) {
            Ok(port) if port != 0 => Ok(Some(SocketAddr::new(address, port))),
            _ => Err(self.value("peer-advertise-port", &port.to_string(), "a port from 1 to 65535")),
        }
    }

    /// The peers without this node, which may be in the list so that all nodes can share one.
    fn static_peers(&self, hostname: &str) -> Result<Vec<StaticPeer>, Error> {
        let mut all = self.each("peers", &self.file().peers, peers::FORM, peers::parse)?;
        if let Some((earlier, later)) = peers::duplicate(&all) {
            let origin = self.merged.origin("peers");
            return Err(Error::Relation(format!("--peers ({origin}): {earlier} and {later} name the same peer twice")));
        }
        all.retain(|peer| peer.hostname != hostname);
        Ok(all)
    }
}
