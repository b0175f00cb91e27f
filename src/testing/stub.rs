//! A TLS server that hands every request, unparsed, to a script.
//!
//! The front's own reads of discovery are answered here and not reported, so that a script sees clients' requests only.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::pki::ControlPlane;
use super::{soon, values};
use crate::tls::{ALPN_HTTP_1_1, ALPN_PEERFRONT, Acceptor};

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const FORBIDDEN: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"forbidden","reason":"Forbidden","code":403}"#;

/// A connection, as far as it has been read.
pub type Io = BufReader<TlsStream<TcpStream>>;

/// What becomes of the connection: served on, or closed when dropped.
pub type Served = Pin<Box<dyn Future<Output = Option<Io>> + Send>>;

type Script = Arc<dyn Fn(Exchange) -> Served + Send + Sync>;

/// A request head as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Number of the connection, from 0.
    pub connection: usize,
    /// Whether the connection was made with a client certificate.
    pub certificate: bool,
    /// All lines without the last, empty one.
    pub head: String,
}

impl Seen {
    /// The request line.
    #[must_use]
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// Every value of a header, in order.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&str> {
        values(&self.head, name)
    }

    /// The names of all headers, in lower case.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.map(|(name, _)| name.to_ascii_lowercase()).collect()
    }
}

/// One request on its connection, whose body has not been read.
pub struct Exchange {
    /// The head.
    pub seen: Seen,
    /// The connection behind the head.
    pub io: Io,
}

impl Exchange {
    /// Reads the body: by length, by chunks, or none.
    ///
    /// # Errors
    /// If it breaks off.
    pub async fn body(&mut self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if self.seen.all("transfer-encoding").is_empty() {
            let length = self.seen.all("content-length").first().map_or(0, |value| value.parse().unwrap());
            body.resize(length, 0);
            self.io.read_exact(&mut body).await?;
            return Ok(body);
        }
        loop {
            let mut size = String::new();
            self.io.read_line(&mut size).await?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(std::io::Error::other)?;
            let start = body.len();
            body.resize(start + size, 0);
            self.io.read_exact(&mut body[start..]).await?;
            self.io.read_line(&mut String::new()).await?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// If the connection is closed.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.io.write_all(bytes.as_ref()).await?;
        self.io.flush().await
    }

    /// Reads the body, answers 200 with these headers (each with its line end) and this body, and keeps the connection.
    pub async fn ok(mut self, headers: &str, body: &str) -> Option<Io> {
        self.body().await.ok()?;
        let length = body.len();
        self.write(format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {length}\r\n\r\n{body}")).await.ok()?;
        Some(self.io)
    }
}

/// A running server.
pub struct Stub {
    /// Where it listens.
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
    seen: mpsc::UnboundedReceiver<Seen>,
    frozen: Arc<watch::Sender<bool>>,
    task: JoinHandle<()>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stub {
    /// Listens on a free loopback port as a kube-apiserver. `serves` is the `group/version=resource` that it lists, with the
    /// subresource `exec`, or with those of `group/version=resource/exec+attach`; what begins with `~` it claims only when
    /// a peer asks. Pods it has in any case.
    pub async fn start<F>(plane: &ControlPlane, serves: &'static [&'static str], script: F) -> Self
    where
        F: Fn(Exchange) -> Served + Send + Sync + 'static,
    {
        Self::start_as(&[ALPN_HTTP_1_1], plane, serves, script).await
    }

    /// The same, and passes for a front.
    pub async fn start_front<F>(plane: &ControlPlane, serves: &'static [&'static str], script: F) -> Self
    where
        F: Fn(Exchange) -> Served + Send + Sync + 'static,
    {
        Self::start_as(&[ALPN_PEERFRONT], plane, serves, script).await
    }

    async fn start_as<F>(protocols: &[&[u8]], plane: &ControlPlane, serves: &'static [&'static str], script: F) -> Self
    where
        F: Fn(Exchange) -> Served + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut config =
            (*Acceptor::load(&plane.serving_settings(), &plane.authentication_settings()).unwrap().current()).clone();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (report, seen) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let frozen = Arc::new(watch::Sender::new(false));
        let server = Server {
            serves,
            script: Arc::new(script),
            report,
            connections: Arc::clone(&connections),
            frozen: frozen.subscribe(),
        };
        let task = tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, server) = (acceptor.clone(), server.clone());
                open.spawn(async move {
                    server.thawed().await;
                    if let Ok(stream) = acceptor.accept(stream).await {
                        server.serve(BufReader::new(stream)).await;
                    }
                });
            }
        });
        Self { address, connections, seen, frozen, task }
    }

    /// Says nothing any more, neither on open connections nor on new ones, as if every packet were lost.
    pub fn freeze(&self) {
        self.frozen.send_replace(true);
    }

    /// The next request of a client.
    pub async fn next(&mut self) -> Seen {
        soon("a request at the server", self.seen.recv()).await.unwrap()
    }

    /// All requests of clients that have arrived since.
    pub fn rest(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }

    /// Connections on which a client's request has arrived.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

