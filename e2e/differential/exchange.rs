//! One request and its answer as it came over the wire, each on a connection of its own.

use std::io;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{Method, Request, Uri};
use peerfront_e2e::{Client, Protocol};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

/// Header lines that an answer has at most.
const MAX_HEADERS: usize = 100;

/// What is sent.
pub(crate) enum Wire {
    /// A request that a client library could send.
    Request { method: String, target: String, headers: Vec<(String, Vec<u8>)>, body: Vec<u8> },
    /// Bytes that none would.
    Raw(Vec<u8>),
}

/// What came.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Answer {
    /// Status line without the version of HTTP; of HTTP/2 only the code. Empty if the server closed without an answer.
    pub(crate) status: String,
    /// Codes of the interim answers before it.
    pub(crate) interim: Vec<u16>,
    /// Spelled as they came, in their order.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    /// Without its framing, and not compressed.
    pub(crate) body: Vec<u8>,
    /// Bytes of the body as it was sent, without its framing.
    pub(crate) length: usize,
}

impl Answer {
    /// The first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_slice())
    }
}

/// Sends a request and reads the whole answer.
///
/// # Errors
/// If the connection cannot be made, or what comes is no HTTP.
pub(crate) async fn exchange(client: &Client, protocol: Protocol, wire: &Wire) -> Result<Answer> {
    match (protocol, wire) {
        (Protocol::H1, Wire::Raw(bytes)) => over_h1(client, bytes, Method::GET).await,
        (Protocol::H1, Wire::Request { method, target, headers, body }) => {
            let method_is = Method::from_bytes(method.as_bytes()).context("method")?;
            let mut bytes = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", client.address()).into_bytes();
            let chunked = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding"));
            for (name, value) in headers {
                bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
            }
            if chunked {
                bytes.extend(format!("\r\n{:x}\r\n", body.len()).bytes().chain(body.iter().copied()));
                bytes.extend(b"\r\n0\r\n\r\n");
            } else {
                if !body.is_empty() {
                    bytes.extend(format!("Content-Length: {}\r\n", body.len()).bytes());
                }
                bytes.extend(b"\r\n".iter().chain(body));
            }
            over_h1(client, &bytes, method_is).await
        }
        (Protocol::H2, Wire::Request { method, target, headers, body }) => {
            let mut request = Request::builder()
                .method(Method::from_bytes(method.as_bytes()).context("method")?)
                .uri(target.parse::<Uri>().context("this target cannot be sent over HTTP/2: mark the request @h1")?);
            for (name, value) in headers {
                request = request.header(name, value.as_slice());
            }
            let answer = client.send(request.body(Bytes::copy_from_slice(body))?).await?;
            let headers = answer.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
            let status = answer.status.as_u16().to_string();
            Answer { status, headers: headers.collect(), body: answer.body.to_vec(), ..Answer::default() }.inflated()
        }
        (Protocol::H2, Wire::Raw(_)) => bail!("raw requests are for HTTP/1.1"),
    }
}

async fn over_h1(client: &Client, bytes: &[u8], method: Method) -> Result<Answer> {
    let (mut reader, mut writer) = tokio::io::split(client.dial().await?);
    let write = async {
        // A server may answer and close before it has read everything.
        let _ = writer.write_all(bytes).await;
        let _ = writer.flush().await;
        std::future::pending::<()>().await
    };
    let answer = tokio::select! {
        answer = read(&mut reader, &method) => answer?,
        () = write => unreachable!("it never ends"),
    };
    answer.inflated()
}

async fn read(stream: &mut (impl AsyncRead + Unpin), method: &Method) -> Result<Answer> {
    let mut buffer = Buffer { stream, bytes: Vec::new() };
    let mut answer = Answer::default();
    loop {
        if !buffer.read_head().await? {
            return Ok(answer);
        }
        let (code, head_length) = parse_head(&buffer.bytes, &mut answer)?;
        buffer.bytes.drain(..head_length);
        if code >= 200 || code == 101 {
            let has_body = *method != Method::HEAD && code != 204 && code != 304 && code != 101;
            if has_body {
                answer.body = buffer.read_body(&answer).await?;
            }
            return Ok(answer);
        }
        answer.interim.push(code);
    }
}

fn parse_head(bytes: &[u8], answer: &mut Answer) -> Result<(u16, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(bytes)? else { bail!("half a head") };
    let code = response.code.context("status")?;
    answer.status = format!("{code} {}", response.reason.unwrap_or_default());
    answer.headers = response.headers.iter().map(|header| (header.name.to_owned(), header.value.to_vec())).collect();
    Ok((code, length))
}

struct Buffer<'a, S> {
    stream: &'a mut S,
    bytes: Vec<u8>,
}

impl<S: AsyncRead + Unpin> Buffer<'_, S> {
    /// Whether anything more came.
    async fn more(&mut self) -> Result<bool> {
        match self.stream.read_buf(&mut self.bytes).await {
            Ok(length) => Ok(length > 0),
            // Servers cut a connection instead of ending it, too.
            Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a head came before the end.
    async fn read_head(&mut self) -> Result<bool> {
        while !self.bytes.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            if !self.more().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn read_body(&mut self, answer: &Answer) -> Result<Vec<u8>> {
        if answer.header("transfer-encoding").is_some() {
            return self.read_chunks().await;
        }
        let length = answer.header("content-length").map(|value| String::from_utf8_lossy(value).parse::<usize>());
        match length.transpose()? {
            Some(length) => self.read_exactly(length).await,
            None => {
                while self.more().await? {}
                Ok(std::mem::take(&mut self.bytes))
            }
        }
    }

    async fn read_chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let parsed = httparse::parse_chunk_size(&self.bytes).map_err(|_| anyhow::anyhow!("no chunk"))?;
            let httparse::Status::Complete((head, length)) = parsed else {
                if !self.more().await? {
                    bail!("the body breaks off");
                }
                continue;
            };
            self.bytes.drain(..head);
            let chunk = self.read_exactly(usize::try_from(length)? + 2).await?;
            if length == 0 {
                return Ok(body);
            }
            body.extend_from_slice(&chunk[..chunk.len() - 2]);
        }
    }

    async fn read_exactly(&mut self, length: usize) -> Result<Vec<u8>> {
        while self.bytes.len() < length {
            if !self.more().await? {
                bail!("the body breaks off");
            }
        }
        Ok(self.bytes.drain(..length).collect())
    }
}

impl Answer {
    /// Two compressed texts differ everywhere when one time stamp does.
    fn inflated(mut self) -> Result<Self> {
        self.length = self.body.len();
        if self.header("content-encoding") == Some(b"gzip") && !self.body.is_empty() {
            let mut body = Vec::new();
            io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*self.body), &mut body).context("gzip")?;
            self.body = body;
        }
        Ok(self)
    }
}
