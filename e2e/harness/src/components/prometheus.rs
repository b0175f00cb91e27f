use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use super::{Context, Flags};
use crate::client::Client;
use crate::process::{Process, Ready};

/// A Prometheus with this configuration, which keeps its data in the cluster's directory.
pub(crate) fn prometheus(context: &Context<'_>, program: PathBuf, address: SocketAddrV4, config: &Path) -> Process {
    let flags = Flags::default()
        .set("config.file", config)
        .set("storage.tsdb.path", context.directory.join("prometheus"))
        .set("web.listen-address", address.to_string());
    let ready = Ready::Answers { client: Client::plain(address), path: "/-/ready".to_owned() };
    context.process("prometheus".to_owned(), program, None, flags, ready)
}
