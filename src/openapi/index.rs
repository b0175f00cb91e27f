//! The `/openapi/v3` index: which documents there are, and the hash of each.
//!
//! Source: <https://github.com/kubernetes/kube-openapi/blob/43fb72c5454a/pkg/handler3/handler.go>
//! (`OpenAPIV3Discovery`)

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::object::go_json;
use crate::apimachinery::gvr::GroupVersion;
use crate::apimachinery::query;

/// Path below which the documents are.
pub(super) const ROOT: &str = "/openapi/v3/";

/// Entries that an index may have: some ten times the group versions of a cluster with a thousand CRDs.
const MAX_ENTRIES: usize = 20_000;

/// Bytes that one key or URL may have.
const MAX_NAME_BYTES: usize = 2048;

/// What one server publishes, by key: one document, or those between which its index goes back and forth.
pub type Publications = BTreeMap<String, BTreeSet<Location>>;

/// What one answer of a server lists, by key, such as `apis/apps/v1`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Index {
    /// Where each document is.
    pub paths: BTreeMap<String, Location>,
}

/// Where a document is: `/openapi/v3/apis/apps/v1?hash=D9D9…`. It names the content, too.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Location {
    /// Path and query at the server that publishes it.
    #[serde(rename = "serverRelativeURL")]
    pub url: String,
}

/// Why an answer is no index.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no JSON of the kind.
    #[error("it is no index of OpenAPI documents")]
    Json(#[from] serde_json::Error),
    /// More entries or longer names than any server has.
    #[error("the index is too large")]
    TooLarge,
}

#[derive(Deserialize, Serialize)]
struct Wire<P> {
    paths: P,
}

impl Index {
    /// Reads a server's answer.
    ///
    /// # Errors
    /// If it is anything but an index within bounds.
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        let Wire { paths } = serde_json::from_slice::<Wire<BTreeMap<String, Location>>>(body)?;
        let is_long = |(key, location): (&String, &Location)| key.len().max(location.url.len()) > MAX_NAME_BYTES;
        if paths.len() > MAX_ENTRIES || paths.iter().any(is_long) {
            return Err(Error::TooLarge);
        }
        Ok(Self { paths })
    }

    /// The bytes that a kube-apiserver sends for this index.
    #[must_use]
    pub fn to_json(&self) -> String {
        go_json(serde_json::to_string(&Wire { paths: &self.paths }))
    }
}

impl Location {
    /// The hash that the URL asks for, if it has one.
    #[must_use]
    pub fn hash(&self) -> Option<String> {
        let (_, query) = self.url.split_once('?')?;
        query::first(query, "hash").map(std::borrow::Cow::into_owned).filter(|hash| !hash.is_empty())
    }

    /// The same document with other content.
    #[must_use]
    pub fn with_hash(&self, hash: &str) -> Self {
        let path = self.url.split('?').next().unwrap_or_default();
        Self { url: format!("{path}?hash={hash}") }
    }

    /// Whether it is one of the server's own OpenAPI documents, which is all that is ever asked for.
    #[must_use]
    pub fn is_document(&self) -> bool {
        self.url.starts_with(ROOT)
    }
}

/// The group version that a key stands for: `api/v1`, `apis/apps/v1`; none for `version`, `apis/apps` and the like.
#[must_use]
pub fn group_version(key: &str) -> Option<GroupVersion> {
    let mut parts = key.split('/');
    let group_version = match (parts.next()?, parts.next()?) {
        ("api", version) => GroupVersion::new("", version),
        ("apis", group) => GroupVersion::new(group, parts.next()?),
        _ => return None,
    };
    (parts.next().is_none() && !group_version.version.is_empty()).then_some(group_version)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As kube-apiserver 1.37.2 sends it, but for the length.
    const UPSTREAM: &str = concat!(
        r#"{"paths":{".well-known/openid-configuration":{"serverRelativeURL":"#,
        r#""/openapi/v3/.well-known/openid-configuration?hash=6FC9"},"#,
        r#""apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=D9D9"}}}"#
    );

    #[test]
    fn index_is_written_as_it_is_read() {
        let index = Index::parse(UPSTREAM.as_bytes()).unwrap();
        assert_eq!(index.to_json(), UPSTREAM);
        let apps = &index.paths["apis/apps/v1"];
        assert_eq!(apps.hash().as_deref(), Some("D9D9"));
        assert_eq!(apps.with_hash("AB").url, "/openapi/v3/apis/apps/v1?hash=AB");
        assert!(apps.is_document());
    }

    #[test]
    fn location_may_have_any_form() {
        let location = |url: &str| Location { url: url.to_owned() };
        assert_eq!(location("/openapi/v3/x").hash(), None);
        assert_eq!(location("/openapi/v3/x?hash=").hash(), None);
        assert_eq!(location("/openapi/v3/x?a=1&hash=%41").hash().as_deref(), Some("A"));
        assert!(!location("/api/v1/secrets").is_document());
        assert!(!location("https://elsewhere/openapi/v3/x").is_document());
    }

    #[test]
    fn what_is_no_index_is_refused() {
        for body in ["", "{", "[]", "{}", r#"{"paths":[]}"#, r#"{"paths":{"a":{}}}"#, r#"{"paths":{"a":1}}"#] {
            assert!(Index::parse(body.as_bytes()).is_err(), "{body}");
        }
        let long = format!(r#"{{"paths":{{"a":{{"serverRelativeURL":"/{}"}}}}}}"#, "x".repeat(MAX_NAME_BYTES));
        assert!(matches!(Index::parse(long.as_bytes()), Err(Error::TooLarge)));
        let entry = |number: usize| (number.to_string(), Location { url: String::new() });
        let many = Index { paths: (0..=MAX_ENTRIES).map(entry).collect() };
        assert!(matches!(Index::parse(many.to_json().as_bytes()), Err(Error::TooLarge)));
    }

    #[test]
    fn keys_of_group_versions_are_told_from_others() {
        let of = |key| group_version(key).map(|found| found.to_string());
        assert_eq!(of("api/v1").as_deref(), Some("v1"));
        assert_eq!(of("apis/apps/v1").as_deref(), Some("apps/v1"));
        for key in ["", "api", "apis", "apis/apps", "apis/apps/v1/x", "version", "openid/v1/jwks", "apis/apps/"] {
            assert_eq!(of(key), None, "{key}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Index::parse(&body);
        }
    }
}
