//! What a front tells monitoring and operators, beside a real server that says who may read it.

use anyhow::{Context as _, Result, ensure};
use peerfront_e2e::{Client, Cluster, Identity, Server, eventually};
use serde_json::Value;

use crate::interop::{NOTICED, ONLY_C, at};

const PATH: &str = "/peerfront/metrics";
/// More than two scrapes of the delivered configuration are apart.
const SCRAPED: std::time::Duration = std::time::Duration::from_secs(60);

/// Grants the service account of Prometheus what config/prometheus.yaml says, as often as it is asked.
async fn grant(cluster: &Cluster) -> Result<()> {
    let config = include_str!("../../config/prometheus.yaml");
    let commands: Vec<&str> = config.lines().filter_map(|line| line.strip_prefix("#   kubectl create ")).collect();
    ensure!(commands.len() == 2, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = ["create"].into_iter().chain(command.split_whitespace()).collect();
        let output = cluster.kubectl("node-a").run(&words).await?;
        ensure!(output.success || output.stderr.contains("already exists"), "{}", output.stderr);
    }
    Ok(())
}

async fn prometheus(cluster: &Cluster) -> Result<Identity> {
    Ok(Identity::bearer(cluster.service_account_token("monitoring", "prometheus").await?))
}

pub(crate) async fn public_port_gives_metrics_to_those_who_may_read_the_servers(cluster: &Cluster) -> Result<()> {
    let front = cluster.node("node-a").front();
    let stranger = Identity::bearer(cluster.service_account_token("monitoring", "stranger").await?);
    let unknown = Identity::bearer("no.such.token");
    for (who, code, words) in [
        (&stranger, 403, r#"User \"system:serviceaccount:monitoring:stranger\" cannot get path \"/metrics\""#),
        (&Identity::anonymous(), 403, r#"User \"system:anonymous\" cannot get path \"/metrics\""#),
        (&unknown, 401, "Unauthorized"),
    ] {
        let refused = cluster.client(front, who).get(PATH).await?;
        let own = cluster.client(cluster.node("node-a").upstream(), who).get("/metrics").await?;
        let said = (refused.status.as_u16(), refused.text());
        ensure!(said == (code, own.text()), "{said:?}");
        ensure!(refused.text().contains(words), "{}", refused.text());
    }
    grant(cluster).await?;
    let reader = cluster.client(front, &prometheus(cluster).await?);
    let allowed = async || reader.get(PATH).await?.success();
    let text = eventually(NOTICED, allowed).await?.text();
    ensure!(text.contains("\npeerfront_request_total{"), "{text}");
    ensure!(reader.clone().h2().get(PATH).await?.status == 200);
    let raw = cluster.kubectl("node-c").run(&["get", "--raw", PATH]).await?.success()?;
    ensure!(raw.contains("\npeerfront_request_total{"), "{raw}");
    ensure!(cluster.client(front, &stranger).get(PATH).await?.status == 403, "what one may is nobody else's");
    // Below it everything is the server's.
    let unserved = at(cluster, "node-a").get("/peerfront/statusz").await?;
    ensure!(unserved.status == 404, "{}: {}", unserved.status, unserved.text());
    Ok(())
}

pub(crate) async fn statusz_tells_of_every_peer(cluster: &Cluster) -> Result<()> {
    let admin = cluster.admin_port("node-a");
    let check = async || {
        let page = admin.get("/statusz").await?.success()?.text();
        for words in [
            "\npeerfront statusz\nWarning: This endpoint is not meant to be machine parseable",
            "\nnode-a: v1.35.4, available\n",
            &format!("\nnode-b at {}: plain kube-apiserver, found by its Lease, available, Lease renewed ", {
                cluster.node("node-b").entrance().address()
            }),
            &format!("\nnode-c at {}: front, found by its Lease, available, Lease renewed ", {
                cluster.node("node-c").front().address()
            }),
            "\ncertificates.k8s.io/v1: ",
            "\n[+]peer-leases\n",
        ] {
            ensure!(page.contains(words), "{words:?} is not in\n{page}");
        }
        Ok(())
    };
    eventually(NOTICED, check).await
}

/// The first value of a query.
async fn value(prometheus: &Client, query: &str) -> Result<f64> {
    let path = format!("/api/v1/query?query={}", query.replace('{', "%7B").replace('}', "%7D").replace('"', "%22"));
    let answer: Value = prometheus.get(&path).await?.success()?.json()?;
    let text = answer["data"]["result"][0]["value"][1].as_str();
    text.with_context(|| format!("{query}: {answer}"))?.parse().context("a number")
}

/// The delivered configuration with this cluster's addresses and files.
fn config(cluster: &Cluster, token: &str) -> Result<String> {
    let file = cluster.directory().join("prometheus.token");
    std::fs::write(&file, token)?;
    let node = cluster.node("node-a");
    let mut config = include_str!("../../config/prometheus.yaml").to_owned();
    for (theirs, ours) in [
        ("192.0.2.11:6443", node.front().address().to_string()),
        ("127.0.0.1:6440", node.admin().to_string()),
        ("/var/run/secrets/kubernetes.io/serviceaccount/token", file.display().to_string()),
        ("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", cluster.pki().file("ca.crt").display().to_string()),
    ] {
        ensure!(config.matches(theirs).count() == 1, "{theirs} is not once in\n{config}");
        config = config.replace(theirs, &ours);
    }
    Ok(config)
}

pub(crate) async fn real_prometheus_scrapes_both_ports(cluster: &Cluster) -> Result<()> {
    grant(cluster).await?;
    let token = cluster.service_account_token("monitoring", "prometheus").await?;
    let served = async || at(cluster, "node-a").get(ONLY_C).await?.success().map(drop);
    eventually(NOTICED, served).await?;
    let server: Server = cluster.start_prometheus(&config(cluster, &token)?).await?;
    let prometheus = Client::plain(server.address());
    for job in ["peerfront", "peerfront-admin"] {
        let of = |family: &str, labels: &str| format!("{family}{{job=\"{job}\"{labels}}}");
        let up = async || {
            let up = value(&prometheus, &of("up", "")).await?;
            ensure!(up == 1.0, "{job} is not up");
            Ok(())
        };
        eventually(SCRAPED, up).await?;
        let certificates = r#",group="certificates.k8s.io",version="v1""#;
        let classes = r#",group="resource.k8s.io",version="v1beta1",resource="deviceclasses",code="200""#;
        for (family, labels, range) in [
            ("peerfront_skewed_resources", certificates, 1.0..=20.0),
            ("peerfront_skewed_resources", r#",group="",version="v1""#, 0.0..=100.0),
            ("apiserver_rerouted_request_total", classes, 1.0..=f64::INFINITY),
            ("apiserver_peer_proxy_errors_total", r#",type="endpoint_resolution""#, 0.0..=0.0),
            ("peerfront_peer_lease_age_seconds", r#",peer="node-c""#, 0.0..=15.0),
            ("peerfront_peer_lease_age_seconds", r#",peer="node-b""#, 0.0..=30.0),
            ("peerfront_peer_available", r#",peer="node-c""#, 1.0..=1.0),
            ("peerfront_peer_request_duration_seconds_count", r#",peer="node-c""#, 1.0..=f64::INFINITY),
            ("peerfront_peer_request_duration_seconds_count", r#",peer="node-b""#, 0.0..=f64::INFINITY),
            ("peerfront_peer_inflight_requests", r#",peer="node-c""#, 0.0..=f64::INFINITY),
            ("peerfront_retry_total", r#",peer="node-c""#, 0.0..=f64::INFINITY),
            ("aggregator_discovery_aggregation_count_total", "", 2.0..=f64::INFINITY),
            ("aggregator_discovery_peer_aggregated_cache_misses_total", "", 1.0..=f64::INFINITY),
            ("aggregator_discovery_nopeer_requests_total", "", 0.0..=f64::INFINITY),
            ("peerfront_request_duration_seconds_count", r#",verb="list""#, 1.0..=f64::INFINITY),
        ] {
            let query = of(family, labels);
            let value = value(&prometheus, &query).await?;
            ensure!(range.contains(&value), "{query} is {value}");
        }
    }
    server.stop().await
}
