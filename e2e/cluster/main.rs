//! The main job on real kube-apiservers of three versions.

mod clients;
mod discovery;
mod documents;
mod extensions;
mod external_ips;
mod failures;
mod freshness;
mod identity;
mod metrics;
mod namespaces;
mod openapi;
mod rerouting;
mod support;
mod watches;

use std::process::ExitCode;

use anyhow::Result;
use peerfront_e2e::{Cluster, Topology, runner};

fn main() -> ExitCode {
    runner::run(
        start,
        &runner::tests![
            rerouting::resources_that_only_a_peer_serves_are_listed_through_every_node,
            rerouting::without_peerfront_the_same_requests_fail,
            rerouting::policy_lives_and_dies_through_the_oldest_node,
            rerouting::api_resources_lists_everything_that_the_newest_server_has,
            rerouting::apply_and_server_side_apply_reach_the_peer,
            rerouting::migration_is_created_and_deleted_through_older_nodes,
            rerouting::subresource_that_only_a_peer_serves_is_patched_there,
            identity::every_caller_is_at_every_node_who_it_is_directly,
            identity::kubectl_says_who_each_caller_is,
            identity::rights_on_a_rerouted_resource_are_those_of_the_caller,
            identity::forged_headers_change_nothing,
            identity::impersonation_works_on_local_and_rerouted_resources,
            identity::every_caller_arrives_unchanged_at_a_peer,
            external_ips::plugin_denies_at_its_own_server_only,
            external_ips::policy_denies_new_addresses_through_every_node,
            watches::each_event_of_a_watch_comes_at_once,
            watches::five_hundred_watches_of_a_resource_all_get_an_event,
            discovery::all_fronts_answer_with_the_same_document,
            discovery::unchanged_document_is_not_sent_again,
            discovery::every_other_condition_gets_the_document,
            discovery::answer_given_here_is_logged,
            discovery::custom_resource_is_usable_at_once_and_listed_everywhere,
            freshness::changes_on_a_server_show_through_every_node,
            freshness::custom_resource_in_a_built_in_group_hides_nothing,
            freshness::front_restarted_beside_a_stopped_one_lists_everything_at_once,
            discovery::who_may_not_read_discovery_gets_the_servers_own_answer,
            documents::every_listed_group_version_has_the_same_document_on_every_node,
            documents::every_listed_resource_answers_on_every_node,
            documents::entries_are_those_of_the_servers_that_own_them,
            documents::core_versions_differ_in_the_address_of_the_server_alone,
            openapi::every_node_publishes_the_same_documents_with_everything,
            openapi::v2_has_what_any_server_publishes,
            openapi::subresource_of_a_newer_server_is_in_the_common_document,
            openapi::outdated_hash_is_sent_on_to_the_current_one,
            openapi::kubectl_explains_and_validates_what_only_a_peer_serves,
            openapi::custom_resources_are_worded_alike_on_every_node,
            openapi::custom_resource_in_a_built_in_group_version_hides_nothing,
            openapi::who_may_not_read_openapi_gets_the_servers_own_answer,
            openapi::documents_of_a_lost_server_go_on_being_served,
            extensions::unavailable_one_is_listed_as_stale_and_hinders_nothing_else,
            extensions::namespace_waits_for_an_unavailable_one_and_then_goes_away,
            clients::of_aggregated_documents_list_everything_through_every_node,
            clients::of_legacy_documents_list_everything_through_every_node,
            clients::of_openapi_list_everything_through_every_node,
            clients::of_controller_runtime_start_through_every_node,
            namespaces::namespace_with_a_resource_of_a_newer_server_goes_away,
            namespaces::without_peerfront_the_object_is_orphaned,
            failures::requests_only_a_lost_node_can_serve_are_refused_and_come_back,
            failures::requests_only_a_halted_node_can_serve_are_refused,
            failures::front_started_beside_a_silent_peer_refuses_what_it_does_not_know,
            failures::front_without_its_own_server_answers_through_peers,
            failures::document_that_only_the_own_server_has_is_refused_while_it_is_down,
            failures::reroutes_are_counted_under_upstreams_labels,
            failures::known_series_exist_at_zero_from_the_start,
        ],
    )
}

async fn start() -> Result<Cluster> {
    let mut topology = Topology::load("mixed")?;
    for node in &mut topology.nodes {
        // Off by default: without it a server ignores the UID that a front proxy asserts.
        let uid_headers = "--requestheader-uid-headers=X-Remote-Uid".to_owned();
        node.kube_apiserver_flags.push(uid_headers.clone());
        node.peerfront_flags.push(uid_headers);
    }
    // Beside NodeRestriction, which every server has: the values of this flag add up.
    let plugin = "--enable-admission-plugins=DenyServiceExternalIPs".to_owned();
    topology.node_mut("node-c").kube_apiserver_flags.push(plugin);
    Cluster::builder(topology)
        .peerfront(env!("CARGO_BIN_EXE_peerfront"))
        .directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/cluster"))
        .show_progress()
        .start()
        .await
}
