//! HTTP/2 clients, and bodies of every kind.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use peerfront::testing::pki::{ControlPlane, Identity};
use peerfront::testing::raw::connect;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::soon;

/// A body of any kind.
pub(crate) type Body = BoxBody<Bytes, std::convert::Infallible>;

/// No body.
pub(crate) fn empty() -> Body {
    Empty::new().boxed()
}

/// A body of known length.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed()
}

/// An HTTP/2 connection.
pub(crate) async fn h2(plane: &ControlPlane, address: SocketAddr, identity: Option<&Identity>) -> SendRequest<Body> {
    h2_on(connect(plane, address, identity, b"h2").await).await
}

/// An HTTP/2 connection on one that is there.
pub(crate) async fn h2_on(stream: TlsStream<TcpStream>) -> SendRequest<Body> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .max_header_list_size(2 * 1024 * 1024)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

/// A GET over HTTP/2 with these headers.
pub(crate) fn request(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::get(format!("https://front{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(empty()).unwrap()
}

/// The whole body of an answer.
pub(crate) async fn whole(response: Response<Incoming>) -> Result<Bytes, hyper::Error> {
    soon("the end of a body", response.into_body().collect()).await.map(http_body_util::Collected::to_bytes)
}

/// A body of so many bytes whose length is not known beforehand; none at all if there are none.
pub(crate) fn unsized_body(length: usize) -> Body {
    if length == 0 {
        return empty();
    }
    let frames = futures_util::stream::iter([Ok(hyper::body::Frame::data(Bytes::from(vec![b'x'; length])))]);
    BodyExt::boxed(http_body_util::StreamBody::new(frames))
}
