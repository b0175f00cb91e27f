//! A body that is counted as in flight until it has been read or dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::activity::Open;
use super::metrics::InFlight;
use crate::forward::StreamedBody;

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
