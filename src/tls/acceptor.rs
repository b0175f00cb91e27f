//! The server side: one configuration for all clients, replaced as a whole.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::CryptoProvider;
use rustls::server::NoServerSessionStorage;
use rustls::{CipherSuite, DistinguishedName, ServerConfig, SupportedProtocolVersion};

use super::client_certificate::ProofOfPossession;
use super::serving_certificates::{ServingCertificates, subject};
use super::{ALPN_HTTP_1_1, ALPN_HTTP_2, ALPN_PEERFRONT, Error, material, provider};
use crate::settings::{AuthenticationSettings, ServingSettings, TlsVersion};

/// Hands out the newest good server configuration.
#[derive(Debug)]
pub struct Acceptor {
    configs: ArcSwap<Configs>,
}

#[derive(Debug)]
struct Configs {
    usual: Arc<ServerConfig>,
    /// For addresses that an SNI pair names: a client that dials an address sends no server name.
    by_address: HashMap<IpAddr, Arc<ServerConfig>>,
}

impl Acceptor {
    /// Reads the serving pairs and the CA bundles whose names are sent as hints.
    ///
    /// # Errors
    /// If a file is unusable or the versions and cipher suites leave nothing to offer.
    pub fn load(serving: &ServingSettings, authentication: &AuthenticationSettings) -> Result<Self, Error> {
        let configs = Configs::load(serving, authentication)?;
        Ok(Self { configs: ArcSwap::from_pointee(configs) })
    }

    /// The configuration for a connection that was accepted on this local address.
    #[must_use]
    pub fn current_for(&self, local: IpAddr) -> Arc<ServerConfig> {
        let configs = self.configs.load();
        Arc::clone(configs.by_address.get(&local).unwrap_or(&configs.usual))
    }

    /// The configuration for a connection whose local address no SNI pair names.
    #[must_use]
    pub fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.configs.load().usual)
    }
}

impl Configs {
    fn load(serving: &ServingSettings, authentication: &AuthenticationSettings) -> Result<Self, Error> {
        let provider = restricted(provider(), serving)?;
        let hints = hints(authentication)?;
        let certificates = ServingCertificates::load(serving, &provider)?;
        let build = |certificates| config(serving, &provider, hints.clone(), certificates);
        let by_address = certificates.by_address().map(|(address, only)| Ok((address, build(only)?)));
        Ok(Self { by_address: by_address.collect::<Result<_, Error>>()?, usual: build(certificates.clone())? })
    }
}

fn config(
    serving: &ServingSettings,
    provider: &Arc<CryptoProvider>,
    hints: Vec<DistinguishedName>,
    certificates: ServingCertificates,
) -> Result<Arc<ServerConfig>, Error> {
    let verifier = ProofOfPossession::new(hints, provider);
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(versions(serving.tls_min_version))
        .map_err(|source| Error::Configure { source })?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![ALPN_PEERFRONT.to_vec(), ALPN_HTTP_2.to_vec(), ALPN_HTTP_1_1.to_vec()];
    // Invariant: the key of a client certificate is proven in every handshake, so sessions are not resumed. Go clients,
    // nearly all there are, keep no sessions by default. Without storage no ticket is sent; none is prepared either.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn versions(lowest: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    static FROM_1_2: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];
    static FROM_1_3: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];
    match lowest {
        TlsVersion::V1_2 => FROM_1_2,
        TlsVersion::V1_3 => FROM_1_3,
    }
}

/// Subjects of both CA bundles. Go clients send no certificate unless its issuer is among them.
fn hints(settings: &AuthenticationSettings) -> Result<Vec<DistinguishedName>, Error> {
    let request_header = settings.request_header.as_ref().map(|settings| settings.client_ca_file.as_path());
    let mut hints = Vec::new();
    for path in settings.client_ca_file.as_deref().into_iter().chain(request_header) {
        for hint in subjects(path)? {
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        }
    }
    Ok(hints.into_iter().map(DistinguishedName::from).collect())
}

fn subjects(path: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let certificates = material::certificates(path)?;
    let numbered = certificates.iter().zip(1..);
    let parse = |(certificate, index)| match subject(certificate) {
        Some(name) => Ok(name),
        None => Err(Error::ParseCertificate { path: path.to_owned(), index }),
    };
    numbered.map(parse).collect()
}

/// Leaves only the configured TLS 1.2 suites; as in kube-apiserver, those of TLS 1.3 cannot be chosen.
fn restricted(provider: Arc<CryptoProvider>, serving: &ServingSettings) -> Result<Arc<CryptoProvider>, Error> {
    if serving.tls_cipher_suites.is_empty() {
        return Ok(provider);
    }
    if let Some(name) = serving.tls_cipher_suites.iter().find(|name| !is_known(name)) {
        return Err(Error::UnknownCipherSuite { name: name.clone() });
    }
    let names: Vec<&str> = serving.tls_cipher_suites.iter().map(|name| canonical(name)).collect();
    let mut provider = Arc::unwrap_or_clone(provider);
    let supported: Vec<&str> = provider.cipher_suites.iter().filter_map(|suite| name_in_tls12(suite)).collect();
    for name in names.iter().filter(|name| !supported.contains(name) && !TLS13_SUITES.contains(name)) {
        tracing::warn!(
            suite = name,
            "TLS cipher suite is left out: peerfront offers only those with forward secrecy and AEAD"
        );
    }
    provider.cipher_suites.retain(|suite| name_in_tls12(suite).is_none_or(|name| names.contains(&name)));
    let none_left = !provider.cipher_suites.iter().any(|suite| name_in_tls12(suite).is_some());
    if none_left && serving.tls_min_version == TlsVersion::V1_2 {
        return Err(Error::NoCipherSuite { supported: supported.join(", ") });
    }
    Ok(Arc::new(provider))
}

fn name_in_tls12(suite: &rustls::SupportedCipherSuite) -> Option<&'static str> {
    if suite.version().version == rustls::ProtocolVersion::TLSv1_3 { None } else { suite.suite().as_str() }
}

fn is_known(name: &str) -> bool {
    let name = canonical(name);
    TLS13_SUITES.contains(&name)
        || UNSUPPORTED_SUITES.contains(&name)
        || IANA_SUITES.iter().any(|suite| suite.as_str() == Some(name))
}

/// Go has two suites under an older name as well.
fn canonical(name: &str) -> &str {
    match name {
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        name => name,
    }
}

/// Suites of TLS 1.2 that can be offered.
const IANA_SUITES: &[CipherSuite] = &[
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// Suites that the flag accepts without effect: TLS 1.3 always offers them.
const TLS13_SUITES: &[&str] = &["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/// Suites that kube-apiserver knows and rustls, on purpose, does not implement.
/// Source: <https://github.com/golang/go/blob/go1.26.0/src/crypto/tls/cipher_suites.go> (`CipherSuites`, `InsecureCipherSuites`)
const UNSUPPORTED_SUITES: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];
