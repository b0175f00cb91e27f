//! Every flag of kube-apiserver 1.26 to 1.37, and whose business it is once peerfront holds the port.
//!
//! Source: <https://github.com/kubernetes/kubernetes/tree/v1.37.2/cmd/kube-apiserver/app/options> and
//! <https://github.com/kubernetes/apiserver/tree/v0.37.2/pkg/server/options>; the same of 1.26.15, 1.29.15, 1.34.4,
//! 1.35.4 and 1.36.3.

/// Whose business a flag is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Duty {
    /// Clients meet it on the port: peerfront's setting of the same name takes its value.
    Taken,
    /// It says where upstream listens.
    Listener,
    /// Upstream goes on applying it to every request that peerfront forwards, or it never concerns the port.
    Upstream,
    /// Clients meet it on the port and peerfront does not do it.
    Refused {
        /// Values that change nothing.
        harmless: Harmless,
        /// Why it cannot be followed and what to do; completes "kube-apiserver's --flag=value".
        advice: &'static str,
    },
}

/// Values of a refused flag that change nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Harmless {
    /// False, spelled as Go reads it.
    False,
    /// Any spelling of zero.
    Zero,
    /// No text.
    Empty,
}

impl Harmless {
    pub(super) fn admits(self, value: &str) -> bool {
        match self {
            Self::False => ["0", "f", "F", "false", "FALSE", "False"].contains(&value),
            Self::Zero => value.parse::<f64>() == Ok(0.0),
            Self::Empty => value.trim().is_empty(),
        }
    }
}

/// Whose business the flag is; `None` for one that no known release has.
pub(super) fn duty(name: &str) -> Option<Duty> {
    if TAKEN.contains(&name) {
        return Some(Duty::Taken);
    }
    if LISTENER.contains(&name) {
        return Some(Duty::Listener);
    }
    if let Some((_, harmless, advice)) = REFUSED.iter().find(|(refused, ..)| *refused == name) {
        return Some(Duty::Refused { harmless: *harmless, advice });
    }
    (UPSTREAM.contains(&name) || SWITCHES.contains(&name) || is_audit_backend(name)).then_some(Duty::Upstream)
}

/// Whether the flag takes no separate value: `--flag` alone means true.
pub(super) fn is_switch(name: &str) -> bool {
    SWITCHES.contains(&name)
        || REFUSED.iter().any(|(refused, harmless, _)| *refused == name && *harmless == Harmless::False)
        || (is_audit_backend(name) && (name.ends_with("-truncate-enabled") || name.ends_with("-throttle-enable")))
}

/// Whether an unknown flag must be refused, because flags of its family decide what clients meet.
pub(super) fn shapes_the_port(name: &str) -> bool {
    ["tls-", "client-ca", "requestheader-", "proxy-client-", "peer-", "http2-"].iter().any(|it| name.starts_with(it))
}

