use super::{Authority, Duration, Pki, Subject, Validity};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::parse_x509_certificate;

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

#[test]
fn client_certificate_names_every_group_and_verifies() {
    let ca = Authority::new("test").unwrap();
    let subject = Subject::new("alice").group("dev").group("ops").group("audit").uid("42");
    let pair = ca.client(&subject, Validity::default()).unwrap();
    let (issuer, client) = (der(ca.certificate()), der(&pair.certificate));
    let (_, issuer) = parse_x509_certificate(&issuer).unwrap();
    let (_, client) = parse_x509_certificate(&client).unwrap();

    client.verify_signature(Some(issuer.public_key())).unwrap();
    let groups: Vec<_> = client.subject().iter_organization().map(|o| o.as_str().unwrap()).collect();
    assert_eq!(groups, ["dev", "ops", "audit"]);
    assert_eq!(client.subject().iter_common_name().next().unwrap().as_str().unwrap(), "alice");
    assert!(client.subject().to_string().ends_with("(1.3.6.1.4.1.57683.2)=42"), "{}", client.subject());
}

#[test]
fn expired_certificate_is_expired() {
    let validity = Validity { since: Duration::hours(2), remaining: Duration::hours(-1) };
    let pair = Authority::new("test").unwrap().client(&Subject::new("old"), validity).unwrap();
    let certificate = der(&pair.certificate);
    let (_, certificate) = parse_x509_certificate(&certificate).unwrap();
    assert!(!certificate.validity().is_valid());
}

#[test]
fn files_have_the_names_kubeadm_gives_them() {
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::create(folder.path(), &["127.0.0.1".parse().unwrap()]).unwrap();
    for name in [
        "ca.crt",
        "ca.key",
        "apiserver.crt",
        "apiserver.key",
        "apiserver-kubelet-client.crt",
        "apiserver-kubelet-client.key",
        "front-proxy-ca.crt",
        "front-proxy-ca.key",
        "front-proxy-client.crt",
        "front-proxy-client.key",
        "sa.pub",
        "sa.key",
        "admin.crt",
        "admin.key",
    ] {
        assert!(pki.file(name).is_file(), "{name}");
    }
    let key = std::fs::read(pki.file("ca.key")).unwrap();
    PrivateKeyDer::from_pem_slice(&key).unwrap();
    let again = std::fs::read_to_string(pki.file("admin.crt")).unwrap();
    assert_eq!(again, pki.admin().certificate);
}
