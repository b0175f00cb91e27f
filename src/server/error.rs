//! The one table from what went wrong to what the client is told.
//!
//! Inner rooms return small named errors; here they become Status objects. The client's text names no file, address or
//! certificate: those are in the log.

use bytes::Bytes;
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Uri};

use super::head;
use crate::apimachinery::status::{Pretty, Status};
use crate::{authn, forward};

/// Seconds after which a client may ask again: peers are heard, servers restart within a few.
const RETRY_AFTER_SECONDS: u16 = 1;

/// Leaves the hint out.
const NO_RETRY_AFTER: u16 = 0;

/// Identifies a request in the audit log. A client may choose it.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/filters/audit_init.go>
pub(super) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Why a request is not answered by any server.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The head is none that a server is asked about.
    #[error("request head is refused")]
    Head(#[from] head::Refusal),
    /// The caller did not prove who it is.
    #[error("caller is not authenticated")]
    Authenticate(#[from] authn::Error),
    /// It is not known yet who serves this, or who does cannot be reached.
    #[error("{0}")]
    Unavailable(&'static str),
    /// The connection was lost after the request had been sent.
    #[error("connection to the server was lost")]
    Interrupted(#[source] forward::Error, Repeatable),
    /// The front stops, and a long-running request has not been answered yet.
    #[error("stopping")]
    Stopping(Repeatable),
}

/// Whether asking again can do harm.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Repeatable {
    /// GET and HEAD change nothing.
    Yes,
    /// The server may have done what was asked. The answer is the 504 of a server that does not know what became of a
    /// request, without Retry-After: clients repeat a request that has one.
    No,
}

impl From<&Method> for Repeatable {
    fn from(method: &Method) -> Self {
        if matches!(*method, Method::GET | Method::HEAD) { Self::Yes } else { Self::No }
    }
}

impl Error {
    /// The answer, worded as the client asked for it.
    pub(super) fn into_response(self, wording: &Wording) -> Response<Bytes> {
        let status = match self {
            Self::Head(head::Refusal::TooLarge) => Status::headers_too_large(),
            Self::Head(head::Refusal::NotAPath) => Status::bad_request("the request target is not a path"),
            Self::Authenticate(_) => Status::unauthorized(),
            Self::Unavailable(message) => Status::service_unavailable(message, RETRY_AFTER_SECONDS),
            Self::Interrupted(forward::Error::Body(_), _) => Status::unreadable_body(),
            Self::Interrupted(_, Repeatable::Yes) => Status::service_unavailable(
                "the connection to the server was lost before it answered",
                RETRY_AFTER_SECONDS,
            ),
            Self::Interrupted(_, Repeatable::No) => Status::timeout(
                "the connection to the server was lost after the request was sent: it may have been carried out",
                NO_RETRY_AFTER,
            ),
            Self::Stopping(Repeatable::Yes) => Status::service_unavailable("stopping", RETRY_AFTER_SECONDS),
            Self::Stopping(Repeatable::No) => {
                Status::timeout("stopping: the request may have been carried out", NO_RETRY_AFTER)
            }
        };
        status.into_response(&wording.headers, Pretty::of(&wording.uri, &wording.headers))
    }
}

/// What is kept of a request in case its answer is made here: how to word it.
pub(super) struct Wording {
    headers: HeaderMap,
    uri: Uri,
}

impl Wording {
    pub(super) fn of(headers: &HeaderMap, uri: &Uri) -> Self {
        let mut kept = HeaderMap::with_capacity(4);
        for name in [ACCEPT, USER_AGENT, AUDIT_ID] {
            if let Some(value) = headers.get(&name) {
                kept.insert(name, value.clone());
            }
        }
        Self { headers: kept, uri: uri.clone() }
    }

    /// What the client calls itself, as far as it can be read.
    pub(super) fn user_agent(&self) -> &str {
        self.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Gives an answer made here the Audit-ID that the client chose, or a random UUID.
pub(super) fn add_audit_id(response: &mut Response<Bytes>, wording: &Wording) {
    let chosen = wording.headers.get(AUDIT_ID).filter(|id| !id.is_empty());
    if let Some(id) = chosen.cloned().or_else(random_uuid) {
        response.headers_mut().insert(AUDIT_ID, id);
    }
}

fn random_uuid() -> Option<HeaderValue> {
    let id = uuid::Uuid::new_v4();
    HeaderValue::from_str(id.as_hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer())).ok()
}
