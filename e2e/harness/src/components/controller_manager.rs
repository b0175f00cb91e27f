use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Context, Flags};
use crate::process::Process;

/// The kube-controller-manager with every controller and without an election that nobody else stands for.
// Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/cmd/kubeadm/app/phases/controlplane/manifests.go
pub(crate) fn controller_manager(
    context: &Context<'_>,
    program: PathBuf,
    address: SocketAddrV4,
    kubeconfig: &Path,
    extra: &[String],
) -> Result<Process> {
    let pki = |name: &str| context.pki.file(name);
    let flags = Flags::default()
        .set("authentication-kubeconfig", kubeconfig)
        .set("authorization-kubeconfig", kubeconfig)
        .set("bind-address", address.ip().to_string())
        .set("secure-port", address.port().to_string())
        .set("client-ca-file", pki("ca.crt"))
        .set("cluster-name", "kubernetes")
        .set("cluster-signing-cert-file", pki("ca.crt"))
        .set("cluster-signing-key-file", pki("ca.key"))
        .set("controllers", "*,bootstrapsigner,tokencleaner")
        .set("kubeconfig", kubeconfig)
        .set("leader-elect", "false")
        .set("requestheader-client-ca-file", pki("front-proxy-ca.crt"))
        .set("root-ca-file", pki("ca.crt"))
        .set("service-account-private-key-file", pki("sa.key"))
        .set("tls-cert-file", pki("apiserver.crt"))
        .set("tls-private-key-file", pki("apiserver.key"))
        .set("use-service-account-credentials", "true")
        .extend(extra);
    let ready = context.answers(address, "/healthz")?;
    Ok(context.process("controller-manager".to_owned(), program, None, flags, ready))
}
