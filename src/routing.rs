//! Which server answers: [`RequestInfo`](crate::request_info::RequestInfo) and [`RoutingTable`] in, [`Decision`] out.
//!
//! Pure. The reasons are tried in the order of upstream's `WrapHandler`, so that the two can be read side by side:
//! no resource, forwarded already, local documents not read, served here, served by nobody, then a peer. Beyond
//! upstream, subresource and verb count as well, and a local server that is down is stood in for.
//!
//! This room must never know how a request is sent, who sends it, or where the documents come from.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/util/peerproxy/peerproxy_handler.go>

mod candidates;
mod decision;
mod exclusion;
mod served;
mod standing;
mod table;
#[cfg(test)]
mod tests;

pub use candidates::Candidates;
pub use decision::{Decision, Elsewhere, Local, NotFound, Unavailable, decide, stand_ins, unmerged};
pub use exclusion::{Exclusion, Exclusions, GRACE_PERIOD};
pub use served::{Served, ServedResources, Verb, Verbs};
pub use standing::{Circuit, RoutingTable, Share, Standing};
pub use table::Table;
