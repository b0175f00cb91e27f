//! The one constructor of [`Settings`]: texts become types, and relations between settings are checked.

mod peering;
mod ports;

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use http::{HeaderName, Uri};

use super::file::File;
use super::layers::Merged;
use super::{
    AuthenticationSettings, Error, IdentityHeaderNames, KeyPairFiles, LogFormat, LoggingSettings,
    RequestHeaderSettings, RouteSync, ServingSettings, Settings, SniCertificate, TlsVersion, UpstreamSettings,
    defaults,
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
            cache_dir: path(&self.file().cache_dir),
            feature_gates: self.file().feature_gates.clone(),
            route_sync: self.route_sync(),
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

    fn route_sync(&self) -> RouteSync {
        match self.file().feature_gates.get(defaults::ROUTE_SYNC_GATE) {
            Some(false) => RouteSync::Periodic,
            _ => RouteSync::WatchBased,
        }
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

    fn logging(&self) -> Result<LoggingSettings, Error> {
        let file = self.file();
        let format = match text(&file.log_format) {
            None | Some("text") => LogFormat::Text,
            Some("json") => LogFormat::Json,
            Some(other) => return Err(self.value("log-format", other, "text or json")),
        };
        Ok(LoggingSettings { format, filter: text(&file.log_filter).unwrap_or(defaults::LOG_FILTER).to_owned() })
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

fn text(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|text| !text.is_empty())
}

fn path(value: &Option<String>) -> Option<PathBuf> {
    text(value).map(PathBuf::from)
}
