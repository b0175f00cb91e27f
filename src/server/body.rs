//! Bodies as they leave: a server's counted as in flight until read or dropped, one made here framed as Go frames it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use axum::BoxError;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use super::activity::Open;
use super::metrics::InFlight;
use crate::forward::StreamedBody;

/// Bodies up to this many bytes are sent with their length, as Go's HTTP/1.1 server sends what fits its buffer.
/// Source: <https://github.com/golang/go/blob/go1.26.0/src/net/http/server.go> (`bufferBeforeChunkingSize`)
const MAX_BYTES_WITH_LENGTH: usize = 2048;

/// An answer made here with what Go adds to each: the date, and a length unless the body is long or may not be. One to
/// `HEAD` has the length without the body.
pub(super) fn framed(response: Response<Bytes>, method: &Method) -> Response<axum::body::Body> {
    let (mut head, bytes) = response.into_parts();
    if let Ok(now) = HeaderValue::try_from(httpdate::fmt_http_date(SystemTime::now())) {
        head.headers.insert(DATE, now);
    }
    let length = bytes.len();
    let body = if method == Method::HEAD {
        if (1..=MAX_BYTES_WITH_LENGTH).contains(&length) {
            head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        axum::body::Body::empty()
    } else if length > MAX_BYTES_WITH_LENGTH {
        let once = futures_util::stream::once(std::future::ready(Ok::<_, Infallible>(bytes)));
        axum::body::Body::from_stream(once)
    } else {
        if length == 0 && head.status != StatusCode::NOT_MODIFIED {
            head.headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
        }
        axum::body::Body::from(bytes)
    };
    Response::from_parts(head, body)
}

/// How an answer ends that a stopping front cuts off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ending {
    /// As if it were complete: a client of a watch goes on where it ended.
    Whole,
    /// Broken off: what a log or a proxied server had still to say must not look said.
    BrokenOff,
}

/// The front has stopped before the end of an answer.
#[derive(Debug, thiserror::Error)]
#[error("stopped before the end of the answer")]
struct CutOff;

/// A server's answer that keeps its request counted, and may be cut off.
pub(super) struct Tracked {
    body: StreamedBody,
    cutoff: Option<Cutoff>,
    is_cut_off: bool,
    _in_flight: InFlight,
    _open: Open,
}

struct Cutoff {
    reached: Pin<Box<dyn Future<Output = ()> + Send>>,
    ending: Ending,
}

impl Tracked {
    pub(super) fn new(body: StreamedBody, in_flight: InFlight, open: Open) -> Self {
        Self { body, cutoff: None, is_cut_off: false, _in_flight: in_flight, _open: open }
    }

    /// Ends in this way when `reached` is done and nothing is under way at the moment.
    pub(super) fn until(mut self, reached: impl Future<Output = ()> + Send + 'static, ending: Ending) -> Self {
        self.cutoff = Some(Cutoff { reached: Box::pin(reached), ending });
        self
    }

    fn poll_cutoff(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(cutoff) = &mut self.cutoff else { return Poll::Pending };
        ready!(cutoff.reached.as_mut().poll(context));
        self.is_cut_off = true;
        Poll::Ready((cutoff.ending == Ending::BrokenOff).then(|| Err(CutOff.into())))
    }
}

impl Body for Tracked {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.is_cut_off {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(frame.map(|frame| frame.map_err(Into::into))),
            Poll::Pending => self.poll_cutoff(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_cut_off || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
