use std::sync::Arc;

use anyhow::{Context as _, Result};
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::pki::KeyPair;

/// As whom a client calls.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    certificate: Option<KeyPair>,
    token: Option<String>,
}

impl Identity {
    /// Without any credential.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// With a client certificate.
    pub fn certificate(pair: &KeyPair) -> Self {
        Self { certificate: Some(pair.clone()), token: None }
    }

    /// With a bearer token.
    pub fn bearer(token: impl Into<String>) -> Self {
        Self { certificate: None, token: Some(token.into()) }
    }

    /// With a bearer token besides.
    #[must_use]
    pub fn and_bearer(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub(super) fn tls(&self, roots: &str, alpn: &[u8]) -> Result<Arc<rustls::ClientConfig>> {
        let mut store = rustls::RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(roots.as_bytes()) {
            store.add(root.context("read the root certificate")?)?;
        }
        // The provider is named, so that a test need not install one for the whole program.
        let builder = rustls::ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(store);
        let mut config = match &self.certificate {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes())
                    .collect::<Result<Vec<_>, _>>()
                    .context("read the client certificate")?;
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).context("read the client key")?;
                builder.with_client_auth_cert(chain, key)?
            }
        };
        config.alpn_protocols = vec![alpn.to_vec()];
        Ok(Arc::new(config))
    }
}
