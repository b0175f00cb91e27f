use std::net::SocketAddrV4;
use std::path::PathBuf;

use super::{Context, Flags};
use crate::client::Client;
use crate::process::{Process, Ready};

/// One member over plain HTTP; data that is thrown away needs no fsync.
pub(crate) fn etcd(context: &Context<'_>, program: PathBuf, peer: SocketAddrV4) -> Process {
    let client_url = format!("http://{}", context.etcd);
    let peer_url = format!("http://{peer}");
    let flags = Flags::default()
        .set("name", "etcd")
        .set("data-dir", context.directory.join("etcd"))
        .set("listen-client-urls", &client_url)
        .set("advertise-client-urls", &client_url)
        .set("listen-peer-urls", &peer_url)
        .set("initial-advertise-peer-urls", &peer_url)
        .set("initial-cluster", format!("etcd={peer_url}"))
        .set("unsafe-no-fsync", "true");
    let ready = Ready::Answers { client: Client::plain(context.etcd), path: "/health".to_owned() };
    context.process("etcd".to_owned(), program, None, flags, ready)
}
