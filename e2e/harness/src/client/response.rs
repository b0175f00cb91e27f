use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The version of HTTP it came in.
    pub version: Version,
    /// The headers, in the order they came and with duplicates.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Response {
    /// The first header of this name, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// With status and body, if it is none.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("{} is no JSON: {}", self.status, self.text()))
    }

    /// The answer itself if it is a success.
    ///
    /// # Errors
    /// With status and body, if it is none.
    pub fn success(self) -> Result<Self> {
        if self.status.is_success() { Ok(self) } else { bail!("{}: {}", self.status, self.text()) }
    }
}

/// An answer whose head has come and whose body is read as it comes. Dropping it ends the request.
#[derive(Debug)]
pub struct Streaming {
    response: http::Response<Incoming>,
    read: BytesMut,
}

impl Streaming {
    pub(super) fn new(response: http::Response<Incoming>) -> Self {
        Self { response, read: BytesMut::new() }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next piece of the body as it came; `None` at its end.
    ///
    /// # Errors
    /// If the body breaks off.
    pub async fn next_piece(&mut self) -> Result<Option<Bytes>> {
        if !self.read.is_empty() {
            return Ok(Some(self.read.split().freeze()));
        }
        while let Some(frame) = self.response.body_mut().frame().await {
            // Trailers are no part of the body.
            if let Ok(data) = frame.context("body")?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The next line without its end, such as one watch event; `None` at the end of the body.
    ///
    /// # Errors
    /// If the body breaks off, or no line comes in the time given.
    pub async fn next_line(&mut self, within: Duration) -> Result<Option<String>> {
        tokio::time::timeout(within, self.read_line()).await.with_context(|| format!("no line within {within:?}"))?
    }

    async fn read_line(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line = self.read.split_to(end + 1);
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            match self.response.body_mut().frame().await {
                Some(frame) => {
                    if let Ok(data) = frame.context("body")?.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                None if self.read.is_empty() => return Ok(None),
                None => return Ok(Some(String::from_utf8_lossy(&self.read.split()).into_owned())),
            }
        }
    }

    /// Reads the rest of the body.
    ///
    /// # Errors
    /// If the body breaks off.
    pub async fn collect(mut self) -> Result<Response> {
        let mut body = BytesMut::new();
        while let Some(piece) = self.next_piece().await? {
            body.extend_from_slice(&piece);
        }
        let (head, _) = self.response.into_parts();
        Ok(Response { status: head.status, version: head.version, headers: head.headers, body: body.freeze() })
    }

    /// The response itself, to upgrade its connection with [`hyper::upgrade::on`].
    pub fn into_inner(self) -> http::Response<Incoming> {
        self.response
    }
}
