//! The one constructor of [`Settings`]: texts become types, and relations between settings are checked.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use http::{HeaderName, Uri};

use super::file::File;
use super::layers::Merged;
use super::{
    AuthenticationSettings, Error, IdentityHeaderNames, KeyPairFiles, LogFormat, LoggingSettings, Peering,
    PeeringSettings, RequestHeaderSettings, ServingSettings, Settings, SniCertificate, StaticPeer, TlsVersion,
    UpstreamSettings, defaults, peers,
};

/// Everything that the settings are made of.
pub(super) struct Resolver<'a> {
    pub(super) merged: &'a Merged,
    /// Where the manifest's kube-apiserver listens, if there is a manifest.
    pub(super) listener: Option<SocketAddr>,
    /// This host's name.
    pub(super) hostname: &'a OsStr,
}

impl Resolver<'_> {
    pub(super) fn resolve(&self, mut warnings: Vec<String>) -> Result<Settings, Error> {
        let advertise_address = self.advertise_address()?;
        let serving = self.serving(advertise_address)?;
        let authentication = self.authentication()?;
        let upstream = self.upstream(&authentication)?;
        let admin_bind_address = self.admin_bind_address()?;
        let hostname = self.hostname()?;
        let peering = self.peering(advertise_address, serving.secure_port, &hostname)?;
        self.check_port(&serving, &upstream, admin_bind_address)?;
        warnings.extend(self.advertised_port_differs(&serving));
        Ok(Settings {
            proxy_client: self.proxy_client()?,
            feature_gates: self.file().feature_gates.clone(),
            logging: self.logging()?,
            serving,
            authentication,
            upstream,
            peering,
            admin_bind_address,
            hostname,
            advertise_address,
            warnings,
        })
    }

    fn file(&self) -> &File {
        &self.merged.file
    }

    /// The advertise address, or as upstream the first bind address that is one; unspecified counts as not set.
    fn advertise_address(&self) -> Result<Option<IpAddr>, Error> {
        let set = text(&self.file().advertise_address).map(|text| self.ip("advertise-address", text)).transpose()?;
        if let Some(address) = set.filter(|address| !address.is_unspecified()) {
            return Ok(Some(address));
        }
        Ok(self.bind_addresses()?.into_iter().find(|address| !address.is_unspecified()))
    }

    fn bind_addresses(&self) -> Result<Vec<IpAddr>, Error> {
        let addresses = &self.file().bind_address;
        let mut parsed = Vec::with_capacity(addresses.len());
        for text in addresses {
            let address = self.ip("bind-address", text)?;
            if parsed.contains(&address) {
                return Err(self.value("bind-address", text, "named once only"));
            }
            parsed.push(address);
        }
        Ok(parsed)
    }

    fn serving(&self, advertise_address: Option<IpAddr>) -> Result<ServingSettings, Error> {
        let file = self.file();
        let mut bind_addresses = self.bind_addresses()?;
        if bind_addresses.is_empty() {
            bind_addresses.push(advertise_address.ok_or(Error::Missing {
                flag: "advertise-address",
                advice: "give this node's address, which is also listened on unless --bind-address names others",
            })?);
        }
        let streams: u32 = self.number(
            "http2-max-streams-per-connection",
            file.http2_max_streams_per_connection,
            defaults::HTTP2_MAX_STREAMS_PER_CONNECTION,
            "a number from 0 to 4294967295",
        )?;
        Ok(ServingSettings {
            bind_addresses,
            secure_port: self.number(
                "secure-port",
                file.secure_port,
                defaults::SECURE_PORT,
                "a port from 0 to 65535",
            )?,
            certificate: serving_pair(file)?,
            sni_certificates: self.each("tls-sni-cert-key", &file.tls_sni_cert_key, SNI_FORM, sni)?,
            tls_min_version: self.tls_min_version()?,
            tls_cipher_suites: file.tls_cipher_suites.clone(),
            http2_max_streams_per_connection: match streams {
                0 => defaults::HTTP2_MAX_STREAMS_PER_CONNECTION,
                streams => streams,
            },
        })
    }

    fn tls_min_version(&self) -> Result<TlsVersion, Error> {
        match text(&self.file().tls_min_version) {
            None | Some("VersionTLS12") => Ok(TlsVersion::V1_2),
            Some("VersionTLS13") => Ok(TlsVersion::V1_3),
            Some(other) => {
                Err(self.value("tls-min-version", other, "VersionTLS12 or VersionTLS13, the ones supported"))
            }
        }
    }

    fn authentication(&self) -> Result<AuthenticationSettings, Error> {
        let file = self.file();
        let request_header = path(&file.requestheader_client_ca_file).map(|client_ca_file| RequestHeaderSettings {
            client_ca_file,
            allowed_names: file.requestheader_allowed_names.clone(),
        });
        let username = self.headers("requestheader-username-headers", &file.requestheader_username_headers)?;
        let group = self.headers("requestheader-group-headers", &file.requestheader_group_headers)?;
        let prefixes = self.headers("requestheader-extra-headers-prefix", &file.requestheader_extra_headers_prefix)?;
        let identity_headers = IdentityHeaderNames {
            username: at_least_one("requestheader-username-headers", username)?,
            uid: self.headers("requestheader-uid-headers", &file.requestheader_uid_headers)?,
            group: at_least_one("requestheader-group-headers", group)?,
            extra_prefix: at_least_one("requestheader-extra-headers-prefix", prefixes)?
                .iter()
                .map(ToString::to_string)
                .collect(),
        };
        Ok(AuthenticationSettings { client_ca_file: path(&file.client_ca_file), request_header, identity_headers })
    }

    fn headers(&self, flag: &'static str, names: &[String]) -> Result<Vec<HeaderName>, Error> {
        self.each(flag, names, "a header name", |name| HeaderName::from_bytes(name.as_bytes()).ok())
    }

    fn upstream(&self, authentication: &AuthenticationSettings) -> Result<UpstreamSettings, Error> {
        let file = self.file();
        let url = text(&file.upstream).unwrap_or(defaults::UPSTREAM);
        let address = upstream_address(url)
            .ok_or_else(|| self.value("upstream", url, "https://ip:port, without a path and with an IP address"))?;
        let ca_file = path(&file.upstream_ca_file).or_else(|| authentication.client_ca_file.clone());
        Ok(UpstreamSettings {
            address,
            server_name: text(&file.upstream_server_name).unwrap_or(defaults::UPSTREAM_SERVER_NAME).to_owned(),
            ca_file: ca_file.ok_or(Error::Missing {
                flag: "upstream-ca-file",
                advice: "name the CA that signed upstream's serving certificate; without it --client-ca-file is \
                         taken, which is not set either",
            })?,
        })
    }

    fn proxy_client(&self) -> Result<KeyPairFiles, Error> {
        let file = self.file();
        let missing = |flag| Error::Missing {
            flag,
            advice: "peerfront proves with this certificate that it may say who calls; in a kubeadm cluster it is \
                     /etc/kubernetes/pki/front-proxy-client.crt with front-proxy-client.key",
        };
        Ok(KeyPairFiles {
            certificate: path(&file.proxy_client_cert_file).ok_or_else(|| missing("proxy-client-cert-file"))?,
            private_key: path(&file.proxy_client_key_file).ok_or_else(|| missing("proxy-client-key-file"))?,
        })
    }

    fn admin_bind_address(&self) -> Result<SocketAddr, Error> {
        let address = text(&self.file().admin_bind_address).unwrap_or(defaults::ADMIN_BIND_ADDRESS);
        self.parse("admin-bind-address", address, "ip:port")
    }

    fn hostname(&self) -> Result<String, Error> {
        if let Some(name) = text(&self.file().hostname_override) {
            return Ok(name.to_owned());
        }
        self.hostname.to_str().filter(|name| !name.is_empty()).map(str::to_owned).ok_or(Error::Missing {
            flag: "hostname-override",
            advice: "this host's own name cannot be read; give the one that its kube-apiserver uses",
        })
    }

    fn peering(&self, advertise: Option<IpAddr>, secure_port: u16, hostname: &str) -> Result<Peering, Error> {
        let file = self.file();
        let pair = self.peer_advertise_pair()?;
        let static_peers = self.static_peers(hostname)?;
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
        let advertise_address = pair.or(advertise.map(|address| SocketAddr::new(address, secure_port)));
        let advertise_address = advertise_address.ok_or(Error::Missing {
            flag: "advertise-address",
            advice: "peers must be told an address, and --bind-address names none of this node's own",
        })?;
        Ok(Peering::On(PeeringSettings { ca_file, advertise_address, static_peers }))
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

    fn logging(&self) -> Result<LoggingSettings, Error> {
        let file = self.file();
        let format = match text(&file.log_format) {
            None | Some("text") => LogFormat::Text,
            Some("json") => LogFormat::Json,
            Some(other) => return Err(self.value("log-format", other, "text or json")),
        };
        Ok(LoggingSettings { format, filter: text(&file.log_filter).unwrap_or(defaults::LOG_FILTER).to_owned() })
    }

    /// Refuses to listen where another listener of this node already is, which binding would only call "in use".
    fn check_port(
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
    fn advertised_port_differs(&self, serving: &ServingSettings) -> Option<String> {
        let port = self.listener?.port();
        (port != serving.secure_port).then(|| {
            format!(
                "kube-apiserver advertises port {port} in the endpoints of the kubernetes Service, while peerfront \
                 listens on {}: pods go past peerfront or find nothing; set --secure-port={port}",
                serving.secure_port
            )
        })
    }

    fn ip(&self, flag: &'static str, text: &str) -> Result<IpAddr, Error> {
        self.parse(flag, text, "an IP address")
    }

    fn parse<T: FromStr>(&self, flag: &'static str, text: &str, expected: &str) -> Result<T, Error> {
        text.parse().map_err(|_| self.value(flag, text, expected))
    }

    fn each<T>(
        &self,
        flag: &'static str,
        texts: &[String],
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        texts.iter().map(|text| parse(text).ok_or_else(|| self.value(flag, text, expected))).collect()
    }

    fn number<T: TryFrom<u64>>(
        &self,
        flag: &'static str,
        value: Option<u64>,
        default: T,
        expected: &str,
    ) -> Result<T, Error> {
        let Some(value) = value else { return Ok(default) };
        T::try_from(value).map_err(|_| self.value(flag, &value.to_string(), expected))
    }

    fn value(&self, flag: &'static str, value: &str, expected: &str) -> Error {
        let origin = self.merged.origin(flag).to_owned();
        Error::Value { flag, origin, value: value.to_owned(), expected: expected.to_owned() }
    }
}

const SNI_FORM: &str = "cert,key or cert,key:name,name";

/// Reads `cert,key` or `cert,key:name,name` as kube-apiserver does.
///
/// Source: <https://github.com/kubernetes/component-base/blob/v0.36.3/cli/flag/namedcertkey_flag.go>
fn sni(text: &str) -> Option<SniCertificate> {
    let (pair, names) = match text.split_once(':') {
        Some((pair, names)) => (pair, names.split(',').map(|name| name.trim().to_owned()).collect()),
        None => (text, Vec::new()),
    };
    let (certificate, private_key) = pair.split_once(',')?;
    let (certificate, private_key) = (certificate.trim(), private_key.trim());
    let whole = !certificate.is_empty() && !private_key.is_empty() && !private_key.contains(',');
    let files = KeyPairFiles { certificate: certificate.into(), private_key: private_key.into() };
    (whole && !names.iter().any(String::is_empty)).then_some(SniCertificate { files, names })
}

fn serving_pair(file: &File) -> Result<KeyPairFiles, Error> {
    let missing = |flag| Error::Missing {
        flag,
        advice: "peerfront serves with kube-apiserver's certificate and makes none of its own (--cert-dir is not \
                 looked at); in a kubeadm cluster it is /etc/kubernetes/pki/apiserver.crt with apiserver.key",
    };
    Ok(KeyPairFiles {
        certificate: path(&file.tls_cert_file).ok_or_else(|| missing("tls-cert-file"))?,
        private_key: path(&file.tls_private_key_file).ok_or_else(|| missing("tls-private-key-file"))?,
    })
}

fn at_least_one<T>(flag: &'static str, names: Vec<T>) -> Result<Vec<T>, Error> {
    if names.is_empty() {
        let advice = "peerfront passes identities on in it, so there must be at least one";
        return Err(Error::Missing { flag, advice });
    }
    Ok(names)
}

fn upstream_address(url: &str) -> Option<SocketAddr> {
    let uri: Uri = url.parse().ok()?;
    let plain = uri.scheme_str() == Some("https") && uri.path() == "/" && uri.query().is_none();
    let address: SocketAddr = uri.authority()?.as_str().parse().ok()?;
    (plain && address.port() != 0 && !address.ip().is_unspecified()).then_some(address)
}

/// Whether two listeners on one node cannot both be bound. `::` covers IPv4 as well, port 0 nothing.
fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let covers = |all: IpAddr, one: IpAddr| all.is_unspecified() && (all.is_ipv6() || one.is_ipv4());
    a.port() == b.port() && a.port() != 0 && (a.ip() == b.ip() || covers(a.ip(), b.ip()) || covers(b.ip(), a.ip()))
}

fn text(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|text| !text.is_empty())
}

fn path(value: &Option<String>) -> Option<PathBuf> {
    text(value).map(PathBuf::from)
}
