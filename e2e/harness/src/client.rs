//! An HTTP client for tests: it says exactly what it is told to, as whom it is told to, and returns all that came.
//!
//! Every request of a [`Client`] has a connection of its own, so one answer cannot depend on the request before;
//! a [`Connection`] carries several, for what a client does on one connection.

mod connection;
mod identity;
mod response;

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub use connection::Connection;
pub use identity::Identity;
pub use response::{Response, Streaming};

/// Longer than anything takes that is going to answer, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The version of HTTP to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    H1,
    /// HTTP/2.
    H2,
}

/// A server, and who calls it how.
#[derive(Clone, Debug)]
pub struct Client {
    address: SocketAddrV4,
    transport: Transport,
    protocol: Protocol,
    token: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: Duration,
}

#[derive(Clone, Debug)]
enum Transport {
    Plain,
    Tls { h1: Arc<rustls::ClientConfig>, h2: Arc<rustls::ClientConfig>, server_name: ServerName<'static> },
}

impl Client {
    /// A client over TLS that trusts the authorities of `roots` (PEM) and speaks HTTP/1.1 until told otherwise.
    ///
    /// # Errors
    /// If roots or identity cannot be read.
    pub fn new(address: SocketAddrV4, roots: &str, identity: &Identity) -> Result<Self> {
        let transport = Transport::Tls {
            h1: identity.tls(roots, b"http/1.1")?,
            h2: identity.tls(roots, b"h2")?,
            server_name: ServerName::from(std::net::IpAddr::V4(*address.ip())),
        };
        Ok(Self { transport, token: identity.token().map(str::to_owned), ..Self::plain(address) })
    }

    /// A client without TLS: admin ports and etcd.
    pub fn plain(address: SocketAddrV4) -> Self {
        Self {
            address,
            transport: Transport::Plain,
            protocol: Protocol::H1,
            token: None,
            headers: Vec::new(),
            timeout: TIMEOUT,
        }
    }

    /// Over HTTP/2.
    #[must_use]
    pub fn h2(self) -> Self {
        self.protocol(Protocol::H2)
    }

    /// Over this protocol.
    #[must_use]
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// With one more header on every request.
    ///
    /// # Panics
    /// If it is no header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::try_from(name).expect("a header name");
        self.headers.push((name, HeaderValue::try_from(value).expect("a header value")));
        self
    }

    /// A server that proves this DNS name instead of its address.
    ///
    /// # Panics
    /// If it is no DNS name.
    #[must_use]
    pub fn with_server_name(mut self, name: &str) -> Self {
        if let Transport::Tls { server_name, .. } = &mut self.transport {
            *server_name = ServerName::try_from(name.to_owned()).expect("a DNS name");
        }
        self
    }

    /// With this limit on each request up to the end of its answer, or of the answer's head if it is streamed.
    /// Default: 30 s.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// `GET`.
    ///
    /// # Errors
    /// If no whole answer came.
    pub async fn get(&self, path: &str) -> Result<Response> {
        self.send(self.request(Method::GET, path, "", Bytes::new())?).await
    }

    /// `DELETE`.
    ///
    /// # Errors
    /// If no whole answer came.
    pub async fn delete(&self, path: &str) -> Result<Response> {
        self.send(self.request(Method::DELETE, path, "", Bytes::new())?).await
    }

    /// `POST` of JSON.
    ///
    /// # Errors
    /// If no whole answer came.
    pub async fn post(&self, path: &str, body: &serde_json::Value) -> Result<Response> {
        self.send(self.request(Method::POST, path, "application/json", body.to_string().into())?).await
    }

    /// `PUT` of JSON.
    ///
    /// # Errors
    /// If no whole answer came.
    pub async fn put(&self, path: &str, body: &serde_json::Value) -> Result<Response> {
        self.send(self.request(Method::PUT, path, "application/json", body.to_string().into())?).await
    }

    /// `PATCH`, such as `application/merge-patch+json`.
    ///
    /// # Errors
    /// If no whole answer came.
    pub async fn patch(&self, path: &str, content_type: &str, body: &serde_json::Value) -> Result<Response> {
        self.send(self.request(Method::PATCH, path, content_type, body.to_string().into())?).await
    }

    /// Sends a request as it is and reads the whole answer. The client's own headers are added where it has none.
    ///
    /// # Errors
    /// If no whole answer came.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response> {
        let what = format!("{} {} of {}", request.method(), request.uri(), self.address);
        let answer = async { self.connect().await?.send(request).await?.collect().await };
        tokio::time::timeout(self.timeout, answer).await.context("timed out").and_then(|r| r).context(what)
    }

    /// `GET` whose answer is read as it comes: a watch, a log.
    ///
    /// # Errors
    /// If no head of an answer came.
    pub async fn stream(&self, path: &str) -> Result<Streaming> {
        let request = self.request(Method::GET, path, "", Bytes::new())?;
        let answer = async { self.connect().await?.send(request).await };
        tokio::time::timeout(self.timeout, answer)
            .await
            .context("timed out")
            .and_then(|r| r)
            .with_context(|| format!("GET {path} of {}", self.address))
    }

    /// Opens a connection for several requests.
    ///
    /// # Errors
    /// If the server does not take it.
    pub async fn connect(&self) -> Result<Connection> {
        Connection::open(self).await
    }

    /// Opens a TLS connection and nothing more, for bytes that no client would send.
    ///
    /// # Errors
    /// If the server does not take it, or this client speaks no TLS.
    pub async fn dial(&self) -> Result<TlsStream<TcpStream>> {
        let Transport::Tls { h1, h2, server_name } = &self.transport else {
            anyhow::bail!("{} is called without TLS", self.address);
        };
        let config = match self.protocol {
            Protocol::H1 => h1,
            Protocol::H2 => h2,
        };
        let tcp = self.dial_plain().await?;
        let connector = TlsConnector::from(Arc::clone(config));
        connector.connect(server_name.clone(), tcp).await.context("TLS handshake")
    }

    async fn dial_plain(&self) -> Result<TcpStream> {
        let tcp = TcpStream::connect(self.address).await.context("connect")?;
        tcp.set_nodelay(true)?;
        Ok(tcp)
    }

    fn request(&self, method: Method, path: &str, content_type: &str, body: Bytes) -> Result<Request<Bytes>> {
        let mut request = Request::builder().method(method).uri(path);
        if !content_type.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        request.body(body).with_context(|| format!("request of {path}"))
    }
}
