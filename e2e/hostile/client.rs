//! Clients that write what no library would, and HTTP/2 ones.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use peerfront::testing::pki::{ControlPlane, Identity};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::soon;

/// A body of any kind.
pub(crate) type Body = BoxBody<Bytes, std::convert::Infallible>;

/// No body.
pub(crate) fn empty() -> Body {
    Empty::new().boxed()
}

/// A body of known length.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed()
}

/// Opens a TLS connection with a client certificate or without, and one ALPN protocol.
pub(crate) async fn tls(
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
pub(crate) async fn handshake(
    plane: &ControlPlane,
    stream: TcpStream,
    identity: Option<&Identity>,
    protocol: &[u8],
) -> TlsStream<TcpStream> {
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
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = "kubernetes.default.svc".try_into().unwrap();
    soon("a TLS handshake", TlsConnector::from(Arc::new(config)).connect(name, stream)).await.unwrap()
}

/// An HTTP/1.1 connection that writes whatever it is told.
pub(crate) struct Raw(BufReader<TlsStream<TcpStream>>);

/// An answer read byte by byte.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn code(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Every value of a header, in order.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        all(&self.head, name)
    }
}

fn all<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
}

impl Raw {
    pub(crate) async fn open(plane: &ControlPlane, address: SocketAddr, identity: Option<&Identity>) -> Self {
        Self::new(tls(plane, address, identity, b"http/1.1").await)
    }

    pub(crate) fn new(stream: TlsStream<TcpStream>) -> Self {
        Self(BufReader::new(stream))
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Writes as much as is taken; for servers that may close early.
    pub(crate) async fn try_write(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.0.write_all(bytes.as_ref()).await?;
        self.0.flush().await
    }

    /// The head of the next answer.
    pub(crate) async fn head(&mut self) -> String {
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
    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        soon("a line of a body", self.0.read_line(&mut line)).await.unwrap();
        line
    }

    /// Reads so many bytes.
    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        soon("bytes", self.0.read_exact(&mut bytes)).await.unwrap();
        bytes
    }

    /// Everything until the connection ends, in whatever way.
    pub(crate) async fn until_closed(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = soon("the end of the connection", self.0.read_to_end(&mut bytes)).await;
        bytes
    }

    /// The next answer, whose body has a length or chunks.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let mut body = Vec::new();
        if let Some(length) = all(&head, "content-length").first() {
            body = self.bytes(length.parse().unwrap()).await;
        } else if all(&head, "transfer-encoding") == ["chunked"] {
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

    /// Sends a request without a body and reads the answer.
    pub(crate) async fn get(&mut self, path: &str, headers: &str) -> Answer {
        self.write(format!("GET {path} HTTP/1.1\r\nHost: front\r\n{headers}\r\n")).await;
        self.answer().await
    }
}

/// An HTTP/2 connection.
pub(crate) async fn h2(plane: &ControlPlane, address: SocketAddr, identity: Option<&Identity>) -> SendRequest<Body> {
    h2_on(tls(plane, address, identity, b"h2").await).await
}

/// An HTTP/2 connection on one that is there.
pub(crate) async fn h2_on(stream: TlsStream<TcpStream>) -> SendRequest<Body> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .max_header_list_size(2 * 1024 * 1024)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

/// A GET over HTTP/2 with these headers.
pub(crate) fn request(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::get(format!("https://front{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(empty()).unwrap()
}

/// The whole body of an answer.
pub(crate) async fn whole(response: Response<Incoming>) -> Result<Bytes, hyper::Error> {
    soon("the end of a body", response.into_body().collect()).await.map(http_body_util::Collected::to_bytes)
}

/// A body of so many bytes whose length is not known beforehand; none at all if there are none.
pub(crate) fn unsized_body(length: usize) -> Body {
    if length == 0 {
        return empty();
    }
    let frames = futures_util::stream::iter([Ok(hyper::body::Frame::data(Bytes::from(vec![b'x'; length])))]);
    BodyExt::boxed(http_body_util::StreamBody::new(frames))
}
