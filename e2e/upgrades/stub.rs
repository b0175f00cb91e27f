//! A server that hands every connection on which a client's request has arrived to the test.

use peerfront::testing::pki::ControlPlane;
use peerfront::testing::stub::{self, Exchange, Io, Served};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::{soon, values};

/// A connection with one request on it, answered by the test.
pub(crate) struct Call {
    /// The request head without its empty last line.
    pub(crate) head: String,
    /// Whether the connection was made with a client certificate.
    pub(crate) has_certificate: bool,
    io: Io,
}

impl Call {
    /// Every value of a header, in order.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        values(&self.head, name)
    }

    /// Writes bytes as they are.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.io.write_all(bytes.as_ref()).await.unwrap();
        self.io.flush().await.unwrap();
    }

    /// Answers 101 to a request for a WebSocket.
    pub(crate) async fn switch(&mut self) {
        self.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n").await;
    }

    /// Reads so many bytes of what follows the head.
    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        soon("bytes at the server", self.io.read_exact(&mut bytes)).await.unwrap();
        bytes
    }

    /// Everything that follows until the connection ends, in whatever way.
    pub(crate) async fn until_closed(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = soon("the end of the connection at the server", self.io.read_to_end(&mut bytes)).await;
        bytes
    }

    /// Says that nothing more will be written.
    pub(crate) async fn end(&mut self) {
        self.io.shutdown().await.unwrap();
    }
}

/// A running server.
pub(crate) struct Stub {
    pub(crate) server: stub::Stub,
    calls: mpsc::UnboundedReceiver<Call>,
}

impl Stub {
    /// A kube-apiserver that lists this.
    pub(crate) async fn start(plane: &ControlPlane, serves: &'static [&'static str]) -> Self {
        let (script, calls) = handing_over();
        Self { server: stub::Stub::start(plane, serves, script).await, calls }
    }

    /// The same, and passes for a front.
    pub(crate) async fn start_front(plane: &ControlPlane, serves: &'static [&'static str]) -> Self {
        let (script, calls) = handing_over();
        Self { server: stub::Stub::start_front(plane, serves, script).await, calls }
    }

    /// The next request of a client.
    pub(crate) async fn call(&mut self) -> Call {
        soon("a request at the server", self.calls.recv()).await.unwrap()
    }
}

/// A script that leaves everything to the test.
fn handing_over() -> (impl Fn(Exchange) -> Served + Send + Sync + 'static, mpsc::UnboundedReceiver<Call>) {
    let (sender, calls) = mpsc::unbounded_channel();
    let script = move |Exchange { seen, io }: Exchange| -> Served {
        let _ = sender.send(Call { head: seen.head, has_certificate: seen.certificate, io });
        Box::pin(std::future::ready(None))
    };
    (script, calls)
}
