//! `metav1.Status`: what a client sees when something goes wrong, in the form that it asked for.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/handlers/responsewriters/writers.go>
//! (`ErrorNegotiated`), <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/api/errors/errors.go>

mod message;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde::Serialize;

pub use super::encoding::Pretty;
use super::encoding::{self, Encoding};

/// A failure as a client sees it. Never names files, addresses or certificates.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Status {
    /// HTTP status code, 400 to 599.
    pub code: u16,
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
    /// More for programs, where there is more.
    pub details: Option<StatusDetails>,
}

/// What a failure was about. Empty texts and zeros are left out.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDetails {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind, or resource where upstream has no kind at hand.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// UID of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Single causes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// Seconds to wait before another try, also sent as `Retry-After`; 0 for not said.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u16,
}

/// One cause of a failure.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct StatusCause {
    /// Why, for programs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field at fault.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// Why, for programs: upstream's words.
/// Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/apis/meta/v1/types.go> (`StatusReason`)
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum Reason {
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 504.
    Timeout,
    /// 400.
    BadRequest,
    /// 413.
    RequestEntityTooLarge,
    /// 500.
    InternalError,
    /// 503.
    ServiceUnavailable,
    /// Upstream has no word for this; left out. Used for 414, 431 and a body that cannot be read.
    #[serde(rename = "")]
    Unknown,
}

impl Reason {
    /// The word as sent.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::Timeout => "Timeout",
            Self::BadRequest => "BadRequest",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::InternalError => "InternalError",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Unknown => "",
        }
    }
}

impl Status {
    /// 503 that is worth another try after so many seconds; 0 leaves that out.
    #[must_use]
    pub fn service_unavailable(message: impl Into<String>, retry_after_seconds: u16) -> Self {
        let status = Self::new(503, Reason::ServiceUnavailable, message);
        status.retry_after(retry_after_seconds)
    }

    /// 401 in upstream's words.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(401, Reason::Unauthorized, "Unauthorized")
    }

    /// 400.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, Reason::BadRequest, message)
    }

    /// 414: a request target longer than the HTTP library takes (65,534 bytes).
    #[must_use]
    pub fn uri_too_long() -> Self {
        Self::new(414, Reason::Unknown, "the request target is too long")
    }

    /// 431: more header bytes or lines than are taken.
    #[must_use]
    pub fn headers_too_large() -> Self {
        Self::new(431, Reason::Unknown, "the request headers are too large")
    }

    /// 500; the message is sent with upstream's opening and as a cause.
    #[must_use]
    pub fn internal_error(message: &str) -> Self {
        let cause = StatusCause { message: message.to_owned(), ..StatusCause::default() };
        let details = StatusDetails { causes: vec![cause], ..StatusDetails::default() };
        let status = Self::new(500, Reason::InternalError, format!("Internal error occurred: {message}"));
        Self { details: Some(details), ..status }
    }

    /// 500 without a reason, as upstream answers when a body cannot be read.
    /// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/handlers/responsewriters/status.go>
    /// (`ErrorToAPIStatus`)
    #[must_use]
    pub fn unreadable_body() -> Self {
        Self::new(500, Reason::Unknown, "the body of the request cannot be read")
    }

    /// 504; the message is sent with upstream's opening.
    #[must_use]
    pub fn timeout(message: &str, retry_after_seconds: u16) -> Self {
        let status = Self::new(504, Reason::Timeout, format!("Timeout: {message}"));
        Self { details: Some(StatusDetails::default()), ..status }.retry_after(retry_after_seconds)
    }

    fn new(code: u16, reason: Reason, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
    }

    fn retry_after(mut self, seconds: u16) -> Self {
        if seconds > 0 {
            self.details.get_or_insert_default().retry_after_seconds = seconds;
        }
        self
    }

    fn encode(&self, encoding: Encoding) -> Vec<u8> {
        let document = Document::of(self);
        match encoding {
            Encoding::Json => (encoding::json(&document) + "\n").into_bytes(),
            Encoding::PrettyJson => encoding::pretty_json(&document).into_bytes(),
            Encoding::Yaml => encoding::yaml(&document).into_bytes(),
            Encoding::Protobuf => encoding::protobuf("v1", "Status", &message::Failure::of(self)),
        }
    }

    /// The response in the form that the request's `Accept` header asks for; indented JSON if it can have none.
    #[must_use]
    pub fn into_response(self, headers: &HeaderMap, pretty: Pretty) -> Response<Bytes> {
        // A failure is never hidden behind a 406.
        let encoding = encoding::negotiate(headers, pretty).unwrap_or(Encoding::PrettyJson);
        let mut response = Response::new(Bytes::from(self.encode(encoding)));
        *response.status_mut() = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let sent = response.headers_mut();
        sent.insert(header::CONTENT_TYPE, HeaderValue::from_static(encoding.media_type()));
        // Source: https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/filters/cachecontrol.go
        sent.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        if let Some(seconds) = self.details.map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0) {
            sent.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

/// Fields in upstream's order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'s> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta,
    status: &'static str,
    message: &'s str,
    #[serde(skip_serializing_if = "is_unknown")]
    reason: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'s StatusDetails>,
    code: u16,
}

/// Always empty, always there.
#[derive(Serialize)]
struct ListMeta {}

impl<'s> Document<'s> {
    fn of(status: &'s Status) -> Self {
        Self {
            kind: "Status",
            api_version: "v1",
            metadata: ListMeta {},
            status: "Failure",
            message: &status.message,
            reason: status.reason,
            details: status.details.as_ref(),
            code: status.code,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_unknown(reason: &Reason) -> bool {
    *reason == Reason::Unknown
}
