//! Bodies on their way through: streams, never collected.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Empty};
use hyper::body::Incoming;

use super::pool::Lease;

/// Body of a request to the upstream or a peer: the client's own, or none.
pub struct RequestBody(Either<Incoming, Empty<Bytes>>);

impl RequestBody {
    /// No body.
    #[must_use]
    pub fn empty() -> Self {
        Self(Either::Right(Empty::new()))
    }
}

impl From<Incoming> for RequestBody {
    fn from(body: Incoming) -> Self {
        Self(Either::Left(body))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.0 {
            Either::Left(body) => Pin::new(body).poll_frame(context),
            Either::Right(body) => Pin::new(body).poll_frame(context).map_err(|never: Infallible| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// Body of an answer; gives its connection back to the pool when it has been read to the end.
///
/// Dropped earlier, it closes the connection, which is how a client's cancellation reaches the server at once.
pub struct StreamedBody {
    incoming: Incoming,
    lease: Option<Lease>,
}

impl StreamedBody {
    pub(super) fn new(incoming: Incoming, lease: Option<Lease>) -> Self {
        let mut body = Self { incoming, lease };
        if body.incoming.is_end_stream() {
            body.give_back();
        }
        body
    }

    fn give_back(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
    }
}

impl Body for StreamedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(context);
        let ended = match &polled {
            Poll::Ready(Some(Ok(_))) => self.incoming.is_end_stream(),
            Poll::Ready(None) => true,
            _ => false,
        };
        if ended {
            self.give_back();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
