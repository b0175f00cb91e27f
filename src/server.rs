//! The whole path of a request: `handle`, read from top to bottom.

mod activity;
mod body;
mod connection;
mod cutoff;
mod discovery;
mod error;
mod exposition;
mod head;
mod listener;
mod loads;
mod loss;
mod metrics;
mod openapi;
mod peer_metrics;
mod record;
mod refusal;
mod reroute;

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONNECTION, USER_AGENT};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;

use crate::authn::{Authenticator, Caller, CallerKind};
use crate::authz::Authorizer;
use crate::forward::{self, Denial, Destination, Failure, Forwarder, Prepared, RequestBody, StreamedBody};
use crate::openapi::Found;
use crate::request_info::RequestInfo;
use crate::routing::{self, Candidates, Circuit, Decision, NotFound};
use crate::telemetry::{Chain, MIXED_VERSION_PROXY};
use crate::view::{ClusterView, ViewReader};

use body::{Ending, Tracked};
use connection::Context;
/// How long short requests have after the front was told to stop.
pub use cutoff::DEADLINE as DRAIN_DEADLINE;
use error::{Error, Repeatable, Wording};
pub use listener::{BindError, Listener, Workers};
use metrics::InFlight;
pub use metrics::Metrics;
use peer_metrics::Turn;
pub use reroute::Reroutes;

/// What every request on one worker shares.
pub struct Front {
    /// Tells who asks.
    pub authenticator: Arc<Authenticator>,
    /// Remembers who may read discovery.
    pub authorizer: Arc<Authorizer>,
    /// Who serves what, and the merged documents.
    pub view: ViewReader,
    /// Sends requests on; this worker's own.
    pub forwarder: Forwarder,
    /// Counts requests.
    pub metrics: Arc<Metrics>,
    /// Counts and reports what goes to peers; this worker's own.
    pub reroutes: Reroutes,
    /// Concurrent streams allowed on one HTTP/2 connection.
    pub http2_max_streams: u32,
}

impl Front {
    /// Closes connections that have been idle for too long or lead to a peer that cannot be reached.
    fn prune(&self) {
        self.forwarder.prune();
        let view = self.view.load();
        for state in view.peers.iter().filter(|state| state.circuit == Circuit::Open) {
            self.forwarder.forget(&state.peer);
        }
        self.reroutes.loads.keep(|id| view.peers.iter().any(|state| state.peer.id == *id));
        self.reroutes.by_peer.keep(&view.peers);
    }
}

/// An answer on its way: a server's stream, or a document made here.
enum Answer {
    Streamed(Response<StreamedBody>),
    Made(Response<Bytes>),
}

impl Answer {
    fn status(&self) -> StatusCode {
        match self {
            Self::Streamed(response) => response.status(),
            Self::Made(response) => response.status(),
        }
    }
}

/// Answers one request, whatever happens. Of a stopping front it is the last one of its HTTP/1 connection.
async fn handle(front: &Front, context: &Arc<Context>, request: Request<Incoming>) -> Response<Body> {
    let is_http1 = request.version() <= Version::HTTP_11;
    let mut response = respond(front, context, request).await;
    if is_http1 && context.drain.is_draining() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn respond(front: &Front, context: &Arc<Context>, request: Request<Incoming>) -> Response<Body> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let wording = Wording::of(request.headers(), &uri);
    // What kube-apiserver refuses to understand has no info here; it goes on to be refused in the server's own words.
    let info = RequestInfo::parse(&method, &uri).ok();
    let (verb, is_long_running) =
        info.as_ref().map_or(("", false), |info| (info.verb.as_ref(), info.is_long_running()));
    let in_flight = front.metrics.begin(verb, is_long_running);
    let open = context.activity.begin();
    let answer = answer(front, context, info.as_ref(), &wording, request);
    let answer = match is_long_running {
        true => before_cutoff(context, Repeatable::from(&method), answer).await,
        false => answer.await,
    };
    let answer = answer.unwrap_or_else(|error| {
        tracing::debug!(client = %context.client, error = %Chain(&error), "answered with an error");
        let mut response = error.into_response(&wording);
        error::add_audit_id(&mut response, &wording);
        Answer::Made(response)
    });
    if answer.status() == StatusCode::UNAUTHORIZED {
        context.activity.end();
    }
    match answer {
        Answer::Streamed(response) => {
            in_flight.answered(response.status().as_u16());
            let ending = is_long_running.then_some(if verb == "watch" { Ending::Whole } else { Ending::BrokenOff });
            stream(response, (in_flight, open), context, ending)
        }
        Answer::Made(response) => {
            in_flight.answered(response.status().as_u16());
            body::framed(response, &method)
        }
    }
}

