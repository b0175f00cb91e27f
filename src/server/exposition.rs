//! `/peerfront/metrics`: what this front counts, for callers who may read `/metrics` of its server.
//!
//! The server is the judge. It is asked with a `SelfSubjectAccessReview`, which every authenticated caller may create: that
//! goes through the same authorizer with the same attributes as the read itself, and costs it nothing, while its own
//! metrics are megabytes that it would have to gather (a HEAD as well, and that is another verb to it). What this does not
//! allow is decided by the caller's own `GET /metrics`, whose refusal is passed on. No peer is asked in its place.

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HOST, SEC_WEBSOCKET_PROTOCOL, UPGRADE, USER_AGENT,
};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;

use super::error::Error;
use super::{Answer, Call};
use crate::authz::Verdict;
use crate::forward::{Destination, RequestBody, StreamedBody};
use crate::metrics::TEXT_FORMAT;
use crate::routing::NotFound;

/// What a caller must be allowed to get.
const METRICS: &str = "/metrics";

/// Source: <https://github.com/kubernetes/api/blob/v0.36.3/authorization/v1/types.go> (`SelfSubjectAccessReview`)
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const REVIEW: &str = r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"nonResourceAttributes":{"path":"/metrics","verb":"get"}}}"#;

/// Bytes of an answer to it that are read; it is a few hundred long.
const LONGEST_REVIEW: usize = 64 * 1024;

/// What tells the server who asks; whoever is known by a certificate is named when the request is prepared.
const OF_THE_CALLER: [HeaderName; 7] = [
    HOST,
    AUTHORIZATION,
    SEC_WEBSOCKET_PROTOCOL,
    CONNECTION,
    UPGRADE,
    USER_AGENT,
    HeaderName::from_static("x-forwarded-for"),
];

#[derive(Deserialize)]
struct Review {
    status: ReviewStatus,
}

#[derive(Deserialize)]
struct ReviewStatus {
    allowed: bool,
}

impl Call<'_> {
    /// Answers with this front's metrics, once the server has allowed this caller to read its own.
    pub(super) async fn exposition(&self, head: &Parts) -> Result<Answer, Error> {
        let mut asked = head.clone();
        (asked.method, asked.uri) = (Method::GET, at(&head.uri, METRICS));
        let refusal = self.refusal(asked.clone());
        match self.front.authorizer.reader_unless(self.caller, &asked, refusal).await? {
            Verdict::Refused(answer) => Ok(Answer::Streamed(answer)),
            Verdict::Allowed(_reader) => {
                let text = self.front.metrics.render().await;
                let text = text.map_err(|_| Error::Unavailable("the metrics cannot be written"))?;
                Ok(Answer::Made(exposition(text)))
            }
        }
    }

    /// The server's answer to a caller who may not read its metrics; `None` if it may.
    async fn refusal(&self, asked: Parts) -> Result<Option<Response<StreamedBody>>, Error> {
        if self.review_allows(&asked).await? {
            return Ok(None);
        }
        let prepared = self.front.forwarder.prepare_bodiless(self.caller, self.context.client, asked)?;
        let answer = self.to_upstream(prepared, NotFound::Pass, None).await?;
        Ok((answer.status() != StatusCode::OK).then_some(answer))
    }

    /// Whether the server says of this caller that it may. Whoever may not even ask, such as nobody in particular, is
    /// judged otherwise.
    async fn review_allows(&self, asked: &Parts) -> Result<bool, Error> {
        let body = RequestBody::of(Bytes::from_static(REVIEW.as_bytes()));
        let prepared = self.front.forwarder.prepare_with(self.caller, self.context.client, review(asked), body)?;
        let answer = self.front.forwarder.send(self.caller, Destination::Upstream, prepared).await;
        let answer = answer.map_err(|_| Error::Unavailable("the local server cannot be reached"))?;
        if answer.status() != StatusCode::CREATED {
            return Ok(false);
        }
        let body = Limited::new(answer.into_body(), LONGEST_REVIEW).collect().await;
        let body = body.map_err(|_| Error::Unavailable("the local server broke off its answer"))?.to_bytes();
        Ok(serde_json::from_slice(&body).is_ok_and(|review: Review| review.status.allowed))
    }
}

/// Head of the question whether whoever sent this one may read the server's metrics.
fn review(asked: &Parts) -> Parts {
    let mut head = asked.clone();
    (head.method, head.uri) = (Method::POST, at(&asked.uri, REVIEWS));
    let is_of_the_caller =
        |name: &HeaderName| OF_THE_CALLER.contains(name) || name.as_str().starts_with("impersonate-");
    let headers = asked.headers.iter().filter(|(name, _)| is_of_the_caller(name));
    head.headers = headers.map(|(name, value)| (name.clone(), value.clone())).collect();
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head
}

/// Another path at the same host: HTTP/2 names it in the target.
fn at(uri: &Uri, path: &'static str) -> Uri {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::from_static(path));
    Uri::from_parts(parts).unwrap_or_else(|_| Uri::from_static(path))
}

fn exposition(text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(TEXT_FORMAT));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
