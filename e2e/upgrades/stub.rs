//! A TLS server that hands every connection on which a client's request has arrived to the test.

use std::net::SocketAddr;

use peerfront::testing::pki::ControlPlane;
use peerfront::tls::Acceptor;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::{soon, values};

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A connection with one request on it, answered by the test.
pub(crate) struct Call {
    /// The request head without its empty last line.
    pub(crate) head: String,
    /// Whether the connection was made with a client certificate.
    pub(crate) has_certificate: bool,
    /// What came with the head.
    early: Vec<u8>,
    stream: TlsStream<TcpStream>,
}

impl Call {
    /// Every value of a header, in order.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        values(&self.head, name)
    }

    /// Writes bytes as they are.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Answers 101 to a request for a WebSocket.
    pub(crate) async fn switch(&mut self) {
        self.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n").await;
    }

    /// Reads so many bytes of what follows the head.
    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.early);
        self.early = bytes.split_off(count.min(bytes.len()));
        let (start, mut rest) = (bytes.len(), vec![0; count - bytes.len()]);
        soon("bytes at the server", self.stream.read_exact(&mut rest)).await.unwrap();
        bytes.truncate(start);
        bytes.extend(rest);
        bytes
    }

    /// Everything that follows until the connection ends, in whatever way.
    pub(crate) async fn until_closed(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.early);
        let _ = soon("the end of the connection at the server", self.stream.read_to_end(&mut bytes)).await;
        bytes
    }

    /// Says that nothing more will be written.
    pub(crate) async fn end(&mut self) {
        self.stream.shutdown().await.unwrap();
    }
}

/// A running server.
pub(crate) struct Stub {
    pub(crate) address: SocketAddr,
    calls: mpsc::UnboundedReceiver<Call>,
    task: JoinHandle<()>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stub {
    /// Listens on a free loopback port; its pods have these subresources.
    pub(crate) async fn start(plane: &ControlPlane, subresources: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let config = Acceptor::load(&plane.serving_settings(), &plane.authentication_settings()).unwrap().current();
        let (sender, calls) = mpsc::unbounded_channel();
        let task = tokio::spawn(accept(listener, config.into(), subresources, sender));
        Self { address, calls, task }
    }

    /// The next request of a client.
    pub(crate) async fn call(&mut self) -> Call {
        soon("a request at the server", self.calls.recv()).await.unwrap()
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    subresources: &'static [&'static str],
    calls: mpsc::UnboundedSender<Call>,
) {
    let mut open = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, calls) = (acceptor.clone(), calls.clone());
        open.spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, subresources, &calls).await;
            }
        });
    }
}

/// Answers the front's own questions until a client's request comes.
async fn serve(mut stream: TlsStream<TcpStream>, subresources: &[&str], calls: &mpsc::UnboundedSender<Call>) {
    let mut read = Vec::new();
    loop {
        let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") else {
            match stream.read_buf(&mut read).await {
                Ok(0) | Err(_) => return,
                Ok(_) => continue,
            }
        };
        let early = read.split_off(end + 4);
        let head = String::from_utf8(std::mem::replace(&mut read, early)).unwrap();
        if values(&head, "x-remote-user") != ["system:kube-peerfront"] {
            let has_certificate = stream.get_ref().1.peer_certificates().is_some();
            let _ = calls.send(Call { head, has_certificate, early: read, stream });
            return;
        }
        let answer = discovery(&head, subresources);
        if stream.write_all(answer.as_bytes()).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

fn discovery(head: &str, subresources: &[&str]) -> String {
    let list = |items: serde_json::Value| {
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}).to_string()
    };
    let subresources: Vec<_> = subresources
        .iter()
        .map(|name| json!({"subresource": name, "verbs": ["create", "get"], "responseKind": {"kind": "Options"}}))
        .collect();
    let pods = json!({"resource": "pods", "verbs": ["create", "get", "list", "watch"], "scope": "Namespaced",
        "responseKind": {"kind": "Pod"}, "subresources": subresources});
    let core = json!([{"metadata": {"name": ""},
        "versions": [{"version": "v1", "freshness": "Current", "resources": [pods]}]}]);
    let (status, kind, body) = match head.split(' ').nth(1).unwrap_or_default() {
        "/api" => ("200 OK", V2, list(core)),
        "/apis" => ("200 OK", V2, list(json!([]))),
        _ => ("404 Not Found", "text/plain; charset=utf-8", "404 page not found\n".to_owned()),
    };
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}
