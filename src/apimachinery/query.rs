//! Paths and queries as Go's `net/url` reads them, because kube-apiserver does.
//!
//! Source: <https://github.com/golang/go/blob/go1.26.0/src/net/url/url.go> (`ParseQuery`, `unescape`)

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The pairs of a query, in order. A pair with a `;` or a broken escape is left out; bytes that are no UTF-8 become
/// replacement characters.
pub fn pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((unescape_query(key)?, unescape_query(value)?))
    })
}

/// The first value of a key.
#[must_use]
pub fn first<'q>(query: &'q str, key: &str) -> Option<Cow<'q, str>> {
    pairs(query).find(|(found, _)| found == key).map(|(_, value)| value)
}

/// A path without its escapes; `None` if an escape is broken, which Go's HTTP server refuses with 400.
#[must_use]
pub fn unescape_path(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return Some(Cow::Borrowed(path));
    }
    has_whole_escapes(path).then(|| percent_decode_str(path).decode_utf8_lossy())
}

fn unescape_query(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+']) {
        return Some(Cow::Borrowed(text));
    }
    let spaced = text.replace('+', " ");
    has_whole_escapes(&spaced).then(|| Cow::Owned(percent_decode_str(&spaced).decode_utf8_lossy().into_owned()))
}

/// Whether two hexadecimal digits follow every `%`.
fn has_whole_escapes(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|rest| rest.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_as_go_reads_them() {
        check("a=1&b=2&a=3", &[("a", "1"), ("b", "2"), ("a", "3")]);
        check("a&=b&&c=d=e", &[("a", ""), ("", "b"), ("c", "d=e")]);
        check("a+b=c+d&%61=%3d", &[("a b", "c d"), ("a", "=")]);
        check("a;b=1&c=2", &[("c", "2")]);
        check("a=%&b=%2&c=%zz&d=%2x&e=%20", &[("e", " ")]);
        check("", &[]);
    }

    fn check(query: &str, expected: &[(&str, &str)]) {
        let found: Vec<_> = pairs(query).collect();
        let found: Vec<_> = found.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect();
        assert_eq!(found, expected, "{query}");
    }

    #[test]
    fn broken_escape_in_a_path_is_no_path() {
        assert_eq!(unescape_path("/a%2Fb+c").as_deref(), Some("/a/b+c"));
        assert_eq!(unescape_path("/a%2"), None);
        assert_eq!(unescape_path("/a%%20"), None);
        assert!(matches!(unescape_path("/a"), Some(Cow::Borrowed(_))));
    }
}
