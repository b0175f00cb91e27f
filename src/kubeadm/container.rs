//! The container of peerfront and its volumes: the same text in its own pod and in the server's.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::files::{MANIFEST, Node};
use super::options::Options;
use crate::settings::defaults;

/// Seconds between the request to stop and the end by force. Longer than a drain takes, which gives open requests 60.
pub(super) const GRACE_SECONDS: u32 = 75;

/// Longest name of a volume. Source: <https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names>
const LONGEST_NAME: usize = 63;

/// An item of `containers`.
pub(super) fn container(options: &Options, node: &Node) -> String {
    let mut text =
        format!("    - name: kube-peerfront\n      image: {}\n      imagePullPolicy: IfNotPresent\n", options.image);
    text.push_str("      args:\n");
    for argument in arguments(options, node) {
        let _ = writeln!(text, "        - {argument}");
    }
    text.push_str(RUNNING);
    text.push_str("      volumeMounts:\n");
    for (name, path) in volumes(node) {
        let _ =
            write!(text, "        - name: {name}\n          mountPath: {}\n          readOnly: true\n", path.display());
    }
    let _ = write!(
        text,
        "        # The only thing it writes: what servers served last, for its next start.
        - name: cache
          mountPath: {}\n",
        defaults::CACHE_DIR
    );
    text
}

/// The same for every cluster. The probes ask the front about itself, not about the server.
const RUNNING: &str = "      # The port that clients use is not declared: the server's pod declares it, and the kubelet lets one pod only.
      ports:
        - name: admin
          containerPort: 6440
          protocol: TCP
      livenessProbe:
        httpGet:
          host: 127.0.0.1
          path: /livez
          port: admin
        initialDelaySeconds: 10
        periodSeconds: 10
        timeoutSeconds: 15
        failureThreshold: 8
      readinessProbe:
        httpGet:
          host: 127.0.0.1
          path: /readyz
          port: admin
        periodSeconds: 2
        timeoutSeconds: 15
        failureThreshold: 3
      # No limits: whatever is cut off here is cut off for every client of the node.
      resources:
        requests:
          cpu: 100m
          memory: 128Mi
      securityContext:
        # The keys are root's. Without capabilities root may do here what a user may.
        runAsUser: 0
        runAsGroup: 0
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
";

/// The items of `volumes`. Each file by itself: the folder of the PKI also holds the keys of the CAs.
pub(super) fn volume_list(node: &Node) -> String {
    let mut text = String::new();
    for (name, path) in volumes(node) {
        let _ =
            write!(text, "    - name: {name}\n      hostPath:\n        path: {}\n        type: File\n", path.display());
    }
    let _ = write!(
        text,
        "    - name: cache\n      hostPath:\n        path: {}\n        type: DirectoryOrCreate\n",
        defaults::CACHE_DIR
    );
    text
}

fn arguments(options: &Options, node: &Node) -> Vec<String> {
    let mut all = vec![
        "serve".to_owned(),
        format!("--kube-apiserver-manifest={MANIFEST}"),
        format!("--peer-ca-file={}", node.peer_ca.display()),
    ];
    if node.port != defaults::SECURE_PORT {
        all.push(format!("--secure-port={}", node.port));
    }
    if !options.bind_address.is_empty() {
        all.push(format!("--bind-address={}", list(&options.bind_address)));
    }
    if !options.peer_cidrs.is_empty() {
        all.push(format!("--peer-cidrs={}", list(&options.peer_cidrs)));
    }
    all.push("--log-format=json".to_owned());
    all
}

fn list<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// A name for each file: its path below `/etc/kubernetes`, with dashes.
fn volumes(node: &Node) -> Vec<(String, &PathBuf)> {
    let mut taken = BTreeSet::new();
    let mut named = Vec::new();
    for path in &node.files {
        let short = name(path);
        let mut name = short.clone();
        for number in 2.. {
            if taken.insert(name.clone()) {
                break;
            }
            name = format!("{}-{number}", &short[..short.len().min(LONGEST_NAME - 5)]);
        }
        named.push((name, path));
    }
    named
}

fn name(path: &Path) -> String {
    let below = path.strip_prefix("/etc/kubernetes").unwrap_or(path).to_string_lossy().to_ascii_lowercase();
    let dashed: String = below.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let start = dashed.len().saturating_sub(LONGEST_NAME);
    dashed[start..].trim_matches('-').to_owned()
}
