//! The merge held against upstream's own: a real kube-apiserver that merges discovery by itself, and a front before it,
//! learn of the same peers, whose documents are made here. Whatever these list, both must publish the same bytes.

mod documents;
mod peers;
mod sets;

use std::process::ExitCode;

use anyhow::Result;
use peerfront_e2e::{Cluster, Topology, runner};

fn main() -> ExitCode {
    runner::run(start, &runner::tests![sets::front_publishes_what_upstream_publishes])
}

async fn start() -> Result<Cluster> {
    Cluster::builder(Topology::load("merge")?)
        .peerfront(env!("CARGO_BIN_EXE_peerfront"))
        .directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/merge"))
        .show_progress()
        .start()
        .await
}
