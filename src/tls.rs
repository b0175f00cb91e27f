//! TLS on both sides: the acceptor that clients meet and the connectors towards upstream and peers.
//!
//! Reads PEM files and hands out complete rustls configurations. Client certificates are asked for and their key is
//! proven in every handshake; whether the chain is trusted is `authn`'s question, never this room's. It knows nothing
//! of HTTP, users or requests.

mod acceptor;
mod client_certificate;
mod connector;
pub mod material;
mod serving_certificates;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub use acceptor::Acceptor;
pub use connector::{ConnectError, Connector, is_front};

/// ALPN name of HTTP/2 over TLS.
/// Source: <https://www.iana.org/assignments/tls-extensiontype-values/tls-extensiontype-values.xhtml#alpn-protocol-ids>
pub const ALPN_HTTP_2: &[u8] = b"h2";
/// ALPN name of HTTP/1.1.
pub const ALPN_HTTP_1_1: &[u8] = b"http/1.1";
/// ALPN name by which two fronts know each other, for HTTP/1.1. Fronts offer it to peers, and only a front takes it: what
/// answers otherwise is no front, and the front-proxy certificate would be a caller of its own there.
pub const ALPN_PEERFRONT: &[u8] = b"peerfront/1";

/// Name that every kube-apiserver's certificate carries and that peers must prove.
/// Source: <https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controlplane/apiserver/peer.go>
pub const PEER_SERVER_NAME: &str = "kubernetes.default.svc";

/// Why a configuration could not be built; each message says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {path}: it must exist and be readable by peerfront")]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file holds broken PEM.
    #[error("{path} is not valid PEM: write it again from its source")]
    ParsePem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls_pki_types::pem::Error,
    },
    /// A file holds no certificate.
    #[error("{path} holds no certificate: at least one CERTIFICATE block is needed")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A certificate in a file is not X.509.
    #[error("certificate {index} in {path} cannot be parsed: replace or remove it (the first one is number 1)")]
    ParseCertificate {
        /// The file.
        path: PathBuf,
        /// Place in the file, from 1.
        index: usize,
    },
    /// A certificate in a CA bundle cannot be a trust anchor.
    #[error("certificate {index} in {path} cannot be used as a CA: replace or remove it (the first one is number 1)")]
    TrustAnchor {
        /// The file.
        path: PathBuf,
        /// Place in the file, from 1.
        index: usize,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// A file holds no private key that can be used.
    #[error("{path} holds no unencrypted private key: PKCS#8, PKCS#1 or SEC 1 is needed")]
    NoPrivateKey {
        /// The file.
        path: PathBuf,
    },
    /// Certificate and private key do not belong together, or the key type is not supported.
    #[error("{certificate} and {private_key} do not form a usable pair: both must come from the same request")]
    PairKey {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        private_key: PathBuf,
        /// What rustls said.
        source: rustls::Error,
    },
    /// A cipher suite that nobody knows.
    #[error("unknown TLS cipher suite {name}: use the IANA names that kube-apiserver --help lists")]
    UnknownCipherSuite {
        /// The name as configured.
        name: String,
    },
    /// None of the configured TLS 1.2 cipher suites is offered here.
    #[error("none of the configured TLS 1.2 cipher suites is supported: add one of {supported}, or require TLS 1.3")]
    NoCipherSuite {
        /// Those that are.
        supported: String,
    },
    /// A name that a server's certificate can never carry.
    #[error("{name} is neither a DNS name nor an IP address: it cannot be verified in a certificate")]
    ServerName {
        /// The name as configured.
        name: String,
        /// What is wrong with it.
        source: rustls_pki_types::InvalidDnsNameError,
    },
    /// rustls refuses the combination of versions, suites and roots.
    #[error("the TLS settings do not fit together")]
    Configure {
        /// What rustls said.
        source: rustls::Error,
    },
    /// No verifier could be built of a CA bundle.
    #[error("{path} cannot be used to verify servers: a bundle of CA certificates is needed")]
    BuildVerifier {
        /// The file.
        path: PathBuf,
        /// What rustls said.
        source: rustls::client::VerifierBuilderError,
    },
}

/// The cryptography that all of peerfront uses.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

#[cfg(test)]
mod tests;
