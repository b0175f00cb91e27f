//! The files of `config/` and the README say what the code does.

use std::fs;
use std::path::Path;

use super::{KUBEADM, Scene};
use crate::settings::{defaults, names};

/// The annotated file, with each line of a setting made effective: `#key`, and `#  key` below a key. Prose is `# text`.
fn annotated() -> String {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/peerfront.yaml")).unwrap();
    text.lines()
        .map(|line| {
            line.strip_prefix('#').filter(|rest| rest.starts_with("  ") || !rest.starts_with(' ')).unwrap_or(line)
        })
        .fold(String::new(), |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        })
}

#[test]
fn the_annotated_file_sets_nothing_as_delivered() {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/peerfront.yaml")).unwrap();
    let delivered = Scene::kubeadm().config(&text).settings();
    assert_eq!(format!("{delivered:?}"), format!("{:?}", Scene::kubeadm().settings()));
}

#[test]
fn the_annotated_file_has_every_setting_with_its_default() {
    let text = annotated();
    let written: serde_json::Map<String, serde_json::Value> = serde_norway::from_str(&text).unwrap();
    for setting in names::SETTINGS.iter().filter(|setting| setting.flag != names::CONFIG) {
        assert!(written.contains_key(&setting.key()), "{} is missing", setting.key());
    }
    let defaults = serde_json::to_value(defaults::file()).unwrap();
    for (key, default) in defaults.as_object().unwrap() {
        assert_eq!(&written[key], default, "{key}");
    }
    let scene = Scene::new();
    let manifest = scene.write("m.yaml", KUBEADM);
    scene.config(&text.replace("/etc/kubernetes/manifests/kube-apiserver.yaml", manifest.to_str().unwrap())).settings();
}

#[test]
fn prometheus_scrapes_the_default_ports() {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/prometheus.yaml")).unwrap();
    let config: serde_json::Value = serde_norway::from_str(&text).unwrap();
    let target = |job: usize| config["scrape_configs"][job]["static_configs"][0]["targets"][0].as_str().unwrap();
    assert!(target(0).ends_with(&format!(":{}", defaults::SECURE_PORT)), "{}", target(0));
    assert_eq!(target(1), defaults::ADMIN_BIND_ADDRESS);
}

/// The flags that RKE2 writes and peerfront looks at, and that of the README.
/// Source: <https://github.com/k3s-io/k3s/blob/09ac65a68f11d6cf0a9b17fb8d53e61ca72791a9/pkg/daemons/control/deps/deps.go>
const RKE2: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: kube-apiserver, namespace: kube-system}
spec:
  containers:
  - name: kube-apiserver
    command: [kube-apiserver]
    args:
    - --admission-control-config-file=/etc/rancher/rke2/rke2-pss.yaml
    - --advertise-address=10.0.0.1
    - --anonymous-auth=false
    - --api-audiences=https://kubernetes.default.svc.cluster.local,rke2
    - --authorization-mode=Node,RBAC
    - --bind-address=127.0.0.1
    - --client-ca-file=/var/lib/rancher/rke2/server/tls/client-ca.crt
    - --egress-selector-config-file=/var/lib/rancher/rke2/server/etc/egress-selector-config.yaml
    - --enable-admission-plugins=NodeRestriction
    - --proxy-client-cert-file=/var/lib/rancher/rke2/server/tls/client-auth-proxy.crt
    - --proxy-client-key-file=/var/lib/rancher/rke2/server/tls/client-auth-proxy.key
    - --requestheader-allowed-names=system:auth-proxy
    - --requestheader-client-ca-file=/var/lib/rancher/rke2/server/tls/request-header-ca.crt
    - --requestheader-extra-headers-prefix=X-Remote-Extra-
    - --requestheader-group-headers=X-Remote-Group
    - --requestheader-username-headers=X-Remote-User
    - --secure-port=6443
    - --tls-cert-file=/var/lib/rancher/rke2/server/tls/serving-kube-apiserver.crt
    - --tls-private-key-file=/var/lib/rancher/rke2/server/tls/serving-kube-apiserver.key
";

#[test]
fn settings_in_the_readme_are_read() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let blocks = readme.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let settings: Vec<&str> = blocks.filter(|block| block.contains("peerCaFile:")).collect();
    let [k0s, rke2] = settings[..] else { unreachable!("{settings:?}") };

    let k0s = Scene::new().config(k0s).settings();
    assert_eq!(k0s.serving.certificate.private_key, Path::new("/var/lib/k0s/pki/server.key"));

    let scene = Scene::new();
    let manifest = scene.write("rke2.yaml", RKE2);
    let theirs = "/var/lib/rancher/rke2/agent/pod-manifests/kube-apiserver.yaml";
    assert!(rke2.contains(theirs), "{rke2}");
    let rke2 = scene.config(&rke2.replace(theirs, manifest.to_str().unwrap())).settings();
    assert_eq!(rke2.upstream.ca_file, Path::new("/var/lib/rancher/rke2/server/tls/server-ca.crt"));
    assert_eq!(rke2.proxy_client.private_key, Path::new("/var/lib/rancher/rke2/server/tls/client-auth-proxy.key"));
}
