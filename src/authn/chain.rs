//! Judges a client certificate's chain as Go's verifier does, so that a front and its kube-apiserver agree.
//!
//! webpki builds the paths and checks signatures, validity, purposes and name constraints. Go additionally checks the
//! root like any other CA; those rules are applied here to every path that webpki finds.
//!
//! Source: <https://github.com/golang/go/blob/go1.26.0/src/crypto/x509/verify.go> (`Verify`, `isValid`)

mod facts;

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter, RawPublicKeyEntity, VerifiedPath};
use x509_parser::asn1_rs::Any;
use x509_parser::prelude::{FromDer, X509Certificate};

pub(super) use self::facts::Facts;
use crate::tls::{self, material};

/// Why a chain is not accepted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    /// Not X.509, or an extension that cannot be read.
    #[error("it cannot be parsed")]
    Parse,
    /// Outside its validity.
    #[error("it has expired or is not valid yet")]
    Validity,
    /// Limited to purposes other than client authentication.
    #[error("it is not meant for client authentication")]
    Usage,
    /// An extension that must be understood is not.
    #[error("it has a critical extension that is not understood")]
    CriticalExtension,
    /// No accepted authority signed it.
    #[error("it is signed by an unknown authority")]
    UnknownIssuer,
    /// Refused by webpki for another reason.
    #[error("{0}")]
    Path(String),
}

/// The certificates of one CA bundle.
pub(super) struct Authorities {
    roots: Vec<Root>,
    /// Those roots that may sign, in the form that webpki reads.
    anchors: Vec<TrustAnchor<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

struct Root {
    certificate: CertificateDer<'static>,
    anchor: TrustAnchor<'static>,
    facts: Facts,
}

impl Authorities {
    /// Reads a CA bundle.
    pub(super) fn load(path: &Path) -> Result<Self, super::Error> {
        let certificates =
            material::certificates(path).map_err(|source| super::Error::LoadAuthorities(Arc::new(source)))?;
        let numbered = certificates.into_iter().zip(1..);
        let parse = |(certificate, index)| {
            Root::parse(certificate).ok_or_else(|| super::Error::ParseAuthority { path: path.to_owned(), index })
        };
        let roots: Vec<Root> = numbered.map(parse).collect::<Result<_, _>>()?;
        let signing = roots.iter().filter(|root| root.facts.may_sign);
        let anchors = signing.map(|root| root.anchor.clone()).collect();
        Ok(Self { roots, anchors, algorithms: tls::provider().signature_verification_algorithms })
    }

    /// Accepts a chain, leaf first, for client authentication at this time.
    pub(super) fn verify(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        let [leaf, intermediates @ ..] = chain else { return Err(Error::Parse) };
        let (_, parsed) = X509Certificate::from_der(leaf).map_err(|_| Error::Parse)?;
        let facts = Facts::of(&parsed);
        facts.check_leaf(now)?;
        if self.roots.iter().any(|root| root.certificate == *leaf) {
            return Ok(()); // Go accepts what stands in the bundle itself, self-signed or not.
        }
        match EndEntityCert::try_from(leaf) {
            Ok(end_entity) if !facts.is_authority => self.verify_path(&end_entity, intermediates, now),
            Ok(_) | Err(webpki::Error::UnsupportedCertVersion) => self.verify_direct(leaf, &parsed, now),
            Err(error) => Err(Error::Path(error.to_string())),
        }
    }

    fn verify_path(
        &self,
        leaf: &EndEntityCert<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let admitted = |path: &VerifiedPath<'_>| {
            if self.admits(path, now) { Ok(()) } else { Err(webpki::Error::UnknownIssuer) }
        };
        let result = leaf.verify_for_usage(
            self.algorithms.all,
            &self.anchors,
            intermediates,
            now,
            ClientAuth,
            None, // kube-apiserver knows no revocation lists either.
            Some(&admitted),
        );
        match result {
            Ok(_) => Ok(()),
            Err(webpki::Error::UnknownIssuer) => Err(Error::UnknownIssuer),
            Err(error) => Err(Error::Path(error.to_string())),
        }
    }

