//! Sends a request to the upstream or to a peer and streams the answer back.
//!
//! Input: a [`Caller`], a request whose body has not been touched, and where to send it. Output: the response head and
//! its body as a stream. This room does not decide where a request goes and never looks into a body.
//!
//! Everything goes over HTTP/1.1, one request at a time per connection: short requests are cheaper that way, a slow
//! reader cannot stall another stream, and no limit of concurrent streams stands between watches. [`pool::Pool`] is the
//! only place that knows.

mod body;
mod headers;
mod not_found;
mod pool;
mod upgrade;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};

use crate::apimachinery::peer::{Peer, PeerKind};
use crate::authn::{self, Caller, CallerKind};
use crate::settings::IdentityHeaderNames;
use crate::tls::Connector;

pub use body::{RequestBody, StreamedBody};
pub use headers::Mark;
pub use not_found::{Denial, denial};
use pool::Pool;
pub use pool::{Error, Unsent};
pub use upgrade::{Tunnel, Upgrade};

/// How to reach the upstream and the peers, with and without the front-proxy certificate.
///
/// A connection made with the certificate may assert any user; one without it is judged by what the request carries.
#[derive(Clone)]
pub struct Connectors {
    /// To the upstream, with the front-proxy certificate.
    pub upstream_identified: Arc<Connector>,
    /// To the upstream, without a certificate.
    pub upstream_plain: Arc<Connector>,
    /// To peers, with the front-proxy certificate; `None` while peering is off.
    pub peer_identified: Option<Arc<Connector>>,
    /// To peers that are plain kube-apiservers, without a certificate; `None` while peering is off.
    pub peer_plain: Option<Arc<Connector>>,
}

/// Where one request is sent.
#[derive(Clone, Copy, Debug)]
pub enum Destination<'a> {
    /// The co-located kube-apiserver.
    Upstream,
    /// Another node.
    Peer(&'a Peer),
}

/// Forwards requests; one per worker, with pools of its own.
pub struct Forwarder {
    upstream_address: SocketAddr,
    names: Arc<IdentityHeaderNames>,
    mark: Mark,
    upstream: Pools,
    peers: Option<Pools>,
}

/// One pool per kind of caller, so that what an unproven caller does to a connection never touches another caller.
struct Pools {
    identified: Arc<Pool>,
    /// To fronts, for callers without a proven identity: the certificate is shown, so that the mark can be believed.
    fronts: Arc<Pool>,
    token: Arc<Pool>,
    anonymous: Arc<Pool>,
}

impl Pools {
    fn new(identified: &Arc<Connector>, plain: &Arc<Connector>) -> Self {
        Self {
            identified: Arc::new(Pool::new(Arc::clone(identified))),
            fronts: Arc::new(Pool::to_fronts(Arc::clone(identified))),
            token: Arc::new(Pool::new(Arc::clone(plain))),
            anonymous: Arc::new(Pool::new(Arc::clone(plain))),
        }
    }

    fn choose(&self, caller: &Caller, destination: Destination<'_>) -> &Arc<Pool> {
        let to_front = matches!(destination, Destination::Peer(Peer { kind: PeerKind::Front, .. }));
        match caller.kind() {
            CallerKind::Bearer | CallerKind::Anonymous if to_front => &self.fronts,
            _ => self.to_server(caller),
        }
    }

    /// Towards a kube-apiserver: there the certificate would be who asks, whatever the request carries.
    fn to_server(&self, caller: &Caller) -> &Arc<Pool> {
        match caller.kind() {
            CallerKind::User(_) => &self.identified,
            CallerKind::Bearer => &self.token,
            CallerKind::Anonymous => &self.anonymous,
        }
    }

    fn all(&self) -> [&Pool; 4] {
        [&self.identified, &self.fronts, &self.token, &self.anonymous]
    }
}

/// A request whose headers are ready for any destination. Made only by [`Forwarder::prepare`].
pub struct Prepared {
    request: Request<RequestBody>,
    upgrade: Option<Upgrade>,
}

impl Prepared {
    /// The head as it will be sent.
    #[must_use]
    pub fn head(&self) -> &Request<RequestBody> {
        &self.request
    }
}

/// Why a prepared request got no answer.
#[derive(Debug)]
pub enum Failure {
    /// Nothing of it left this process: it may be sent elsewhere.
    Unsent(Box<Prepared>, Unsent),
    /// It was sent, at least in part, and no answer came: it must not be sent again.
    Interrupted(Error),
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("method", self.request.method()).field("uri", self.request.uri()).finish()
    }
}

impl Forwarder {
    /// How often [`Forwarder::prune`] wants to be called.
    pub const PRUNE_INTERVAL: Duration = Duration::from_secs(5);

