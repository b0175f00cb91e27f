use std::sync::Arc;

use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use rustls_pki_types::{CertificateDer, ServerName};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;
use crate::testing::pki::{ControlPlane, Identity, Profile};

mod connector;
mod handshake;
mod serving;

struct Fixture {
    plane: ControlPlane,
    _directory: TempDir,
}

fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    Fixture { plane: ControlPlane::new(directory.path()), _directory: directory }
}

impl Fixture {
    fn server(&self) -> Arc<ServerConfig> {
        let acceptor = Acceptor::load(&self.plane.serving_settings(), &self.plane.authentication_settings()).unwrap();
        acceptor.current()
    }

    /// A client that trusts the serving CA and presents this key, if any, whatever the hints say.
    fn client(&self, version: &'static SupportedProtocolVersion, key: Option<CertifiedKey>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.plane.serving_ca.certificate().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        match key {
            Some(key) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key))),
            None => builder.with_no_client_auth(),
        }
    }
}

/// What the server has after a handshake and one byte each way, so that both sides are known to have finished.
async fn handshake(
    server: Arc<ServerConfig>,
    client: ClientConfig,
    name: &str,
) -> std::io::Result<TlsStream<DuplexStream>> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (served, called) = tokio::join!(serve(server, far), call(client, name, near));
    let served = served?;
    assert_eq!(called?, 7);
    Ok(served)
}

async fn serve(config: Arc<ServerConfig>, stream: DuplexStream) -> std::io::Result<TlsStream<DuplexStream>> {
    let mut stream = TlsAcceptor::from(config).accept(stream).await?;
    let byte = stream.read_u8().await?;
    stream.write_u8(byte).await?;
    stream.flush().await?;
    Ok(stream)
}

async fn call(config: ClientConfig, name: &str, stream: DuplexStream) -> std::io::Result<u8> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    stream.write_u8(7).await?;
    stream.flush().await?;
    stream.read_u8().await
}

fn peer_chain(stream: &TlsStream<DuplexStream>) -> Vec<CertificateDer<'static>> {
    stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec()
}
