//! A pool of HTTP/1.1 connections, one request at a time on each.
//!
//! hyper-util's client has a pool too; it consumes the request when a connection cannot be made and so cannot try
//! another server. Here a request that was not sent comes back, which is what [`SendError::Unsent`] means.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use http_body::Body;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use super::body::{RequestBody, StreamedBody};
use crate::tls::{self, ConnectError, Connector};

/// Idle connections are closed after this time: kube-apiserver closes its side after 90 s.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/server/secure_serving.go>
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Idle connections kept for one address: enough for a burst, few enough not to weigh on the server.
const MAX_IDLE_PER_ADDRESS: usize = 64;

/// Header bytes accepted in an answer; kube-apiserver's own limit for requests is 1 MiB.
const MAX_HEADER_BYTES: usize = 1024 * 1024 + 64 * 1024;

/// Header lines accepted in an answer: an answer may carry many Warning lines.
const MAX_HEADERS: usize = 1000;

/// Why a request that was sent, at least in part, has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection failed after the request had begun to leave.
    #[error("connection lost after the request was sent")]
    Connection(#[source] hyper::Error),
    /// The client's body broke off or could not be read: nothing is wrong with the server.
    #[error("the client's body cannot be read")]
    Body(#[source] hyper::Error),
    /// The server switched to a protocol that was not asked for.
    #[error("server switched to a protocol that was not asked for")]
    UnexpectedProtocol,
    /// The server has not been reachable for so long that no answer will come.
    #[error("server cannot be reached any more")]
    Lost,
    /// Peers are configured nowhere, yet one was chosen.
    #[error("peering is off")]
    PeeringOff,
}

impl From<hyper::Error> for Error {
    /// An error of a request that was sent.
    fn from(error: hyper::Error) -> Self {
        // hyper counts the body that it sends as its user's.
        if error.is_user() { Self::Body(error) } else { Self::Connection(error) }
    }
}

/// Why nothing of a request was sent.
#[derive(Debug, thiserror::Error)]
pub enum Unsent {
    /// No connection could be made.
    #[error("no connection")]
    Connect(#[source] ConnectError),
    /// The new connection ended before the request was written.
    #[error("connection closed before the request was written")]
    Closed(#[source] hyper::Error),
    /// A front was wanted, and something else answers.
    #[error("no front answers there")]
    NotAFront,
}

/// Outcome of a send without an answer.
pub(super) enum SendError {
    /// Nothing was sent; the request comes back.
    Unsent(Box<Request<RequestBody>>, Unsent),
    /// Something was sent.
    Interrupted(Error),
}

struct Idle {
    sender: SendRequest<RequestBody>,
    since: Instant,
}

/// Connections to servers that are reached with one connector.
pub(super) struct Pool {
    connector: Arc<Connector>,
    /// Whether connections to anything but fronts are given up.
    to_fronts: bool,
    // A lock without contention: a pool belongs to one single-threaded worker. It is never held over an await.
    #[allow(clippy::disallowed_types)]
    idle: std::sync::Mutex<HashMap<SocketAddr, Vec<Idle>>>,
}

impl Pool {
    pub(super) fn new(connector: Arc<Connector>) -> Self {
        Self { connector, to_fronts: false, idle: Default::default() }
    }

    /// A pool of connections on which a front has proven to answer.
    pub(super) fn to_fronts(connector: Arc<Connector>) -> Self {
        Self { to_fronts: true, ..Self::new(connector) }
    }

    /// Sends on an idle connection, or on a new one.
    ///
    /// Safety of retry: an idle connection that its server has closed gives the request back unsent; the next one is
    /// tried. A request that hyper began to write never comes back; only a GET or HEAD without a body, which changes
    /// nothing, is sent once more if the server closed its used connection meanwhile.
    pub(super) async fn send(
        self: &Arc<Self>,
        address: SocketAddr,
        request: Request<RequestBody>,
    ) -> Result<Response<StreamedBody>, SendError> {
        let mut request = request;
        while let Some(sender) = self.take(address) {
            let copy = copy_of_harmless(&request);
            match (self.send_on(sender, address, request).await, copy) {
                (Ok(response), _) => return Ok(response),
                (Err((_, Some(unsent))), _) => request = unsent,
                (Err((error, None)), Some(copy)) if !error.is_parse() => {
                    request = copy;
                    break;
                }
                (Err((error, None)), _) => return Err(SendError::Interrupted(error.into())),
            }
        }
        let sender = match self.connect(address).await {
            Ok(sender) => sender,
            Err(cause) => return Err(SendError::Unsent(Box::new(request), cause)),
        };
        self.send_on(sender, address, request).await.map_err(|(error, unsent)| match unsent {
            Some(request) => SendError::Unsent(Box::new(request), Unsent::Closed(error)),
            None => SendError::Interrupted(error.into()),
        })
    }

    async fn send_on(
        self: &Arc<Self>,
        mut sender: SendRequest<RequestBody>,
        address: SocketAddr,
        request: Request<RequestBody>,
    ) -> Result<Response<StreamedBody>, (hyper::Error, Option<Request<RequestBody>>)> {
        match sender.try_send_request(request).await {
            Ok(response) => {
                let lease = Lease { pool: Arc::clone(self), address, sender };
                Ok(response.map(|incoming| StreamedBody::new(incoming, Some(lease))))
            }
            Err(mut error) => {
                let unsent = error.take_message();
                Err((error.into_error(), unsent))
            }
        }
    }

    /// Opens a connection, outside the pool until it is given back.
    pub(super) async fn connect(&self, address: SocketAddr) -> Result<SendRequest<RequestBody>, Unsent> {
        let stream = self.connector.connect(address).await.map_err(Unsent::Connect)?;
        if self.to_fronts && !tls::is_front(&stream) {
            return Err(Unsent::NotAFront);
        }
        let (sender, connection) = http1::Builder::new()
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(Unsent::Closed)?;
        tokio::spawn(async move {
            // The request on it learns of the error; an idle connection has nobody to tell.
            let _ = connection.with_upgrades().await;
        });
        Ok(sender)
    }

    #[allow(clippy::unwrap_used)] // Nothing panics while the lock is held.
    fn idle<R>(&self, edit: impl FnOnce(&mut HashMap<SocketAddr, Vec<Idle>>) -> R) -> R {
        edit(&mut self.idle.lock().unwrap())
    }

    /// The connection used last, as long as it is good.
    fn take(&self, address: SocketAddr) -> Option<SendRequest<RequestBody>> {
        self.idle(|idle| {
            let list = idle.get_mut(&address)?;
            while let Some(Idle { sender, since }) = list.pop() {
                if sender.is_ready() && since.elapsed() < IDLE_TIMEOUT {
                    return Some(sender);
                }
            }
            None
        })
    }

    fn give_back(&self, address: SocketAddr, sender: SendRequest<RequestBody>) {
        if sender.is_closed() {
            return;
        }
        self.idle(|idle| {
            let list = idle.entry(address).or_default();
            if list.len() < MAX_IDLE_PER_ADDRESS {
                list.push(Idle { sender, since: Instant::now() });
            }
        });
    }

    /// Closes all idle connections to an address.
    pub(super) fn forget(&self, address: SocketAddr) {
        self.idle(|idle| idle.remove(&address));
    }

    /// Closes what has been idle for too long.
    pub(super) fn prune(&self) {
        self.idle(|idle| {
            idle.retain(|_, list| {
                list.retain(|entry| !entry.sender.is_closed() && entry.since.elapsed() < IDLE_TIMEOUT);
                !list.is_empty()
            });
        });
    }
}

/// What to send again if a used connection turns out to be closed: a request that changes nothing and has no body.
fn copy_of_harmless(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) || !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(RequestBody::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

/// A connection in use, to be given back when its answer has been read.
pub(super) struct Lease {
    pool: Arc<Pool>,
    address: SocketAddr,
    sender: SendRequest<RequestBody>,
}

impl Lease {
    pub(super) fn give_back(self) {
        self.pool.give_back(self.address, self.sender);
    }
}
