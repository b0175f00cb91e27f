//! A node that real kubeadm makes and a real kubelet runs: peerfront comes with it, lives through an upgrade, and goes,
//! all by the commands of the README.
//!
//! The short pass has one node and the peerfront under test. Under `E2E_FULL=1` there is more, and peerfront is the one
//! of the Dockerfile's image.
//!
//! The node is a machine in namespaces of its own (see the script `node`), the program itself stands at the other end of
//! its cable. Everything ends with this program.

mod checks;
mod control_groups;
mod images;
mod life;
mod network;
mod node;
mod programs;
mod readme;
mod samples;
mod streams;
mod three;

use std::process::ExitCode;

use anyhow::Result;
use peerfront_e2e::runner;

use programs::Programs;
use readme::Readme;

/// What the tests share: programs and commands. Each test has a node of its own.
pub(crate) struct Workshop {
    programs: Programs,
    readme: Readme,
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
    let short = runner::tests![life::node_is_made_with_peerfront_upgraded_and_given_back];
    let long = runner::tests![
        samples::every_kubeadm_takes_the_samples_it_reads,
        samples::manifest_of_the_server_is_as_the_front_needs_it,
        images::image_of_peerfront_is_small_and_says_what_it_is,
        images::sbom_lists_every_crate_of_the_program,
        life::node_is_made_with_peerfront_upgraded_and_given_back,
        three::three_nodes_change_under_load,
        readme::every_command_was_run,
    ];
    if programs::is_full() { runner::run(start, &long) } else { runner::run(start, &short) }
}

/// Builds what is missing while there is a network to download it from.
fn prepare() -> Result<()> {
    let is_only_listed = std::env::args().any(|argument| argument == "--list");
    if network::is_own() || is_only_listed { Ok(()) } else { Programs::build().map(drop) }
}

async fn start() -> Result<Workshop> {
    Ok(Workshop { programs: Programs::build()?, readme: Readme::load()? })
}