    /// Go's rules that webpki does not have: CAs must be allowed to sign certificates, and the root is checked as well.
    fn admits(&self, path: &VerifiedPath<'_>, now: UnixTime) -> bool {
        let mut count = 0;
        for intermediate in path.intermediate_certificates() {
            let der = intermediate.der();
            let Ok((_, parsed)) = X509Certificate::from_der(&der) else { return false };
            if !Facts::of(&parsed).may_sign {
                return false;
            }
            count += 1;
        }
        // Several roots can share a key, such as a renewed one and its expired predecessor.
        let mut roots = self.roots.iter().filter(|root| root.facts.may_sign && root.anchor == *path.anchor());
        roots.any(|root| root.facts.check_root(count, now).is_ok())
    }

    /// For leaves that webpki refuses though Go takes them: version 1, and CAs used as clients. Only roots may have
    /// signed them, and only roots without name constraints, which nobody would check here.
    fn verify_direct(
        &self,
        leaf: &CertificateDer<'_>,
        parsed: &X509Certificate<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let signed_by = |root: &&Root| {
            root.facts.may_sign
                && root.anchor.name_constraints.is_none()
                && root.facts.subject == parsed.issuer().as_raw()
                && root.facts.check_root(0, now).is_ok()
                && self.is_signed(leaf, parsed, &root.facts.public_key)
        };
        self.roots.iter().find(signed_by).map(|_| ()).ok_or(Error::UnknownIssuer)
    }

    fn is_signed(
        &self,
        der: &CertificateDer<'_>,
        parsed: &X509Certificate<'_>,
        key: &SubjectPublicKeyInfoDer<'_>,
    ) -> bool {
        let Ok(key) = RawPublicKeyEntity::try_from(key) else { return false };
        let Some(identifier) = signature_algorithm(der) else { return false };
        if parsed.tbs_certificate.signature != parsed.signature_algorithm {
            return false;
        }
        let message = parsed.tbs_certificate.as_ref();
        let candidates = self.algorithms.all.iter().filter(|a| a.signature_alg_id().as_ref() == identifier);
        candidates.into_iter().any(|a| key.verify_signature(*a, message, &parsed.signature_value.data).is_ok())
    }

    /// Moments at which the judgement of a chain by this bundle may change, in seconds since 1970.
    pub(super) fn turning_points(&self) -> impl Iterator<Item = u64> {
        self.roots.iter().flat_map(|root| root.facts.turning_points())
    }

    /// Whether a certificate stands in both bundles.
    pub(super) fn shares_one_with(&self, other: &Self) -> bool {
        self.roots.iter().any(|root| other.roots.iter().any(|theirs| theirs.certificate == root.certificate))
    }
}

impl Root {
    fn parse(certificate: CertificateDer<'static>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(&certificate).ok()?;
        let facts = Facts::of(&parsed);
        let anchor = webpki::anchor_from_trusted_cert(&certificate).ok()?.to_owned();
        Some(Self { anchor, facts, certificate })
    }
}

/// The content of the outer signature algorithm, parameters included: the form by which algorithms are known.
fn signature_algorithm<'a>(certificate: &'a CertificateDer<'_>) -> Option<&'a [u8]> {
    let (_, outer) = Any::from_der(certificate).ok()?;
    let (rest, _tbs) = Any::from_der(outer.data).ok()?;
    let (_, algorithm) = Any::from_der(rest).ok()?;
    Some(algorithm.data)
}

/// Client authentication, or every purpose, or none named: Go takes all three, webpki's own check not the second.
struct ClientAuth;

impl ExtendedKeyUsageValidator for ClientAuth {
    fn validate(&self, purposes: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        let mut present = Vec::new();
        for purpose in purposes {
            present.push(purpose?.to_decoded_oid());
        }
        let fits = |oid: &Vec<usize>| oid == webpki::KeyUsage::CLIENT_AUTH_REPR || oid == ANY_PURPOSE;
        if present.is_empty() || present.iter().any(fits) {
            return Ok(());
        }
        let required = webpki::KeyUsage::client_auth();
        Err(webpki::Error::RequiredEkuNotFoundContext(webpki::RequiredEkuNotFoundContext { required, present }))
    }
}

/// anyExtendedKeyUsage. Source: <https://www.rfc-editor.org/rfc/rfc5280#section-4.2.1.12>
const ANY_PURPOSE: &[usize] = &[2, 5, 29, 37, 0];

#[cfg(test)]
mod tests;
