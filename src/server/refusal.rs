//! Puts a Status into the refusals that hyper answers by itself, without a body, before any service sees the request:
//! a target longer than it takes, a head that is too large or cannot be read.
//!
//! hyper offers no hook for them, so that they are recognized as they are written. HTTP/1.1 only: over HTTP/2 h2 resets
//! the one stream.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::activity::Activity;
use crate::apimachinery::status::{Pretty, Status};

/// All that hyper writes with its own refusals beside the status line: it closes the connection afterwards.
const HEADERS: &[u8] = b"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// How long a refused client is read from; as long as Go waits before it closes.
/// Source: <https://github.com/golang/go/blob/go1.26.0/src/net/http/server.go> (`rstAvoidanceDelay`)
const LINGER: Duration = Duration::from_millis(500);

/// A connection whose bare refusals get a body.
pub(super) struct Worded<S> {
    stream: S,
    activity: Arc<Activity>,
    is_tunnel: bool,
    /// What is left to be written in place of a refusal.
    instead: Option<Bytes>,
    /// Until when what a refused client still sends is read.
    linger: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Worded<S> {
    /// `activity` tells of requests whose answers are never touched.
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, is_tunnel: false, instead: None, linger: None }
    }

    /// Takes a write for what it is: a refusal, the begin of a tunnel, or neither.
    fn look(&mut self, written: &[u8]) {
        if self.is_tunnel || self.instead.is_some() {
            return;
        }
        // From here on what is written is neither hyper's nor a server's.
        self.is_tunnel = written.starts_with(b"HTTP/1.1 101 ");
        // What is written while a head arrives is an answer to what began no request.
        if self.activity.is_head_arriving() {
            self.instead = in_place_of(written);
        }
        if self.instead.is_some() {
            self.linger = Some(Box::pin(tokio::time::sleep(LINGER)));
        }
    }

    /// Reads and drops what a refused client still sends, for a moment: closing would reset the connection, and the
    /// client would lose the refusal.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(linger) = &mut self.linger else { return Poll::Ready(()) };
        let mut scratch = [0; 4096];
        while linger.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut scratch);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
        }
        self.linger = None;
        Poll::Ready(())
    }

    /// Writes what stands for a write of `length` bytes.
    fn poll_instead(&mut self, context: &mut Context<'_>, length: usize) -> Poll<io::Result<usize>> {
        while let Some(rest) = self.instead.as_mut().filter(|rest| !rest.is_empty()) {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            rest.advance(written);
        }
        self.instead = None;
        Poll::Ready(Ok(length))
    }
}

/// The whole answer to be written in place of a bare refusal.
fn in_place_of(written: &[u8]) -> Option<Bytes> {
    let line = written.strip_suffix(HEADERS)?;
    let status = match line.strip_prefix(b"HTTP/1.1 ")?.get(..3)? {
        b"400" => Status::bad_request("the request cannot be read"),
        b"414" => Status::uri_too_long(),
        b"431" => Status::headers_too_large(),
        _ => return None,
    };
    let response = status.into_response(&HeaderMap::new(), Pretty::No);
    let (head, body) = response.into_parts();
    let mut answer = [line, b"\r\n"].concat();
    for (name, value) in &head.headers {
        answer.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    answer.extend(format!("Connection: close\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes());
    answer.extend(&body);
    Some(answer.into())
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Worded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.activity.bytes_came();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Worded<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.look(bytes);
        match self.instead {
            Some(_) => self.poll_instead(context, bytes.len()),
            None => Pin::new(&mut self.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = slices.iter().filter(|slice| !slice.is_empty());
        if let (Some(only), None) = (filled.next(), filled.next()) {
            return self.poll_write(context, only);
        }
        if let Some(first) = slices.first() {
            self.is_tunnel |= first.starts_with(b"HTTP/1.1 101 ");
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        self.poll_linger(context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const BARE: &str = "HTTP/1.1 414 URI Too Long\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

    /// What arrives when a byte has come and these writes are made.
    async fn arrives(activity: &Arc<Activity>, writes: &[&str]) -> String {
        arrives_after(activity, || (), writes).await
    }

    /// The same with something that happens between the byte and the writes.
    async fn arrives_after(activity: &Arc<Activity>, between: impl FnOnce(), writes: &[&str]) -> String {
        // So short that every write needs several.
        let (near, mut far) = duplex(7);
        let mut worded = Worded::new(near, Arc::clone(activity));
        far.write_all(b"x").await.unwrap();
        worded.read_u8().await.unwrap();
        between();
        let read = tokio::spawn(async move {
            let mut all = String::new();
            far.read_to_string(&mut all).await.unwrap();
            all
        });
        for write in writes {
            worded.write_all(write.as_bytes()).await.unwrap();
        }
        drop(worded);
        read.await.unwrap()
    }

    #[tokio::test]
    async fn bare_refusal_gets_a_status() {
        let found = arrives(&Arc::default(), &[BARE]).await;
        let (head, body) = found.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 414 URI Too Long\r\n") && head.contains("Connection: close"), "{head}");
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(body.contains(r#""code":414"#), "{body}");
    }

    #[tokio::test(start_paused = true)]
    async fn refused_client_that_still_sends_is_not_cut_off() {
        let (near, mut far) = duplex(64);
        let mut worded = Worded::new(near, Arc::default());
        far.write_all(b"x").await.unwrap();
        worded.read_u8().await.unwrap();
        let ends = tokio::spawn(async move {
            worded.write_all(BARE.as_bytes()).await.unwrap();
            worded.shutdown().await.unwrap();
        });
        let mut answer = String::new();
        far.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 414 "), "{answer}");
        far.write_all(&[0; 10_000]).await.unwrap();
        let began = tokio::time::Instant::now();
        ends.await.unwrap();
        assert!(began.elapsed() <= LINGER, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn anything_else_passes_untouched() {
        for other in [
            &BARE.replace("414 URI Too Long", "200 OK"),
            &BARE.replace("Content-Length: 0", "Content-Length: 1"),
            &BARE.replace("\r\nContent", "\r\nAudit-Id: x\r\nContent"),
            &format!("x{BARE}"),
            &format!("{BARE}x"),
            "",
        ] {
            assert_eq!(arrives(&Arc::default(), &[other]).await, *other);
        }
    }

    #[tokio::test]
    async fn bodies_and_tunnels_pass_untouched() {
        let activity = Arc::default();
        let open = Activity::begin(&activity);
        assert_eq!(arrives(&activity, &[BARE]).await, BARE);
        drop(open);
        let ended = || drop(Activity::begin(&activity));
        assert_eq!(arrives_after(&activity, ended, &[BARE]).await, BARE, "the last of an answer's body");
        let switched = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
        assert_eq!(arrives(&activity, &[switched, BARE]).await, format!("{switched}{BARE}"));
    }
}