/// Flags without which kube-apiserver does not believe a front proxy, with what kubeadm gives them.
pub(super) const FRONT_PROXY: &[(&str, &str)] = &[
    ("requestheader-client-ca-file", "/etc/kubernetes/pki/front-proxy-ca.crt"),
    ("requestheader-username-headers", "X-Remote-User"),
    ("requestheader-group-headers", "X-Remote-Group"),
    ("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
];

const TAKEN: &[&str] = &[
    "advertise-address",
    "client-ca-file",
    "http2-max-streams-per-connection",
    "peer-advertise-ip",
    "peer-advertise-port",
    "peer-ca-file",
    "proxy-client-cert-file",
    "proxy-client-key-file",
    "requestheader-allowed-names",
    "requestheader-client-ca-file",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    "requestheader-uid-headers",
    "requestheader-username-headers",
    "tls-cert-file",
    "tls-cipher-suites",
    "tls-min-version",
    "tls-private-key-file",
    "tls-sni-cert-key",
];

const LISTENER: &[&str] = &["bind-address", "secure-port"];

const REFUSED: &[(&str, Harmless, &str)] = &[
    (
        "disable-http2-serving",
        Harmless::False,
        "cannot be followed: peerfront always offers HTTP/2 beside HTTP/1.1; remove the flag",
    ),
    (
        "goaway-chance",
        Harmless::Zero,
        "cannot be followed: peerfront holds the clients' connections and does not close them at random; set it to 0",
    ),
    (
        "tls-curve-preferences",
        Harmless::Empty,
        "cannot be followed: peerfront offers its library's key exchanges; remove the flag",
    ),
    (
        "strict-transport-security-directives",
        Harmless::Empty,
        "cannot be followed: what peerfront answers itself would lack the header; remove the flag",
    ),
    (
        "cors-allowed-origins",
        Harmless::Empty,
        "cannot be followed: what peerfront answers itself would lack the CORS headers; remove the flag",
    ),
];

/// Left to upstream, and switches: `--flag` alone means true.
///
/// `permit-port-sharing` and `permit-address-sharing` concern upstream's own socket on loopback. Whoever
/// `anonymous-auth` or a token flag lets in or keeps out is judged by upstream, for peerfront's own answers as well.
/// `shutdown-send-retry-after` answers 429, which is passed on.
const SWITCHES: &[&str] = &[
    "aggregator-reject-forwarding-redirect",
    "allow-privileged",
    "anonymous-auth",
    "audit-log-compress",
    "contention-profiling",
    "emulation-forward-compatible",
    "enable-aggregator-routing",
    "enable-bootstrap-token-auth",
    "enable-garbage-collector",
    "enable-logs-handler",
    "enable-priority-and-fairness",
    "encryption-provider-config-automatic-reload",
    "log-json-split-stream",
    "log-text-split-stream",
    "permit-address-sharing",
    "permit-port-sharing",
    "profiling",
    "runtime-config-emulation-forward-compatible",
    "service-account-extend-token-expiration",
    "service-account-lookup",
    "shutdown-send-retry-after",
    "version",
    "watch-cache",
];

/// Left to upstream, with a value.
///
/// `cert-dir` counts only without `--tls-cert-file`, which peerfront requires. `feature-gates` are upstream's own.
/// The `shutdown-` durations pace upstream's stop; peerfront sees its readiness fail and its connections end.
const UPSTREAM: &[&str] = &[
    "admission-control",
    "admission-control-config-file",
    "allow-metric-labels",
    "allow-metric-labels-manifest",
    "api-audiences",
    "apiserver-count",
    "audit-log-format",
    "audit-log-maxage",
    "audit-log-maxbackup",
    "audit-log-maxsize",
    "audit-log-path",
    "audit-log-version",
    "audit-policy-file",
    "audit-webhook-batch-initial-backoff",
    "audit-webhook-config-file",
    "audit-webhook-initial-backoff",
    "audit-webhook-version",
    "authentication-config",
    "authentication-token-webhook-cache-ttl",
    "authentication-token-webhook-config-file",
    "authentication-token-webhook-version",
    "authorization-config",
    "authorization-mode",
    "authorization-policy-file",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "authorization-webhook-config-file",
    "authorization-webhook-version",
    "cert-dir",
    "cloud-config",
    "cloud-provider",
    "cloud-provider-gce-l7lb-src-cidrs",
    "cloud-provider-gce-lb-src-cidrs",
    "coordinated-leadership-lease-duration",
    "coordinated-leadership-renew-deadline",
    "coordinated-leadership-retry-period",
    "debug-socket-path",
    "default-not-ready-toleration-seconds",
    "default-unreachable-toleration-seconds",
    "default-watch-cache-size",
    "delete-collection-workers",
    "disable-admission-plugins",
    "disabled-metrics",
    "egress-selector-config-file",
    "emulated-version",
    "enable-admission-plugins",
    "encryption-provider-config",
    "endpoint-reconciler-type",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-compaction-interval",
    "etcd-count-metric-poll-period",
    "etcd-db-metric-poll-interval",
    "etcd-healthcheck-timeout",
    "etcd-keyfile",
    "etcd-prefix",
    "etcd-readycheck-timeout",
    "etcd-servers",
    "etcd-servers-overrides",
    "event-ttl",
    "external-hostname",
    "feature-gates",
    "kubelet-certificate-authority",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "kubelet-port",
    "kubelet-preferred-address-types",
    "kubelet-read-only-port",
    "kubelet-timeout",
    "kubernetes-service-node-port",
    "lease-reuse-duration-seconds",
    "livez-grace-period",
    "log-flush-frequency",
    "log-json-info-buffer-size",
    "log-text-info-buffer-size",
    "logging-format",
    "master-service-namespace",
    "max-connection-bytes-per-sec",
    "max-mutating-requests-inflight",
    "max-requests-inflight",
    "min-compatibility-version",
    "min-request-timeout",
    "oidc-ca-file",
    "oidc-client-id",
    "oidc-groups-claim",
    "oidc-groups-prefix",
    "oidc-issuer-url",
    "oidc-required-claim",
    "oidc-signing-algs",
    "oidc-username-claim",
    "oidc-username-prefix",
    "request-timeout",
    "runtime-config",
    "service-account-issuer",
    "service-account-jwks-uri",
    "service-account-key-file",
    "service-account-max-token-expiration",
    "service-account-signing-endpoint",
    "service-account-signing-key-file",
    "service-cluster-ip-range",
    "service-node-port-range",
    "show-hidden-metrics-for-version",
    "shutdown-delay-duration",
    "shutdown-watch-termination-grace-period",
    "storage-backend",
    "storage-initialization-timeout",
    "storage-media-type",
    "token-auth-file",
    "tracing-config-file",
    "v",
    "vmodule",
    "watch-cache-sizes",
];

/// `audit-log-…` and `audit-webhook-…`: mode, batches and truncation of either audit backend.
fn is_audit_backend(name: &str) -> bool {
    let rest = name.strip_prefix("audit-log-").or_else(|| name.strip_prefix("audit-webhook-"));
    rest.is_some_and(|rest| rest == "mode" || rest.starts_with("batch-") || rest.starts_with("truncate-"))
}
