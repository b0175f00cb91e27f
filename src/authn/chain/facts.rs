//! What Go's verifier wants to know of one certificate.

use rustls_pki_types::{SubjectPublicKeyInfoDer, UnixTime};
use x509_parser::prelude::{ParsedExtension, X509Certificate, X509Extension, X509Version};

use super::Error;

/// Facts of one certificate, read once.
pub(in crate::authn) struct Facts {
    /// Seconds since 1970; both ends belong to the validity.
    not_before: u64,
    not_after: u64,
    for_clients: bool,
    not_understood: bool,
    /// Whether basic constraints say that it is a CA.
    pub(super) is_authority: bool,
    /// Whether it may sign certificates.
    pub(super) may_sign: bool,
    max_intermediates: Option<u32>,
    pub(super) subject: Vec<u8>,
    pub(super) public_key: SubjectPublicKeyInfoDer<'static>,
}

impl Facts {
    /// Reads them off a parsed certificate.
    pub(in crate::authn) fn of(certificate: &X509Certificate<'_>) -> Self {
        let constraints = certificate.basic_constraints().ok().flatten().map(|found| found.value);
        let is_authority = constraints.is_some_and(|found| found.ca);
        Self {
            not_before: u64::try_from(certificate.validity().not_before.timestamp()).unwrap_or(0),
            not_after: u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0),
            for_clients: is_for_clients(certificate),
            not_understood: certificate.extensions().iter().any(is_not_understood),
            is_authority,
            may_sign: may_sign(certificate, is_authority),
            max_intermediates: constraints.and_then(|found| found.path_len_constraint),
            subject: certificate.subject().as_raw().to_vec(),
            public_key: certificate.tbs_certificate.subject_pki.raw.to_vec().into(),
        }
    }

    /// The rules for a leaf that do not depend on its issuer.
    pub(super) fn check_leaf(&self, now: UnixTime) -> Result<(), Error> {
        if self.not_understood {
            return Err(Error::CriticalExtension);
        }
        if !self.is_valid_at(now) {
            return Err(Error::Validity);
        }
        if self.for_clients { Ok(()) } else { Err(Error::Usage) }
    }

    /// The rules for the end of a path with this many intermediates.
    pub(super) fn check_root(&self, intermediates: u32, now: UnixTime) -> Result<(), Error> {
        self.check_leaf(now)?;
        if self.max_intermediates.is_some_and(|most| intermediates > most) { Err(Error::UnknownIssuer) } else { Ok(()) }
    }

    /// The first second of the validity and the first one after it.
    pub(in crate::authn) fn turning_points(&self) -> [u64; 2] {
        [self.not_before, self.not_after.saturating_add(1)]
    }

    fn is_valid_at(&self, now: UnixTime) -> bool {
        (self.not_before..=self.not_after).contains(&now.as_secs())
    }
}

/// 2.5.29, under which RFC 5280 puts its extensions.
const STANDARD_ARC: &[u8] = &[0x55, 0x1d];

/// No purposes named, or client authentication or every purpose among them.
fn is_for_clients(certificate: &X509Certificate<'_>) -> bool {
    match certificate.extended_key_usage() {
        Ok(None) => true,
        Ok(Some(found)) => found.value.client_auth || found.value.any,
        Err(_) => false,
    }
}

/// A version 3 certificate must say that it is a CA; older ones cannot. Key usage, where given, must allow signing.
fn may_sign(certificate: &X509Certificate<'_>, is_authority: bool) -> bool {
    let silent = certificate.version() != X509Version::V3 && matches!(certificate.basic_constraints(), Ok(None));
    let usage = match certificate.key_usage() {
        Ok(None) => true,
        Ok(Some(found)) => found.value.flags == 0 || found.value.key_cert_sign(),
        Err(_) => false,
    };
    (is_authority || silent) && usage
}

/// A standard extension that is broken, or a critical one that is none of those that Go handles.
/// Source: <https://github.com/golang/go/blob/go1.26.0/src/crypto/x509/parser.go> (`processExtensions`)
fn is_not_understood(extension: &X509Extension<'_>) -> bool {
    match extension.parsed_extension() {
        ParsedExtension::ParseError { .. } => extension.critical || extension.oid.as_bytes().starts_with(STANDARD_ARC),
        ParsedExtension::AuthorityKeyIdentifier(_)
        | ParsedExtension::SubjectKeyIdentifier(_)
        | ParsedExtension::KeyUsage(_)
        | ParsedExtension::CertificatePolicies(_)
        | ParsedExtension::PolicyMappings(_)
        | ParsedExtension::SubjectAlternativeName(_)
        | ParsedExtension::BasicConstraints(_)
        | ParsedExtension::NameConstraints(_)
        | ParsedExtension::PolicyConstraints(_)
        | ParsedExtension::ExtendedKeyUsage(_)
        | ParsedExtension::CRLDistributionPoints(_)
        | ParsedExtension::InhibitAnyPolicy(_)
        | ParsedExtension::AuthorityInfoAccess(_) => false,
        _ => extension.critical,
    }
}
