use std::path::PathBuf;

use super::{Context, Flags};
use crate::addresses::EtcdAddresses;
use crate::client::Client;
use crate::process::{Process, Ready};

/// One member over plain HTTP, its data in the folder of its name; data that is thrown away needs no fsync.
pub(crate) fn etcd(context: &Context<'_>, program: PathBuf, name: String, addresses: EtcdAddresses) -> Process {
    let client_url = format!("http://{}", addresses.client);
    let peer_url = format!("http://{}", addresses.peer);
    let flags = Flags::default()
        .set("name", &name)
        .set("data-dir", context.directory.join(&name))
        .set("listen-client-urls", &client_url)
        .set("advertise-client-urls", &client_url)
        .set("listen-peer-urls", &peer_url)
        .set("initial-advertise-peer-urls", &peer_url)
        .set("initial-cluster", format!("{name}={peer_url}"))
        .set("unsafe-no-fsync", "true");
    let ready = Ready::Answers { client: Client::plain(addresses.client), path: "/health".to_owned() };
    context.process(name, program, None, flags, ready)
}
