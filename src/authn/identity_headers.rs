//! Identity headers on the way to a server: removed whatever arrived, then set to what was proven.
//!
//! Source: <https://github.com/kubernetes/client-go/blob/v0.36.3/transport/round_trippers.go> (`SetAuthProxyHeaders`)

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::{Error, Refusal};
use crate::apimachinery::user::UserInfo;
use crate::settings::IdentityHeaderNames;

/// Headers and the prefix that every kube-apiserver reads or removes, whatever is configured.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/filters/authentication.go>
const STANDARD: [&str; 3] = ["x-remote-user", UID, "x-remote-group"];
const STANDARD_EXTRA_PREFIX: &str = "x-remote-extra-";
const UID: &str = "x-remote-uid";

/// Removes every header that any server could take for an identity: the standard and the configured names and all
/// that begin with an extra prefix, also where `_` stands for `-`, which some servers take for the same.
pub fn strip(headers: &mut HeaderMap, names: &IdentityHeaderNames) {
    let found: Vec<HeaderName> = headers.keys().filter(|name| is_identity(name.as_str(), names)).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

/// Writes a proven identity under the first configured name of each kind. To be called after [`strip`].
///
/// # Errors
/// [`Error::Unauthorized`] if a value cannot be carried unchanged; the headers are then of no use.
pub fn set(headers: &mut HeaderMap, names: &IdentityHeaderNames, user: &UserInfo) -> Result<(), Error> {
    let standard = HeaderName::from_static;
    let username = names.username.first().cloned().unwrap_or(standard("x-remote-user"));
    let group = names.group.first().cloned().unwrap_or(standard("x-remote-group"));
    append(headers, username, &user.name, "user name")?;
    if !user.uid.is_empty() {
        let uid = names.uid.first().cloned().unwrap_or(standard(UID));
        append(headers, uid, &user.uid, "UID")?;
    }
    for value in &user.groups {
        append(headers, group.clone(), value, "group")?;
    }
    let prefix = names.extra_prefix.first().map_or(STANDARD_EXTRA_PREFIX, String::as_str);
    for (key, values) in &user.extra {
        let name = HeaderName::try_from(format!("{prefix}{}", utf8_percent_encode(key, KEY_ESCAPES)));
        let name = name.map_err(|_| Refusal::NotPortable("extra key"))?;
        for value in values {
            append(headers, name.clone(), value, "extra")?;
        }
    }
    Ok(())
}

/// Refuses an identity that would not arrive as it is.
pub(super) fn check(user: &UserInfo) -> Result<(), Refusal> {
    header_value(&user.name, "user name")?;
    header_value(&user.uid, "UID")?;
    for group in &user.groups {
        // The receiver skips empty group values.
        if group.is_empty() {
            return Err(Refusal::NotPortable("group"));
        }
        header_value(group, "group")?;
    }
    for value in user.extra.iter().flat_map(|(_, values)| values) {
        header_value(value, "extra")?;
    }
    Ok(())
}

/// What follows a prefix, compared without case.
pub(super) fn strip_prefix<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = name.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn is_identity(name: &str, names: &IdentityHeaderNames) -> bool {
    let configured = [&names.username, &names.uid, &names.group];
    let mut exact = STANDARD.into_iter().chain(configured.into_iter().flatten().map(HeaderName::as_str));
    let mut prefixes = std::iter::once(STANDARD_EXTRA_PREFIX).chain(names.extra_prefix.iter().map(String::as_str));
    exact.any(|known| same(name, known)) || prefixes.any(|prefix| begins_with(name, prefix))
}

fn begins_with(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|head| same(head, prefix))
}

/// Equal without case and with `_` and `-` taken for the same.
fn same(one: &str, other: &str) -> bool {
    let folded = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    one.len() == other.len() && one.bytes().map(folded).eq(other.bytes().map(folded))
}

fn append(headers: &mut HeaderMap, name: HeaderName, value: &str, what: &'static str) -> Result<(), Error> {
    let value = header_value(value, what)?;
    // More headers than a map can hold: as impossible to carry as a line break.
    headers.try_append(name, value).map_err(|_| Refusal::NotPortable(what))?;
    Ok(())
}

/// A header value that the receiver reads as it was written: HTTP/1.1 trims spaces and tabs at both ends and has no
/// control characters.
fn header_value(value: &str, what: &'static str) -> Result<HeaderValue, Refusal> {
    let trimmed = value.trim_matches([' ', '\t']);
    if trimmed.len() != value.len() {
        return Err(Refusal::NotPortable(what));
    }
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| Refusal::NotPortable(what))
}

/// Bytes of an extra key that are sent as `%XX`: all that no header name may have, `%` itself, and, other than
/// client-go, capitals: the receiver lower-cases the name before it decodes it, so that only encoded ones survive.
const KEY_ESCAPES: &AsciiSet = &capitals_of(CONTROLS)
    .add(b' ')
    .add(b'"')
    .add(b'%')
    .add(b'(')
    .add(b')')
    .add(b',')
    .add(b'/')
    .add(b':')
    .add(b';')
    .add(b'<')
    .add(b'=')
    .add(b'>')
    .add(b'?')
    .add(b'@')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'{')
    .add(b'}');

const fn capitals_of(set: &AsciiSet) -> AsciiSet {
    let mut set = set.add(b'A');
    let mut letter = b'B';
    while letter <= b'Z' {
        set = set.add(letter);
        letter += 1;
    }
    set
}

#[cfg(test)]
mod tests;
