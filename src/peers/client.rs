//! How peerfront itself asks a server of the control plane: as `system:kube-peerfront`, proven by the front-proxy
//! certificate, and marked, so that the server answers for itself and asks no peer.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::USER_AGENT;
use http::uri::{Authority, Scheme};
use http::{HeaderName, HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::Body;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use crate::apimachinery::peer::PEER_PROXIED;
use crate::apimachinery::user::{ALL_AUTHENTICATED, KUBE_PEERFRONT};
use crate::settings::IdentityHeaderNames;
use crate::tls::{self, ConnectError, Connector};

/// The `Host` of every request. A server is known by this name, never by its address.
const HOST: &str = "kubernetes.default.svc";

/// Any error of a request, for `source()` chains.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Time for a connection, the TLS handshake included: less than for a document, so that a server to which no connection
/// can be made is told from one that is slow.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// Whether a request was not sent because no connection could be made.
pub(super) fn is_of_connecting(error: &BoxError) -> bool {
    error.is::<ConnectError>() || error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect)
}

/// Whether the attempt to connect was not even refused.
pub(super) fn is_of_vanishing(error: &BoxError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error.as_ref());
    while let Some(error) = cause {
        match error.downcast_ref() {
            Some(ConnectError::Timeout { .. }) => return true,
            // After some attempts the system says what it knows: nobody has that address any more.
            Some(ConnectError::Dial { source, .. }) => {
                return matches!(source.kind(), io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable);
            }
            _ => {}
        }
        cause = error.source();
    }
    false
}

/// Names peerfront as the caller, with the first configured name of each identity header.
pub(super) fn identity(names: &IdentityHeaderNames) -> Arc<[(HeaderName, HeaderValue)]> {
    let user = names.username.first().map(|name| (name.clone(), HeaderValue::from_static(KUBE_PEERFRONT)));
    let group = names.group.first().map(|name| (name.clone(), HeaderValue::from_static(ALL_AUTHENTICATED)));
    let agent = HeaderValue::from_static(concat!("peerfront/", env!("CARGO_PKG_VERSION")));
    let mark = (PEER_PROXIED, HeaderValue::from_static("true"));
    user.into_iter().chain(group).chain([mark, (USER_AGENT, agent)]).collect()
}

/// One server and the connections to it. Clones share the connections.
#[derive(Clone)]
pub(super) struct ServerClient {
    client: legacy::Client<Dialer, Body>,
    dialer: Dialer,
    identity: Arc<[(HeaderName, HeaderValue)]>,
}

impl ServerClient {
    /// Makes a client of the server at `address`; nothing is sent yet.
    pub(super) fn new(
        connector: Arc<Connector>,
        address: SocketAddr,
        identity: Arc<[(HeaderName, HeaderValue)]>,
    ) -> Self {
        let dialer = Dialer { connector, address, expected: None };
        Self { client: pool(&dialer), dialer, identity }
    }

    /// Makes it say so once when anything but a front answers for the peer of this name.
    pub(super) fn expecting_front(self, hostname: &str) -> Self {
        let expected =
            Some(Arc::new(ExpectedFront { hostname: hostname.to_owned(), is_missing: AtomicBool::default() }));
        let dialer = Dialer { expected, ..self.dialer };
        Self { client: pool(&dialer), dialer, ..self }
    }

    /// Lets go of the connections, so that the next request proves that a new one can be made.
    pub(super) fn forget_connections(&mut self) {
        self.client = pool(&self.dialer);
    }

    /// Proves that a connection can be made, beside those that there are.
    ///
    /// # Errors
    /// When it cannot.
    pub(super) async fn prove_reachable(&self) -> Result<(), BoxError> {
        let mut dialer = self.dialer.clone();
        dialer.call(Uri::from_static("/")).await?;
        Ok(())
    }

    /// Sends a request whose URI needs a path only.
    ///
    /// # Errors
    /// When no answer begins: no connection could be made, or it broke.
    pub(super) async fn send(&self, mut request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(Scheme::HTTPS);
        parts.authority = Some(Authority::from_static(HOST));
        *request.uri_mut() = Uri::from_parts(parts)?;
        for (name, value) in self.identity.iter() {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(self.client.request(request).await?)
    }
}

fn pool(dialer: &Dialer) -> legacy::Client<Dialer, Body> {
    legacy::Client::builder(TokioExecutor::new()).build(dialer.clone())
}

/// As `kube::Client` wants it.
impl Service<Request<Body>> for ServerClient {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.clone();
        Box::pin(async move { client.send(request).await })
    }
}

/// Makes connections to one address, whatever the URI says.
#[derive(Clone)]
struct Dialer {
    connector: Arc<Connector>,
    address: SocketAddr,
    expected: Option<Arc<ExpectedFront>>,
}

/// A peer that is configured as a front.
struct ExpectedFront {
    hostname: String,
    is_missing: AtomicBool,
}

impl ExpectedFront {
    fn check(&self, stream: &TlsStream<TcpStream>, address: SocketAddr) {
        let is_missing = !tls::is_front(stream);
        if is_missing && !self.is_missing.swap(is_missing, Ordering::Relaxed) {
            tracing::warn!(
                target: super::LOG, peer = self.hostname, %address,
                "no peerfront answers for a peer: until one does, requests with a token and those without a credential go \
                 there without the front-proxy certificate; if it is a kube-apiserver, write {}=plain:{address} in --peers",
                self.hostname,
            );
        }
        self.is_missing.store(is_missing, Ordering::Relaxed);
    }
}

impl Service<Uri> for Dialer {
    type Response = Dialed;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Dialed, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { connector, address, expected } = self.clone();
        Box::pin(async move {
            let elapsed = |_| ConnectError::Timeout { address, after: CONNECT_TIMEOUT };
            let connected = timeout(CONNECT_TIMEOUT, connector.connect(address)).await.map_err(elapsed)?;
            let stream = connected?;
            if let Some(expected) = expected {
                expected.check(&stream, address);
            }
            Ok(Dialed(TokioIo::new(stream)))
        })
    }
}

/// A verified connection. Only `Connection` is added to what it wraps.
struct Dialed(TokioIo<TlsStream<TcpStream>>);

impl Connection for Dialed {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Dialed {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl Write for Dialed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
