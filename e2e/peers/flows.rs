//! The FlowSchema that keeps what a front asks for itself apart from what clients ask.

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::pki::Validity;
use peerfront_e2e::{Client, Cluster, Identity, Subject, eventually};

use crate::interop::{NOTICED, at};

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kubeadm/flowschema.yaml");
const SCHEMA: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/kube-peerfront";
/// What fronts read and write.
const OWN: [&str; 4] = [
    "/apis",
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apiregistration.k8s.io/v1/apiservices",
];

/// A request's flow as the server names it.
async fn flow(client: &Client, path: &str) -> Result<String> {
    let answer = client.get(path).await?;
    answer.header("x-kubernetes-pf-flowschema-uid").map(str::to_owned).with_context(|| format!("{path} has no flow"))
}

/// Requests of that flow that node-a's server has let through.
async fn dispatched(server: &Client) -> Result<f64> {
    let metrics = server.get("/metrics").await?.success()?.text();
    let series = metrics.lines().filter(|line| {
        line.starts_with("apiserver_flowcontrol_dispatched_requests_total{")
            && line.contains(r#"flow_schema="kube-peerfront""#)
            && line.contains(r#"priority_level="leader-election""#)
    });
    Ok(series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum())
}

pub(crate) async fn own_requests_of_fronts_flow_with_leader_elections(cluster: &Cluster) -> Result<()> {
    cluster.kubectl("node-a").run(&["apply", "--filename", MANIFEST]).await?.success()?;
    let schema = at(cluster, "node-a").get(SCHEMA).await?.success()?.json()?;
    let uid = schema["metadata"]["uid"].as_str().context("no uid")?;
    let server = cluster.node("node-a").upstream();
    let user = |name: &str| -> Result<Client> {
        let certificate = cluster.pki().ca().client(&Subject::new(name), Validity::default())?;
        Ok(cluster.client(server, &Identity::certificate(&certificate)))
    };
    let (front, other) = (user("system:kube-peerfront")?, user("alice")?);
    for path in OWN {
        let is_own = async || {
            let flow = flow(&front, path).await?;
            ensure!(flow == uid, "{path} of a front goes with {flow}");
            Ok(())
        };
        eventually(NOTICED, is_own).await?;
        ensure!(flow(&other, path).await? != uid, "{path} of a client goes with what fronts ask");
    }
    // The front itself, which renews its Lease.
    let admin = cluster.client(server, &cluster.admin());
    let before = dispatched(&admin).await?;
    let renewed = async || {
        ensure!(dispatched(&admin).await? > before, "nothing of the front flows there");
        Ok(())
    };
    eventually(NOTICED, renewed).await?;
    cluster.kubectl("node-a").run(&["delete", "--filename", MANIFEST]).await?.success().map(drop)
}
