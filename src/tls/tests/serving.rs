use std::net::IpAddr;

use super::*;
use crate::settings::{KeyPairFiles, ServingSettings, SniCertificate, TlsVersion};

fn sni(files: KeyPairFiles, names: &[&str]) -> SniCertificate {
    SniCertificate { files, names: names.iter().map(|&name| name.to_owned()).collect() }
}

/// Accepts whatever the server shows: these tests ask which certificate that is.
#[derive(Debug)]
struct Credulous;

impl rustls::client::danger::ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls_pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

async fn shown(server: Arc<ServerConfig>, name: &str) -> CertificateDer<'static> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut client = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    client.dangerous().set_certificate_verifier(Arc::new(Credulous));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connector = TlsConnector::from(Arc::new(client));
    let (served, called) = tokio::join!(TlsAcceptor::from(server).accept(far), connector.connect(name, near));
    served.unwrap();
    let stream = called.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].clone()
}

#[tokio::test]
async fn certificate_is_chosen_by_server_name_as_upstream_does() {
    let fixture = fixture();
    let (plane, path) = (&fixture.plane, fixture._directory.path());
    let issue = |cn: &str, names: &[&str]| plane.serving_ca.issue(&Profile::server(cn, names));
    let named = issue("common.example", &["api.example", "*.wild.example"]);
    let explicit = issue("explicit", &["inside.example"]);
    let later = issue("later", &["api.example"]);
    let mut settings = plane.serving_settings();
    settings.sni_certificates = vec![
        sni(named.write(path, "named"), &[]),
        sni(explicit.write(path, "explicit"), &["outside.example", "127.0.0.9"]),
        sni(later.write(path, "later"), &[]),
    ];
    let acceptor = Acceptor::load(&settings, &plane.authentication_settings()).unwrap();
    let usual = material::certificates(&settings.certificate.certificate).unwrap().remove(0);
    for (name, expected) in [
        ("api.example", named.certificate()),
        ("common.example", named.certificate()),
        ("a.wild.example", named.certificate()),
        ("outside.example", explicit.certificate()),
        ("inside.example", explicit.certificate()),
        ("a.b.wild.example", &usual),
        ("kubernetes.default.svc", &usual),
        ("127.0.0.1", &usual),
    ] {
        assert_eq!(shown(acceptor.current(), name).await, *expected, "{name}");
    }
    let local = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(shown(acceptor.current_for(local("127.0.0.9")), "127.0.0.9").await, *explicit.certificate());
    assert_eq!(shown(acceptor.current_for(local("127.0.0.8")), "127.0.0.8").await, usual);
}

fn load(fixture: &Fixture, change: impl FnOnce(&mut ServingSettings)) -> Result<Acceptor, Error> {
    let mut settings = fixture.plane.serving_settings();
    change(&mut settings);
    Acceptor::load(&settings, &fixture.plane.authentication_settings())
}

fn suites(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[tokio::test]
async fn lowest_version_is_kept() {
    let fixture = fixture();
    let acceptor = load(&fixture, |settings| settings.tls_min_version = TlsVersion::V1_3).unwrap();
    let old = fixture.client(&rustls::version::TLS12, None);
    handshake(acceptor.current(), old, "kubernetes.default.svc").await.unwrap_err();
    let new = fixture.client(&rustls::version::TLS13, None);
    handshake(acceptor.current(), new, "kubernetes.default.svc").await.unwrap();
}

#[tokio::test]
async fn only_configured_suites_are_offered_in_tls_1_2() {
    let fixture = fixture();
    let names = ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_RSA_WITH_AES_128_GCM_SHA256"];
    let acceptor = load(&fixture, |settings| settings.tls_cipher_suites = suites(&names)).unwrap();
    let client = fixture.client(&rustls::version::TLS12, None);
    let stream = handshake(acceptor.current(), client, "kubernetes.default.svc").await.unwrap();
    let suite = stream.get_ref().1.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(suite, rustls::CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256);
    let client = fixture.client(&rustls::version::TLS13, None);
    handshake(acceptor.current(), client, "kubernetes.default.svc").await.unwrap();
}

#[test]
fn suites_that_leave_nothing_are_refused() {
    let fixture = fixture();
    let unknown = load(&fixture, |settings| settings.tls_cipher_suites = suites(&["TLS_NONSENSE"]));
    assert!(matches!(unknown, Err(Error::UnknownCipherSuite { name }) if name == "TLS_NONSENSE"));
    let none = load(&fixture, |settings| settings.tls_cipher_suites = suites(&["TLS_RSA_WITH_AES_128_CBC_SHA"]));
    assert!(matches!(none, Err(Error::NoCipherSuite { .. })));
    load(&fixture, |settings| {
        settings.tls_cipher_suites = suites(&["TLS_AES_128_GCM_SHA256"]);
        settings.tls_min_version = TlsVersion::V1_3;
    })
    .unwrap();
}

#[test]
fn unusable_files_are_named() {
    let fixture = fixture();
    let path = fixture.plane.path("broken");
    let with_certificate = |text: &str| {
        std::fs::write(&path, text).unwrap();
        load(&fixture, |settings| settings.certificate.certificate.clone_from(&path)).err().unwrap().to_string()
    };
    let name = path.display().to_string();
    assert_eq!(with_certificate(""), format!("{name} holds no certificate: at least one CERTIFICATE block is needed"));
    assert!(
        with_certificate("-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n").contains("is not valid PEM")
    );
    std::fs::remove_file(&path).unwrap();
    let missing = load(&fixture, |settings| settings.certificate.certificate.clone_from(&path)).err().unwrap();
    assert_eq!(missing.to_string(), format!("cannot read {name}: it must exist and be readable by peerfront"));
    std::fs::write(&path, "").unwrap();
    let no_key = load(&fixture, |settings| settings.certificate.private_key.clone_from(&path)).err().unwrap();
    assert!(matches!(no_key, Error::NoPrivateKey { .. }), "{no_key}");
    let other = fixture.plane.user("alice", &[]).write(fixture._directory.path(), "other");
    let mismatch = load(&fixture, |settings| settings.certificate.private_key = other.private_key).err().unwrap();
    assert!(matches!(mismatch, Error::PairKey { .. }), "{mismatch}");
}
