//! What is asked of the cluster: the local server's certificate, rights, peers, Services with external addresses.

use std::path::Path;

use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};

use super::Finding;
use crate::apimachinery::user::{ALL_AUTHENTICATED, KUBE_PEERFRONT};
use crate::peers::{FRONTS, HOSTNAME, NAMESPACE, PEER_ADVERTISE_ADDRESS};
use crate::settings::{Peering, PeeringSettings, Settings};
use crate::telemetry::Chain;
use crate::tls::{ALPN_HTTP_1_1, ALPN_PEERFRONT, Connector, PEER_SERVER_NAME};

/// What grants what is missing.
const GRANT: &str = "kubectl apply -f kubeadm/rbac.yaml";

/// What a front does: group, resource, namespace, verbs.
const RIGHTS: &[(&str, &str, &str, &[&str])] = &[
    ("apiextensions.k8s.io", "customresourcedefinitions", "", &["list", "watch"]),
    ("apiregistration.k8s.io", "apiservices", "", &["list", "watch"]),
    ("coordination.k8s.io", "leases", NAMESPACE, &["list", "watch", "create", "patch", "delete"]),
];

pub(super) async fn check(settings: &Settings, kubeconfig: Option<&Path>) -> Vec<Finding> {
    let mut findings = vec![upstream(settings).await];
    let Some(path) = kubeconfig else {
        let remedy = "name a kubeconfig that may read Services and Leases: --kubeconfig=/etc/kubernetes/admin.conf";
        findings.push(Finding::warning("rights, peers and Services were not looked at", remedy));
        return findings;
    };
    match client(path).await {
        Ok(client) => {
            findings.extend(rights(&client).await);
            findings.extend(peers(settings, &client).await);
            findings.extend(external_addresses(&client).await);
        }
        Err(error) => findings.push(Finding::bad(format!("--kubeconfig: {}", Chain(&*error)), "")),
    }
    findings
}

