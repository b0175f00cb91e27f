//! This front's own Lease: renewed, told what is new, taken back at the end.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{HOSTNAME, Leases, NAMESPACE, PEER_ADVERTISE_ADDRESS, SERVED_HASH, VERSION};
use crate::apimachinery::server_id::ServerId;
use crate::peers::exclusions::Problem;
use crate::peers::{LOG, chain};

/// How long a Lease counts after its last renewal, in seconds.
pub(super) const DURATION_SECONDS: u32 = 15;

/// Three renewals may get lost before a Lease ends.
const RENEW_EVERY: Duration = Duration::from_secs(4);

/// How long one write is waited for; the next renewal tries again.
const WRITE_LIMIT: Duration = Duration::from_secs(3);

/// How long a deletion is waited for: the stop of a front waits for that of its own Lease.
const DELETE_LIMIT: Duration = Duration::from_secs(2);

/// Owner of the fields, so that nobody else's are touched.
const FIELD_MANAGER: &str = "kube-peerfront";

/// Name of the Lease of the front of a server.
pub(super) fn name_of(id: &ServerId) -> String {
    format!("kube-peerfront-{}", id.suffix())
}

/// The Lease that this front keeps.
pub(super) struct OwnLease {
    api: Api<Lease>,
    name: String,
    hostname: String,
    address: String,
    /// New at each start, so that a restart is seen.
    holder: String,
    acquired: Timestamp,
    served: watch::Receiver<Option<String>>,
    problem: watch::Sender<Option<Problem>>,
    /// As last written.
    written: watch::Sender<Option<ObjectMeta>>,
}

impl OwnLease {
    pub(super) fn new(api: Api<Lease>, leases: &Leases, problem: watch::Sender<Option<Problem>>) -> Self {
        let id = ServerId::from_hostname(&leases.hostname);
        Self {
            api,
            name: name_of(&id),
            hostname: leases.hostname.clone(),
            address: leases.setup.address.to_string(),
            holder: format!("{id}_{}", uuid::Uuid::new_v4()),
            acquired: Timestamp::now(),
            served: leases.served.clone(),
            problem,
            written: watch::Sender::new(None),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Renews in time, and at once when the server serves something new. Nothing is written before it is known what the
    /// server serves: a front that has nothing to offer is no peer.
    pub(super) async fn keep(&self) {
        let mut served = self.served.clone();
        if served.wait_for(Option::is_some).await.is_err() {
            return;
        }
        let mut ticks = interval(RENEW_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                changed = served.changed() => if changed.is_err() {
                    return;
                },
            }
            let hash = served.borrow_and_update().clone();
            self.write(hash).await;
        }
    }

    async fn write(&self, served: Option<String>) {
        let lease = self.lease(served);
        let apply = PatchParams::apply(FIELD_MANAGER).force();
        let patch = Patch::Apply(&lease);
        let problem = match timeout(WRITE_LIMIT, self.api.patch(&self.name, &apply, &patch)).await {
            Ok(Ok(written)) => {
                self.written.send_replace(Some(written.metadata));
                None
            }
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => Some(Problem::Forbidden),
            Ok(Err(error)) => Some(Problem::Failed(chain(&error))),
            Err(_) => Some(Problem::Failed(format!("the write takes longer than {WRITE_LIMIT:?}"))),
        };
        self.problem.send_if_modified(|known| {
            let is_new = *known != problem;
            if is_new && let Some(problem) = &problem {
                tracing::warn!(target: LOG, lease = self.name, ?problem, "cannot renew this front's Lease");
            }
            *known = problem;
            is_new
        });
    }

    fn lease(&self, served: Option<String>) -> Lease {
        let text = |pairs: [(&str, &str); 2]| -> BTreeMap<String, String> {
            pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let mut annotations = text([(PEER_ADVERTISE_ADDRESS, &self.address), (VERSION, env!("CARGO_PKG_VERSION"))]);
        annotations.extend(served.map(|hash| (SERVED_HASH.to_owned(), hash)));
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(NAMESPACE.to_owned()),
                labels: Some(text([("app.kubernetes.io/name", "kube-peerfront"), (HOSTNAME, &self.hostname)])),
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.holder.clone()),
                lease_duration_seconds: i32::try_from(DURATION_SECONDS).ok(),
                acquire_time: Some(MicroTime(self.acquired)),
                renew_time: Some(MicroTime(Timestamp::now())),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Takes the Lease back, if it is still as this front wrote it.
    pub(super) async fn withdraw(&self) {
        if let Some(written) = self.written.send_replace(None) {
            delete(&self.api, written).await;
        }
    }
}

/// Deletes a Lease, if it is still as it was seen.
pub(super) async fn delete(api: &Api<Lease>, seen: ObjectMeta) {
    let ObjectMeta { name: Some(lease), uid, resource_version, .. } = seen else { return };
    let delete = DeleteParams::default().preconditions(Preconditions { uid, resource_version });
    match timeout(DELETE_LIMIT, api.delete(&lease, &delete)).await {
        Ok(Ok(_)) => tracing::info!(target: LOG, lease, "a Lease is deleted"),
        Ok(Err(error)) => tracing::warn!(target: LOG, lease, error = chain(&error), "a Lease is not deleted"),
        Err(_) => tracing::warn!(target: LOG, lease, "a Lease is not deleted: no answer within {DELETE_LIMIT:?}"),
    }
}
