//! The files of `config/` say what the code does.

use std::fs;

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