async fn client(path: &Path) -> Result<Client, Box<dyn std::error::Error + Send + Sync>> {
    let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Whether the local server proves the name that is asked of it.
async fn upstream(settings: &Settings) -> Finding {
    let upstream = &settings.upstream;
    let connector =
        Connector::load(&upstream.ca_file, Some(&settings.proxy_client), &upstream.server_name, &[ALPN_HTTP_1_1]);
    let connector = match connector {
        Ok(connector) => connector,
        Err(error) => return Finding::bad(format!("--upstream: {}", Chain(&error)), ""),
    };
    match connector.connect(upstream.address).await {
        Ok(_) => Finding::good(format!("{} (--upstream) proves to be {}", upstream.address, upstream.server_name)),
        Err(error) => Finding::bad(
            format!("--upstream: {}", Chain(&error)),
            format!("it must run, carry {} and be signed by {}", upstream.server_name, upstream.ca_file.display()),
        ),
    }
}

async fn rights(client: &Client) -> Vec<Finding> {
    let mut missing = Vec::new();
    let mut reviews: Vec<(String, SubjectAccessReviewSpec)> = vec![("get /apis".to_owned(), document("/apis"))];
    for (group, resource, namespace, verbs) in RIGHTS {
        for verb in *verbs {
            reviews.push((format!("{verb} {resource}"), access(group, resource, namespace, verb)));
        }
    }
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    for (what, spec) in reviews {
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        match api.create(&PostParams::default(), &review).await {
            Ok(answer) if answer.status.as_ref().is_some_and(|status| status.allowed) => {}
            Ok(_) => missing.push(what),
            Err(error) => return vec![Finding::bad(format!("rights cannot be asked for: {}", Chain(&error)), "")],
        }
    }
    if missing.is_empty() {
        return vec![Finding::good(format!("{KUBE_PEERFRONT} has the rights it needs"))];
    }
    vec![Finding::bad(format!("{KUBE_PEERFRONT} may not: {}", missing.join(", ")), GRANT)]
}

fn access(group: &str, resource: &str, namespace: &str, verb: &str) -> SubjectAccessReviewSpec {
    let resource_attributes = ResourceAttributes {
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        namespace: Some(namespace.to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    SubjectAccessReviewSpec { resource_attributes: Some(resource_attributes), ..peerfront() }
}

fn document(path: &str) -> SubjectAccessReviewSpec {
    let attributes = NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
    SubjectAccessReviewSpec { non_resource_attributes: Some(attributes), ..peerfront() }
}

fn peerfront() -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: Some(KUBE_PEERFRONT.to_owned()),
        groups: Some(vec![ALL_AUTHENTICATED.to_owned()]),
        ..SubjectAccessReviewSpec::default()
    }
}

async fn peers(settings: &Settings, client: &Client) -> Vec<Finding> {
    let peering = match &settings.peering {
        Peering::On(peering) => peering,
        Peering::Off(reason) => return vec![Finding::warning(format!("peers are left alone: {reason}"), "")],
    };
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let leases = match leases.list(&ListParams::default().labels(FRONTS)).await {
        Ok(leases) => leases.items,
        Err(error) => return vec![Finding::bad(format!("Leases cannot be listed: {}", Chain(&error)), "")],
    };
    let of_lease = |lease: &Lease| {
        let name = lease.labels().get(HOSTNAME).cloned().unwrap_or_else(|| lease.name_any());
        (name, lease.annotations().get(PEER_ADVERTISE_ADDRESS).cloned().unwrap_or_default())
    };
    let fixed = peering.static_peers.iter().map(|peer| (peer.hostname.clone(), peer.address.to_string()));
    let mut all: Vec<(String, String)> = leases.iter().map(of_lease).chain(fixed).collect();
    all.retain(|(name, _)| *name != settings.hostname);
    all.sort();
    all.dedup();
    if all.is_empty() {
        return vec![Finding::warning(
            "no peer is known",
            "install peerfront on the other control-plane nodes as well",
        )];
    }
    let mut findings = Vec::new();
    for (name, address) in all {
        findings.push(peer(settings, peering, &name, &address).await);
    }
    findings
}

async fn peer(settings: &Settings, peering: &PeeringSettings, name: &str, address: &str) -> Finding {
    let connector = Connector::load(
        &peering.ca_file,
        Some(&settings.proxy_client),
        PEER_SERVER_NAME,
        &[ALPN_PEERFRONT, ALPN_HTTP_1_1],
    );
    let (connector, at) = match (connector, address.parse()) {
        (Ok(connector), Ok(at)) => (connector, at),
        (Err(error), _) => return Finding::bad(format!("peer {name}: {}", Chain(&error)), ""),
        (_, Err(_)) => return Finding::bad(format!("the Lease of peer {name} names no address: {address:?}"), ""),
    };
    match connector.connect(at).await {
        Ok(_) => Finding::good(format!("peer {name} at {at} proves to be {PEER_SERVER_NAME}")),
        Err(error) => Finding::bad(
            format!("peer {name}: {}", Chain(&error)),
            format!(
                "{at} must be open between control-plane nodes, and its certificate signed by {}",
                peering.ca_file.display()
            ),
        ),
    }
}

/// Services with which traffic of others can be drawn away (CVE-2020-8554); the field is deprecated.
async fn external_addresses(client: &Client) -> Vec<Finding> {
    let services = match Api::<Service>::all(client.clone()).list(&ListParams::default()).await {
        Ok(services) => services.items,
        Err(error) => return vec![Finding::warning(format!("Services cannot be listed: {}", Chain(&error)), "")],
    };
    let using = services.iter().filter_map(|service| {
        let addresses = service.spec.as_ref()?.external_ips.as_ref().filter(|addresses| !addresses.is_empty())?;
        let name = format!("{}/{}", service.namespace().unwrap_or_default(), service.name_any());
        Some(Finding::warning(
            format!("Service {name} uses the deprecated spec.externalIPs: {}", addresses.join(", ")),
            "look whether it is meant to; new ones are denied by kubeadm/external-ips/policy.yaml",
        ))
    });
    let findings: Vec<Finding> = using.collect();
    if findings.is_empty() { vec![Finding::good("no Service uses spec.externalIPs")] } else { findings }
}
