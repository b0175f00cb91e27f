use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, PublicKeyData, SignatureAlgorithm, SigningKey};

/// Who a client certificate names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    name: String,
    groups: Vec<String>,
    uid: Option<String>,
}

/// The attribute from which Kubernetes takes a user's UID.
// Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go
const UID: [u64; 8] = [1, 3, 6, 1, 4, 1, 57683, 2];

impl Subject {
    /// A user of this name, without groups.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: Vec::new(), uid: None }
    }

    /// One more group.
    ///
    /// # Panics
    /// On the 21st, for which there is no stand-in.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        assert!(self.groups.len() < STAND_INS.len(), "a certificate names at most {} groups", STAND_INS.len());
        self.groups.push(group.into());
        self
    }

    /// The user's UID.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    pub(super) fn to_distinguished_name(&self) -> DistinguishedName {
        let mut name = DistinguishedName::new();
        for (group, stand_in) in self.groups.iter().zip(STAND_INS) {
            name.push(DnType::CustomDnType(vec![2, 5, 4, u64::from(stand_in)]), group);
        }
        name.push(DnType::CommonName, &self.name);
        if let Some(uid) = &self.uid {
            name.push(DnType::CustomDnType(UID.to_vec()), uid);
        }
        name
    }
}

/// Attribute types that stand for an organization until a certificate is signed: rcgen keeps one value per type, but
/// a user has several groups. Registered attributes end at 2.5.4.98; one byte, so that lengths stay as they are.
const STAND_INS: std::ops::Range<u8> = 100..120;
/// The DER of the object identifiers 2.5.4.x without x.
const ATTRIBUTE: [u8; 4] = [0x06, 0x03, 0x55, 0x04];
const ORGANIZATION: u8 = 10;

/// A signing key under which each stand-in becomes an organization.
#[derive(Debug)]
pub(super) struct Signer(pub(super) rcgen::KeyPair);

impl PublicKeyData for Signer {
    fn der_bytes(&self) -> &[u8] {
        self.0.der_bytes()
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.0.algorithm()
    }
}

impl SigningKey for Signer {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        self.0.sign(&with_organizations(message))
    }
}

/// Makes the certificate and returns its PEM.
pub(super) fn sign(
    params: &CertificateParams,
    key: &rcgen::KeyPair,
    issuer: &Issuer<'_, Signer>,
) -> anyhow::Result<String> {
    let certificate = params.signed_by(key, issuer)?;
    // The same bytes that the signer has signed.
    let der = with_organizations(certificate.der());
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    Ok(pem::encode_config(&pem::Pem::new("CERTIFICATE", der), config))
}

fn with_organizations(der: &[u8]) -> Vec<u8> {
    let mut der = der.to_vec();
    for start in 0..der.len().saturating_sub(ATTRIBUTE.len()) {
        let end = start + ATTRIBUTE.len();
        if der[start..end] == ATTRIBUTE && STAND_INS.contains(&der[end]) {
            der[end] = ORGANIZATION;
        }
    }
    der
}
