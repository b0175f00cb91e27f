//! One server's index without its flicker.
//!
//! An extension API server publishes `apis` and `version`, too. A kube-apiserver goes through these in an order that is
//! another at each request, so its index names now the one and now the other document, and either is served.
//! Source: <https://github.com/kubernetes/kube-aggregator/blob/v0.36.3/pkg/controllers/openapiv3/aggregator/aggregator.go>
//! (`getOpenAPIV3Root`)

use std::collections::BTreeMap;

use super::index::{Index, group_version};

/// Readings without a document after which it is believed to be gone: by chance it is missing as often in one of
/// 65,000 cases.
const GONE_AFTER: u32 = 16;

/// Remembers what of a server's index is a matter of chance.
#[derive(Debug, Default)]
pub struct Steady {
    /// Readings in which a key had another document.
    unseen: BTreeMap<String, u32>,
}

impl Steady {
    /// The index to believe after `read` has come: what is new in it counts, except that a key which stands for no
    /// group version keeps its document for a while, unless a group version has changed as well.
    pub fn settle(&mut self, known: &Index, mut read: Index) -> Index {
        let is_changed =
            |(key, location): (&String, _)| group_version(key).is_some() && read.paths.get(key) != Some(location);
        if known.paths.iter().any(is_changed) {
            self.unseen.clear();
            return read;
        }
        for (key, location) in &mut read.paths {
            match known.paths.get(key) {
                Some(old) if old != location => {
                    let unseen = self.unseen.entry(key.clone()).or_default();
                    *unseen += 1;
                    if *unseen < GONE_AFTER {
                        location.clone_from(old);
                        continue;
                    }
                }
                _ => {}
            }
            self.unseen.remove(key);
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::index;
    use super::*;

    #[test]
    fn document_that_comes_and_goes_stays() {
        let mut steady = Steady::default();
        let known = index(&[("api/v1", "A"), ("version", "1")]);
        let other = index(&[("api/v1", "A"), ("version", "2")]);
        for _ in 0..100 {
            assert_eq!(steady.settle(&known, other.clone()), known);
            assert_eq!(steady.settle(&known, known.clone()), known);
        }
        for _ in 1..GONE_AFTER {
            assert_eq!(steady.settle(&known, other.clone()), known);
        }
        assert_eq!(steady.settle(&known, other.clone()), other);
    }

    #[test]
    fn group_version_that_changes_counts_at_once_and_brings_the_rest() {
        let known = index(&[("api/v1", "A"), ("version", "1")]);
        let upgraded = index(&[("api/v1", "B"), ("version", "2"), ("apis/new/v1", "N")]);
        assert_eq!(Steady::default().settle(&known, upgraded.clone()), upgraded);
        let fewer = index(&[("version", "2")]);
        assert_eq!(Steady::default().settle(&known, fewer.clone()), fewer);
    }
}
