use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::*;
use crate::settings::KeyPairFiles;

const NAME: &str = "kubernetes.default.svc";

/// Serves one connection, echoing one byte, and gives the client's chain.
async fn serve_one(listener: TcpListener, config: Arc<ServerConfig>) -> std::io::Result<Vec<CertificateDer<'static>>> {
    let (stream, _) = listener.accept().await?;
    let mut stream = TlsAcceptor::from(config).accept(stream).await?;
    let byte = stream.read_u8().await?;
    stream.write_u8(byte).await?;
    stream.flush().await?;
    Ok(stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec())
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn connector(fixture: &Fixture, identity: Option<&KeyPairFiles>, name: &str) -> Connector {
    Connector::load(&fixture.plane.path("serving-ca.crt"), identity, name, &[ALPN_HTTP_1_1]).unwrap()
}

#[tokio::test]
async fn presents_its_identity_to_a_verified_server() {
    let fixture = fixture();
    let proxy = fixture.plane.front_proxy();
    let files = proxy.write(fixture._directory.path(), "front-proxy-client");
    for (identity, expected) in [(Some(&files), proxy.chain.clone()), (None, Vec::new())] {
        let (listener, address) = listener().await;
        let server = tokio::spawn(serve_one(listener, fixture.server()));
        let mut stream = connector(&fixture, identity, NAME).connect(address).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(ALPN_HTTP_1_1));
        assert!(stream.get_ref().0.nodelay().unwrap());
        assert!(socket2::SockRef::from(stream.get_ref().0).keepalive().unwrap());
        stream.write_u8(1).await.unwrap();
        stream.flush().await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), 1);
        assert_eq!(server.await.unwrap().unwrap(), expected);
    }
}

/// The connection must be refused before a byte of the application arrives.
async fn check_refused(connector: &Connector, server: Arc<ServerConfig>) {
    let (listener, address) = listener().await;
    let server = tokio::spawn(serve_one(listener, server));
    let error = connector.connect(address).await.unwrap_err();
    assert!(matches!(error, ConnectError::Handshake { .. }), "{error:?}");
    assert!(server.await.unwrap().is_err());
}

#[tokio::test]
async fn server_of_another_ca_is_refused() {
    let fixture = fixture();
    let roots = fixture.plane.path("ca.crt");
    let connector = Connector::load(&roots, None, NAME, &[ALPN_HTTP_1_1]).unwrap();
    check_refused(&connector, fixture.server()).await;
}

#[tokio::test]
async fn server_without_the_name_is_refused() {
    let fixture = fixture();
    check_refused(&connector(&fixture, None, "kubernetes.other.svc"), fixture.server()).await;
}

#[tokio::test]
async fn nobody_listening_is_a_dial_error() {
    let fixture = fixture();
    let (listener, address) = listener().await;
    drop(listener);
    let error = connector(&fixture, None, NAME).connect(address).await.unwrap_err();
    assert!(matches!(error, ConnectError::Dial { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_given_up() {
    let fixture = fixture();
    let (listener, address) = listener().await;
    let connector = connector(&fixture, None, NAME);
    let silent = async {
        let accepted = listener.accept().await.unwrap();
        std::future::pending::<()>().await;
        drop(accepted);
    };
    let error = tokio::select! {
        result = connector.connect(address) => result.unwrap_err(),
        () = silent => unreachable!("it never ends"),
    };
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error:?}");
}

#[test]
fn name_that_no_certificate_can_carry_is_refused() {
    let fixture = fixture();
    let result = Connector::load(&fixture.plane.path("serving-ca.crt"), None, "not a name", &[ALPN_HTTP_1_1]);
    assert!(matches!(result, Err(Error::ServerName { .. })));
}
