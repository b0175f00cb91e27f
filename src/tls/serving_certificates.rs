//! Which certificate a client is shown: by server name, as kube-apiserver chooses it.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/server/dynamiccertificates/named_certificates.go>

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, ServerName};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::{Error, material};
use crate::settings::ServingSettings;

/// The serving pairs and the names that lead to them.
#[derive(Clone, Debug)]
pub(super) struct ServingCertificates {
    default: Arc<CertifiedKey>,
    by_name: HashMap<String, Arc<CertifiedKey>>,
    sni: Vec<Arc<CertifiedKey>>,
}

impl ServingCertificates {
    /// Reads all pairs. Earlier pairs win over later ones, names given explicitly over those in a certificate.
    pub(super) fn load(settings: &ServingSettings, provider: &CryptoProvider) -> Result<Self, Error> {
        let default = Arc::new(material::key_pair(&settings.certificate, provider)?);
        let (mut by_name, mut explicit, mut sni) = (HashMap::new(), HashMap::new(), Vec::new());
        for pair in &settings.sni_certificates {
            let key = Arc::new(material::key_pair(&pair.files, provider)?);
            for name in &pair.names {
                explicit.entry(name.to_ascii_lowercase()).or_insert_with(|| Arc::clone(&key));
            }
            if pair.names.is_empty() {
                for name in names_in(&key) {
                    by_name.entry(name).or_insert_with(|| Arc::clone(&key));
                }
            }
            sni.push(key);
        }
        by_name.extend(explicit);
        Ok(Self { default, by_name, sni })
    }

    /// The addresses that pairs answer for, with those pairs: clients that dial an address send no server name.
    pub(super) fn by_address(&self) -> impl Iterator<Item = (IpAddr, Self)> {
        self.by_name.iter().filter_map(|(name, key)| {
            let address = name.parse().ok()?;
            let only = Self { default: Arc::clone(key), by_name: HashMap::new(), sni: Vec::new() };
            Some((address, only))
        })
    }

    fn choose(&self, name: &str) -> &Arc<CertifiedKey> {
        let name = name.to_ascii_lowercase();
        let wildcard = || self.by_name.get(&format!("*.{}", name.split_once('.')?.1));
        self.by_name.get(&name).or_else(wildcard).unwrap_or_else(|| self.first_valid_for(&name))
    }

    /// The first pair whose certificate carries the name, else the default one.
    fn first_valid_for(&self, name: &str) -> &Arc<CertifiedKey> {
        if self.sni.is_empty() || carries(&self.default, name) {
            return &self.default;
        }
        self.sni.iter().find(|key| carries(key, name)).unwrap_or(&self.default)
    }
}

impl ResolvesServerCert for ServingCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let chosen = hello.server_name().map_or(&self.default, |name| self.choose(name));
        Some(Arc::clone(chosen))
    }
}

fn carries(key: &CertifiedKey, name: &str) -> bool {
    let Some(Ok(leaf)) = key.cert.first().map(ParsedCertificate::try_from) else { return false };
    ServerName::try_from(name).is_ok_and(|name| rustls::client::verify_server_name(&leaf, &name).is_ok())
}

/// Common name, unless it is an address, and DNS names of a certificate; its addresses are left out on purpose, since
/// a server name is never one.
fn names_in(key: &CertifiedKey) -> Vec<String> {
    let Some(leaf) = key.cert.first() else { return Vec::new() };
    let Ok((_, leaf)) = X509Certificate::from_der(leaf) else { return Vec::new() };
    let common_name = leaf.subject().iter_common_name().last().and_then(|name| name.as_str().ok());
    let mut names: Vec<_> =
        common_name.filter(|name| is_domain(name)).map(str::to_ascii_lowercase).into_iter().collect();
    if let Ok(Some(alternatives)) = leaf.subject_alternative_name() {
        names.extend(alternatives.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        }));
    }
    names
}

fn is_domain(name: &str) -> bool {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    name == "*" || matches!(ServerName::try_from(rest), Ok(ServerName::DnsName(_)))
}

/// Raw distinguished name of a certificate's subject, as sent in CA hints.
pub(super) fn subject(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Some(parsed.subject().as_raw().to_vec())
}
