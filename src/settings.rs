//! What an operator may set, parsed once into types that cannot be wrong.
//!
//! Layers, later ones win: defaults, the co-located kube-apiserver's static-pod manifest, the file named by `--config`,
//! environment variables `PEERFRONT_*`, flags. An empty text in a later layer takes back what an earlier one set.
//! Nothing here reads a certificate or opens a socket.

pub mod defaults;
mod error;
mod file;
mod layers;
mod manifest;
pub mod names;
mod peers;
mod resolve;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use http::HeaderName;
use ipnet::IpNet;

use crate::apimachinery::peer::PeerKind;

pub use error::Error;
pub use layers::Flags;
use layers::{Layer, Merged};
use manifest::Manifest;
use resolve::Resolver;

/// Everything `peerfront serve` needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The port that clients know.
    pub serving: ServingSettings,
    /// How callers prove who they are.
    pub authentication: AuthenticationSettings,
    /// The co-located kube-apiserver.
    pub upstream: UpstreamSettings,
    /// Client certificate that proves to upstream and peers that peerfront is a front proxy.
    pub proxy_client: KeyPairFiles,
    /// The other nodes.
    pub peering: Peering,
    /// Plain-HTTP listener for `/livez`, `/readyz` and `/metrics`; default `127.0.0.1:6440`.
    pub admin_bind_address: SocketAddr,
    /// Host name of the co-located kube-apiserver, from which its server ID is computed.
    pub hostname: String,
    /// Where what servers served last is kept for the next start; default `/var/cache/kube-peerfront`, `None` for
    /// nowhere.
    pub cache_dir: Option<PathBuf>,
    /// This node's address as others are told it, if any is set or can be taken from the bind addresses.
    pub advertise_address: Option<IpAddr>,
    /// Every feature gate and whether it is on.
    pub feature_gates: BTreeMap<String, bool>,
    /// When the table of who serves what is computed anew, as the gate `WatchBasedRoutesReconciliation` says.
    pub route_sync: RouteSync,
    /// Shape and level of the log.
    pub logging: LoggingSettings,
    /// What the operator should be told once at start although it is no error.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Reads and merges all layers and checks how the settings relate.
    ///
    /// `environment` is all of the process's (`std::env::vars_os`), `hostname` the name that the kernel gives, which
    /// counts only if `--hostname-override` is not set.
    ///
    /// # Errors
    ///
    /// See [`Error`]; each names the setting, where it was set and what to do.
    pub fn load(
        flags: &Flags,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        hostname: &OsStr,
    ) -> Result<Self, Error> {
        let flags = Layer::from_flags(flags)?;
        let environment = Layer::from_environment(environment)?;
        let file = match flags.text(names::CONFIG).or(environment.text(names::CONFIG)) {
            Some(path) => read_config(Path::new(path))?,
            None => Layer::new("no file"),
        };
        let path = [&flags, &environment, &file].into_iter().find_map(|layer| layer.text(names::MANIFEST));
        let manifest = path.map(|path| Manifest::load(Path::new(path))).transpose()?;
        let (lowest, listener, warnings) = match manifest {
            Some(Manifest { layer, listener, warnings }) => (layer, Some(listener), warnings),
            None => (Layer::new("no manifest"), None, Vec::new()),
        };
        let merged = Merged::new([lowest, file, environment, flags])?;
        Resolver { merged: &merged, listener, hostname }.resolve(warnings)
    }
}

fn read_config(path: &Path) -> Result<Layer, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::ReadFile {
        flag: names::CONFIG,
        path: path.to_owned(),
        source,
    })?;
    Layer::from_yaml(path, &text)
}

/// The public listener.
#[derive(Clone, Debug)]
pub struct ServingSettings {
    /// Addresses to listen on, at least one; default the advertise address.
    pub bind_addresses: Vec<IpAddr>,
    /// Port on each of them; default 6443; 0 takes a free one (tests).
    pub secure_port: u16,
    /// The serving certificate for names that no SNI pair covers.
    pub certificate: KeyPairFiles,
    /// Further serving pairs, chosen by server name.
    pub sni_certificates: Vec<SniCertificate>,
    /// Lowest TLS version accepted; default 1.2.
    pub tls_min_version: TlsVersion,
    /// IANA names of the TLS 1.2 cipher suites offered; empty means the library's default.
    pub tls_cipher_suites: Vec<String>,
    /// Concurrent streams allowed on one HTTP/2 connection; default 100, as kube-apiserver.
    pub http2_max_streams_per_connection: u32,
}