/// What comes of a long-running request, unless the front stops before.
async fn before_cutoff(
    context: &Context,
    repeatable: Repeatable,
    answer: impl Future<Output = Result<Answer, Error>>,
) -> Result<Answer, Error> {
    tokio::select! {
        biased;
        answer = answer => answer,
        () = cutoff::reached(context.drain.clone()) => Err(Error::Stopping(repeatable)),
    }
}

/// Passes an answer on as it comes; its request is in flight until the end of the body, or of the tunnel after a 101.
fn stream(
    mut response: Response<StreamedBody>,
    (in_flight, open): (InFlight, activity::Open),
    context: &Arc<Context>,
    ending: Option<Ending>,
) -> Response<Body> {
    let cutoff = cutoff::reached(context.drain.clone());
    let Some(tunnel) = response.body_mut().take_tunnel() else {
        return response.map(|body| {
            let body = Tracked::new(body, in_flight, open);
            Body::new(if let Some(ending) = ending { body.until(cutoff, ending) } else { body })
        });
    };
    let (context, in_flight) = (Arc::clone(context), in_flight.into_long_running());
    tokio::spawn(async move {
        tunnel.run(cutoff).await;
        drop((in_flight, open, context));
    });
    response.map(|_| Body::empty())
}

/// The path itself: who asks, what for, who serves it, send it there.
async fn answer(
    front: &Front,
    context: &Context,
    info: Option<&RequestInfo<'_>>,
    wording: &Wording,
    request: Request<Incoming>,
) -> Result<Answer, Error> {
    let (head, body) = request.into_parts();
    // Whoever answers, and however early: what the client still sends of it is read, so that it gets the answer.
    let body = RequestBody::from(body);
    head::check(&head)?;
    let caller = front.authenticator.authenticate(&context.identity, &head)?;
    let view = front.view.load_full();
    let mut answer = Call { front, context, caller: &caller, view: &view, info }.answer(head, body).await;
    if let Ok(Answer::Made(response)) = &mut answer {
        error::add_audit_id(response, wording);
        record::answered_here(&caller, info, wording, response);
    }
    if *caller.kind() == CallerKind::Anonymous {
        // As kube-apiserver, with the answer: nobody in particular gets one HTTP/2 connection to flood.
        // Source: https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/filters/authentication.go
        context.activity.end();
    }
    answer
}

/// One request and what is known about it.
struct Call<'a> {
    front: &'a Front,
    context: &'a Context,
    caller: &'a Caller,
    view: &'a ClusterView,
    info: Option<&'a RequestInfo<'a>>,
}

