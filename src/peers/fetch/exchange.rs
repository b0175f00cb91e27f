//! One bounded GET.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body;
use tokio::time::timeout;

use crate::peers::client::{self, BoxError, ServerClient};
use crate::peers::health::Failure;

/// How much of a server's answer is taken, and for how long it is waited for.
#[derive(Clone, Copy, Debug)]
pub(in crate::peers) struct Limits {
    /// For one document, from connecting to the last byte, however it drips; default 5 s, as kube-aggregator waits
    /// for the documents of an extension server.
    /// Source: <https://github.com/kubernetes/kube-aggregator/blob/v0.36.3/pkg/apiserver/handler_discovery.go>
    pub(in crate::peers) document: Duration,
    /// For all legacy documents of a server; default 20 s: a hundred small documents from a busy one.
    pub(in crate::peers) walk: Duration,
    /// Size of one document, and of all the small ones of a walk together; default 32 MiB, some hundred times what a
    /// cluster with a thousand CRDs has.
    pub(in crate::peers) bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { document: Duration::from_secs(5), walk: Duration::from_secs(20), bytes: 32 << 20 }
    }
}

/// What to ask for.
pub(in crate::peers) struct Condition {
    /// Forms that can be read.
    pub(in crate::peers) accept: HeaderValue,
    /// Tag of the document that is known already.
    pub(in crate::peers) if_none_match: Option<HeaderValue>,
}

impl Condition {
    /// Whatever form the server likes.
    pub(in crate::peers) const fn anything() -> Self {
        Self { accept: HeaderValue::from_static("*/*"), if_none_match: None }
    }

    /// Plain JSON, whatever is known already.
    pub(in crate::peers) const fn json() -> Self {
        Self { accept: HeaderValue::from_static("application/json"), if_none_match: None }
    }
}

/// A 200.
#[derive(Debug)]
pub(in crate::peers) struct Answer {
    content_type: Option<HeaderValue>,
    pub(in crate::peers) etag: Option<HeaderValue>,
    pub(in crate::peers) body: Bytes,
}

impl Answer {
    /// The `Content-Type` header, if it is text.
    pub(in crate::peers) fn content_type(&self) -> Option<&str> {
        self.content_type.as_ref().and_then(|value| value.to_str().ok())
    }
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub(in crate::peers) enum Error {
    /// No answer began.
    #[error("cannot ask for {path}")]
    Send { path: String, source: BoxError },
    /// The answer broke off.
    #[error("the answer to {path} breaks off")]
    Receive { path: String, source: BoxError },
    /// It took too long as a whole.
    #[error("{path} takes longer than {limit:?}")]
    Timeout { path: String, limit: Duration },
    /// It is too large.
    #[error("{path} has more than {limit} bytes")]
    TooLarge { path: String, limit: usize },
    /// It is no document: a redirect, an error.
    #[error("{path} is answered with {status}")]
    Status { path: String, status: StatusCode },
    /// It is something else.
    #[error("{path} cannot be read")]
    Decode { path: String, source: BoxError },
}

impl Error {
    pub(in crate::peers) fn decode(path: &str, source: impl Into<BoxError>) -> Self {
        Self::Decode { path: path.to_owned(), source: source.into() }
    }

    /// Whether the server itself says that something is wrong with it.
    pub(in crate::peers) fn is_of_server(&self) -> bool {
        matches!(self, Self::Status { status, .. } if status.is_server_error())
    }

    /// Whether the server does not let peerfront ask.
    pub(in crate::peers) fn is_of_rights(&self) -> bool {
        let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
        matches!(self, Self::Status { status, .. } if refused.contains(status))
    }

    /// What it says of the server. One that is busy, or that lets peerfront read no discovery, may well serve others.
    pub(in crate::peers) fn failure(&self) -> Failure {
        match self {
            Self::Status { status: StatusCode::TOO_MANY_REQUESTS | StatusCode::FORBIDDEN, .. } => Failure::Refused,
            Self::Send { source, .. } if client::is_of_vanishing(source) => Failure::Vanished,
            Self::Send { source, .. } if client::is_of_connecting(source) => Failure::Down,
            Self::Send { .. } => Failure::Broken,
            _ => Failure::Failing,
        }
    }
}

/// Asks for a document: `None` if it is the one that is known already.
///
/// # Errors
/// On anything but a whole 200, or a 304 that was asked for.
pub(in crate::peers) async fn get(
    client: &ServerClient,
    path: &str,
    condition: Condition,
    limits: &Limits,
) -> Result<Option<Answer>, Error> {
    let limit = limits.document;
    let elapsed = |_| Error::Timeout { path: path.to_owned(), limit };
    timeout(limit, exchange(client, path, condition, limits.bytes)).await.map_err(elapsed)?
}

async fn exchange(
    client: &ServerClient,
    path: &str,
    condition: Condition,
    limit: usize,
) -> Result<Option<Answer>, Error> {
    let not_sent = |source: BoxError| Error::Send { path: path.to_owned(), source };
    let is_conditional = condition.if_none_match.is_some();
    let mut request = Request::get(path).body(Body::empty()).map_err(|error| not_sent(error.into()))?;
    request.headers_mut().insert(ACCEPT, condition.accept);
    if let Some(etag) = condition.if_none_match {
        request.headers_mut().insert(IF_NONE_MATCH, etag);
    }
    let (head, body) = client.send(request).await.map_err(not_sent)?.into_parts();
    match head.status {
        StatusCode::OK => {}
        StatusCode::NOT_MODIFIED if is_conditional => return Ok(None),
        status => return Err(Error::Status { path: path.to_owned(), status }),
    }
    let body = Limited::new(body, limit).collect().await.map_err(|source| {
        let path = path.to_owned();
        if source.is::<LengthLimitError>() { Error::TooLarge { path, limit } } else { Error::Receive { path, source } }
    })?;
    Ok(Some(Answer {
        content_type: head.headers.get(CONTENT_TYPE).cloned(),
        etag: head.headers.get(ETAG).cloned(),
        body: body.to_bytes(),
    }))
}
