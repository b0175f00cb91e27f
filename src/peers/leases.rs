//! How fronts find each other: each keeps a Lease in `kube-system` and watches those of the others, and plain
//! kube-apiservers that run upstream's own proxy are found by the identity Leases that they keep anyway.
//!
//! A Lease is a hint: it says who might be a peer and where. What may be a peer at all is judged by [`trust`], and no
//! byte of a request goes to an address whose server has not proven its name in the TLS handshake. Clocks are never
//! compared: a Lease has ended when it has not changed for its duration, counted only while this front sees its own
//! renewals come back through the same watch ([`known`]).
//!
//! Without the rights to all this, static peers go on working, and readiness names the command that grants them.

mod known;
mod own;
mod trust;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_objects};
use kube::{Api, Client};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, interval};

use super::exclusions::{Problem, is_forbidden};
use super::metrics::{LeaseAges, Metrics};
use crate::apimachinery::peer::Peer;
use crate::apimachinery::server_id::ServerId;
use crate::drain;
use crate::view::Renewal;
use known::{Known, Source};
use own::OwnLease;
pub use trust::Trust;

/// Namespace of all Leases of the control plane.
pub(crate) const NAMESPACE: &str = "kube-system";
/// Label that finds the Leases of fronts.
pub(crate) const FRONTS: &str = "app.kubernetes.io/name=kube-peerfront";
/// Label that finds the identity Leases of kube-apiservers.
/// Source: <https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controlplane/apiserver/server.go>
const KUBE_APISERVERS: &str = "apiserver.kubernetes.io/identity=kube-apiserver";
/// Where the holder of a Lease is reached, as `ip:port`.
/// Source: <https://github.com/kubernetes/api/blob/v0.36.3/core/v1/well_known_labels.go>
pub(crate) const PEER_ADVERTISE_ADDRESS: &str = "kubernetes.io/peer-advertise-address";
/// Host name of the holder.
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
/// Digest of what the holder's kube-apiserver serves: a change tells the others to read it at once.
const SERVED_HASH: &str = "kube-peerfront/served-hash";
/// Version of the holder, for people.
const VERSION: &str = "kube-peerfront/version";

/// Events that may wait until they are taken; a full channel makes the watches wait, nothing else.
const EVENTS: usize = 64;

/// How often the ages of Leases are noted in the metrics.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What this front tells the others of itself and whom it believes.
#[derive(Clone, Debug)]
pub struct LeaseSetup {
    /// Where peers reach this front.
    pub address: SocketAddr,
    /// Which addresses may be peers.
    pub trust: Trust,
}

/// What Leases say of the cluster.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Found {
    /// Who may be sent requests, this front not among them.
    pub(super) peers: Vec<Arc<Peer>>,
    /// What each front says of itself and of what its server serves: news of either make its server worth a read.
    pub(super) announced: BTreeMap<ServerId, String>,
    /// When each of the peers' Leases was last renewed.
    pub(super) leases: BTreeMap<ServerId, Renewal>,
    /// Those of the peers whose Lease has ended: they may not come back.
    pub(super) ended: BTreeSet<ServerId>,
    /// Whether all Leases have been listed once, or may not be: before, a peer may be missing.
    pub(super) is_complete: bool,
    /// Why Leases cannot be kept or watched.
    pub(super) problem: Option<Problem>,
}

/// One front's own part in this.
pub(super) struct Leases {
    pub(super) client: Client,
    pub(super) setup: LeaseSetup,
    pub(super) hostname: String,
    /// Digest of what the co-located server serves; `None` until it is known.
    pub(super) served: watch::Receiver<Option<String>>,
    /// How long to wait after a refusal.
    pub(super) retry: Duration,
    pub(super) metrics: Metrics,
}

/// What a watch reports.
type Reported = (Source, Result<Event<Lease>, Problem>);

impl Leases {
    /// Keeps and watches Leases until nobody wants to know of them any more. When the drain starts, this front's own is
    /// taken back, so that the others know before the port closes.
    pub(super) async fn run(self, found: watch::Sender<Found>, mut drain: drain::Watcher) {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), NAMESPACE);
        let id = ServerId::from_hostname(&self.hostname);
        let (events, mut reported) = mpsc::channel(EVENTS);
        let problem = watch::Sender::new(None);
        let own = OwnLease::new(api.clone(), &self, problem.clone());
        let name = own.name().to_owned();
        let known = async {
            let mut known = Known::new(id, name, self.setup.trust.clone());
            let mut ages = LeaseAges::new(self.metrics.clone());
            let mut looks = interval(LOOK_EVERY);
            loop {
                let (source, event): Reported = tokio::select! {
                    Some(report) = reported.recv() => report,
                    _ = looks.tick() => {
                        ages.show(&found.borrow(), Instant::now());
                        continue;
                    }
                };
                self.metrics.lease_errors.increment(u64::from(event.is_err()));
                for forgotten in known.take(source, event, Instant::now()) {
                    own::delete(&api, forgotten).await;
                }
                self.metrics.address_errors.absolute(known.refusals());
                let now = known.found(problem.borrow().clone());
                found.send_if_modified(|found| {
                    let is_new = *found != now;
                    *found = now;
                    is_new
                });
            }
        };
        let watches = async {
            tokio::join!(
                watch_leases(&api, Source::Front, self.retry, &events),
                watch_leases(&api, Source::Plain, self.retry, &events),
            )
        };
        tokio::select! {
            () = own.keep() => {}
            () = known => {}
            _ = watches => {}
            () = found.closed() => {}
            () = drain.draining() => {}
        }
        own.withdraw().await;
    }
}

async fn watch_leases(api: &Api<Lease>, source: Source, retry: Duration, events: &mpsc::Sender<Reported>) {
    let selector = match source {
        Source::Front => FRONTS,
        Source::Plain => KUBE_APISERVERS,
    };
    loop {
        let watched = watch_objects(api.clone(), watcher::Config::default().labels(selector)).default_backoff();
        let mut watched = pin!(watched);
        while let Some(event) = watched.next().await {
            let is_refused = event.as_ref().is_err_and(is_forbidden);
            let event = event.map_err(|error| match is_refused {
                true => Problem::Forbidden,
                false => Problem::Failed(error.to_string()),
            });
            if events.send((source, event)).await.is_err() {
                return;
            }
            if is_refused {
                break;
            }
        }
        tokio::time::sleep(retry).await;
    }
}
