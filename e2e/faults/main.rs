//! Nodes that vanish, stores that stop, peers that come and go: three real kube-apiservers of three versions whose
//! fronts know each other through Leases, in a network namespace of the program's own, so that packets can be dropped.

mod counters;
mod frozen;
mod impostors;
mod leases;
mod network;
mod scenarios;
mod stopping;
mod traffic;

use std::process::ExitCode;

use anyhow::Result;
use peerfront_e2e::{Cluster, Topology, runner};

fn main() -> ExitCode {
    if let Err(error) = network::enter_own_namespace() {
        return network::failed(&error);
    }
    runner::run(
        start,
        &runner::tests![
            scenarios::node_whose_packets_are_dropped_and_let_through_again,
            scenarios::node_that_no_packet_reaches_and_that_is_reached_again,
            scenarios::all_peers_whose_packets_are_dropped,
            scenarios::etcd_that_stands_still_for_thirty_seconds,
            scenarios::node_that_leaves_and_joins_again,
            scenarios::front_that_is_killed_and_comes_back,
            stopping::local_server_that_stops_with_a_delay_loses_no_request,
            leases::lease_that_is_deleted_again_and_again,
            leases::lease_with_words_of_a_later_release_is_kept_and_read,
            leases::node_that_gets_another_name_and_its_first_again,
            leases::node_that_moves_to_another_address_and_back,
            frozen::lease_that_is_not_renewed_and_one_of_another_time,
            impostors::forged_lease_gets_no_byte_of_a_request,
        ],
    )
}

async fn start() -> Result<Cluster> {
    let topology = Topology::load_with("mixed", &[("staticPeers", "false")])?;
    Cluster::builder(topology)
        .peerfront(env!("CARGO_BIN_EXE_peerfront"))
        .directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/faults"))
        .show_progress()
        .start()
        .await
}
