//! Every default that does not depend on another setting, with its reason.

use std::collections::BTreeMap;

use super::file::File;

/// Port of kube-apiserver in every kubeadm cluster: clients find peerfront where they found the server.
pub const SECURE_PORT: u16 = 6443;
/// The co-located kube-apiserver keeps its port, because it advertises that port in the `kubernetes` Service's
/// endpoints; only its bind address moves to loopback.
pub const UPSTREAM: &str = "https://127.0.0.1:6443";
/// A kubeadm serving certificate carries this name and not 127.0.0.1.
pub const UPSTREAM_SERVER_NAME: &str = "kubernetes.default.svc";
/// What kube-apiserver requires when nothing is set.
pub const TLS_MIN_VERSION: &str = "VersionTLS12";
/// What kube-apiserver allows when nothing, or zero, is set.
///
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/server/secure_serving.go>
pub const HTTP2_MAX_STREAMS_PER_CONNECTION: u32 = 100;
/// Loopback, because it is plain HTTP; 6440 is free on a kubeadm node.
pub const ADMIN_BIND_ADDRESS: &str = "127.0.0.1:6440";
/// Where the system keeps what may be lost without harm, outlives a reboot and is no part of a backup; named as the
/// user and the rights of peerfront in a cluster are.
///
/// Source: <https://refspecs.linuxfoundation.org/FHS_3.0/fhs/ch05s05.html>
pub const CACHE_DIR: &str = "/var/cache/kube-peerfront";
/// People read it first; collectors are told to ask for JSON.
pub const LOG_FORMAT: &str = "text";
/// Reroutes and changes of discovery are logged at this level. A refused watch is said in readiness and asked for again
/// and again, so kube-rs need not warn of each time.
pub const LOG_FILTER: &str = "info,kube_runtime=error";
/// Standard names, which kubeadm configures and aggregated API servers expect.
///
/// Source: <https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/>
pub const USERNAME_HEADER: &str = "X-Remote-User";
/// See [`USERNAME_HEADER`].
pub const GROUP_HEADER: &str = "X-Remote-Group";
/// See [`USERNAME_HEADER`].
pub const EXTRA_HEADERS_PREFIX: &str = "X-Remote-Extra-";
/// The gate that switches work with peers; upstream's name, because it switches the same thing.
pub const INTEROPERABILITY_GATE: &str = "UnknownVersionInteroperabilityProxy";
/// The gate that switches route syncs from every ten seconds to whenever something changes; upstream's name, because it
/// switches the same in the route controller.
pub const ROUTE_SYNC_GATE: &str = "WatchBasedRoutesReconciliation";
/// Every gate with its default. On: working with peers is what peerfront is installed for, and a change that shows only
/// seconds later is what it is installed against.
pub const FEATURE_GATES: &[(&str, bool)] = &[(INTEROPERABILITY_GATE, true), (ROUTE_SYNC_GATE, true)];

/// The lowest layer.
pub(super) fn file() -> File {
    File {
        secure_port: Some(u64::from(SECURE_PORT)),
        upstream: Some(UPSTREAM.to_owned()),
        upstream_server_name: Some(UPSTREAM_SERVER_NAME.to_owned()),
        tls_min_version: Some(TLS_MIN_VERSION.to_owned()),
        http2_max_streams_per_connection: Some(u64::from(HTTP2_MAX_STREAMS_PER_CONNECTION)),
        requestheader_username_headers: vec![USERNAME_HEADER.to_owned()],
        requestheader_group_headers: vec![GROUP_HEADER.to_owned()],
        requestheader_extra_headers_prefix: vec![EXTRA_HEADERS_PREFIX.to_owned()],
        admin_bind_address: Some(ADMIN_BIND_ADDRESS.to_owned()),
        cache_dir: Some(CACHE_DIR.to_owned()),
        feature_gates: FEATURE_GATES.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect::<BTreeMap<_, _>>(),
        log_format: Some(LOG_FORMAT.to_owned()),
        log_filter: Some(LOG_FILTER.to_owned()),
        ..File::default()
    }
}
