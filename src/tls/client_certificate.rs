//! Asks for a client certificate and makes its holder prove the key. Nothing else.
//!
//! The chain is judged by `authn`, per request and with kube-apiserver's answers: a certificate that is expired or of
//! an unknown authority becomes a 401, or does not matter because the request carries a token. An alert in the
//! handshake would tell the client less and shut the token out.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, PeerMisbehaved, SignatureScheme};
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use webpki::RawPublicKeyEntity;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Takes every client certificate whose key is proven, and clients without one.
#[derive(Debug)]
pub(super) struct ProofOfPossession {
    hints: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ProofOfPossession {
    /// Sends these names as the authorities whose certificates are wanted: clients keep others to themselves.
    pub(super) fn new(hints: Vec<DistinguishedName>, provider: &CryptoProvider) -> Self {
        Self { hints, algorithms: provider.signature_verification_algorithms }
    }

    fn verify_tls12(&self, message: &[u8], key: &[u8], signed: &DigitallySignedStruct) -> Result<(), rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(key);
        let key = RawPublicKeyEntity::try_from(&key).map_err(|_| CertificateError::BadEncoding)?;
        let candidates = self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
        let (_, candidates) = candidates.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        // In TLS 1.2 a scheme does not fix the curve: the candidates are those algorithms that it can mean.
        let proven =
            candidates.iter().any(|algorithm| key.verify_signature(*algorithm, message, signed.signature()).is_ok());
        if proven { Ok(()) } else { Err(CertificateError::BadSignature.into()) }
    }
}

impl ClientCertVerifier for ProofOfPossession {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    /// Judges nothing: see the module's documentation.
    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify_tls12(message, public_key(certificate)?, signed)?;
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(public_key(certificate)?);
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The key in a certificate of any version. webpki's own reader knows version 3 only, and kube-apiserver takes
/// version 1 as well.
fn public_key<'a>(certificate: &'a CertificateDer<'_>) -> Result<&'a [u8], rustls::Error> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    Ok(parsed.tbs_certificate.subject_pki.raw)
}
