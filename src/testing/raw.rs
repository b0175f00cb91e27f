//! A client that writes what no library would.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::pki::{ControlPlane, Identity};
use super::{soon, values};
use crate::tls;

/// Opens a TLS connection with a client certificate or without, and one ALPN protocol.
pub async fn connect(
    plane: &ControlPlane,
    address: SocketAddr,
    identity: Option<&Identity>,
    protocol: &[u8],
) -> TlsStream<TcpStream> {
    let stream = soon("a TCP connection", TcpStream::connect(address)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    handshake(plane, stream, identity, protocol).await
}

/// The same on a connection that is there.
pub async fn handshake(
    plane: &ControlPlane,
    stream: TcpStream,
    identity: Option<&Identity>,
    protocol: &[u8],
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(plane.serving_ca.certificate().clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(tls::provider())
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
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = "kubernetes.default.svc".try_into().unwrap();
    soon("a TLS handshake", TlsConnector::from(Arc::new(config)).connect(name, stream)).await.unwrap()
}

/// An HTTP/1.1 connection that writes whatever it is told.
pub struct Raw(BufReader<TlsStream<TcpStream>>);

/// An answer read byte by byte.
#[derive(Debug)]
pub struct Answer {
    /// All lines, each with its end, without the last, empty one.
    pub head: String,
    /// The body as it is.
    pub body: Vec<u8>,
}

impl Answer {
    /// Its status code.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Head and text.
    #[must_use]
    pub fn into_parts(self) -> (String, String) {
        let text = self.text();
        (self.head, text)
    }

    /// Every value of a header, in order.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&str> {
        values(&self.head, name)
    }
}

impl Raw {
    /// Connects with a client certificate or without.
    pub async fn open(plane: &ControlPlane, address: SocketAddr, identity: Option<&Identity>) -> Self {
        Self::new(connect(plane, address, identity, b"http/1.1").await)
    }

    /// On a TLS connection that is there.
    #[must_use]
    pub fn new(stream: TlsStream<TcpStream>) -> Self {
        Self(BufReader::new(stream))
    }

    /// Writes bytes as they are.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Writes as much as is taken; for servers that may close early.
    ///
    /// # Errors
    /// If the connection is closed.
    pub async fn try_write(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.0.write_all(bytes.as_ref()).await?;
        self.0.flush().await
    }

    /// The head of the next answer.
    pub async fn head(&mut self) -> String {
        let mut head = Vec::new();
        loop {
            let start = head.len();
            let read = soon("the head of an answer", self.0.read_until(b'\n', &mut head)).await.unwrap();
            assert!(read > 0, "connection closed after {:?}", String::from_utf8_lossy(&head));
            if head[start..] == *b"\r\n" {
                head.truncate(start);
                return String::from_utf8(head).unwrap();
            }
        }
    }

    /// One line of a body.
    pub async fn line(&mut self) -> String {
        let mut line = String::new();
        soon("a line of a body", self.0.read_line(&mut line)).await.unwrap();
        line
    }

    /// Reads so many bytes.
    pub async fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        soon("bytes", self.0.read_exact(&mut bytes)).await.unwrap();
        bytes
    }

    /// Everything until the connection ends, in whatever way.
    pub async fn until_closed(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = soon("the end of the connection", self.0.read_to_end(&mut bytes)).await;
        bytes
    }

    /// The next answer, whose body has a length or chunks.
    pub async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let mut body = Vec::new();
        if let Some(length) = values(&head, "content-length").first() {
            body = self.bytes(length.parse().unwrap()).await;
        } else if values(&head, "transfer-encoding") == ["chunked"] {
            loop {
                let size = usize::from_str_radix(self.line().await.trim(), 16).unwrap();
                body.extend(self.bytes(size).await);
                self.line().await;
                if size == 0 {
                    break;
                }
            }
        }
        Answer { head, body }
    }

    /// Asks for a WebSocket.
    pub async fn ask(&mut self, path: &str) {
        self.write(web_socket(path)).await;
    }

    /// Says that nothing more will be written.
    pub async fn end(&mut self) {
        self.0.shutdown().await.unwrap();
    }

    /// Sends a request without a body and reads the answer.
    pub async fn get(&mut self, path: &str, headers: &str) -> Answer {
        self.write(format!("GET {path} HTTP/1.1\r\nHost: front\r\n{headers}\r\n")).await;
        self.answer().await
    }
}

/// A request for a WebSocket as it is written.
#[must_use]
pub fn web_socket(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
}
