//! A client that writes what no library would.

use std::net::SocketAddr;
use std::sync::Arc;

use peerfront::testing::pki::{ControlPlane, Identity};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::{soon, values};

/// An HTTP/1.1 connection.
pub(crate) struct Raw(BufReader<TlsStream<TcpStream>>);

impl Raw {
    /// Connects with a client certificate or without.
    pub(crate) async fn open(plane: &ControlPlane, address: SocketAddr, identity: Option<&Identity>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(plane.serving_ca.certificate().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(peerfront::tls::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match identity {
            Some(identity) => {
                let key = Arc::new(identity.certified_key());
                builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(key)))
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let stream = TcpStream::connect(address).await.unwrap();
        let name = "kubernetes.default.svc".try_into().unwrap();
        let stream = soon("a TLS handshake", TlsConnector::from(Arc::new(config)).connect(name, stream)).await;
        Self(BufReader::new(stream.unwrap()))
    }

    /// Writes bytes as they are.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Asks for a WebSocket.
    pub(crate) async fn ask(&mut self, path: &str) {
        self.write(web_socket(path)).await;
    }

    /// The head of the next answer, without its empty last line.
    pub(crate) async fn head(&mut self) -> String {
        let mut head = String::new();
        loop {
            let start = head.len();
            let read = soon("the head of an answer", self.0.read_line(&mut head)).await.unwrap();
            assert!(read > 0, "connection closed after {head:?}");
            if head[start..] == *"\r\n" {
                head.truncate(start);
                return head;
            }
        }
    }

    /// The head and body of the next answer, which has a length.
    pub(crate) async fn answer(&mut self) -> (String, String) {
        let head = self.head().await;
        let length = values(&head, "content-length")[0].parse().unwrap();
        let body = String::from_utf8(self.bytes(length).await).unwrap();
        (head, body)
    }

    /// Reads so many bytes.
    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        soon("bytes at the client", self.0.read_exact(&mut bytes)).await.unwrap();
        bytes
    }

    /// Everything until the connection ends, in whatever way.
    pub(crate) async fn until_closed(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = soon("the end of the connection at the client", self.0.read_to_end(&mut bytes)).await;
        bytes
    }

    /// Says that nothing more will be written.
    pub(crate) async fn end(&mut self) {
        self.0.shutdown().await.unwrap();
    }
}

/// A request for a WebSocket as it is written.
pub(crate) fn web_socket(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
}
