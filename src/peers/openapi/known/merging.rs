//! Merging as a piece of work of its own: it takes a while and holds nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::super::LOG;
use crate::apimachinery::gvr::GroupVersion;
use crate::openapi::Held;
use crate::openapi::index::Location;
use crate::openapi::merge::{Kind, Merged, Source, merge};

/// What is to be merged.
pub(in crate::peers::openapi) struct Merging {
    /// Keys, each with the documents to merge, the newest server's first.
    pub(super) keys: Vec<(String, Vec<Location>, Vec<Arc<Held>>)>,
    /// The same of `/openapi/v2`.
    pub(super) v2: Option<V2Merging>,
}

/// What `/openapi/v2` is to be made of.
pub(super) struct V2Merging {
    pub(super) made_of: V2Sources,
    /// The documents themselves.
    pub(super) held: Vec<(Arc<Held>, Standing)>,
}

/// How a document's server stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Standing {
    /// Whether it is the local one.
    pub(super) is_local: bool,
    /// Whether it can be read now.
    pub(super) is_live: bool,
}

/// What `/openapi/v2` is made of, so that a change is seen.
#[derive(PartialEq)]
pub(super) struct V2Sources {
    /// Hashes, the newest server's first.
    pub(super) documents: Vec<(String, Standing)>,
    /// CRDs and aggregated APIs: of these there is what the local server has.
    pub(super) left: BTreeSet<GroupVersion>,
}

/// What came of it.
pub(in crate::peers::openapi) struct Outcome {
    pub(super) keys: Vec<(String, Vec<Location>, Arc<Held>)>,
    pub(super) v2: Option<(V2Sources, Arc<Held>)>,
}

impl Merging {
    /// Merges; what is new was made at `now`.
    pub(in crate::peers::openapi) fn run(self, now: SystemTime) -> Outcome {
        let mut outcome = Outcome { keys: Vec::new(), v2: None };
        for (key, made_of, held) in self.keys {
            let standing = Standing { is_local: false, is_live: true };
            let sources: Vec<_> = held.into_iter().map(|held| (held, standing)).collect();
            if let Some(held) = merge_held(Kind::V3, &sources, &BTreeSet::new(), now) {
                outcome.keys.push((key, made_of, held));
            }
        }
        if let Some(V2Merging { made_of, held }) = self.v2 {
            outcome.v2 = merge_held(Kind::V2, &held, &made_of.left, now).map(|held| (made_of, held));
        }
        outcome
    }
}

/// One document of several. The newest server's as it is, where that has everything.
fn merge_held(
    kind: Kind,
    sources: &[(Arc<Held>, Standing)],
    left: &BTreeSet<GroupVersion>,
    now: SystemTime,
) -> Option<Arc<Held>> {
    let (newest, others) = sources.split_first()?;
    if others.iter().all(|(held, _)| held.hash == newest.0.hash) {
        return Some(Arc::clone(&newest.0));
    }
    let unpacked: Vec<(Bytes, Option<Bytes>)> = sources
        .iter()
        .map(|(held, _)| (held.json.unpack(), held.protobuf.as_ref().map(crate::openapi::held::Packed::unpack)))
        .collect();
    let parts: Vec<Source<'_>> = unpacked
        .iter()
        .zip(sources)
        .map(|((json, protobuf), (_, standing))| {
            let Standing { is_local, is_live } = *standing;
            Source { json, protobuf: protobuf.as_deref(), is_local, is_live }
        })
        .collect();
    match merge(kind, &parts, &|one| left.contains(one)) {
        Ok(Merged::Newest) => Some(Arc::clone(&newest.0)),
        Ok(Merged::Own { json, protobuf }) => Some(Arc::new(Held::new(&json, protobuf.as_deref(), now))),
        Err(error) => {
            let error = crate::peers::chain(&error);
            tracing::warn!(target: LOG, error, "OpenAPI documents cannot be merged: the newest server's is taken");
            Some(Arc::clone(&newest.0))
        }
    }
}
