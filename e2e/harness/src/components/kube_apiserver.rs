use std::path::PathBuf;

use anyhow::Result;

use super::{Addresses, Context, Flags};
use crate::process::Process;
use crate::topology::NodeTopology;

/// Where upstream's own proxy sends what it asks of this node; absent: it does not run.
pub(crate) type UpstreamProxy = Option<std::net::SocketAddrV4>;

/// A kube-apiserver behind a front, or without one.
// Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/cmd/kubeadm/app/phases/controlplane/manifests.go
pub(crate) fn kube_apiserver(
    context: &Context<'_>,
    program: PathBuf,
    node: &NodeTopology,
    addresses: &Addresses,
    upstream_proxy: UpstreamProxy,
) -> Result<Process> {
    let pki = |name: &str| context.pki.file(name);
    let mut flags = Flags::default()
        .set("advertise-address", addresses.upstream.ip().to_string())
        .set("bind-address", addresses.upstream.ip().to_string())
        .set("secure-port", addresses.upstream.port().to_string())
        .set("allow-privileged", "true")
        .set("authorization-mode", "Node,RBAC")
        .set("client-ca-file", pki("ca.crt"))
        .set("enable-admission-plugins", "NodeRestriction")
        .set("enable-bootstrap-token-auth", "true")
        // Kubernetes 1.37 refuses a loopback address for the `kubernetes` Service.
        .set("endpoint-reconciler-type", "none")
        .set("etcd-servers", format!("http://{}", addresses.etcd))
        .set("kubelet-client-certificate", pki("apiserver-kubelet-client.crt"))
        .set("kubelet-client-key", pki("apiserver-kubelet-client.key"))
        .set("kubelet-preferred-address-types", "InternalIP")
        .set("proxy-client-cert-file", pki("front-proxy-client.crt"))
        .set("proxy-client-key-file", pki("front-proxy-client.key"))
        .set("requestheader-allowed-names", "front-proxy-client")
        .set("requestheader-client-ca-file", pki("front-proxy-ca.crt"))
        .set("requestheader-extra-headers-prefix", "X-Remote-Extra-")
        .set("requestheader-group-headers", "X-Remote-Group")
        .set("requestheader-username-headers", "X-Remote-User")
        .set("service-account-issuer", "https://kubernetes.default.svc.cluster.local")
        .set("service-account-key-file", pki("sa.pub"))
        .set("service-account-signing-key-file", pki("sa.key"))
        .set("service-cluster-ip-range", "10.96.0.0/12")
        .set("tls-cert-file", pki("apiserver.crt"))
        .set("tls-private-key-file", pki("apiserver.key"));
    if let Some(peer) = upstream_proxy {
        flags = flags
            .set("feature-gates", "UnknownVersionInteroperabilityProxy=true")
            .set("peer-ca-file", pki("ca.crt"))
            .set("peer-advertise-ip", peer.ip().to_string())
            .set("peer-advertise-port", peer.port().to_string());
    }
    let ready = context.answers(addresses.upstream, "/readyz")?;
    let name = format!("{}-upstream", node.name);
    let flags = flags.extend(&node.kube_apiserver_flags);
    Ok(context.process(name, program, Some(&node.name), flags, ready))
}
