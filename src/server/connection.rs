//! One client connection: TLS, then HTTP/2 or HTTP/1.1, until it ends or the front drains.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::activity::Activity;
use super::listener::Open;
use super::refusal::Worded;
use super::{Front, handle, head};
use crate::drain;
use crate::tls::Acceptor;

/// Time for a TLS handshake; Go gives it the header read timeout, 32 s, which an attacker can hold for nothing.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time between the end of one request and the head of the next; kube-apiserver's idle timeout.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/server/secure_serving.go> (`IdleTimeout`)
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Time for an HTTP/2 client without open requests to close a connection that it was told to leave.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for the head of a request that is on its way when the front stops: what Go gives a new connection. It gives half
/// a head no limit.
/// Source: <https://github.com/golang/go/blob/go1.26.0/src/net/http/server.go> (`closeIdleConns`)
const LAST_HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// As Go's listener sets it for kube-apiserver.
const TCP_KEEPALIVE: Duration = Duration::from_secs(180);

/// Header bytes that HTTP/2 decodes, counted its way: enough that a head which is too large can be answered, which
/// leaves the other streams alone.
const HTTP2_HEADER_BYTES: u32 = 2 * head::MAX_BYTES as u32;

/// HTTP/2 stream window. Source: as [`IDLE_TIMEOUT`] (`resourceBody99Percentile`).
const HTTP2_WINDOW_BYTES: u32 = 256 * 1024;

/// What a request needs to know of its connection.
pub(super) struct Context {
    /// The client's address.
    pub(super) client: SocketAddr,
    /// What its certificate says, judged once.
    pub(super) identity: crate::authn::Connection,
    /// Counts the connection as open, also after an upgrade has taken it out of HTTP's hands.
    _open: Open,
    /// Its requests.
    pub(super) activity: Arc<Activity>,
    /// Starts when the front stops.
    pub(super) drain: drain::Watcher,
}

/// Serves a connection to its end.
pub(super) async fn serve(
    front: Arc<Front>,
    acceptor: Arc<Acceptor>,
    stream: std::net::TcpStream,
    client: SocketAddr,
    open: Open,
    drain: drain::Watcher,
) {
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    let _ = stream.set_nodelay(true); // Without it the connection works, only slower.
    let _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(TCP_KEEPALIVE));
    let Ok(local) = stream.local_addr() else { return };
    let config = acceptor.current_for(local.ip());
    let accepted = tokio::time::timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await;
    let stream = match accepted {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%client, %error, "TLS handshake failed"),
        Err(_) => return tracing::debug!(%client, "TLS handshake timed out"),
    };
    let (_, session) = stream.get_ref();
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let identity = front.authenticator.judge(session.peer_certificates().unwrap_or_default());
    let activity = Arc::default();
    let context = Arc::new(Context { client, identity, activity, drain: drain.clone(), _open: open });
    let ended = if is_http2 {
        serve_http2(front, context, stream, drain).await
    } else {
        serve_http1(front, context, stream, drain).await
    };
    if let Err(error) = ended {
        tracing::debug!(%client, %error, "connection ended");
    }
}

async fn serve_http2(
    front: Arc<Front>,
    context: Arc<Context>,
    stream: TlsStream<TcpStream>,
    mut drain: drain::Watcher,
) -> Result<(), hyper::Error> {
    let streams = front.http2_max_streams;
    let activity = Arc::clone(&context.activity);
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(streams)
        // Frames stay at 16 KiB, the least that HTTP/2 knows: h2 allows as many CONTINUATION frames as the header limit
        // holds frames of the largest size, and most clients split a large head at 16 KiB whatever is allowed.
        .initial_stream_window_size(HTTP2_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_WINDOW_BYTES.saturating_mul(streams))
        .max_header_list_size(HTTP2_HEADER_BYTES)
        .auto_date_header(false) // The server's own date passes through; what is made here has one.
        .serve_connection(TokioIo::new(stream), service_fn(move |request| answer(&front, &context, request)));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = drain.draining() => {}
        () = activity.ended() => {}
        () = activity.idle(IDLE_TIMEOUT) => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = connection => ended,
        () = activity.idle(GOODBYE_TIMEOUT) => Ok(()),
    }
}

async fn serve_http1(
    front: Arc<Front>,
    context: Arc<Context>,
    stream: TlsStream<TcpStream>,
    mut drain: drain::Watcher,
) -> Result<(), hyper::Error> {
    let (accepted, activity) = (Instant::now(), Arc::clone(&context.activity));
    let stream = Worded::new(stream, Arc::clone(&activity));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .max_headers(head::PARSER_LINES)
        .max_buf_size(head::MAX_BYTES)
        .title_case_headers(true) // As Go writes them.
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service_fn(move |request| answer(&front, &context, request)))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = drain.draining() => {}
    }
    tokio::select! {
        biased;
        ended = connection.as_mut() => return ended,
        () = activity.head_on_its_way(LAST_HEAD_TIMEOUT, accepted.elapsed()) => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}

/// A request always gets a response.
fn answer(
    front: &Arc<Front>,
    context: &Arc<Context>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Body>, Infallible>> + use<> {
    let (front, context) = (Arc::clone(front), Arc::clone(context));
    async move { Ok(handle(&front, &context, request).await) }
}
