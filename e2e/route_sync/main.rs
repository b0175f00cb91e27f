//! How often routes are computed in ten minutes in which nothing changes: two real kube-apiservers, one front with the gate
//! `WatchBasedRoutesReconciliation` and one without.
//!
//! Only `./e2e/test --full` runs this: it waits for ten minutes.

mod unchanged;

use std::process::ExitCode;

use anyhow::Result;
use peerfront_e2e::{Cluster, Topology, runner};

fn main() -> ExitCode {
    runner::run(start, &runner::tests![unchanged::cluster_is_synced_never_or_sixty_times])
}

async fn start() -> Result<Cluster> {
    Cluster::builder(Topology::load("route-sync")?)
        .peerfront(env!("CARGO_BIN_EXE_peerfront"))
        .directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/route_sync"))
        .show_progress()
        .start()
        .await
}
