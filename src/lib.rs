//! peerfront: a front-end that brings the Mixed Version Proxy (KEP-4020) to any kube-apiserver.
//!
//! # Architecture
//!
//! One peerfront runs on every control-plane node and holds the port that clients know. Its *upstream* is the
//! co-located kube-apiserver, moved to loopback and otherwise unchanged; its *peers* are the other nodes' fronts
//! (or plain kube-apiservers that run upstream's own proxy).
//!
//! ```text
//!             client (kubectl, kubelet, controller)
//!                │ TLS, h2 or http/1.1, certificate asked for, possession proven
//!   ┌────────────▼───────────────────────────────────────────────┐
//!   │ server     accept, TLS, connection                         │
//!   │ authn      Caller: who asks (the only maker of `Caller`)   │
//!   │ request_info   what for: group, version, resource, verb    │
//!   │ routing    decide(info, hop, table): here, a peer, nobody  │◄── view: one Arc<ClusterView>,
//!   │ discovery  every document of the cluster, answered here    │    loaded once per request
//!   │ openapi    merged /openapi/v3 and /openapi/v2              │          ▲
//!   │ forward    headers, pools, upgrades, retry of the unsent   │          │
//!   └──────┬──────────────────────────────────┬──────────────────┘          │ publishes
//!          │ https://127.0.0.1:6443           │ https://peer, marked        │
//!    kube-apiserver (upstream)           peer's front            peers: reads every server's
//!                                                                discovery, watches CRDs and
//!                                                                APIServices, builds the view
//! ```
//!
//! The life of a request is [`server::handle`](server/index.html), read top to bottom. What crosses rooms are
//! values: `UserInfo`, `RequestInfo`, `Decision`, `ClusterView`. Control loops never meet the data path: they
//! publish a whole view, a request loads it once, so that what discovery lists and what routing knows agree.
//!
//! # Threads
//!
//! The data path runs on *workers*: one single-threaded runtime per core. Accepted connections are dealt to the worker
//! with the fewest open ones and stay there with everything they start: no request crosses threads, pools are
//! per worker. Control loops and the admin listener run on a runtime of their own, so that neither a discovery
//! merge nor a metrics scrape delays a request.
//!
//! # Who is asked
//!
//! `peers` computes the table of who serves what, at which address, when something changes (or every ten seconds, as a
//! gate says), and counts it; who can be reached is put beside it in every view. A peer has a *circuit*: closed, open
//! while it does not answer, half-open for a moment after it does again. The local server has a *share* of what peers can
//! answer as well: none while it stops, more and more after it has come back. `routing` gives the candidates in that
//! order, `server` ranks them: by client for lists and watches, by load for everything else.
//!
//! # Commands
//!
//! `serve` is the front. `check` looks at a node and says what keeps a front from working, `kubeadm render` writes what
//! puts one on a node that kubeadm made, `healthcheck` asks a front whether it lives.
//!
//! # Metrics
//!
//! One registry per front. The admin port shows it to whoever reaches that; `/peerfront/metrics` on the port that clients
//! know shows it to callers whom the server lets read its own `/metrics`: `authz` asks it in the caller's name, as for
//! merged documents, and its refusal is passed on. It is written on a thread beside the workers. Requests that another
//! front has forwarded do not find it, and no peer answers in its place.
//!
//! # Invariants
//!
//! * Only `authn` makes a `Caller`, only `authz` makes a `Reader`; nothing is answered or forwarded without one.
//! * Identity headers are removed, then set, in one function (`forward::headers`).
//! * A request marked by a front proxy is served by the local server or refused; it is never forwarded to a peer.
//! * Nothing is sent twice unless it was provably not sent at all; but for a GET or HEAD without a body, once, when the
//!   server has closed a used connection meanwhile.
//! * peerfront never answers 404 by itself. Not yet known is 503 with Retry-After.
//! * `server` and `peers` do not know each other.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

// Callers first: the mod lines are in reading order.
pub mod cli;
pub mod app;
pub mod settings;
pub mod kubeadm;