#[derive(Clone)]
struct Server {
    serves: &'static [&'static str],
    script: Script,
    report: mpsc::UnboundedSender<Seen>,
    connections: Arc<AtomicUsize>,
    frozen: watch::Receiver<bool>,
}

impl Server {
    async fn thawed(&self) {
        let _ = self.frozen.clone().wait_for(|frozen| !frozen).await;
    }

    async fn serve(&self, mut io: Io) {
        let certificate = io.get_ref().get_ref().1.peer_certificates().is_some();
        let mut connection = None;
        while let Some(head) = read_head(&mut io).await {
            let mut seen = Seen { connection: 0, certificate, head };
            self.thawed().await;
            if head_is_the_fronts_own(&seen) {
                let answer = self.discovery(&seen);
                if io.write_all(answer.as_bytes()).await.is_err() || io.flush().await.is_err() {
                    return;
                }
                continue;
            }
            seen.connection = *connection.get_or_insert_with(|| self.connections.fetch_add(1, Ordering::SeqCst));
            let _ = self.report.send(seen.clone());
            match (self.script)(Exchange { seen, io }).await {
                Some(kept) => io = kept,
                None => return,
            }
        }
    }

    /// What the front asks on its own account.
    fn discovery(&self, seen: &Seen) -> String {
        let asked_by_peer = !seen.all("x-forwarded-for").is_empty();
        let mut listed: Vec<_> = self.serves.iter().filter(|text| asked_by_peer || !text.starts_with('~')).collect();
        if !listed.iter().any(|text| text.starts_with('/')) {
            listed.push(&"/v1=pods");
        }
        let list = |is_core: bool| {
            let listed = listed.iter().filter(|text| text.starts_with('/') == is_core);
            let items: Vec<_> = listed.map(|text| group(text.trim_start_matches('~'))).collect();
            json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}).to_string()
        };
        let (status, kind, body) = match seen.line().split(' ').nth(1).unwrap_or_default() {
            "/api" => ("200 OK", V2, list(true)),
            "/apis" => ("200 OK", V2, list(false)),
            "/version" => {
                let version = json!({"major": "1", "minor": "35", "gitVersion": "v1.35.4"});
                ("200 OK", "application/json", version.to_string())
            }
            // It keeps no Leases, so that there is nothing to wait for.
            path if path.starts_with("/apis/coordination.k8s.io/") => {
                ("403 Forbidden", "application/json", FORBIDDEN.to_owned())
            }
            _ => ("404 Not Found", "text/plain; charset=utf-8", "404 page not found\n".to_owned()),
        };
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }
}

/// One group of a discovery document.
fn group(text: &str) -> serde_json::Value {
    let (group_version, resource) = text.split_once('=').unwrap();
    let (group, version) = group_version.split_once('/').unwrap();
    let (resource, subresources) = resource.split_once('/').unwrap_or((resource, "exec"));
    let subresources: Vec<_> = subresources
        .split('+')
        .map(|name| json!({"subresource": name, "verbs": ["create", "get"], "responseKind": {"kind": "Options"}}))
        .collect();
    let verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
    json!({"metadata": {"name": group}, "versions": [{"version": version, "freshness": "Current",
        "resources": [{"resource": resource, "verbs": verbs, "responseKind": {"kind": "Thing"},
                       "subresources": subresources}]}]})
}

/// Whether the front asks as itself, under whatever header name.
fn head_is_the_fronts_own(seen: &Seen) -> bool {
    seen.head.lines().any(|line| line.ends_with(": system:kube-peerfront"))
}

async fn read_head(io: &mut Io) -> Option<String> {
    let mut head = Vec::new();
    loop {
        let start = head.len();
        if io.read_until(b'\n', &mut head).await.ok()? == 0 {
            return None;
        }
        if head[start..] == *b"\r\n" {
            head.truncate(start);
            return Some(String::from_utf8_lossy(&head).into_owned());
        }
    }
}
