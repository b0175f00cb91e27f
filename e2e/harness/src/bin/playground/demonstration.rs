use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use peerfront_e2e::{Cluster, Kubectl, Node};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::say;

/// How long a front may take until it has heard of its peers.
const DEADLINE: Duration = Duration::from_secs(60);

/// Shows one request through the oldest node that only a newer one can serve, and how to make more.
pub(crate) async fn show(cluster: &Cluster) -> Result<()> {
    let oldest = cluster.nodes().iter().min_by_key(|node| node.version()).context("a cluster without nodes")?;
    let newest = cluster.nodes().iter().max_by_key(|node| node.version()).context("a cluster without nodes")?;
    let resource = only_in(cluster, newest, oldest).await?;
    match &resource {
        Some(resource) => reroute(cluster, oldest, resource).await?,
        None => say("\nAll servers serve the same, so no request needs to be rerouted."),
    }
    explain(cluster, oldest, resource.as_deref().unwrap_or("nodes"));
    Ok(())
}

async fn reroute(cluster: &Cluster, node: &Node, resource: &str) -> Result<()> {
    let (name, version) = (node.name(), node.version());
    say(&format!("\nThrough {name}, whose kube-apiserver is {version}:"));
    let deadline = Instant::now() + DEADLINE;
    let kubectl = cluster.kubectl(name);
    // The fronts are ready before they have heard of one another.
    while !kubectl.run(&["get", resource]).await?.success && Instant::now() < deadline {
        sleep(Duration::from_millis(500)).await;
    }
    say_command(&kubectl, &format!("{name}.kubeconfig"), resource).await?;
    say("The same past peerfront:");
    say_command(&cluster.kubectl_direct(name), &format!("{name}-direct.kubeconfig"), resource).await
}

async fn say_command(kubectl: &Kubectl, kubeconfig: &str, resource: &str) -> Result<()> {
    say(&format!("  $ kubectl --kubeconfig {kubeconfig} get {resource}"));
    let output = kubectl.run(&["get", resource]).await?;
    for line in output.stdout.lines().chain(output.stderr.lines()) {
        say(&format!("  {line}"));
    }
    Ok(())
}

fn explain(cluster: &Cluster, node: &Node, resource: &str) {
    let directory = cluster.directory().display();
    let name = node.name();
    say("\nNodes:");
    for node in cluster.nodes() {
        say(&format!(
            "  {}  kube-apiserver {}  front https://{}  direct https://{}  metrics http://{}/metrics",
            node.name(),
            node.version(),
            node.front().address(),
            node.upstream().address(),
            node.admin(),
        ));
    }
    say("\nTry more, in another terminal:");
    say(&format!("  export PATH={directory}/bin:$PATH KUBECACHEDIR={directory}/kubectl-cache"));
    say(&format!("  export KUBECONFIG={directory}/{name}.kubeconfig   # or {name}-direct.kubeconfig"));
    say("  kubectl api-resources");
    say(&format!("  kubectl get {resource} --watch"));
    say(&format!("  tail -f {directory}/logs/{name}-front.log   # each reroute is logged"));
}

/// A resource that one node's server serves and the other's does not, such as `clustertrustbundles`.
async fn only_in(cluster: &Cluster, node: &Node, other: &Node) -> Result<Option<String>> {
    let mut more = served(cluster, node).await?;
    let less = served(cluster, other).await?;
    more.retain(|resource| !less.contains(resource));
    Ok(more.into_iter().next())
}

/// `RESOURCE.GROUP` of everything that can be listed, as the server itself says.
async fn served(cluster: &Cluster, node: &Node) -> Result<BTreeSet<String>> {
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let client = cluster.client(node.upstream(), &cluster.admin()).with_header("accept", accept);
    let document = client.get("/apis").await?.success()?.json()?;
    let mut resources = BTreeSet::new();
    for group in items(&document["items"]) {
        for resource in items(&group["versions"]).iter().flat_map(|version| items(&version["resources"])) {
            if items(&resource["verbs"]).iter().any(|verb| verb == "list") {
                let (name, group) = (&resource["resource"], &group["metadata"]["name"]);
                resources.insert(format!("{}.{}", name.as_str().unwrap_or(""), group.as_str().unwrap_or("")));
            }
        }
    }
    Ok(resources)
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
