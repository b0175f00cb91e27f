//! Fronts beside kube-apiservers that run upstream's own proxy: node-a (1.35) and node-c (1.37) have a front, node-b
//! (1.36) and node-d (1.37) have none.

use std::time::Duration;

use anyhow::{Result, ensure};
use peerfront_e2e::{Client, Cluster, Identity, eventually};

/// Longest time in which a front may notice what has changed, on a busy machine.
pub(crate) const NOTICED: Duration = Duration::from_secs(20);
/// Served by 1.37 only.
const BUNDLES: &str = "/apis/certificates.k8s.io/v1/clustertrustbundles";
/// Served by node-c only.
pub(crate) const ONLY_C: &str = "/apis/resource.k8s.io/v1beta1/deviceclasses";
/// Served by node-d only.
pub(crate) const ONLY_D: &str = "/apis/resource.k8s.io/v1beta2/deviceclasses";
/// Accept of a client that reads aggregated discovery.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Served by 1.36 and 1.37 only.
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
/// Served by 1.37 only.
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

/// The administrator at whatever clients of a node talk to.
pub(crate) fn at(cluster: &Cluster, node: &str) -> Client {
    cluster.client(cluster.node(node).entrance(), &cluster.admin())
}

pub(crate) async fn requests_go_both_ways_between_fronts_and_upstreams_own_proxy(cluster: &Cluster) -> Result<()> {
    for node in ["node-a", "node-b", "node-c", "node-d"] {
        let admin = at(cluster, node);
        for path in [POLICIES, MIGRATIONS, BUNDLES, ONLY_C, ONLY_D] {
            // Upstream's own proxy reads the others' discovery every 30 s or so.
            let served = async || admin.get(path).await?.success().map(drop);
            eventually(3 * NOTICED, served).await.map_err(|error| error.context(format!("{path} at {node}")))?;
        }
    }
    let token = cluster.service_account_token("interop", "robot").await?;
    let robot = Identity::bearer(token);
    for node in ["node-a", "node-b"] {
        let refused = cluster.client(cluster.node(node).entrance(), &robot).get(MIGRATIONS).await?;
        let text = refused.text();
        ensure!(refused.status == 403, "{} at {node}: {text}", refused.status);
        ensure!(text.contains("system:serviceaccount:interop:robot"), "at {node}: {text}");
    }
    Ok(())
}

/// All resources, as `group/version/resource`.
async fn listed(client: &Client) -> Result<Vec<String>> {
    let document = client.clone().with_header("accept", AGGREGATED).get("/apis").await?.success()?.json()?;
    let mut all = Vec::new();
    for group in document["items"].as_array().into_iter().flatten() {
        for version in group["versions"].as_array().into_iter().flatten() {
            for resource in version["resources"].as_array().into_iter().flatten() {
                let part = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
                let (group, version) = (part(&group["metadata"]["name"]), part(&version["version"]));
                all.push(format!("{group}/{version}/{}", part(&resource["resource"])));
            }
        }
    }
    all.sort();
    Ok(all)
}

pub(crate) async fn merged_views_are_alike(cluster: &Cluster) -> Result<()> {
    let alike = async || {
        let front = listed(&at(cluster, "node-a")).await?;
        ensure!(front.iter().any(|one| one == "storagemigration.k8s.io/v1/storageversionmigrations"), "{front:?}");
        for node in ["node-b", "node-c", "node-d"] {
            let other = listed(&at(cluster, node)).await?;
            ensure!(other == front, "{node} lists {other:?}\ninstead of {front:?}");
        }
        Ok(())
    };
    eventually(3 * NOTICED, alike).await
}
