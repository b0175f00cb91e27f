//! Bodies as they leave: a server's counted as in flight until read or dropped, one made here framed as Go frames it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderValue, Method, Response};
use http_body::{Body, Frame, SizeHint};

use super::activity::Open;
use super::metrics::InFlight;
use crate::forward::StreamedBody;

/// Bodies up to this many bytes are sent with their length, as Go's HTTP/1.1 server sends what fits its buffer.
/// Source: <https://github.com/golang/go/blob/go1.26.0/src/net/http/server.go> (`bufferBeforeChunkingSize`)
const MAX_BYTES_WITH_LENGTH: usize = 2048;

/// An answer made here with what Go adds to each: the date, and a length unless the body is long. One to `HEAD` has the
/// length without the body.
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
        axum::body::Body::from(bytes)
    };
    Response::from_parts(head, body)
}

/// A server's answer that keeps its request counted.
pub(super) struct Tracked {
    body: StreamedBody,
    _in_flight: InFlight,
    _open: Open,
}

impl Tracked {
    pub(super) fn new(body: StreamedBody, in_flight: InFlight, open: Open) -> Self {
        Self { body, _in_flight: in_flight, _open: open }
    }
}

impl Body for Tracked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
