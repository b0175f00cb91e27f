//! Reads certificates and keys from PEM files. Every error names the file and what to do about it.

use std::path::Path;

use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::Error;
use crate::settings::KeyPairFiles;

/// All certificates of a PEM file, in its order; at least one.
///
/// # Errors
/// If the file cannot be read, is not PEM or holds no certificate.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|source| Error::ParsePem { path: path.to_owned(), source })?;
    if found.is_empty() { Err(Error::NoCertificate { path: path.to_owned() }) } else { Ok(found) }
}

/// The first private key of a PEM file.
///
/// # Errors
/// If the file cannot be read, is not PEM or holds no unencrypted key.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    match PrivateKeyDer::from_pem_slice(&read(path)?) {
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) => Err(Error::NoPrivateKey { path: path.to_owned() }),
        Err(source) => Err(Error::ParsePem { path: path.to_owned(), source }),
    }
}

/// A certificate chain with its key, checked to belong together.
///
/// # Errors
/// If one of the files is unusable or the two do not match.
pub fn key_pair(files: &KeyPairFiles, provider: &CryptoProvider) -> Result<CertifiedKey, Error> {
    let chain = certificates(&files.certificate)?;
    let key = private_key(&files.private_key)?;
    CertifiedKey::from_der(chain, key, provider).map_err(|source| Error::PairKey {
        certificate: files.certificate.clone(),
        private_key: files.private_key.clone(),
        source,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::ReadFile { path: path.to_owned(), source })
}
