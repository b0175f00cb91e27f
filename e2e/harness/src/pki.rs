//! The certificates of a cluster, made anew for each, under kubeadm's file names.

mod subject;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyUsagePurpose, SanType};
use time::{Duration, OffsetDateTime};

pub use subject::Subject;

/// Names of a kubeadm serving certificate, apart from addresses.
const SERVING_NAMES: [&str; 5] =
    ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"];

/// A certificate and its key, both PEM.
#[derive(Clone, Debug)]
pub struct KeyPair {
    /// The certificate alone.
    pub certificate: String,
    /// PKCS #8.
    pub key: String,
}

/// A certificate authority.
#[derive(Debug)]
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, subject::Signer>,
}

/// All that a cluster trusts.
#[derive(Debug)]
pub struct Pki {
    folder: PathBuf,
    ca: Authority,
    front_proxy_ca: Authority,
    admin: KeyPair,
    front_proxy_client: KeyPair,
}

/// When a certificate holds, around now.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    /// How long it has been valid: clocks and tests of expired certificates.
    pub since: Duration,
    /// How long it will be; negative for an expired one.
    pub remaining: Duration,
}

impl Default for Validity {
    fn default() -> Self {
        Self { since: Duration::hours(1), remaining: Duration::days(365) }
    }
}

impl Authority {
    /// A self-signed authority of this common name.
    ///
    /// # Errors
    /// If the certificate cannot be made.
    pub fn new(name: &str) -> Result<Self> {
        let key = subject::Signer(rcgen::KeyPair::generate()?);
        let mut params = params(Validity { remaining: Duration::days(3650), ..Validity::default() });
        params.distinguished_name = Subject::new(name).to_distinguished_name();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// The certificate, PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A certificate for clients.
    ///
    /// # Errors
    /// If the certificate cannot be made.
    pub fn client(&self, subject: &Subject, validity: Validity) -> Result<KeyPair> {
        let mut params = params(validity);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params, subject)
    }

    /// A certificate for a server of these names and addresses.
    ///
    /// # Errors
    /// If a name cannot stand in a certificate.
    pub fn serving(&self, name: &str, names: &[&str], addresses: &[IpAddr]) -> Result<KeyPair> {
        let mut params = params(Validity::default());
        for name in names {
            params.subject_alt_names.push(SanType::DnsName((*name).try_into()?));
        }
        params.subject_alt_names.extend(addresses.iter().map(|address| SanType::IpAddress(*address)));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params, &Subject::new(name))
    }

    fn sign(&self, mut params: CertificateParams, subject: &Subject) -> Result<KeyPair> {
        let key = rcgen::KeyPair::generate()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.use_authority_key_identifier_extension = true;
        params.distinguished_name = subject.to_distinguished_name();
        let certificate = subject::sign(&params, &key, &self.issuer)?;
        Ok(KeyPair { certificate, key: key.serialize_pem() })
    }
}

impl Pki {
    /// Makes everything for servers at these addresses and writes it to `folder`.
    pub(crate) fn create(folder: &Path, addresses: &[IpAddr]) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        let ca = Authority::new("kubernetes")?;
        let front_proxy_ca = Authority::new("front-proxy-ca")?;
        let client = |authority: &Authority, subject: Subject| authority.client(&subject, Validity::default());
        let admin = client(&ca, Subject::new("kubernetes-admin").group("system:masters"))?;
        let front_proxy_client = client(&front_proxy_ca, Subject::new("front-proxy-client"))?;
        let kubelet_client = client(&ca, Subject::new("kube-apiserver-kubelet-client").group("system:masters"))?;
        let controller_manager = client(&ca, Subject::new("system:kube-controller-manager"))?;
        let serving = ca.serving("kube-apiserver", &SERVING_NAMES, addresses)?;
        let service_accounts = rcgen::KeyPair::generate()?;

        let pki = Self { folder: folder.to_owned(), ca, front_proxy_ca, admin, front_proxy_client };
        pki.write_authority("ca", &pki.ca)?;
        pki.write_authority("front-proxy-ca", &pki.front_proxy_ca)?;
        pki.write_pair("admin", &pki.admin)?;
        pki.write_pair("front-proxy-client", &pki.front_proxy_client)?;
        pki.write_pair("apiserver-kubelet-client", &kubelet_client)?;
        pki.write_pair("controller-manager", &controller_manager)?;
        pki.write_pair("apiserver", &serving)?;
        pki.write("sa.key", &service_accounts.serialize_pem())?;
        pki.write("sa.pub", &service_accounts.public_key_pem())?;
        Ok(pki)
    }

    /// A file of the folder, such as `ca.crt`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The cluster's authority.
    pub fn ca(&self) -> &Authority {
        &self.ca
    }

    /// The authority of front proxies.
    pub fn front_proxy_ca(&self) -> &Authority {
        &self.front_proxy_ca
    }

    /// The certificate of `kubernetes-admin` in `system:masters`.
    pub fn admin(&self) -> &KeyPair {
        &self.admin
    }

    /// The certificate that may name any user in `X-Remote-User`.
    pub fn front_proxy_client(&self) -> &KeyPair {
        &self.front_proxy_client
    }

    /// A certificate of a user of the cluster, valid for a year.
    ///
    /// # Errors
    /// If the certificate cannot be made.
    pub fn client(&self, subject: &Subject) -> Result<KeyPair> {
        self.ca.client(subject, Validity::default())
    }

    fn write_authority(&self, name: &str, authority: &Authority) -> Result<()> {
        let pair =
            KeyPair { certificate: authority.certificate.clone(), key: authority.issuer.key().0.serialize_pem() };
        self.write_pair(name, &pair)
    }

    fn write_pair(&self, name: &str, pair: &KeyPair) -> Result<()> {
        self.write(&format!("{name}.crt"), &pair.certificate)?;
        self.write(&format!("{name}.key"), &pair.key)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        write_private(&self.file(name), text)
    }
}

/// Writes a file that only its owner may read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("write {}", path.display()))
}

fn params(validity: Validity) -> CertificateParams {
    let now = OffsetDateTime::now_utc();
    let mut params = CertificateParams::default();
    params.not_before = now - validity.since;
    params.not_after = now + validity.remaining;
    params
}

#[cfg(test)]
mod tests;
