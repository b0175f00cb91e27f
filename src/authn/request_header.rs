//! The user that a front proxy asserts in headers. Whether the connection is a front proxy's is decided elsewhere.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/authentication/request/headerrequest/requestheader.go>

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use super::identity_headers::strip_prefix;
use super::{Refusal, identity_headers, union};
use crate::apimachinery::user::UserInfo;
use crate::settings::IdentityHeaderNames;

/// The asserted user; `None` if no name is asserted.
pub(super) fn user(headers: &HeaderMap, names: &IdentityHeaderNames) -> Result<Option<UserInfo>, Refusal> {
    let Some(name) = first_value(headers, &names.username, "user name")? else { return Ok(None) };
    let uid = first_value(headers, &names.uid, "UID")?.unwrap_or_default();
    let mut groups = Vec::new();
    for header in &names.group {
        for value in headers.get_all(header).iter().filter(|value| !value.is_empty()) {
            groups.push(text(value, "group")?);
        }
    }
    let user = UserInfo { name, uid, groups, extra: extra(headers, &names.extra_prefix)? };
    let user = union::with_authenticated_group(user);
    identity_headers::check(&user)?;
    Ok(Some(user))
}

/// The first value of the first header that has one; like Go's `Get`, only a header's first line counts.
fn first_value(headers: &HeaderMap, names: &[HeaderName], what: &'static str) -> Result<Option<String>, Refusal> {
    let found = names.iter().filter_map(|name| headers.get(name)).find(|value| !value.is_empty());
    found.map(|value| text(value, what)).transpose()
}

fn extra(headers: &HeaderMap, prefixes: &[String]) -> Result<Vec<(String, Vec<String>)>, Refusal> {
    let mut extra: Vec<(String, Vec<String>)> = Vec::new();
    // Prefixes outside, so that values of one key stand in the order of the prefixes.
    for prefix in prefixes {
        for (header, value) in headers {
            let Some(key) = strip_prefix(header.as_str(), prefix) else { continue };
            let key = decoded(key)?;
            let value = text(value, "extra")?;
            match extra.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value),
                None => extra.push((key, vec![value])),
            }
        }
    }
    Ok(extra)
}

/// The key behind its percent encoding; kept as it is if that is malformed.
fn decoded(key: &str) -> Result<String, Refusal> {
    let well_formed = key.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if !well_formed {
        return Ok(key.to_owned());
    }
    let decoded = percent_decode_str(key).decode_utf8().map_err(|_| Refusal::NotPortable("extra key"))?;
    Ok(decoded.into_owned())
}

fn text(value: &HeaderValue, what: &'static str) -> Result<String, Refusal> {
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| Refusal::NotPortable(what))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
