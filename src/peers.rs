//! Which servers exist, what they serve and whether they answer: the control loops, and the only writers of the view.
//!
//! [`leases`] finds the peers. One loop per server reads its lists ([`poll`], [`fetch`]) and another what else it says of
//! itself ([`details`]); two watches at the local server tell which group versions belong to it alone ([`exclusions`]),
//! one task reads OpenAPI documents ([`openapi`]), the data path reports what it meets at peers. All of it flows into one task
//! ([`sync`]), which keeps what is known ([`cluster`], [`health`]), builds a whole view of it and publishes that if
//! anything is new. A server that fails keeps its last documents, over a restart of this front as well ([`cache`]);
//! nothing a server does holds up the others.
//!
//! This room never sees a client's request, and the data path never waits for it.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::apimachinery::peer::{Peer, Trouble};
use crate::apimachinery::server_id::ServerId;
use crate::metrics::Registry;
use crate::settings::{IdentityHeaderNames, RouteSync};
use crate::tls::Connector;

mod build;
mod cache;
mod changes;
mod client;
mod cluster;
mod details;
mod exclusions;
mod fetch;
mod health;
mod leases;
mod metrics;
mod openapi;
mod poll;
mod readiness;
mod returning;
mod routes;
mod sync;

pub(crate) use leases::{FRONTS, HOSTNAME, NAMESPACE, PEER_ADVERTISE_ADDRESS};
pub use leases::{LeaseSetup, Trust};
pub use poll::Intervals;
pub use sync::Controller;

/// Log target of everything about discovery.
const LOG: &str = "aggregated_discovery";

/// What the control loops work with.
pub struct Setup {
    /// Host name of the co-located kube-apiserver.
    pub hostname: String,
    /// Where it listens.
    pub upstream_address: SocketAddr,
    /// Connects to it with the front-proxy certificate.
    pub upstream: Arc<Connector>,
    /// Whether and how peers are asked.
    pub peering: Peering,
    /// Peers that are known without asking the cluster, this node not among them.
    pub static_peers: Vec<Arc<Peer>>,
    /// Names of the headers under which peerfront says who it is.
    pub identity_headers: IdentityHeaderNames,
    /// What the data path has met at peers.
    pub troubles: mpsc::Receiver<(ServerId, Trouble)>,
    /// When the table of routes is reconciled.
    pub route_sync: RouteSync,
    /// Where what servers said last is kept for the next start; `None` for nowhere.
    pub cache_dir: Option<PathBuf>,
    /// How often servers are read.
    pub intervals: Intervals,
    /// Where the room's metrics go.
    pub registry: Arc<Registry>,
}

/// Whether this front works with peers.
pub enum Peering {
    /// Peers are connected to with the front-proxy certificate.
    On(Arc<Connector>),
    /// There is the local server only, for the reason given.
    Off(String),
}

impl Peering {
    fn off_reason(&self) -> Option<String> {
        match self {
            Self::On(_) => None,
            Self::Off(reason) => Some(reason.clone()),
        }
    }
}

/// An error with its causes, in one line.
fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}

#[cfg(test)]
mod tests;
