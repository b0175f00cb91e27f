//! What is new in a server's document, for the log.

use std::collections::BTreeMap;
use std::fmt;

use crate::apimachinery::gvr::GroupVersion;
use crate::discovery::ApiGroupDiscoveryList;
use crate::discovery::model::{ApiVersionDiscovery, Freshness};

/// Group versions that differ between two documents of one server.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Changes {
    added: Vec<GroupVersion>,
    removed: Vec<GroupVersion>,
    changed: Vec<GroupVersion>,
    stale: Vec<GroupVersion>,
}

impl Changes {
    /// What the second document says that the first did not.
    pub(super) fn between(old: Option<&ApiGroupDiscoveryList>, new: &ApiGroupDiscoveryList) -> Self {
        let (old, new) = (by_group_version(old), by_group_version(Some(new)));
        let mut changes = Self::default();
        for (group_version, listed) in &new {
            let place = match old.get(group_version) {
                None => &mut changes.added,
                Some(known) if listed.freshness == Freshness::Stale && known.freshness != Freshness::Stale => {
                    &mut changes.stale
                }
                Some(known) if known != listed => &mut changes.changed,
                Some(_) => continue,
            };
            place.push(group_version.clone());
        }
        changes.removed = old.into_keys().filter(|group_version| !new.contains_key(group_version)).collect();
        changes
    }
}

fn by_group_version(list: Option<&ApiGroupDiscoveryList>) -> BTreeMap<GroupVersion, &ApiVersionDiscovery> {
    list.into_iter()
        .flat_map(ApiGroupDiscoveryList::group_versions)
        .map(|(group, listed)| (GroupVersion::new(group, &listed.version), listed))
        .collect()
}

/// `added a/v1 b/v1; stale c/v1`.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts =
            [("added", &self.added), ("removed", &self.removed), ("changed", &self.changed), ("stale", &self.stale)];
        let mut separator = "";
        for (word, group_versions) in parts {
            if group_versions.is_empty() {
                continue;
            }
            write!(f, "{separator}{word}")?;
            for group_version in group_versions {
                write!(f, " {group_version}")?;
            }
            separator = "; ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: serde_json::Value) -> ApiGroupDiscoveryList {
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn every_kind_of_change_is_named() {
        let old = list(serde_json::json!({"items": [
            {"metadata": {"name": "a"}, "versions": [{"version": "v1", "freshness": "Current"}]},
            {"metadata": {"name": "b"}, "versions": [{"version": "v1"}, {"version": "v2"}]},
            {"metadata": {"name": "d"}, "versions": [{"version": "v1"}]},
        ]}));
        let new = list(serde_json::json!({"items": [
            {"metadata": {"name": "a"}, "versions": [{"version": "v1", "freshness": "Stale"}]},
            {"metadata": {"name": "b"}, "versions": [{"version": "v1", "resources": [{"resource": "things"}]}]},
            {"metadata": {"name": "c"}, "versions": [{"version": "v1"}]},
            {"metadata": {"name": "d"}, "versions": [{"version": "v1"}]},
        ]}));
        let changes = Changes::between(Some(&old), &new).to_string();
        assert_eq!(changes, "added c/v1; removed b/v2; changed b/v1; stale a/v1");
        assert_eq!(Changes::between(Some(&new), &new), Changes::default());
    }
}
