//! One server's index without its flicker.
//!
//! Two parts of a kube-apiserver can publish a document for one key: an extension API server has a `version`, too, and a
//! CRD can be put into a built-in group version. A kube-apiserver goes through its parts in an order that is another at
//! each request, so its index names now the one and now the other document, and either is served.
//! Source: <https://github.com/kubernetes/kube-aggregator/blob/v0.36.3/pkg/controllers/openapiv3/aggregator/aggregator.go>
//! (`getOpenAPIV3Root`)

use std::collections::BTreeMap;

use super::index::{Index, Location, Publications, group_version};

/// Readings without a document after which it is believed to be gone. Go begins at one of eight places of a small map,
/// so that the rarer of two documents may come in one of eight readings: it is missing as often by chance in one of
/// twenty million cases.
const GONE_AFTER: u32 = 128;

/// Remembers what of a server's index is a matter of chance.
#[derive(Debug, Default)]
pub struct Steady {
    keys: BTreeMap<String, Key>,
}

/// What is known of one key. A document is counted by the readings since it was seen.
#[derive(Debug)]
struct Key {
    published: BTreeMap<Location, u32>,
    /// The document before the last change. When it returns, both are published.
    replaced: Option<(Location, u32)>,
}

impl Steady {
    /// Takes a reading: what is new in it counts at once. Returns whether other documents are published than before.
    pub fn take(&mut self, read: Index) -> bool {
        let known = self.keys.len();
        self.keys.retain(|key, _| read.paths.contains_key(key));
        let mut is_changed = self.keys.len() != known;
        for (key, location) in read.paths {
            match self.keys.get_mut(&key) {
                Some(known) => is_changed |= known.take(location),
                None => {
                    self.keys.insert(key, Key { published: BTreeMap::from([(location, 0)]), replaced: None });
                    is_changed = true;
                }
            }
        }
        is_changed
    }

    /// Whether the same reading again would tell nothing.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.keys.values().all(|key| key.replaced.is_none() && key.published.len() == 1)
    }

    /// Whether documents of a group version come by turns.
    #[must_use]
    pub fn comes_by_turns(&self) -> bool {
        self.any_group_version(|key| key.published.len() > 1)
    }

    /// Whether the document of a group version came in place of another one in the last reading.
    #[must_use]
    pub fn has_just_changed(&self) -> bool {
        self.any_group_version(|key| key.replaced.as_ref().is_some_and(|(_, unseen)| *unseen == 0))
    }

    fn any_group_version(&self, is_meant: impl Fn(&Key) -> bool) -> bool {
        self.keys.iter().any(|(key, known)| is_meant(known) && group_version(key).is_some())
    }

    /// What the server publishes.
    #[must_use]
    pub fn publications(&self) -> Publications {
        self.keys.iter().map(|(key, known)| (key.clone(), known.published.keys().cloned().collect())).collect()
    }
}

impl Key {
    fn take(&mut self, read: Location) -> bool {
        if self.published.contains_key(&read) {
            return self.take_again(&read);
        }
        let is_back = self.replaced.take().is_some_and(|(location, _)| location == read);
        if !is_back {
            self.replaced = self.published.pop_first().map(|(location, _)| (location, 0));
            self.published.clear();
        }
        self.published.insert(read, 0);
        true
    }

    fn take_again(&mut self, read: &Location) -> bool {
        self.replaced = self.replaced.take().map(|(location, unseen)| (location, unseen + 1));
        self.replaced.take_if(|(_, unseen)| *unseen >= GONE_AFTER);
        let known = self.published.len();
        self.published.retain(|location, unseen| {
            *unseen = if location == read { 0 } else { *unseen + 1 };
            *unseen < GONE_AFTER
        });
        self.published.len() != known
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::index;
    use super::*;

    const KEY: &str = "apis/apps/v1";

    fn read(steady: &mut Steady, hash: &str) -> bool {
        steady.take(index(&[(KEY, hash)]))
    }

    fn published(steady: &Steady) -> Vec<String> {
        steady.publications()[KEY].iter().map(|location| location.hash().unwrap()).collect()
    }

    #[test]
    fn change_counts_at_once() {
        let mut steady = Steady::default();
        assert!(read(&mut steady, "A") && steady.is_settled() && !steady.has_just_changed());
        assert!(!read(&mut steady, "A"));
        assert!(read(&mut steady, "B"));
        assert!(published(&steady) == ["B"] && steady.has_just_changed());
        assert!(steady.take(index(&[(KEY, "B"), ("apis/new/v1", "N")])), "a key more");
        assert!(steady.take(index(&[("apis/new/v1", "N")])), "a key less");
        assert!(!steady.publications().contains_key(KEY));
    }

    #[test]
    fn documents_that_come_and_go_are_both_published() {
        let mut steady = Steady::default();
        for hash in ["A", "B", "A"] {
            assert!(read(&mut steady, hash));
        }
        assert!(published(&steady) == ["A", "B"] && steady.comes_by_turns());
        for _ in 0..100 {
            assert!(!read(&mut steady, "B") && !read(&mut steady, "A") && !steady.is_settled());
        }
        for _ in 2..GONE_AFTER {
            assert!(!read(&mut steady, "A"));
        }
        assert!(!read(&mut steady, "B"), "it was there all the time");
        for _ in 2..GONE_AFTER {
            assert!(!read(&mut steady, "B"));
        }
        assert!(read(&mut steady, "B") && steady.is_settled());
        assert!(published(&steady) == ["B"] && !steady.comes_by_turns() && !steady.has_just_changed());
    }

    #[test]
    fn one_of_two_documents_is_changed() {
        let mut steady = Steady::default();
        for hash in ["A", "B", "A", "C", "B", "C"] {
            read(&mut steady, hash);
        }
        assert_eq!(published(&steady), ["B", "C"]);
    }

    #[test]
    fn what_returns_after_long_is_a_change() {
        let mut steady = Steady::default();
        read(&mut steady, "A");
        for _ in 0..=GONE_AFTER {
            read(&mut steady, "B");
        }
        assert!(steady.is_settled());
        assert!(read(&mut steady, "A"));
        assert_eq!(published(&steady), ["A"]);
    }
}
