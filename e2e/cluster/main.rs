//! The main job on real kube-apiservers of three versions.

mod rerouting;

use std::process::ExitCode;

use anyhow::Result;
use peerfront_e2e::{Cluster, Topology, runner};

fn main() -> ExitCode {
    runner::run(
        start,
        &runner::tests![
            rerouting::resources_that_only_a_peer_serves_are_listed_through_every_node,
            rerouting::without_peerfront_the_same_requests_fail,
        ],
    )
}

async fn start() -> Result<Cluster> {
    let topology = Topology::load("mixed")?;
    Cluster::builder(topology).peerfront(env!("CARGO_BIN_EXE_peerfront")).show_progress().start().await
}
