//! Bodies on their way through: streams, never collected.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Either, Empty, Full};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::pool::Lease;
use super::upgrade::Tunnel;

/// Bytes of a body that nobody wants which are read in any case, so that the connection can be used again; as many as Go
/// reads.
/// Source: <https://github.com/golang/go/blob/go1.26.0/src/net/http/server.go> (`maxPostHandlerReadBytes`)
const SHORT_BYTES: usize = 256 * 1024;

/// Time for those; Go sets none.
const SHORT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the rest of a longer body is read that nobody wants; as long as Go waits before it closes.
/// Source: <https://github.com/golang/go/blob/go1.26.0/src/net/http/server.go> (`rstAvoidanceDelay`)
const LINGER: Duration = Duration::from_millis(500);

/// Body of a request to the upstream or a peer: the client's own, or none.
///
/// It may be answered before all of it has been read. The rest is read and dropped for a while: closing a connection with
/// unread bytes in it resets it, and the client, still sending, would lose the answer.
pub struct RequestBody(Either<Incoming, Empty<Bytes>>);

impl Drop for RequestBody {
    fn drop(&mut self) {
        let Either::Left(body) = std::mem::replace(&mut self.0, Either::Right(Empty::new())) else { return };
        if body.is_end_stream() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(drain(body));
        }
    }
}

async fn drain(mut body: Incoming) {
    if timeout(SHORT_TIMEOUT, read(&mut body, SHORT_BYTES)).await == Ok(Rest::Some) {
        let _ = timeout(LINGER, read(&mut body, usize::MAX)).await;
    }
}

#[derive(Eq, PartialEq)]
enum Rest {
    None,
    Some,
}

/// Reads and drops at least so many bytes, unless the body ends before.
async fn read(body: &mut Incoming, bytes: usize) -> Rest {
    let mut left = bytes;
    while left > 0 {
        let Some(Ok(frame)) = body.frame().await else { return Rest::None };
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
    }
    Rest::Some
}

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
    source: Source,
    lease: Option<Lease>,
}

enum Source {
    Stream(Incoming),
    Read(Full<Bytes>),
    Broken(Option<hyper::Error>),
    Switched(Option<Tunnel>),
}

impl StreamedBody {
    pub(super) fn new(incoming: Incoming, lease: Option<Lease>) -> Self {
        let mut body = Self { source: Source::Stream(incoming), lease };
        if body.is_end_stream() {
            body.give_back();
        }
        body
    }

    /// A body that has been read already.
    pub(super) fn read(bytes: Bytes) -> Self {
        Self { source: Source::Read(Full::new(bytes)), lease: None }
    }

    /// A body whose reading failed.
    pub(super) fn broken(error: hyper::Error) -> Self {
        Self { source: Source::Broken(Some(error)), lease: None }
    }

    /// No body but a tunnel, after a 101.
    pub(super) fn switched(tunnel: Tunnel) -> Self {
        Self { source: Source::Switched(Some(tunnel)), lease: None }
    }

    /// What follows a 101: to be run once its head is on its way. Dropping it closes both connections.
    pub fn take_tunnel(&mut self) -> Option<Tunnel> {
        match &mut self.source {
            Source::Switched(tunnel) => tunnel.take(),
            _ => None,
        }
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
        let polled = match &mut self.source {
            Source::Stream(body) => Pin::new(body).poll_frame(context),
            Source::Read(body) => Pin::new(body).poll_frame(context).map_err(|never: Infallible| match never {}),
            Source::Broken(error) => Poll::Ready(error.take().map(Err)),
            Source::Switched(_) => Poll::Ready(None),
        };
        let ended = match &polled {
            Poll::Ready(Some(Ok(_))) => self.is_end_stream(),
            Poll::Ready(None) => true,
            _ => false,
        };
        if ended {
            self.give_back();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Stream(body) => body.is_end_stream(),
            Source::Read(body) => body.is_end_stream(),
            Source::Broken(error) => error.is_none(),
            Source::Switched(_) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Stream(body) => body.size_hint(),
            Source::Read(body) => body.size_hint(),
            Source::Broken(_) => SizeHint::default(),
            Source::Switched(_) => SizeHint::with_exact(0),
        }
    }
}
