//! What is to be done about each key: left to the local server, or merged of which documents.

use std::collections::{BTreeMap, BTreeSet};

use super::index::{Location, Publications, group_version};
use crate::apimachinery::gvr::GroupVersion;

/// What one server publishes.
#[derive(Clone, Copy, Debug)]
pub struct Published<'a> {
    /// The documents.
    pub publications: &'a Publications,
    /// How new the server is: the numbers of its version.
    pub version: &'a [u64],
    /// Whether it is the local server.
    pub is_local: bool,
    /// Whether it can be read now. One that cannot may not know how a CRD is by now.
    pub is_live: bool,
}

/// What is to be done about a key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Planned {
    /// The local server's document is the right one.
    Local(Location),
    /// These are to be merged, the newest server's first; no two have the same content.
    Merged(Vec<Location>),
}

/// The documents that one server publishes for a key.
struct Documents<'a> {
    of: Published<'a>,
    locations: &'a BTreeSet<Location>,
}

/// Looks at what servers publish, the newest first. `is_custom` says of which group versions every server publishes
/// what the cluster holds: CRDs and aggregated APIs.
#[must_use]
pub fn plan(servers: &[Published<'_>], is_custom: &dyn Fn(&GroupVersion) -> bool) -> BTreeMap<String, Planned> {
    let mut known: BTreeMap<&str, Vec<Documents<'_>>> = BTreeMap::new();
    for server in servers {
        for (key, locations) in server.publications {
            known.entry(key).or_default().push(Documents { of: *server, locations });
        }
    }
    let planned = known.into_iter().filter_map(|(key, servers)| {
        let planned = match group_version(key).is_some_and(|one| is_custom(&one)) {
            true => custom(&servers)?,
            false => built_in(&servers),
        };
        Some((key.to_owned(), planned))
    });
    planned.collect()
}

/// There is what the local server has, as the newest server words it that lives, so that all nodes say the same.
fn custom(servers: &[Documents<'_>]) -> Option<Planned> {
    let local = local(servers)?;
    let newest = servers.iter().find(|one| one.of.is_live || one.of.is_local)?;
    let is_same = newest.of.version == local.of.version || newest.locations == local.locations;
    Some(if is_same { local.planned()? } else { Planned::Merged(newest.locations.iter().cloned().collect()) })
}

fn built_in(servers: &[Documents<'_>]) -> Planned {
    let agreed = local(servers).filter(|local| servers.iter().all(|one| one.locations == local.locations));
    agreed.and_then(Documents::planned).unwrap_or_else(|| {
        let mut seen = BTreeSet::new();
        let all = servers.iter().flat_map(|one| one.locations);
        Planned::Merged(all.filter(|location| seen.insert(*location)).cloned().collect())
    })
}

fn local<'s, 'a>(servers: &'s [Documents<'a>]) -> Option<&'s Documents<'a>> {
    servers.iter().find(|one| one.of.is_local)
}

impl Documents<'_> {
    /// To leave it to this server, which is the local one.
    fn planned(&self) -> Option<Planned> {
        self.locations.first().cloned().map(Planned::Local)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{location, publications};
    use super::*;

    /// Servers from the newest to the oldest, no two of one version.
    fn check(servers: &[(&[(&str, &str)], bool)], expected: &[(&str, Planned)]) {
        let versions: Vec<[u64; 1]> = (0..100).rev().map(|version| [version]).collect();
        check_versions(servers, &versions, expected);
    }

    fn check_versions(servers: &[(&[(&str, &str)], bool)], versions: &[[u64; 1]], expected: &[(&str, Planned)]) {
        let all: Vec<(Publications, bool)> =
            servers.iter().map(|(documents, is_local)| (publications(documents), *is_local)).collect();
        let published = all.iter().zip(versions);
        let published: Vec<Published<'_>> = published
            .map(|((publications, is_local), version)| Published {
                publications,
                version,
                is_local: *is_local,
                is_live: version != LOST,
            })
            .collect();
        let found = plan(&published, &|one| one.group == "example.com");
        let expected = expected.iter().map(|(key, planned)| ((*key).to_owned(), planned.clone())).collect();
        assert_eq!(found, expected);
    }

    /// The version of a server that cannot be read.
    const LOST: &[u64] = &[1000];

    fn local(key: &str, hash: &str) -> Planned {
        Planned::Local(location(key, hash))
    }

    fn merged(key: &str, hashes: &[&str]) -> Planned {
        Planned::Merged(hashes.iter().map(|hash| location(key, hash)).collect())
    }

    #[test]
    fn what_all_servers_agree_on_is_left_to_the_local_one() {
        let both = &[("api/v1", "A"), ("version", "V")];
        check(&[(both, false), (both, true)], &[("api/v1", local("api/v1", "A")), ("version", local("version", "V"))]);
        // A server that does not have it has no say.
        check(&[(&[], false), (&[("api/v1", "A")], true)], &[("api/v1", local("api/v1", "A"))]);
        let two = &[("version", "V"), ("version", "W")];
        check(&[(two, false), (two, true)], &[("version", local("version", "V"))]);
    }

    #[test]
    fn what_differs_or_is_not_here_is_merged_the_newest_first() {
        let merged = |hashes: &[&str]| merged("api/v1", hashes);
        check(&[(&[("api/v1", "B")], false), (&[("api/v1", "A")], true)], &[("api/v1", merged(&["B", "A"]))]);
        check(&[(&[("api/v1", "B")], true), (&[("api/v1", "A")], false)], &[("api/v1", merged(&["B", "A"]))]);
        check(&[(&[("api/v1", "B")], false), (&[], true)], &[("api/v1", merged(&["B"]))]);
        let three: [(&[_], _); 3] =
            [(&[("api/v1", "A")], false), (&[("api/v1", "B")], true), (&[("api/v1", "A")], false)];
        check(&three, &[("api/v1", merged(&["A", "B"]))]);
        let two = &[("api/v1", "A"), ("api/v1", "B")];
        check(&[(&[("api/v1", "B")], false), (two, true)], &[("api/v1", merged(&["B", "A"]))]);
    }

    #[test]
    fn custom_resources_of_the_local_server_are_as_the_newest_words_them() {
        let key = "apis/example.com/v1";
        let (old, new): (&[_], &[_]) = (&[(key, "A")], &[(key, "B")]);
        check(&[(new, false), (old, true)], &[(key, merged(key, &["B"]))]);
        check(&[(new, true), (old, false)], &[(key, local(key, "B"))]);
        check(&[(new, false), (new, true)], &[(key, local(key, "B"))]);
        // A CRD that has not arrived everywhere, or has left already.
        check(&[(new, false), (&[], true)], &[]);
        check(&[(&[], false), (old, true)], &[(key, local(key, "A"))]);
        check_versions(&[(new, false), (old, true)], &[[1000], [36]], &[(key, local(key, "A"))]);
        // Between servers of one version there is no difference but for a moment.
        check_versions(&[(new, false), (old, true)], &[[36], [36]], &[(key, local(key, "A"))]);
    }
}
