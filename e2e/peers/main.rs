//! How peers find each other on a real cluster: through Leases, and beside plain kube-apiservers that run upstream's
//! own proxy; and what a front tells monitoring of it. `E2E_FULL=1` adds a Prometheus, which takes minutes to build.

mod flows;
mod hops;
mod interop;
mod leases;
mod metrics;

use std::process::ExitCode;

use anyhow::Result;
use peerfront_e2e::{Cluster, Topology, runner};

fn main() -> ExitCode {
    let mut tests = runner::tests![
        interop::requests_go_both_ways_between_fronts_and_upstreams_own_proxy,
        interop::merged_views_are_alike,
        hops::each_request_is_sent_on_once_by_whoever_is_asked,
        hops::what_nobody_serves_is_sent_on_by_nobody,
        flows::own_requests_of_fronts_flow_with_leader_elections,
        metrics::public_port_gives_metrics_to_those_who_may_read_the_servers,
        metrics::statusz_tells_of_every_peer,
        leases::lease_says_who_and_where_and_goes_at_a_clean_stop,
        leases::deleted_lease_comes_back,
        leases::forged_lease_gets_no_request,
        leases::restarted_front_finds_everybody_again,
    ]
    .to_vec();
    if std::env::var("E2E_FULL").is_ok_and(|full| full == "1") {
        tests.extend(runner::tests![metrics::real_prometheus_scrapes_both_ports]);
    }
    runner::run(start, &tests)
}

async fn start() -> Result<Cluster> {
    Cluster::builder(Topology::load("leases")?)
        .peerfront(env!("CARGO_BIN_EXE_peerfront"))
        .directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/peers"))
        .show_progress()
        .start()
        .await
}
