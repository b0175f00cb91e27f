use super::*;
use crate::testing::pki::ExtendedKeyUsage;

static VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

/// Every certificate gets through the handshake, with both versions, and is handed on as it was presented.
async fn check_passes(fixture: &Fixture, presented: &Identity) {
    for version in VERSIONS {
        let client = fixture.client(version, Some(presented.certified_key()));
        let stream = handshake(fixture.server(), client, "kubernetes.default.svc").await.unwrap();
        assert_eq!(peer_chain(&stream), presented.chain, "{:?}", version.version);
    }
}

#[tokio::test]
async fn client_without_certificate_is_let_in() {
    let fixture = fixture();
    for version in VERSIONS {
        let client = fixture.client(version, None);
        let stream = handshake(fixture.server(), client, "kubernetes.default.svc").await.unwrap();
        assert!(peer_chain(&stream).is_empty());
    }
}

#[tokio::test]
async fn valid_certificate_is_handed_on() {
    let fixture = fixture();
    check_passes(&fixture, &fixture.plane.user("alice", &["dev"])).await;
}

#[tokio::test]
async fn chain_is_never_judged_in_the_handshake() {
    let fixture = fixture();
    let ca = &fixture.plane.client_ca;
    let alice = || Profile::client("alice");
    check_passes(&fixture, &ca.issue(&alice().expired())).await;
    check_passes(&fixture, &ca.issue(&alice().not_yet_valid())).await;
    check_passes(&fixture, &ca.issue(&alice().usages(&[ExtendedKeyUsage::ServerAuth]))).await;
    check_passes(&fixture, &ca.issue(&Profile::authority("alice"))).await;
    check_passes(&fixture, &Identity::root("unknown").issue(&alice())).await;
    check_passes(&fixture, &Identity::self_signed(&alice())).await;
}

#[tokio::test]
async fn chain_with_intermediate_is_handed_on_whole() {
    let fixture = fixture();
    let intermediate = fixture.plane.client_ca.issue(&Profile::authority("intermediate"));
    let leaf = intermediate.issue(&Profile::client("alice"));
    assert_eq!(leaf.chain.len(), 2);
    check_passes(&fixture, &leaf).await;
}

#[tokio::test]
async fn version_1_certificate_passes() {
    let fixture = fixture();
    check_passes(&fixture, &fixture.plane.client_ca.issue(&Profile::client("alice").v1())).await;
}

#[tokio::test]
async fn certificate_without_its_key_ends_the_handshake() {
    let fixture = fixture();
    let alice = fixture.plane.user("alice", &["system:masters"]);
    let thief = fixture.plane.user("mallory", &[]);
    let v1 = fixture.plane.client_ca.issue(&Profile::client("alice").v1());
    for version in VERSIONS {
        for stolen in [&alice, &v1] {
            let client = fixture.client(version, Some(thief.certified_key_of(&stolen.chain)));
            let error = handshake(fixture.server(), client, "kubernetes.default.svc").await.unwrap_err();
            assert!(error.to_string().contains("BadSignature"), "{:?}: {error}", version.version);
        }
    }
}

#[tokio::test]
async fn garbage_in_place_of_a_certificate_ends_the_handshake() {
    let fixture = fixture();
    let thief = fixture.plane.user("mallory", &[]);
    for version in VERSIONS {
        let client = fixture.client(version, Some(thief.certified_key_of(&[CertificateDer::from(vec![0x30, 0])])));
        let error = handshake(fixture.server(), client, "kubernetes.default.svc").await.unwrap_err();
        assert!(error.to_string().contains("BadEncoding"), "{:?}: {error}", version.version);
    }
}

#[tokio::test]
async fn sessions_are_not_resumed() {
    let fixture = fixture();
    let server = fixture.server();
    let alice = fixture.plane.user("alice", &[]);
    for version in VERSIONS {
        let client = fixture.client(version, Some(alice.certified_key()));
        for _ in 0..2 {
            let stream = handshake(Arc::clone(&server), client.clone(), "kubernetes.default.svc").await.unwrap();
            assert_eq!(stream.get_ref().1.handshake_kind(), Some(rustls::HandshakeKind::Full));
        }
    }
}

#[tokio::test]
async fn protocol_is_negotiated_by_the_server() {
    let fixture = fixture();
    for (offered, chosen) in [
        (vec![ALPN_HTTP_1_1, ALPN_HTTP_2], Some(ALPN_HTTP_2)),
        (vec![ALPN_HTTP_1_1], Some(ALPN_HTTP_1_1)),
        (vec![ALPN_HTTP_1_1, ALPN_PEERFRONT], Some(ALPN_PEERFRONT)),
        (vec![], None),
    ] {
        let mut client = fixture.client(&rustls::version::TLS13, None);
        client.alpn_protocols = offered.iter().map(|protocol| protocol.to_vec()).collect();
        let stream = handshake(fixture.server(), client, "kubernetes.default.svc").await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), chosen);
    }
}

/// Notes which authorities the server asks for, and presents nothing.
#[derive(Debug)]
struct Curious(tokio::sync::mpsc::UnboundedSender<Vec<Vec<u8>>>);

impl rustls::client::ResolvesClientCert for Curious {
    fn resolve(&self, hints: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.send(hints.iter().map(|hint| hint.to_vec()).collect()).unwrap();
        None
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn hints_name_the_authorities_of_both_bundles_once() {
    let fixture = fixture();
    let plane = &fixture.plane;
    plane.write_bundle("front-proxy-ca.crt", &[&plane.front_proxy_ca, &plane.client_ca]);
    let expected: Vec<_> = [&plane.client_ca, &plane.front_proxy_ca]
        .map(|ca| super::super::serving_certificates::subject(ca.certificate()).unwrap())
        .to_vec();
    for version in VERSIONS {
        let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
        let mut client = fixture.client(version, None);
        client.client_auth_cert_resolver = Arc::new(Curious(sender));
        handshake(fixture.server(), client, "kubernetes.default.svc").await.unwrap();
        assert_eq!(received.recv().await.unwrap(), expected);
    }
}
