//! What of a request head is refused before anybody asks who sent it.

use http::Method;
use http::request::Parts;

/// Bytes of a request head that are taken: Go's limit and the slack that it adds, so that whatever kube-apiserver takes
/// is taken here.
/// Source: <https://github.com/golang/go/blob/go1.25.0/src/net/http/server.go> (`initialReadLimitSize`)
pub(super) const MAX_BYTES: usize = 1024 * 1024 + 4096;

/// Header lines that are taken. kube-apiserver counts bytes only; here every line has a place in a table, and a front
/// proxy that asserts a user of a thousand groups is far from this.
const MAX_LINES: usize = 1500;

/// Header lines that the HTTP/1.1 parser has room for: the identity that the last front has added to `MAX_LINES` fits.
pub(super) const PARSER_LINES: usize = 2048;

/// Why a request head is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Refusal {
    /// More bytes or lines than are taken.
    #[error("request head is too large")]
    TooLarge,
    /// CONNECT, or a target that names a host and no path: there is nothing of the kind here.
    #[error("request target is not a path")]
    NotAPath,
}

/// Refuses a head that no server is asked about.
pub(super) fn check(head: &Parts) -> Result<(), Refusal> {
    let Some(target) = head.uri.path_and_query().filter(|_| head.method != Method::CONNECT) else {
        return Err(Refusal::NotAPath);
    };
    let lines = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    if head.headers.len() > MAX_LINES || target.as_str().len() + lines.sum::<usize>() > MAX_BYTES {
        return Err(Refusal::TooLarge);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn refused(request: http::request::Builder) -> Option<Refusal> {
        check(&request.body(()).unwrap().into_parts().0).err()
    }

    #[test]
    fn only_a_path_or_an_asterisk_is_a_target() {
        for target in ["/", "/api?x", "*", "https://front", "https://front/x"] {
            assert_eq!(refused(Request::get(target)), None, "{target}");
        }
        for target in ["front", "front:443"] {
            assert_eq!(refused(Request::get(target)), Some(Refusal::NotAPath), "{target}");
            assert_eq!(refused(Request::connect(target)), Some(Refusal::NotAPath), "{target}");
        }
        assert_eq!(refused(Request::connect("/x")), Some(Refusal::NotAPath));
    }

    #[test]
    fn lines_and_bytes_are_limited() {
        let lines = |count: usize| (0..count).fold(Request::get("/"), |request, _| request.header("a", "b"));
        assert_eq!(refused(lines(MAX_LINES)), None);
        assert_eq!(refused(lines(MAX_LINES + 1)), Some(Refusal::TooLarge));
        let bytes = |count: usize| Request::get("/").header("a", "b".repeat(count));
        let most = MAX_BYTES - "/a: \r\n".len();
        assert_eq!(refused(bytes(most)), None);
        assert_eq!(refused(bytes(most + 1)), Some(Refusal::TooLarge));
    }
}