impl<'v> Call<'v> {
    /// Decides who answers, and has it answered.
    async fn answer(&self, head: Parts, body: RequestBody) -> Result<Answer, Error> {
        let mut decision = self.info.map(|info| routing::decide(info, self.caller.hop(), &self.view.routes));
        if let Some(Decision::Discovery(path)) = &decision {
            if let Some(answer) = self.discovery(path, &head).await? {
                return Ok(answer);
            }
            decision = self.info.map(|info| routing::unmerged(info, self.caller.hop(), &self.view.routes));
        }
        let mut is_listed = false;
        if let (Some(Decision::OpenApi), Some(info)) = (&decision, self.info) {
            match self.view.openapi.find(&info.path) {
                Found::Here(page) => return self.openapi(&page, &head).await,
                Found::Unavailable(why) => return Err(Error::Unavailable(why)),
                Found::Upstream => is_listed = true,
                Found::Unknown => {}
            }
        }
        if let Some(Decision::Metrics) = &decision {
            return self.exposition(&head).await;
        }
        let prepared =
            self.front.forwarder.prepare(self.caller, self.context.client, Request::from_parts(head, body))?;
        match decision {
            Some(Decision::OpenApi) => self.to_publisher(prepared, is_listed).await,
            None | Some(Decision::Discovery(_) | Decision::Metrics) => {
                self.to_upstream(prepared, NotFound::Pass, self.stand_ins()).await
            }
            Some(Decision::Upstream { not_found, otherwise, .. }) => {
                let client = || self.client_number(prepared.head().headers().get(USER_AGENT));
                match otherwise.filter(|peers| peers.go_first(client)) {
                    Some(peers) => self.sparing_local(peers, prepared, not_found).await,
                    None => self.to_upstream(prepared, not_found, otherwise.or_else(|| self.stand_ins())).await,
                }
            }
            Some(Decision::Peer(candidates)) => self.to_peers(candidates, prepared, Turn::First).await,
            Some(Decision::Unavailable(unavailable)) => {
                self.front.reroutes.refused(&unavailable);
                Err(Error::Unavailable("no server that serves this resource can be reached"))
            }
        }
        .map(Answer::Streamed)
    }

    /// Sends to the co-located server; while it is down, to a peer that can answer in its place.
    ///
    /// Safety of retry: a peer is tried only after [`Failure::Unsent`].
    async fn to_upstream(
        &self,
        prepared: Prepared,
        not_found: NotFound,
        stand_ins: Option<Candidates<'_>>,
    ) -> Result<Response<StreamedBody>, Error> {
        let repeatable = Repeatable::from(prepared.head().method());
        match self.front.forwarder.send(self.caller, Destination::Upstream, prepared).await {
            Ok(response) => self.found(response, not_found).await,
            Err(Failure::Unsent(prepared, cause)) => {
                self.local_unreachable(&cause);
                match stand_ins {
                    Some(candidates) => self.to_peers(candidates, *prepared, Turn::Next).await,
                    None => Err(Error::Unavailable("the local server cannot be reached")),
                }
            }
            Err(Failure::Interrupted(cause)) => Err(Error::Interrupted(cause, repeatable)),
        }
    }

    /// Says so loudly only as long as it is news.
    fn local_unreachable(&self, cause: &forward::Unsent) {
        let cause = Chain(cause);
        match self.view.local.available {
            true => tracing::warn!(target: MIXED_VERSION_PROXY, %cause, "local server cannot be reached"),
            false => tracing::debug!(target: MIXED_VERSION_PROXY, %cause, "local server cannot be reached"),
        }
    }

    /// Peers that can answer what is the same on every server, such as discovery, in place of the local one.
    fn stand_ins(&self) -> Option<Candidates<'v>> {
        self.info.and_then(|info| routing::stand_ins(info, self.caller.hop(), &self.view.routes))
    }

    /// Passes an answer on, unless it denies what may well exist on a server that has not been heard.
    async fn found(
        &self,
        response: Response<StreamedBody>,
        not_found: NotFound,
    ) -> Result<Response<StreamedBody>, Error> {
        if not_found == NotFound::Pass {
            return Ok(response);
        }
        let method = self.info.map_or(Method::GET, |info| info.method.clone());
        match (forward::denial(response, &method).await, not_found) {
            ((_, Some(Denial::Path)), _) | ((_, Some(Denial::Resource)), NotFound::Unavailable) => {
                Err(Error::Unavailable("it is not known yet which server serves this resource"))
            }
            ((response, _), _) => Ok(response),
        }
    }
}
