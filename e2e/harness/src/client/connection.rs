use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, HeaderValue, Request, Uri};
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Client, Protocol, Streaming, Transport};

/// One connection to a server. HTTP/2 carries requests side by side, HTTP/1.1 one after the other.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    /// Headers of the client that opened it.
    headers: HeaderMap,
    authority: String,
    scheme: &'static str,
}

#[derive(Debug)]
enum Sender {
    H1(http1::SendRequest<Full<Bytes>>),
    H2(http2::SendRequest<Full<Bytes>>),
}

impl Connection {
    pub(super) async fn open(client: &Client) -> Result<Self> {
        let (sender, scheme) = match client.transport {
            Transport::Plain => (Sender::open(client.protocol, client.dial_plain().await?).await?, "http"),
            Transport::Tls { .. } => {
                let stream = client.dial().await?;
                let offered: &[u8] = if client.protocol == Protocol::H2 { b"h2" } else { b"http/1.1" };
                // A server that agrees on nothing speaks HTTP/1.1.
                let agreed = stream.get_ref().1.alpn_protocol().unwrap_or(b"http/1.1");
                ensure!(agreed == offered, "the server does not speak {:?}", client.protocol);
                (Sender::open(client.protocol, stream).await?, "https")
            }
        };
        let mut headers: HeaderMap = client.headers.iter().cloned().collect();
        if let Some(token) = &client.token {
            headers.insert(AUTHORIZATION, HeaderValue::try_from(format!("Bearer {token}")).context("token")?);
        }
        Ok(Self { sender, headers, authority: client.address.to_string(), scheme })
    }

    /// Sends a request and returns as soon as the head of the answer is there.
    ///
    /// # Errors
    /// If no head of an answer came.
    pub async fn send(&mut self, mut request: Request<Bytes>) -> Result<Streaming> {
        for (name, value) in &self.headers {
            if !request.headers().contains_key(name) {
                request.headers_mut().insert(name, value.clone());
            }
        }
        let path = request.uri().path_and_query().cloned().context("a request without a path")?;
        if matches!(self.sender, Sender::H2(_)) {
            let uri = Uri::builder().scheme(self.scheme).authority(self.authority.as_str()).path_and_query(path);
            *request.uri_mut() = uri.build()?;
        } else if !request.headers().contains_key(HOST) {
            request.headers_mut().insert(HOST, HeaderValue::try_from(&self.authority)?);
        }
        self.sender.send(request.map(Full::new)).await
    }

    /// `GET` on this connection.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub async fn get(&mut self, path: &str) -> Result<Streaming> {
        self.send(Request::get(path).body(Bytes::new())?).await
    }

    /// Whether the connection is closed and no request can be sent any more.
    pub fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::H1(sender) => sender.is_closed(),
            Sender::H2(sender) => sender.is_closed(),
        }
    }
}

impl Sender {
    async fn open(protocol: Protocol, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Result<Self> {
        let io = TokioIo::new(stream);
        match protocol {
            Protocol::H1 => {
                let (sender, connection) = http1::handshake(io).await.context("HTTP/1.1 handshake")?;
                // It ends with the sender and the last body; its errors reach the request.
                tokio::spawn(connection.with_upgrades());
                Ok(Self::H1(sender))
            }
            Protocol::H2 => {
                let (sender, connection) =
                    http2::handshake(TokioExecutor::new(), io).await.context("HTTP/2 handshake")?;
                tokio::spawn(connection);
                Ok(Self::H2(sender))
            }
        }
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Streaming> {
        let response = match self {
            Self::H1(sender) => {
                sender.ready().await.context("connection")?;
                sender.send_request(request).await
            }
            Self::H2(sender) => {
                sender.ready().await.context("connection")?;
                sender.send_request(request).await
            }
        };
        response.map(Streaming::new).context("no answer")
    }
}
