//! May this caller read what peerfront answers itself? The only maker of [`Reader`].
//!
//! peerfront knows no policy. The server is asked with the caller's own request, conditionally, so that its answer is
//! small; what it allows is remembered for seconds, what it refuses is passed on and forgotten.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use aws_lc_rs::digest::{Context, Digest, SHA256};
use http::StatusCode;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::request::Parts;
use quick_cache::sync::Cache;
use tokio::time::Instant;

use crate::authn::{Caller, CallerKind};

/// How long an allowed answer is believed: a revoked right ends within this time.
const BELIEVED_FOR: Duration = Duration::from_secs(10);

/// Callers remembered at once; beyond it the least used are asked about again.
const REMEMBERED: usize = 4096;

/// Proof that the caller may read what it asked for.
#[derive(Debug)]
pub struct Reader(());

#[cfg(test)]
impl Reader {
    /// A reader whom nobody was asked about.
    pub(crate) fn of_test() -> Self {
        Self(())
    }
}

/// What the server said about a caller.
#[derive(Debug)]
pub enum Verdict<R> {
    /// It may read.
    Allowed(Reader),
    /// The server's own answer, to be passed on.
    Refused(R),
}

type Key = [u8; 32];

/// Remembers who may read.
pub struct Authorizer {
    allowed: Cache<Key, Instant>,
}

impl Default for Authorizer {
    fn default() -> Self {
        Self { allowed: Cache::new(REMEMBERED) }
    }
}

impl Authorizer {
    /// Asks the server through `ask`, unless it allowed this very caller this very path a moment ago.
    ///
    /// # Errors
    /// Whatever `ask` fails with: without an answer nobody reads.
    pub async fn reader<B, E>(
        &self,
        caller: &Caller,
        head: &Parts,
        ask: impl Future<Output = Result<http::Response<B>, E>>,
    ) -> Result<Verdict<http::Response<B>>, E> {
        self.reader_unless(caller, head, async {
            let answer = ask.await?;
            Ok((!is_allowed(answer.status())).then_some(answer))
        })
        .await
    }

    /// The same where more than a status tells: whoever gets no `refusal` may read.
    ///
    /// # Errors
    /// Whatever `refusal` fails with.
    pub async fn reader_unless<B, E>(
        &self,
        caller: &Caller,
        head: &Parts,
        refusal: impl Future<Output = Result<Option<http::Response<B>>, E>>,
    ) -> Result<Verdict<http::Response<B>>, E> {
        let key = key(caller, head);
        if self.allowed.get(&key).is_none_or(|since| since.elapsed() >= BELIEVED_FOR) {
            if let Some(answer) = refusal.await? {
                return Ok(Verdict::Refused(answer));
            }
            self.allowed.insert(key, Instant::now());
        }
        Ok(Verdict::Allowed(Reader(())))
    }
}

/// Whether a server that answers so has let the caller read. A server that has the document in no form that was asked
/// for, on no such condition, or does not have it at all, has judged before it looked: its handlers run behind
/// authorization.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/server/config.go> (`DefaultBuildHandlerChain`)
fn is_allowed(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::OK
            | StatusCode::NOT_MODIFIED
            | StatusCode::NOT_FOUND
            | StatusCode::NOT_ACCEPTABLE
            | StatusCode::PRECONDITION_FAILED
    )
}

/// Everything the server could judge by: method, identity, credential, impersonation, path, and the query, which may
/// hold a bad timeout. A digest, so that no token is kept.
fn key(caller: &Caller, head: &Parts) -> Key {
    let mut digest = Digester(Context::new(&SHA256));
    head.method.as_str().hash(&mut digest);
    match caller.kind() {
        CallerKind::User(user) => (0_u8, user).hash(&mut digest),
        CallerKind::Bearer => 1_u8.hash(&mut digest),
        CallerKind::Anonymous => 2_u8.hash(&mut digest),
    }
    for name in [AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL] {
        let values: Vec<&[u8]> = head.headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect();
        values.hash(&mut digest);
    }
    for (name, value) in &head.headers {
        if name.as_str().starts_with("impersonate-") {
            (name.as_str(), value.as_bytes()).hash(&mut digest);
        }
    }
    head.uri.path().hash(&mut digest);
    head.uri.query().hash(&mut digest);
    digest.finish_key()
}

/// Feeds `Hash` into SHA-256; lengths and discriminants are part of what `Hash` writes, so fields cannot run together.
struct Digester(Context);

impl Digester {
    fn finish_key(self) -> Key {
        let digest: Digest = self.0.finish();
        let mut key = Key::default();
        key.copy_from_slice(digest.as_ref());
        key
    }
}

impl Hasher for Digester {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0 // Never asked for: `finish_key` ends it.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_from_behind_authorization_allows() {
        let allowed = [200, 304, 404, 406, 412];
        for code in 100..600 {
            let status = StatusCode::from_u16(code).unwrap();
            assert_eq!(is_allowed(status), allowed.contains(&code), "{code}");
        }
    }
}