/// A PEM certificate chain and its PEM private key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyPairFiles {
    /// Certificate chain, leaf first.
    pub certificate: PathBuf,
    /// Private key of the leaf.
    pub private_key: PathBuf,
}

/// A serving pair of `--tls-sni-cert-key`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SniCertificate {
    /// The pair.
    pub files: KeyPairFiles,
    /// Names it answers for, wildcards allowed; empty means the names in the certificate.
    pub names: Vec<String>,
}

/// TLS versions that can be required.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// Where trust in callers comes from.
#[derive(Clone, Debug, Default)]
pub struct AuthenticationSettings {
    /// CA bundle for user certificates; `None` switches certificate users off.
    pub client_ca_file: Option<PathBuf>,
    /// Front proxies that may assert users; `None` if no `--requestheader-client-ca-file` is set.
    pub request_header: Option<RequestHeaderSettings>,
    /// Header names of asserted identity, also used towards upstream and peers.
    pub identity_headers: IdentityHeaderNames,
}

/// Which front proxies are believed.
#[derive(Clone, Debug)]
pub struct RequestHeaderSettings {
    /// CA bundle for front-proxy certificates.
    pub client_ca_file: PathBuf,
    /// Common names that are believed; empty means every one signed by the CA.
    pub allowed_names: Vec<String>,
}

/// The configured names of identity headers, each list in order of preference.
///
/// Source: <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#authenticating-proxy>
#[derive(Clone, Debug)]
pub struct IdentityHeaderNames {
    /// User name; default `X-Remote-User`.
    pub username: Vec<HeaderName>,
    /// UID; default none, as upstream.
    pub uid: Vec<HeaderName>,
    /// Groups; default `X-Remote-Group`.
    pub group: Vec<HeaderName>,
    /// Prefixes of extra headers, lower case; default `x-remote-extra-`.
    pub extra_prefix: Vec<String>,
}

impl Default for IdentityHeaderNames {
    fn default() -> Self {
        Self {
            username: vec![HeaderName::from_static("x-remote-user")],
            uid: Vec::new(),
            group: vec![HeaderName::from_static("x-remote-group")],
            extra_prefix: vec!["x-remote-extra-".to_owned()],
        }
    }
}

/// The kube-apiserver behind this front.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// Where it listens; default `127.0.0.1:6443`.
    pub address: SocketAddr,
    /// Name its certificate must carry; default `kubernetes.default.svc`.
    pub server_name: String,
    /// CA bundle for its certificate; default the client CA file, which signs both in a kubeadm cluster.
    pub ca_file: PathBuf,
}

/// Whether this front works with peers.
#[derive(Clone, Debug)]
pub enum Peering {
    /// Local view and local forwarding only, for the reason given (said once in the log and in readiness).
    Off(String),
    /// Peers are asked and requests are forwarded to them.
    On(PeeringSettings),
}

/// When the table of who serves what at which address is computed anew.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RouteSync {
    /// When something has changed.
    #[default]
    WatchBased,
    /// Every 10 s.
    Periodic,
}

/// How to reach peers and be reached by them.
#[derive(Clone, Debug)]
pub struct PeeringSettings {
    /// CA bundle for the peers' serving certificates, which must carry `kubernetes.default.svc`.
    pub ca_file: PathBuf,
    /// Address at which peers reach this front.
    pub advertise_address: SocketAddr,
    /// Peers known from the start; this node itself is not among them.
    pub static_peers: Vec<StaticPeer>,
    /// Networks that peers found through Leases may be in; none means all but those that no node can be in.
    pub cidrs: Vec<IpNet>,
}

/// One entry of `--peers`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StaticPeer {
    /// Host name of the peer's kube-apiserver, from which its server ID is computed.
    pub hostname: String,
    /// Where it is reached.
    pub address: SocketAddr,
    /// What answers there.
    pub kind: PeerKind,
}

/// The log.
#[derive(Clone, Debug)]
pub struct LoggingSettings {
    /// Text for people or JSON for machines; default text.
    pub format: LogFormat,
    /// Filter directives as `tracing_subscriber::EnvFilter` reads them; default `info`.
    pub filter: String,
}

/// Shape of a log line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LogFormat {
    /// One readable line per event.
    #[default]
    Text,
    /// One JSON object per event.
    Json,
}

#[cfg(test)]
mod tests;