    /// Makes a forwarder with empty pools.
    #[must_use]
    pub fn new(
        upstream_address: SocketAddr,
        names: Arc<IdentityHeaderNames>,
        mark: Mark,
        connectors: &Connectors,
    ) -> Self {
        let peers = match (&connectors.peer_identified, &connectors.peer_plain) {
            (Some(identified), Some(plain)) => Some(Pools::new(identified, plain)),
            _ => None,
        };
        let upstream = Pools::new(&connectors.upstream_identified, &connectors.upstream_plain);
        Self { upstream_address, names, mark, upstream, peers }
    }

    /// Edits the headers of a client's request in place: hop-by-hop and identity headers go, the caller's identity comes.
    ///
    /// # Errors
    /// If the identity cannot be carried in headers unchanged.
    pub fn prepare(
        &self,
        caller: &Caller,
        client: SocketAddr,
        mut request: Request<RequestBody>,
    ) -> Result<Prepared, authn::Error> {
        let upgrade = Upgrade::take(&mut request);
        let (mut head, body) = request.into_parts();
        headers::prepare(&mut head, caller, client, &self.names, self.mark)?;
        if let Some(upgrade) = &upgrade {
            upgrade.set_headers(&mut head.headers);
        } else {
            headers::set_framing(&mut head.headers, &body);
        }
        Ok(Prepared { request: Request::from_parts(head, body), upgrade })
    }

    /// A copy of a client's request head without its body, prepared like the request itself.
    ///
    /// # Errors
    /// As [`Forwarder::prepare`].
    pub fn prepare_bodiless(
        &self,
        caller: &Caller,
        client: SocketAddr,
        head: http::request::Parts,
    ) -> Result<Prepared, authn::Error> {
        self.prepare_with(caller, client, head, RequestBody::empty())
    }

    /// The same with a body in place of the client's.
    ///
    /// # Errors
    /// As [`Forwarder::prepare`].
    pub fn prepare_with(
        &self,
        caller: &Caller,
        client: SocketAddr,
        mut head: http::request::Parts,
        body: RequestBody,
    ) -> Result<Prepared, authn::Error> {
        headers::prepare(&mut head, caller, client, &self.names, self.mark)?;
        head.headers.remove(http::header::CONTENT_LENGTH);
        Ok(Prepared { request: Request::from_parts(head, body), upgrade: None })
    }

    /// Sends a prepared request.
    ///
    /// # Errors
    /// [`Failure::Unsent`] gives the request back, so that another destination can be tried.
    pub async fn send(
        &self,
        caller: &Caller,
        destination: Destination<'_>,
        prepared: Prepared,
    ) -> Result<Response<StreamedBody>, Failure> {
        let (pools, address) = match destination {
            Destination::Upstream => (&self.upstream, self.upstream_address),
            Destination::Peer(peer) => match &self.peers {
                Some(pools) => (pools, peer.address),
                None => return Err(Failure::Interrupted(Error::PeeringOff)),
            },
        };
        match send_on(pools.choose(caller, destination), address, prepared).await {
            // Whatever was configured, this is no front.
            Err(Failure::Unsent(prepared, Unsent::NotAFront)) => {
                send_on(pools.to_server(caller), address, *prepared).await
            }
            sent => sent,
        }
    }

    /// Closes the idle connections to a peer that cannot be reached: a request on one would wait for nothing.
    pub fn forget(&self, peer: &Peer) {
        let pools = self.peers.iter().flat_map(Pools::all);
        pools.for_each(|pool| pool.forget(peer.address));
    }

    /// Closes connections that have been idle for too long.
    pub fn prune(&self) {
        let all = std::iter::once(&self.upstream).chain(&self.peers).flat_map(Pools::all);
        all.for_each(Pool::prune);
    }
}

async fn send_on(
    pool: &Arc<Pool>,
    address: SocketAddr,
    Prepared { request, upgrade }: Prepared,
) -> Result<Response<StreamedBody>, Failure> {
    let sent = match upgrade {
        None => pool.send(address, request).await.and_then(upgrade::refuse_unasked).map_err(|error| (error, None)),
        Some(upgrade) => upgrade::send(pool, address, request, upgrade).await,
    };
    let mut response = sent.map_err(Failure::from_parts)?;
    headers::clean_response(&mut response);
    Ok(response)
}

impl Failure {
    fn from_parts((error, upgrade): (pool::SendError, Option<Upgrade>)) -> Self {
        match error {
            pool::SendError::Unsent(request, cause) => {
                Self::Unsent(Box::new(Prepared { request: *request, upgrade }), cause)
            }
            pool::SendError::Interrupted(error) => Self::Interrupted(error),
        }
    }
}
