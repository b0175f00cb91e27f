//! The static pod of peerfront, and the patch of the server's.

use super::container::{GRACE_SECONDS, container, volume_list};
use super::files::Node;
use super::options::{Options, Variant};

/// The manifest for the folder of static pods.
pub(super) fn static_pod(options: &Options, node: &Node) -> String {
    let mut text = format!(
        "\
# Static pod of peerfront, for /etc/kubernetes/manifests of a control-plane node whose kube-apiserver listens on
# 127.0.0.1. Nothing in it is of one node only: its address is taken from the server's manifest.
apiVersion: v1
kind: Pod
metadata:
  name: kube-peerfront
  namespace: kube-system
  labels:
    component: kube-peerfront
    tier: control-plane
spec:
  hostNetwork: true
  priority: 2000001000
  priorityClassName: system-node-critical
  # Open requests get 60 seconds to end.
  terminationGracePeriodSeconds: {GRACE_SECONDS}
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  containers:
"
    );
    text.push_str(&container(options, node));
    text.push_str("  volumes:\n");
    text.push_str(&volume_list(node));
    text
}

/// What kubeadm shall change in the server's static pod.
pub(super) fn patch(options: &Options, node: &Node) -> String {
    let mut text = PROBES.to_owned();
    if options.variant == Variant::Sidecar {
        text.push_str("    # peerfront beside the server, in its pod: both start and stop together.\n");
        text.push_str(&container(options, node));
        text.push_str("  volumes:\n");
        text.push_str(&volume_list(node));
        text.push_str("  # Open requests get 60 seconds to end.\n");
        text.push_str(&format!("  terminationGracePeriodSeconds: {GRACE_SECONDS}\n"));
    }
    text
}

/// Source: <https://github.com/kubernetes/kubernetes/blob/v1.36.3/cmd/kubeadm/app/util/staticpod/utils.go>
const PROBES: &str = "\
# kubeadm lets the server's probes ask the advertise address. There peerfront answers now, for which other servers stand in
# while its own is down: the probes shall ask the server itself.
spec:
  containers:
    - name: kube-apiserver
      livenessProbe:
        httpGet:
          host: 127.0.0.1
      readinessProbe:
        httpGet:
          host: 127.0.0.1
      startupProbe:
        httpGet:
          host: 127.0.0.1
";
