//! The peers that can answer a request, and in which order they are asked.

use std::fmt;
use std::sync::Arc;

use super::decision::{Elsewhere, NotFound};
use super::served::Verb;
use super::standing::{RoutingTable, Share};
use super::table::Routes;
use crate::apimachinery::gvr::GroupVersionResource;
use crate::apimachinery::peer::Peer;

/// Peers that can answer. At least one of them is available.
#[derive(Clone, Copy)]
pub struct Candidates<'v> {
    pub(super) table: &'v RoutingTable,
    pub(super) key: &'v GroupVersionResource,
    pub(super) routes: &'v Routes,
    pub(super) verb: Option<Verb>,
    pub(super) why: Elsewhere,
    pub(super) not_found: NotFound,
}

impl<'v> Candidates<'v> {
    /// What is asked for, as found in the table: safe as a label of logs and metrics.
    #[must_use]
    pub fn key(&self) -> &'v GroupVersionResource {
        self.key
    }

    /// Why a peer answers.
    #[must_use]
    pub fn why(&self) -> Elsewhere {
        self.why
    }

    /// What becomes of a peer's answer that it does not serve such a thing.
    #[must_use]
    pub fn not_found(&self) -> NotFound {
        self.not_found
    }

    /// Whether these are asked before a local server that can answer as well, by this client, named by a number that is
    /// evenly spread: while the local server stops, and less and less in the first moments after it has come back. Else
    /// nobody asks for the number.
    #[must_use]
    pub fn go_first(&self, client: impl FnOnce() -> u64) -> bool {
        let share = self.table.local_share();
        share != Share::ALL && !share.includes(client())
    }

    /// The same, asked in the place of a local server that could answer.
    #[must_use]
    pub fn sparing_local(self) -> Self {
        Self { why: Elsewhere::LocalSpared, ..self }
    }

    /// The same, asked only whether the caller may ask: that there is no such thing is an answer as well.
    #[must_use]
    pub fn as_judges(self) -> Self {
        Self { not_found: NotFound::Pass, ..self }
    }

    /// The peers, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = &'v Arc<Peer>> + 'v {
        self.table.available(self.routes, self.verb).map(|(_, peer)| peer)
    }

    /// The peers in the order in which they are to be asked: those that failed a short while ago come last, and among
    /// the others the one with the least rank first.
    #[must_use]
    pub fn ranked<R: Ord>(&self, rank: impl Fn(&Peer) -> R) -> Vec<&'v Arc<Peer>> {
        let mut peers: Vec<_> = self.table.available(self.routes, self.verb).collect();
        peers.sort_by_cached_key(|(circuit, peer)| (*circuit, rank(peer)));
        peers.into_iter().map(|(_, peer)| peer).collect()
    }
}

impl fmt::Debug for Candidates<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peers: Vec<_> = self.iter().map(|peer| peer.hostname.as_str()).collect();
        f.debug_struct("Candidates").field("key", &self.key).field("why", &self.why).field("peers", &peers).finish()
    }
}
