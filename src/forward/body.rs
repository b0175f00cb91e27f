//! Bodies on their way through: streams, never collected.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
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

/// Body of a request to the upstream or a peer: the client's own, one made here, or none.
///
/// It may be answered before all of it has been read. The rest is read and dropped for a while: closing a connection with
/// unread bytes in it resets it, and the client, still sending, would lose the answer.
pub struct RequestBody(Content);

impl Drop for RequestBody {
    fn drop(&mut self) {
        let Content::Stream(body) = std::mem::replace(&mut self.0, Content::none()) else { return };
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
        Self(Content::none())
    }

    /// These bytes.
    #[must_use]
    pub fn of(bytes: Bytes) -> Self {
        Self(Content::Read(Full::new(bytes)))
    }
}

impl From<Incoming> for RequestBody {
    fn from(body: Incoming) -> Self {
        Self(Content::Stream(body))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.0).poll_frame(context)
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
    Content(Content),
    Broken(Option<hyper::Error>),
    Switched(Option<Tunnel>),
}

impl StreamedBody {
    pub(super) fn new(incoming: Incoming, lease: Option<Lease>) -> Self {
        let mut body = Self { source: Source::Content(Content::Stream(incoming)), lease };
        if body.is_end_stream() {
            body.give_back();
        }
        body
    }

    /// A body that has been read already.
    pub(super) fn read(bytes: Bytes) -> Self {
        Self { source: Source::Content(Content::Read(Full::new(bytes))), lease: None }
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
            Source::Content(body) => Pin::new(body).poll_frame(context),
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
            Source::Content(body) => body.is_end_stream(),
            Source::Broken(error) => error.is_none(),
            Source::Switched(_) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Content(body) => body.size_hint(),
            Source::Broken(_) => SizeHint::default(),
            Source::Switched(_) => SizeHint::with_exact(0),
        }
    }
}

/// What the bodies of both ways are made of.
enum Content {
    Stream(Incoming),
    Read(Full<Bytes>),
}

impl Content {
    fn none() -> Self {
        Self::Read(Full::default())
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut *self {
            Self::Stream(body) => Pin::new(body).poll_frame(context),
            Self::Read(body) => Pin::new(body).poll_frame(context).map_err(|never: Infallible| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Stream(body) => body.is_end_stream(),
            Self::Read(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Stream(body) => body.size_hint(),
            Self::Read(body) => body.size_hint(),
        }
    }
}
