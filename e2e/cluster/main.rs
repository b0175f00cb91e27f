//! The main job on real kube-apiservers of three versions: one cluster, started once, for every test of this program.
//!
//! Tests run one after another in the order listed; one that stops a server starts it again. A filter on the command
//! line chooses tests, as with any test program.

mod rerouting;

use std::process::ExitCode;

use anyhow::Result;
use peerfront_e2e::suite::{self, Test};
use peerfront_e2e::{Cluster, Topology};

/// Tests made of async functions over the cluster, named after them.
macro_rules! tests {
    ($($module:ident::$name:ident),* $(,)?) => {
        vec![$(Test::new(
            concat!(stringify!($module), "::", stringify!($name)),
            |cluster: &Cluster| Box::pin($module::$name(cluster)),
        )),*]
    };
}

fn main() -> ExitCode {
    let tests = tests![
        rerouting::resources_that_only_a_peer_serves_are_listed_through_every_node,
        rerouting::without_peerfront_the_same_requests_fail,
    ];
    suite::run(tests, 1, start(), Cluster::stop)
}

async fn start() -> Result<Cluster> {
    let topology = Topology::load("mixed")?;
    Cluster::builder(topology).peerfront(env!("CARGO_BIN_EXE_peerfront")).show_progress().start().await
}
