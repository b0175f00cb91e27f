//! A node that real kubeadm makes and a real kubelet runs: peerfront comes with it, lives through an upgrade, and goes.
//!
//! The node is a machine in namespaces of its own (see the script `node`), the program itself stands at the other end of
//! its cable. Everything ends with this program.

mod control_groups;
mod images;
mod life;
mod network;
mod node;
mod programs;
mod samples;

use std::process::ExitCode;

use anyhow::Result;
use peerfront_e2e::runner;

use programs::Programs;

/// What the tests share: programs and their images. Each test has a node of its own.
pub(crate) struct Workshop {
    programs: Programs,
}

impl runner::Fixture for Workshop {
    async fn stop(self) -> Result<()> {
        Ok(())
    }
}

fn main() -> ExitCode {
    if let Err(error) = prepare().and_then(|()| network::enter_own_namespace()) {
        return network::failed(&error);
    }
    runner::run(
        start,
        &runner::tests![
            samples::every_kubeadm_takes_the_samples_it_reads,
            samples::manifest_of_the_server_is_as_the_front_needs_it,
            images::image_of_peerfront_is_small_and_says_what_it_is,
            life::node_is_made_with_peerfront_upgraded_and_given_back,
        ],
    )
}

/// Builds what is missing while there is a network to download it from.
fn prepare() -> Result<()> {
    let is_only_listed = std::env::args().any(|argument| argument == "--list");
    if network::is_own() || is_only_listed { Ok(()) } else { Programs::build().map(drop) }
}

async fn start() -> Result<Workshop> {
    Ok(Workshop { programs: Programs::build()? })
}