// Words: no I/O, no async.
pub mod apimachinery;

// The data path, in the order a request meets it.
pub mod server;
pub mod tls;
pub mod authn;
pub mod authz;
pub mod request_info;
pub mod routing;
pub mod forward;

// Documents peerfront answers itself: functions of their inputs.
pub mod discovery;
pub mod openapi;
pub mod view;

// Control loops: the only writers of the view.
pub mod peers;

// Running it.
pub mod metrics;
pub mod telemetry;
pub mod drain;
pub mod admin;
pub mod check;

// For tests only.
#[cfg(feature = "testing")]
pub mod testing;

/// Which room may import which: only upwards in this table, so that no cycle can form.
#[cfg(test)]
mod import_rules {
    use std::path::Path;

    const ROOMS: &[(&str, &[&str])] = &[
        ("apimachinery", &[]),
        ("drain", &[]),
        ("telemetry", &[]),
        ("metrics", &["apimachinery"]),
        ("settings", &["apimachinery"]),
        ("request_info", &["apimachinery"]),
        ("tls", &["settings", "metrics"]),
        ("authn", &["apimachinery", "settings", "metrics", "tls"]),
        ("discovery", &["apimachinery", "authz"]),
        ("openapi", &["apimachinery", "authz"]),
        ("authz", &["apimachinery", "settings", "metrics", "tls", "authn", "request_info"]),
        ("routing", &["apimachinery", "request_info"]),
        ("view", &["apimachinery", "routing", "discovery", "openapi"]),
        ("forward", &["apimachinery", "settings", "metrics", "tls", "authn", "request_info", "routing"]),
        (
            "server",
            &[
                "apimachinery",
                "drain",
                "telemetry",
                "metrics",
                "settings",
                "request_info",
                "tls",
                "authn",
                "discovery",
                "openapi",
                "authz",
                "routing",
                "view",
                "forward",
            ],
        ),
        ("peers", &["apimachinery", "drain", "settings", "metrics", "tls", "discovery", "openapi", "routing", "view"]),
        ("admin", &["apimachinery", "drain", "settings", "metrics", "tls", "routing", "view"]),
        ("check", &["apimachinery", "settings", "telemetry", "tls", "peers"]),
        ("kubeadm", &["settings"]),
        ("cli", &["settings", "kubeadm"]),
    ];

    /// Rooms that may import everything and that nobody but tests imports.
    const TOP: &[&str] = &["app", "testing", "main", "lib"];

    #[test]
    fn rooms_import_only_upwards() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut wrong = Vec::new();
        for file in rust_files(&root) {
            let room = room_of(&root, &file);
            if TOP.contains(&room.as_str()) {
                continue;
            }
            let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
                wrong.push(format!("{room} is not in the table"));
                continue;
            };
            let text = std::fs::read_to_string(&file).unwrap();
            let product = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
            for import in imports(product) {
                if import != room && !allowed.contains(&import.as_str()) {
                    wrong.push(format!("{room} must not import {import} ({})", file.display()));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn rust_files(directory: &Path) -> Vec<std::path::PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.file_stem().is_some_and(|stem| stem == "tests") {
                continue; // Tests may import everything.
            }
            if path.is_dir() {
                found.extend(rust_files(&path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
        found
    }

    fn room_of(root: &Path, file: &Path) -> String {
        let relative = file.strip_prefix(root).unwrap().with_extension("");
        relative.components().next().unwrap().as_os_str().to_string_lossy().into_owned()
    }

    /// Every room that the text names, as `crate::room` or in `crate::{one, other::Thing}`.
    fn imports(text: &str) -> Vec<String> {
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        code.split("crate::").skip(1).flat_map(rooms_named).collect()
    }

    fn rooms_named(rest: &str) -> Vec<String> {
        let word = |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        match rest.strip_prefix('{').and_then(|list| list.split_once("};")) {
            Some((list, _)) => list.split(',').map(word).filter(|room: &String| !room.is_empty()).collect(),
            None => vec![word(rest)],
        }
    }
}
