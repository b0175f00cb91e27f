use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use super::{Context, Flags};
use crate::process::{Process, Ready};

/// A kubelet of one pod that no container runtime runs; commands run in `root` on this machine.
pub(crate) fn kubelet_standin(
    context: &Context<'_>,
    program: PathBuf,
    address: SocketAddrV4,
    pod: &str,
    root: &Path,
) -> Process {
    let pki = |name: &str| context.pki.file(name);
    let flags = Flags::default()
        .set("listen", address.to_string())
        .set("tls-cert-file", pki("apiserver.crt"))
        .set("tls-private-key-file", pki("apiserver.key"))
        .set("client-ca-file", pki("ca.crt"))
        .set("root", root)
        .set("pod", pod);
    context.process("kubelet-standin".to_owned(), program, None, flags, Ready::Listens(address))
}
