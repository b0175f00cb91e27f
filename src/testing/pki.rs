//! A throw-away PKI: authorities, serving and client certificates made in memory, written as PEM where files are needed.
//!
//! Certificates are encoded here and not by rcgen, because tests need some that rcgen refuses to make: version 1,
//! several organizations, odd string types, a leaf that is an authority. Keys and signatures come from rcgen.

mod control_plane;
mod der;
mod profile;

use std::path::Path;

use rcgen::{KeyPair, PublicKeyData};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

pub use control_plane::{ControlPlane, FRONT_PROXY_CLIENT};
pub use profile::{Attribute, ExtendedKeyUsage, Profile, StringType, Version};

use crate::settings::KeyPairFiles;

/// A certificate with its key and the intermediates that lead to its root.
#[derive(Debug)]
pub struct Identity {
    /// Leaf first, then intermediates; the root itself only if it is the leaf.
    pub chain: Vec<CertificateDer<'static>>,
    subject: Vec<u8>,
    key: KeyPair,
    self_signed: bool,
}

impl Identity {
    /// A self-signed certificate of this profile.
    #[must_use]
    pub fn self_signed(profile: &Profile) -> Self {
        let key = KeyPair::generate().unwrap();
        let subject = der::name(&profile.subject);
        let certificate = der::certificate(profile, &subject, &subject, &key.subject_public_key_info(), &key);
        Self { chain: vec![certificate], subject, key, self_signed: true }
    }

    /// A root authority of this common name.
    #[must_use]
    pub fn root(common_name: &str) -> Self {
        Self::self_signed(&Profile::authority(common_name))
    }

    /// A certificate of this profile with a new key, signed by this one, whatever this one's extensions allow.
    #[must_use]
    pub fn issue(&self, profile: &Profile) -> Self {
        let key = KeyPair::generate().unwrap();
        let subject = der::name(&profile.subject);
        let certificate = der::certificate(profile, &subject, &self.subject, &key.subject_public_key_info(), &self.key);
        let mut chain = vec![certificate];
        if !self.self_signed {
            chain.extend(self.chain.iter().cloned());
        }
        Self { chain, subject, key, self_signed: false }
    }

    /// Another certificate for the same key, self-signed: an authority that was renewed.
    #[must_use]
    pub fn renewed(&self, profile: &Profile) -> Self {
        let key = KeyPair::from_pem(&self.key.serialize_pem()).unwrap();
        let subject = der::name(&profile.subject);
        let certificate = der::certificate(profile, &subject, &subject, &key.subject_public_key_info(), &key);
        Self { chain: vec![certificate], subject, key, self_signed: true }
    }

    /// The certificate itself.
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        self.chain.first().unwrap()
    }

    /// The private key.
    #[must_use]
    pub fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }

    /// Chain and key as rustls signs with them; the two are not compared.
    #[must_use]
    pub fn certified_key(&self) -> CertifiedKey {
        self.certified_key_of(&self.chain)
    }

    /// This key under someone else's certificates: what a thief of a certificate can present.
    #[must_use]
    pub fn certified_key_of(&self, chain: &[CertificateDer<'static>]) -> CertifiedKey {
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&self.private_key()).unwrap();
        CertifiedKey::new(chain.to_vec(), key)
    }

    /// Writes `<name>.crt` (the chain) and `<name>.key` into a directory.
    pub fn write(&self, directory: &Path, name: &str) -> KeyPairFiles {
        let files = KeyPairFiles {
            certificate: directory.join(format!("{name}.crt")),
            private_key: directory.join(format!("{name}.key")),
        };
        std::fs::write(&files.certificate, pem(&self.chain)).unwrap();
        std::fs::write(&files.private_key, self.key.serialize_pem()).unwrap();
        files
    }
}

/// Certificates as one PEM bundle.
#[must_use]
pub fn pem(certificates: &[CertificateDer<'_>]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        let encoded = data_encoding::BASE64.encode(certificate);
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in encoded.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}
