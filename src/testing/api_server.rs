//! A server that answers as a test says: over real TLS, one scenario for all its requests.
//!
//! The scenario asserts on each request that it sees. Its panics are kept and raised again by [`ApiServer::stop`], so
//! that a wrong request fails the test and not only the connection.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls_pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::pki::ControlPlane;
use crate::tls::Acceptor;

/// What a scenario answers.
pub type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The client's certificates, as an extension of each request; empty if it presented none.
#[derive(Clone, Debug)]
pub struct PeerCertificates(pub Vec<CertificateDer<'static>>);

/// A running server. HTTP/1.1, because that is what peerfront's own requests use.
#[derive(Debug)]
pub struct ApiServer {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl ApiServer {
    /// Listens on `address` (port 0 takes a free one) with the plane's serving pair.
    pub async fn start<S, F>(plane: &ControlPlane, address: SocketAddr, scenario: S) -> Self
    where
        S: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = Acceptor::load(&plane.serving_settings(), &plane.authentication_settings()).unwrap().current();
        let connections = Arc::new(AtomicUsize::new(0));
        let (stop, stopped) = oneshot::channel();
        let accept = accept(listener, acceptor.into(), scenario, Arc::clone(&connections), stopped);
        Self { address, connections, stop, task: tokio::spawn(accept) }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Closes the listener and cuts all connections.
    ///
    /// # Panics
    /// If the scenario has panicked on any request.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        if let Err(error) = self.task.await {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

async fn accept<S, F>(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    scenario: S,
    connections: Arc<AtomicUsize>,
    mut stopped: oneshot::Receiver<()>,
) where
    S: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    let mut first_panic = None;
    loop {
        let ended = tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                connections.fetch_add(1, Ordering::SeqCst);
                tasks.spawn(serve(stream, acceptor.clone(), scenario.clone()));
                continue;
            }
            Some(ended) = tasks.join_next() => ended,
            _ = &mut stopped => break,
        };
        first_panic = first_panic.or_else(|| panic_of(ended));
    }
    drop(listener);
    tasks.abort_all();
    while let Some(ended) = tasks.join_next().await {
        first_panic = first_panic.or_else(|| panic_of(ended));
    }
    if let Some(panic) = first_panic {
        std::panic::resume_unwind(panic);
    }
}

fn panic_of(ended: Result<(), JoinError>) -> Option<Box<dyn std::any::Any + Send>> {
    ended.err().and_then(|error| error.try_into_panic().ok())
}

async fn serve<S, F>(stream: TcpStream, acceptor: TlsAcceptor, scenario: S)
where
    S: Fn(Request<Incoming>) -> F,
    F: Future<Output = Reply>,
{
    // A client may give up at any time; only what the scenario says is a failure.
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let certificates = PeerCertificates(certificates.iter().map(|one| one.clone().into_owned()).collect());
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(certificates.clone());
        let reply = scenario(request);
        async move { Ok::<_, Infallible>(reply.await) }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// An answer with this body.
#[must_use]
pub fn reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()).boxed_unsync());
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// An answer that never ends: `chunk` again and again, `every` so often.
#[must_use]
pub fn endless(content_type: &'static str, chunk: Bytes, every: Duration) -> Reply {
    let frames = stream::repeat(chunk).then(move |chunk| async move {
        tokio::time::sleep(every).await;
        Ok(Frame::data(chunk))
    });
    let mut reply = Response::new(StreamBody::new(frames).boxed_unsync());
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}
