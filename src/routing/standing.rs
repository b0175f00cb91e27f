//! The table together with who can be reached: what a request is decided by.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::served::Verb;
use super::table::{Routes, Table};
use crate::apimachinery::peer::Peer;

/// Whether requests are sent to a peer. In order of preference.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Circuit {
    /// They are.
    #[default]
    Closed,
    /// It answers again, but failed a short while ago: they are if no other peer can answer.
    HalfOpen,
    /// They are not: it cannot be reached, or does not answer.
    Open,
}

impl fmt::Display for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half-open",
            Self::Open => "open",
        })
    }
}

/// How much of what peers can answer as well goes to the local server: so many of 100 clients. What no peer can answer
/// goes to it in any case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Share(u8);

impl Share {
    /// Everything.
    pub const ALL: Self = Self(100);
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// So many of 100; more counts as 100.
    #[must_use]
    pub const fn percent(percent: u8) -> Self {
        Self(if percent > 100 { 100 } else { percent })
    }

    /// Whether a client belongs to it, named by a number that is evenly spread.
    #[must_use]
    pub const fn includes(self, client: u64) -> bool {
        client % 100 < self.0 as u64
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::ALL
    }
}

/// Who can be reached.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Standing {
    /// Whether the local server takes connections. While it does not, peers stand in for it.
    pub local_reachable: bool,
    /// What the local server gets of what peers can answer as well.
    pub local_share: Share,
    /// Each peer's circuit, in the order of the table's peers.
    pub circuits: Vec<Circuit>,
    /// Whether a peer is awaited that may serve more than the table knows.
    pub unheard: bool,
}

/// Who serves what, and who of them can be reached. Immutable.
#[derive(Clone, Debug, Default)]
pub struct RoutingTable {
    table: Arc<Table>,
    standing: Standing,
}

impl RoutingTable {
    /// Puts both together. A peer without a circuit counts as one that cannot be reached.
    #[must_use]
    pub fn new(table: Arc<Table>, standing: Standing) -> Self {
        Self { table, standing }
    }

    /// The table, for another standing.
    #[must_use]
    pub fn shared(&self) -> Arc<Table> {
        Arc::clone(&self.table)
    }

    /// Whether the local server takes connections.
    pub(super) fn local_reachable(&self) -> bool {
        self.standing.local_reachable
    }

    /// What the local server gets of what peers can answer as well.
    pub(super) fn local_share(&self) -> Share {
        self.standing.local_share
    }

    /// Whether somebody may serve more than the table knows.
    #[must_use]
    pub fn incomplete(&self) -> bool {
        self.standing.unheard || !self.table.local_read()
    }

    /// Whether somebody may serve more of a group version, or of a group if the version is empty, than the table knows.
    pub(super) fn may_have_more(&self, group: &str, version: &str) -> bool {
        self.incomplete() || self.table.is_unread(group, version)
    }

    /// The peers of the routes that can be reached and know the verb.
    pub(super) fn available<'v>(
        &'v self,
        routes: &'v Routes,
        verb: Option<Verb>,
    ) -> impl Iterator<Item = (Circuit, &'v Arc<Peer>)> + 'v {
        let able = routes.peers.iter().filter(move |(_, verbs)| verbs.allow(verb));
        let circuit = |index: usize| self.standing.circuits.get(index).copied().unwrap_or(Circuit::Open);
        let known = able.filter_map(move |(index, _)| Some((circuit(*index), self.table.peers().get(*index)?)));
        known.filter(|(circuit, _)| *circuit != Circuit::Open)
    }

    /// How many resources and subresources each peer serves.
    pub fn routes_by_peer(&self) -> impl Iterator<Item = (&Arc<Peer>, usize)> {
        self.table.peers().iter().enumerate().map(|(index, peer)| (peer, self.table.served_by(index)))
    }
}

impl Deref for RoutingTable {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}
