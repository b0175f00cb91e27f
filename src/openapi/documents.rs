//! What a request looks into: which document is answered here, and which is the local server's.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::held::Held;
use super::index::{Index, Location, ROOT};

/// What a front has to say about OpenAPI.
#[derive(Clone, Debug, Default)]
pub enum OpenApi {
    /// Nothing: all servers publish the same, peering is off, or not every server could be read in time.
    #[default]
    LeftToUpstream,
    /// Nothing yet: not every server has been read.
    Awaited,
    /// The documents of the cluster.
    Merged(Arc<Documents>),
}

/// The documents of a cluster whose servers differ.
#[derive(Debug)]
pub struct Documents {
    index: Bytes,
    entries: BTreeMap<String, Entry>,
    v2: Entry,
}

/// What is known of one document.
#[derive(Clone, Debug)]
pub enum Entry {
    /// The local server's is the right one.
    Local(Location),
    /// It is held here.
    Held(Location, Arc<Held>),
    /// Somebody publishes it, and it could not be read yet.
    Missing(Location),
}

/// Who answers a request for a document.
#[derive(Clone, Debug)]
pub enum Found {
    /// peerfront.
    Here(Page),
    /// The local server, which has the right one.
    Upstream,
    /// The local server: nobody is known to publish it.
    Unknown,
    /// Nobody yet, for this reason.
    Unavailable(&'static str),
}

/// A document that is answered here.
#[derive(Clone, Debug)]
pub enum Page {
    /// `/openapi/v3`.
    Index(Bytes),
    /// `/openapi/v3/<key>`, with its path and query of this content.
    V3(Location, Arc<Held>),
    /// `/openapi/v2`.
    V2(Arc<Held>),
}

impl Documents {
    /// Makes the documents; `v2` is what is known of `/openapi/v2`.
    #[must_use]
    pub fn new(entries: BTreeMap<String, Entry>, v2: Entry) -> Self {
        let paths = entries.iter().map(|(key, entry)| (key.clone(), entry.location().clone())).collect();
        Self { index: Index { paths }.to_json().into(), entries, v2 }
    }

    /// What is known of a document.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// What is known of `/openapi/v2`.
    #[must_use]
    pub fn v2(&self) -> &Entry {
        &self.v2
    }
}

impl Entry {
    /// Where the index says that it is.
    #[must_use]
    pub fn location(&self) -> &Location {
        match self {
            Self::Local(location) | Self::Held(location, _) | Self::Missing(location) => location,
        }
    }
}

impl OpenApi {
    /// Finds who answers a request for `path`: `/openapi/v2`, `/openapi/v3` or what is below that.
    #[must_use]
    pub fn find(&self, path: &str) -> Found {
        let documents = match self {
            Self::Merged(documents) => documents,
            Self::Awaited => return Found::Unavailable("not every server has said yet what its OpenAPI documents are"),
            Self::LeftToUpstream => return Found::Unknown,
        };
        let (entry, page): (_, fn(Location, Arc<Held>) -> Page) = match path.strip_prefix(ROOT) {
            Some(key) => (documents.entries.get(key), Page::V3),
            None if path == "/openapi/v2" => (Some(&documents.v2), |_, held| Page::V2(held)),
            None => return Found::Here(Page::Index(documents.index.clone())),
        };
        match entry {
            Some(Entry::Held(location, held)) => Found::Here(page(location.clone(), Arc::clone(held))),
            Some(Entry::Local(_)) => Found::Upstream,
            Some(Entry::Missing(_)) => Found::Unavailable("no server that publishes this document can be read"),
            None => Found::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{held, location};
    use super::*;

    #[test]
    fn each_path_finds_who_answers_it() {
        let held = held(b"{}");
        let entries = BTreeMap::from([
            ("api/v1".to_owned(), Entry::Held(location("api/v1", &held.hash), Arc::clone(&held))),
            ("apis/example.com/v1".to_owned(), Entry::Local(location("apis/example.com/v1", "L"))),
            ("apis/lost/v1".to_owned(), Entry::Missing(location("apis/lost/v1", "M"))),
        ]);
        let v2 = Entry::Held(location("", ""), Arc::clone(&held));
        let merged = OpenApi::Merged(Arc::new(Documents::new(entries, v2)));
        assert!(matches!(merged.find("/openapi/v3/api/v1"), Found::Here(Page::V3(..))));
        assert!(matches!(merged.find("/openapi/v2"), Found::Here(Page::V2(_))));
        assert!(matches!(merged.find("/openapi/v3/apis/example.com/v1"), Found::Upstream));
        assert!(matches!(merged.find("/openapi/v3/apis/lost/v1"), Found::Unavailable(_)));
        assert!(matches!(merged.find("/openapi/v3/"), Found::Unknown));
        assert!(matches!(merged.find("/openapi/v3/apis/nobody/v1"), Found::Unknown));
        let Found::Here(Page::Index(index)) = merged.find("/openapi/v3") else { panic!("an index") };
        let index = Index::parse(&index).unwrap();
        assert_eq!(index.paths.len(), 3, "what is missing is listed all the same");
        assert_eq!(index.paths["api/v1"].hash(), Some(held.hash.clone()));
        assert!(matches!(OpenApi::Awaited.find("/openapi/v3"), Found::Unavailable(_)));
        assert!(matches!(OpenApi::LeftToUpstream.find("/openapi/v2"), Found::Unknown));
    }
}
