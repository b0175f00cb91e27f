//! What is to be done about each key: left to the local server, or merged of which documents.

use std::collections::BTreeMap;

use super::index::{Index, Location, group_version};
use crate::apimachinery::gvr::GroupVersion;

/// What one server publishes.
#[derive(Clone, Copy, Debug)]
pub struct Published<'a> {
    /// Its index.
    pub index: &'a Index,
    /// Whether it is the local server.
    pub is_local: bool,
}

/// What is to be done about a key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Planned {
    /// The local server's document is the right one.
    Local(Location),
    /// These are to be merged, the newest server's first; no two have the same content.
    Merged(Vec<Location>),
}

/// Looks at what servers publish, the newest first.
#[must_use]
pub fn plan(servers: &[Published<'_>], left_to_local: &dyn Fn(&GroupVersion) -> bool) -> BTreeMap<String, Planned> {
    let mut locations: BTreeMap<&str, Vec<(&Location, bool)>> = BTreeMap::new();
    for server in servers {
        for (key, location) in &server.index.paths {
            let known = locations.entry(key).or_default();
            match known.iter_mut().find(|(found, _)| *found == location) {
                Some((_, is_local)) => *is_local |= server.is_local,
                None => known.push((location, server.is_local)),
            }
        }
    }
    let planned = locations.into_iter().filter_map(|(key, locations)| {
        let local = locations.iter().find(|(_, is_local)| *is_local).map(|(location, _)| *location);
        let planned = match (local, locations.len()) {
            _ if group_version(key).is_some_and(|one| left_to_local(&one)) => Planned::Local(local?.clone()),
            (Some(local), 1) => Planned::Local(local.clone()),
            _ => Planned::Merged(locations.into_iter().map(|(location, _)| location.clone()).collect()),
        };
        Some((key.to_owned(), planned))
    });
    planned.collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{index, location};
    use super::*;

    fn check(servers: &[(&[(&str, &str)], bool)], expected: &[(&str, Planned)]) {
        let indices: Vec<(Index, bool)> = servers.iter().map(|(paths, is_local)| (index(paths), *is_local)).collect();
        let servers: Vec<Published<'_>> =
            indices.iter().map(|(index, is_local)| Published { index, is_local: *is_local }).collect();
        let found = plan(&servers, &|one| one.group == "example.com");
        let expected = expected.iter().map(|(key, planned)| ((*key).to_owned(), planned.clone())).collect();
        assert_eq!(found, expected);
    }

    fn local(key: &str, hash: &str) -> Planned {
        Planned::Local(location(key, hash))
    }

    #[test]
    fn what_all_servers_agree_on_is_left_to_the_local_one() {
        let both = &[("api/v1", "A"), ("version", "V")];
        check(&[(both, false), (both, true)], &[("api/v1", local("api/v1", "A")), ("version", local("version", "V"))]);
        // A server that does not have it has no say.
        check(&[(&[], false), (&[("api/v1", "A")], true)], &[("api/v1", local("api/v1", "A"))]);
    }

    #[test]
    fn what_differs_or_is_not_here_is_merged_the_newest_first() {
        let merged = |hashes: &[&str]| Planned::Merged(hashes.iter().map(|hash| location("api/v1", hash)).collect());
        check(&[(&[("api/v1", "B")], false), (&[("api/v1", "A")], true)], &[("api/v1", merged(&["B", "A"]))]);
        check(&[(&[("api/v1", "B")], true), (&[("api/v1", "A")], false)], &[("api/v1", merged(&["B", "A"]))]);
        check(&[(&[("api/v1", "B")], false), (&[], true)], &[("api/v1", merged(&["B"]))]);
        let three: [(&[_], _); 3] =
            [(&[("api/v1", "A")], false), (&[("api/v1", "B")], true), (&[("api/v1", "A")], false)];
        check(&three, &[("api/v1", merged(&["A", "B"]))]);
    }

    #[test]
    fn custom_resources_are_as_the_local_server_has_them() {
        let key = "apis/example.com/v1";
        check(&[(&[(key, "B")], false), (&[(key, "A")], true)], &[(key, local(key, "A"))]);
        check(&[(&[(key, "B")], false), (&[], true)], &[]);
    }
}
