//! What is awaited before this front should get traffic, in words that say what helps.

use tokio::time::Instant;

use super::cluster::{Cluster, Server};
use super::exclusions::Problem;
use super::openapi::Published;
use crate::openapi::OpenApi;
use crate::view::{Condition, ConditionState};

/// Grants `system:kube-peerfront` what it needs.
const GRANT: &str = "kubectl apply -f kubeadm/rbac.yaml";

/// Every condition, met or not, always in the same order. `peering_off` says why there are no peers.
pub(super) fn conditions(
    cluster: &Cluster,
    peering_off: Option<&str>,
    openapi: &Published,
    now: Instant,
) -> Vec<Condition> {
    vec![
        local(&cluster.local),
        peers(cluster, peering_off, now),
        exclusions(cluster, peering_off),
        leases(cluster, peering_off),
        cache(cluster),
        documents(openapi),
    ]
}

fn local(server: &Server) -> Condition {
    let error = server.error.as_deref().unwrap_or("not asked yet");
    let standing = server.health.standing();
    let (state, message) = if !standing.heard {
        (ConditionState::Waiting, format!("the co-located kube-apiserver has not been read yet: {error}"))
    } else if !server.is_detailed {
        (ConditionState::Waiting, "the version of the co-located kube-apiserver has not been read yet".to_owned())
    } else if server.error.is_some() {
        (ConditionState::Degraded, format!("the co-located kube-apiserver cannot be read: {error}"))
    } else {
        (ConditionState::Met, String::new())
    };
    Condition { name: "local-discovery", state, message }
}

/// A peer that has never been heard is waited for, but not for ever: see `UNHEARD_LIMIT`.
fn peers(cluster: &Cluster, peering_off: Option<&str>, now: Instant) -> Condition {
    let failed: Vec<String> = cluster
        .peers
        .values()
        .filter(|server| !server.health.standing().is_available() || !server.health.standing().heard)
        .map(missing)
        .collect();
    let (state, message) = match peering_off {
        Some(reason) => (ConditionState::Degraded, format!("peers are left alone: {reason}")),
        None if cluster.leases_awaited(now).is_some() => {
            (ConditionState::Waiting, "Leases, which may name further peers, have not been listed yet".to_owned())
        }
        None if cluster.awaits_peers(now) => {
            (ConditionState::Waiting, format!("not every peer has said what it serves: {}", failed.join("; ")))
        }
        None if failed.is_empty() => (ConditionState::Met, String::new()),
        None => (ConditionState::Degraded, failed.join("; ")),
    };
    Condition { name: "peer-discovery", state, message }
}

/// OpenAPI is waited for as long as its requests are refused.
fn documents(openapi: &Published) -> Condition {
    let missing = &openapi.missing;
    let (state, message) = match openapi.state {
        OpenApi::Awaited if missing.is_empty() => {
            (ConditionState::Waiting, "OpenAPI documents are being read and merged".to_owned())
        }
        OpenApi::Awaited => {
            (ConditionState::Waiting, format!("not every index of OpenAPI documents is read: {missing}"))
        }
        _ if missing.is_empty() => (ConditionState::Met, String::new()),
        _ => (ConditionState::Degraded, format!("OpenAPI documents cannot be read: {missing}")),
    };
    Condition { name: "openapi", state, message }
}

fn leases(cluster: &Cluster, peering_off: Option<&str>) -> Condition {
    const FALLBACK: &str = "until then only the peers of --peers are known";
    let (state, message) = match &cluster.lease_problem {
        Some(Problem::Forbidden) if peering_off.is_none() => (
            ConditionState::Degraded,
            format!("system:kube-peerfront may not keep Leases in kube-system: {GRANT} ({FALLBACK})"),
        ),
        Some(Problem::Failed(error)) if peering_off.is_none() => {
            (ConditionState::Degraded, format!("Leases cannot be kept or watched: {error}"))
        }
        _ => (ConditionState::Met, String::new()),
    };
    Condition { name: "peer-leases", state, message }
}

fn missing(server: &Server) -> String {
    let reason = match &server.error {
        Some(error) => error,
        None if server.health.standing().heard => "no connection",
        None => "not asked yet",
    };
    let listed = if server.is_remembered { " (what it served before this front's start is listed)" } else { "" };
    format!("{}: {reason}{listed}", server.hostname)
}

fn exclusions(cluster: &Cluster, peering_off: Option<&str>) -> Condition {
    const FALLBACK: &str = "until then only the groups built into kube-apiserver are taken from peers";
    let (state, message) = match &cluster.exclusion_problem {
        _ if peering_off.is_some() => (ConditionState::Met, String::new()),
        Some(Problem::Forbidden) => (
            ConditionState::Degraded,
            format!("system:kube-peerfront may not watch CRDs and APIServices: {GRANT} ({FALLBACK})"),
        ),
        Some(Problem::Failed(error)) => (ConditionState::Degraded, format!("{error} ({FALLBACK})")),
        None if cluster.exclusions.only_built_in() => {
            (ConditionState::Degraded, format!("CRDs and APIServices are not listed yet ({FALLBACK})"))
        }
        None => (ConditionState::Met, String::new()),
    };
    Condition { name: "crd-and-apiservice-watch", state, message }
}

/// Said and not waited for: without it only a restart beside a peer that does not answer shows less.
fn cache(cluster: &Cluster) -> Condition {
    let (state, message) = match &cluster.cache_problem {
        None => (ConditionState::Met, String::new()),
        Some(problem) => (ConditionState::Degraded, problem.clone()),
    };
    Condition { name: "cache-directory", state, message }
}
