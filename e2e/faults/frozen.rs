//! A Lease that its front may not renew any more, and into which others write times that are minutes off.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use peerfront_e2e::{Client, Cluster, eventually};
use serde_json::json;
use tokio::time::Instant;

use crate::leases::{FOUND, lease_of, path_of};
use crate::scenarios::{at, served};
use crate::traffic::Traffic;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";
const FROZEN: &str = "frozen-lease";

/// By now, in seconds, a Lease of 15 s has ended, also where that is noticed 4 s later.
const ENDED: f64 = 20.0;
/// A Lease of this age, in seconds, has been renewed just now: its own front does that every 4 s.
const RENEWED: f64 = 3.5;

/// Seconds since node-a last saw node-c's Lease renewed.
async fn age(cluster: &Cluster) -> Result<f64> {
    let metrics = cluster.admin_port("node-a").get("/metrics").await?.success()?.text();
    let series = r#"peerfront_peer_lease_age_seconds{peer="node-c"} "#;
    let age = metrics.lines().find_map(|line| line.strip_prefix(series));
    age.context("no age of node-c's Lease")?.parse().context("an age")
}

async fn until_age(cluster: &Cluster, is_right: impl Fn(f64) -> bool) -> Result<f64> {
    let right = async || {
        let age = age(cluster).await?;
        ensure!(is_right(age), "node-c's Lease was renewed {age} s ago");
        Ok(age)
    };
    eventually(FOUND, right).await
}

/// Denies fronts to write this Lease.
async fn freeze(admin: &Client, lease: &str) -> Result<()> {
    let condition =
        format!("request.userInfo.username != 'system:kube-peerfront' || object.metadata.name != '{lease}'");
    let policy = json!({
        "metadata": { "name": FROZEN },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "resources": ["leases"],
                "operations": ["CREATE", "UPDATE"],
            }] },
            "validations": [{ "expression": condition }],
        },
    });
    let binding = json!({
        "metadata": { "name": FROZEN },
        "spec": { "policyName": FROZEN, "validationActions": ["Deny"] },
    });
    admin.post(&format!("{ADMISSION}/{POLICIES}"), &policy).await?.success()?;
    admin.post(&format!("{ADMISSION}/{BINDINGS}"), &binding).await?.success().map(drop)
}

async fn thaw(admin: &Client) -> Result<()> {
    for kind in [BINDINGS, POLICIES] {
        admin.delete(&format!("{ADMISSION}/{kind}/{FROZEN}")).await?.success()?;
    }
    Ok(())
}

/// Nobody who answers is forgotten for a while, and whatever time a Lease tells, that it changes is what counts.
pub(crate) async fn lease_that_is_not_renewed_and_one_of_another_time(cluster: &Cluster) -> Result<()> {
    let admin = at(cluster, "node-a");
    served(&admin).await?;
    let path = path_of(&lease_of(&admin, "node-c").await?);
    let name = path.rsplit('/').next().context("no name")?;
    let traffic = Traffic::start(&admin, "frozen");
    freeze(&admin, name).await?;
    let seen = frozen(cluster, &admin, &path).await;
    let thawed = Instant::now();
    thaw(&admin).await?;
    seen?;
    until_age(cluster, |age| age < RENEWED).await?;
    served(&admin).await?;
    let _ = writeln!(std::io::stderr(), "thawed: renewed and served after {:?}", thawed.elapsed());
    let ledgers = traffic.finish().await?;
    let _ = writeln!(std::io::stderr(), "frozen: {ledgers:?}");
    ensure!(ledgers.iter().all(|ledger| ledger.refused == 0 && ledger.unknown == 0), "{ledgers:?}");
    Ok(())
}

async fn frozen(cluster: &Cluster, admin: &Client, path: &str) -> Result<()> {
    let began = Instant::now();
    let age = until_age(cluster, |age| age > ENDED).await?;
    let _ = writeln!(std::io::stderr(), "frozen: renewed {age} s ago, {:?} after it was frozen", began.elapsed());
    served(admin).await?;
    let before = lease_of(admin, "node-c").await?["spec"]["renewTime"].clone();
    for minutes in [-10, 10] {
        let time = MicroTime(Timestamp::now() + SignedDuration::from_mins(minutes));
        let patch = json!({ "spec": { "renewTime": time } });
        let written = Instant::now();
        admin.patch(path, "application/merge-patch+json", &patch).await?.success()?;
        until_age(cluster, |age| age < RENEWED).await?;
        let noticed = written.elapsed();
        // It grows old like any other, however late its time is.
        until_age(cluster, |age| age > 2.0 * RENEWED).await?;
        served(admin).await?;
        let lease = lease_of(admin, "node-c").await?;
        ensure!(lease["spec"]["renewTime"] == json!(time) && json!(time) != before, "its front renews it: {lease}");
        let _ = writeln!(std::io::stderr(), "renewTime {minutes} min off: taken as renewed after {noticed:?}");
    }
    Ok(())
}
