//! The one table from what went wrong to what the client is told.
//!
//! Inner rooms return small named errors; here they become Status objects. The client's text names no file, address or
//! certificate: those are in the log.

use http::{HeaderMap, HeaderValue, Method, Response, Uri};

use crate::apimachinery::status::{Reason, Status};
use crate::authn;
use crate::forward;
use crate::request_info;

/// Seconds after which a client may ask again: peers are heard, servers restart within a few.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Why a request is not answered by any server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller did not prove who it is.
    #[error("caller is not authenticated")]
    Authenticate(#[from] authn::Error),
    /// The path is malformed in a way that kube-apiserver answers with an error.
    #[error("request cannot be understood")]
    Understand(#[from] request_info::Error),
    /// It is not known yet who serves this, or who does cannot be reached.
    #[error("{0}")]
    Unavailable(&'static str),
    /// The connection was lost after the request had been sent.
    #[error("connection to the server was lost")]
    Interrupted(#[source] forward::Error, Repeatable),
    /// A method that no server here knows.
    #[error("method cannot be forwarded")]
    Method,
}

/// Whether asking again can do harm.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Repeatable {
    /// GET and HEAD change nothing.
    Yes,
    /// The server may have done what was asked, so no Retry-After is given: clients repeat a request that has one.
    No,
}

impl From<&Method> for Repeatable {
    fn from(method: &Method) -> Self {
        if matches!(*method, Method::GET | Method::HEAD) { Self::Yes } else { Self::No }
    }
}

impl Error {
    /// What the client is told.
    fn status(&self) -> Status {
        match self {
            Self::Authenticate(_) => Status::unauthorized(),
            Self::Understand(error) => error.status(),
            Self::Unavailable(message) => Status::service_unavailable(*message, RETRY_AFTER_SECONDS),
            Self::Interrupted(_, Repeatable::Yes) => Status::service_unavailable(
                "the connection to the server was lost before it answered",
                RETRY_AFTER_SECONDS,
            ),
            Self::Interrupted(_, Repeatable::No) => Status::new(
                502,
                Reason::InternalError,
                "the connection to the server was lost after the request was sent: it may have been carried out",
            ),
            Self::Method => Status::new(405, Reason::MethodNotAllowed, "the method cannot be forwarded"),
        }
    }
}

/// What is kept of a request in case its answer is an error: how to word it.
pub(super) struct Wording {
    accept: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    uri: Uri,
}

impl Wording {
    pub(super) fn of(headers: &HeaderMap, uri: &Uri) -> Self {
        let first = |name| headers.get(name).cloned();
        Self { accept: first(http::header::ACCEPT), user_agent: first(http::header::USER_AGENT), uri: uri.clone() }
    }
}
