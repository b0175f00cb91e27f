use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ConfigApi, Error, Options, Rendered, Variant, container, render, write};
use crate::cli::{self, Command};
use crate::settings::{Peering, Settings};

/// Options as the command line gives them.
fn options(flags: &[&str]) -> Options {
    let line = ["peerfront", "kubeadm", "render", "--output-dir=out"].iter().chain(flags).map(OsString::from);
    match cli::parse(line).unwrap() {
        Command::KubeadmRender(options) => *options,
        other => panic!("{other:?}"),
    }
}

fn text(flags: &[&str], path: &str) -> String {
    let all = render(&options(flags)).unwrap();
    all.into_iter().find(|file| file.path == path).unwrap().text
}

fn yaml(flags: &[&str], path: &str) -> Value {
    serde_norway::from_str(&text(flags, path)).unwrap()
}

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kubeadm").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const POD: &str = "manifests/kube-peerfront.yaml";
const PATCH: &str = "patches/kube-apiserver+strategic.yaml";
const CONFIG: &str = "kubeadm-config.yaml";

#[test]
fn samples_are_what_is_rendered_for_kubeadms_defaults() {
    let newest = ["--kubernetes-version=1.37"];
    let table: &[(&str, &[&str], &str)] = &[
        ("kubeadm-config.v1beta4.yaml", &newest, CONFIG),
        ("kubeadm-config.v1.yaml", &["--kubernetes-version=1.37", "--config-api=v1"], CONFIG),
        ("kubeadm-config.v1beta3.yaml", &["--kubernetes-version=1.30"], CONFIG),
        (POD, &newest, POD),
        (PATCH, &newest, PATCH),
        ("sidecar/patches/kube-apiserver+strategic.yaml", &["--kubernetes-version=1.37", "--variant=sidecar"], PATCH),
        ("rbac.yaml", &newest, "rbac.yaml"),
        ("flowschema.yaml", &newest, "flowschema.yaml"),
    ];
    for (name, flags, path) in table {
        let rendered = text(flags, path);
        assert!(sample(name) == rendered, "kubeadm/{name} is not what {flags:?} renders:\n{rendered}");
    }
}

#[test]
fn kubeadm_is_written_to_in_the_version_that_it_reads() {
    let table: &[(&[&str], Option<ConfigApi>)] = &[
        (&["--kubernetes-version=1.30"], Some(ConfigApi::V1beta3)),
        (&["--kubernetes-version=v1.31.0-rc.1"], Some(ConfigApi::V1beta4)),
        (&["--kubernetes-version=1.36", "--config-api=v1beta3"], Some(ConfigApi::V1beta3)),
        (&["--kubernetes-version=1.37.2"], Some(ConfigApi::V1beta4)),
        (&["--kubernetes-version=1.37", "--config-api=v1"], Some(ConfigApi::V1)),
        (&["--kubernetes-version=1.37", "--config-api=v1beta3"], None),
        (&["--kubernetes-version=1.36", "--config-api=v1"], None),
        (&["--kubernetes-version=1.30", "--config-api=v1beta4"], None),
        (&["--kubernetes-version=1.35", "--upstream-proxy"], None),
    ];
    for (flags, expected) in table {
        let rendered = render(&options(flags));
        match expected {
            Some(api) => assert!(rendered.unwrap()[0].text.contains(&format!("apiVersion: {api}\n")), "{flags:?}"),
            None => assert!(matches!(rendered, Err(Error::Options(_))), "{flags:?}: {rendered:?}"),
        }
    }
}

#[test]
fn every_extra_argument_is_in_the_list_and_in_the_map() {
    for (flags, expected) in [
        (&["--kubernetes-version=1.32"][..], "bind-address"),
        (&["--kubernetes-version=1.33"], "bind-address requestheader-uid-headers"),
        (&["--kubernetes-version=1.36", "--upstream-proxy"], "bind-address requestheader-uid-headers peer-ca-file"),
    ] {
        let names = |api: &str| {
            let flags = [flags, &[api]].concat();
            let documents = text(&flags, CONFIG);
            let cluster = documents.split("---\n").nth(1).unwrap().to_owned();
            let cluster: Value = serde_norway::from_str(&cluster).unwrap();
            let arguments = cluster["apiServer"]["extraArgs"].clone();
            let mut names: Vec<String> = match &arguments {
                Value::Object(map) => map.keys().cloned().collect(),
                list => list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect(),
            };
            names.sort();
            names
        };
        let mut expected: Vec<&str> = expected.split(' ').collect();
        expected.sort_unstable();
        assert_eq!(names("--config-api=v1beta4"), expected);
        assert_eq!(names("--config-api=v1beta3"), expected);
    }
}

/// The server's manifest as kubeadm writes it.
fn manifest(directory: &Path, flags: &str) -> PathBuf {
    let flags: String = flags.split(' ').map(|flag| format!("    - {flag}\n")).collect();
    let text = format!(
        "spec:
  containers:
  - name: kube-apiserver
    command:
    - kube-apiserver
    - --advertise-address=10.0.0.1
    - --client-ca-file=/etc/kubernetes/pki/ca.crt
    - --tls-cert-file=/etc/kubernetes/pki/apiserver.crt
    - --tls-private-key-file=/etc/kubernetes/pki/apiserver.key
    - --requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt
    - --requestheader-username-headers=X-Remote-User
    - --requestheader-group-headers=X-Remote-Group
    - --requestheader-extra-headers-prefix=X-Remote-Extra-
    - --proxy-client-cert-file=/etc/kubernetes/pki/front-proxy-client.crt
    - --proxy-client-key-file=/etc/kubernetes/pki/front-proxy-client.key
{flags}"
    );
    let path = directory.join("kube-apiserver.yaml");
    fs::write(&path, text).unwrap();
    path
}

/// What a container is given, the name of the program before it.
fn arguments(container: &Value) -> Vec<String> {
    let given = container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap().to_owned());
    std::iter::once("peerfront".to_owned()).chain(given).collect()
}

#[test]
fn rendered_arguments_start_a_front_that_works_with_peers() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = manifest(directory.path(), "--bind-address=127.0.0.1");
    let flags = [
        "--kubernetes-version=1.37",
        "--bind-address=10.0.0.1,fd00::1",
        "--peer-cidrs=10.0.0.0/24,fd00::/64",
        &format!("--kube-apiserver-manifest={}", manifest.display()),
    ];
    let pod = yaml(&flags, POD);
    let line = arguments(&pod["spec"]["containers"][0]).into_iter().map(|argument| {
        // The test's manifest does not lie where a node's does.
        OsString::from(
            argument.replace("/etc/kubernetes/manifests/kube-apiserver.yaml", &manifest.display().to_string()),
        )
    });
    let Command::Serve(flags) = cli::parse(line).unwrap() else { panic!("not serve") };
    let settings = Settings::load(&flags, std::iter::empty(), OsStr::new("node-a")).unwrap();
    assert_eq!(settings.serving.bind_addresses.len(), 2);
    let Peering::On(peering) = settings.peering else { panic!("peers are left alone") };
    assert_eq!(peering.cidrs.len(), 2);
}

#[test]
fn pod_mounts_what_the_server_uses_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let flags =
        "--tls-sni-cert-key=/srv/API.crt,/srv/api.key:api.example --peer-ca-file=/srv/api/crt --secure-port=8443";
    let manifest = manifest(directory.path(), flags);
    let pod = yaml(&["--kubernetes-version=1.37", &format!("--kube-apiserver-manifest={}", manifest.display())], POD);
    let container = &pod["spec"]["containers"][0];
    let paths: Vec<&str> =
        pod["spec"]["volumes"].as_array().unwrap().iter().map(|v| v["hostPath"]["path"].as_str().unwrap()).collect();
    let expected = [
        "/etc/kubernetes/manifests/kube-apiserver.yaml",
        "/etc/kubernetes/pki/apiserver.crt",
        "/etc/kubernetes/pki/apiserver.key",
        "/srv/API.crt",
        "/srv/api.key",
        "/etc/kubernetes/pki/front-proxy-client.crt",
        "/etc/kubernetes/pki/front-proxy-client.key",
        "/etc/kubernetes/pki/ca.crt",
        "/etc/kubernetes/pki/front-proxy-ca.crt",
        "/srv/api/crt",
        "/var/cache/kube-peerfront",
    ];
    assert_eq!(paths, expected);
    for (mount, volume) in
        container["volumeMounts"].as_array().unwrap().iter().zip(pod["spec"]["volumes"].as_array().unwrap())
    {
        assert_eq!(mount["name"], volume["name"]);
        assert_eq!(mount["mountPath"], volume["hostPath"]["path"]);
        let is_cache = mount["name"] == "cache";
        assert_eq!(mount["readOnly"] == true, !is_cache, "{mount}");
        assert_eq!(volume["hostPath"]["type"], if is_cache { "DirectoryOrCreate" } else { "File" });
    }
    let mut names: Vec<&str> =
        pod["spec"]["volumes"].as_array().unwrap().iter().map(|v| v["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), expected.len(), "two volumes have one name: {names:?}");
    let line = arguments(container);
    assert!(line.contains(&"--peer-ca-file=/srv/api/crt".to_owned()), "{line:?}");
    assert!(line.contains(&"--secure-port=8443".to_owned()), "{line:?}");
}

#[test]
fn pod_has_no_right_that_it_does_not_need() {
    let pod = yaml(&["--kubernetes-version=1.37"], POD);
    let (spec, container) = (&pod["spec"], &pod["spec"]["containers"][0]);
    assert_eq!(spec["hostNetwork"], true);
    assert_eq!(spec["priorityClassName"], "system-node-critical");
    assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let context = &container["securityContext"];
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["capabilities"], serde_json::json!({ "drop": ["ALL"] }));
    assert!(container["resources"]["requests"]["memory"].is_string());
    // The kubelet lets only one pod of a node have the server's port, and the server declares it.
    assert_eq!(container["ports"], serde_json::json!([{ "name": "admin", "containerPort": 6440, "protocol": "TCP" }]));
    for probe in ["livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["host"], "127.0.0.1");
        assert_eq!(container[probe]["httpGet"]["port"], "admin");
    }
    assert!(u64::from(container::GRACE_SECONDS) > crate::server::DRAIN_DEADLINE.as_secs());
    assert_eq!(spec["terminationGracePeriodSeconds"], container::GRACE_SECONDS);
}

#[test]
fn sidecar_is_in_the_patch_alone() {
    let flags = ["--kubernetes-version=1.37", "--variant=sidecar"];
    let all: Vec<&str> = render(&options(&flags)).unwrap().iter().map(|Rendered { path, .. }| *path).collect();
    assert!(!all.contains(&POD), "{all:?}");
    assert_eq!(options(&flags).variant, Variant::Sidecar);
    let patch = yaml(&flags, PATCH);
    let names: Vec<&Value> = patch["spec"]["containers"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["kube-apiserver", "kube-peerfront"]);
}

#[test]
fn server_that_peerfront_cannot_stand_before_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = manifest(directory.path(), "--goaway-chance=0.01");
    let flag = format!("--kube-apiserver-manifest={}", manifest.display());
    let error = render(&options(&["--kubernetes-version=1.37", &flag])).unwrap_err();
    assert!(matches!(&error, Error::Settings(_)), "{error}");
}

/// What ConfigMap kubeadm-config holds, shortened.
const RUNNING: &str = "\
apiServer:
  extraArgs:
  - name: audit-log-path
    value: /var/log/audit.log
  - name: bind-address
    value: 0.0.0.0
apiVersion: kubeadm.k8s.io/v1beta4
controlPlaneEndpoint: cp:6443
kind: ClusterConfiguration
kubernetesVersion: v1.35.4
";

/// The cluster's part of what is rendered from this part and these flags.
fn changed(before: &str, flags: &[&str]) -> Result<Value, Error> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cluster.yaml");
    fs::write(&path, before).unwrap();
    let given = format!("--cluster-configuration={}", path.display());
    let rendered = render(&options(&[flags, &[&given]].concat()))?;
    let (_, cluster) = rendered[0].text.split_once("---\n").unwrap();
    Ok(serde_norway::from_str(cluster).unwrap())
}

#[test]
fn configuration_of_a_running_cluster_is_added_to_and_restored() {
    let added = changed(RUNNING, &[]).unwrap();
    let arguments = |document: &Value| {
        let list = document["apiServer"]["extraArgs"].as_array().unwrap();
        list.iter().map(|item| format!("{}={}", item["name"], item["value"]).replace('"', "")).collect::<Vec<_>>()
    };
    let expected =
        ["audit-log-path=/var/log/audit.log", "bind-address=127.0.0.1", "requestheader-uid-headers=X-Remote-Uid"];
    assert_eq!(arguments(&added), expected);
    assert_eq!(added["controlPlaneEndpoint"], "cp:6443");
    let again = changed(&added.to_string(), &[]).unwrap();
    assert_eq!(again, added);
    let removed = changed(&added.to_string(), &["--remove"]).unwrap();
    assert_eq!(arguments(&removed), ["audit-log-path=/var/log/audit.log"]);
    // What is not ours stays.
    assert_eq!(changed(RUNNING, &["--remove"]).unwrap(), serde_norway::from_str::<Value>(RUNNING).unwrap());
}

#[test]
fn configuration_without_extra_arguments_gets_and_loses_them() {
    for (api, server) in
        [("v1beta3", "apiServer: {timeoutForControlPlane: 4m0s}"), ("v1beta4", "apiServer: {}"), ("v1", "")]
    {
        let before = format!(
            "apiVersion: kubeadm.k8s.io/{api}\nkind: ClusterConfiguration\nkubernetesVersion: v1.30.1\n{server}"
        );
        let added = changed(&before, &[]).unwrap();
        let arguments = &added["apiServer"]["extraArgs"];
        let value = if api == "v1beta3" { &arguments["bind-address"] } else { &arguments[0]["value"] };
        assert_eq!(value, "127.0.0.1", "{api}: {added}");
        let removed = changed(&added.to_string(), &["--remove"]).unwrap();
        assert!(removed["apiServer"].get("extraArgs").is_none(), "{api}: {removed}");
    }
}

#[test]
fn what_is_no_cluster_configuration_is_refused() {
    for (text, words) in [
        ("[]", "is not a YAML map"),
        ("kind: ClusterConfiguration", "apiVersion is missing"),
        ("apiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterConfiguration", "v1beta2"),
        ("apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration", "kind"),
        ("apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration", "kubernetesVersion"),
        (
            "{apiVersion: kubeadm.k8s.io/v1beta4, kind: ClusterConfiguration, kubernetesVersion: v1.36.3, apiServer: {extraArgs: {a: b}}}",
            "extraArgs",
        ),
    ] {
        let error = changed(text, &[]).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
    let error = render(&options(&["--cluster-configuration=/nothing/there"])).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}

#[test]
fn plugin_sample_keeps_node_restriction() {
    let sample: Value = serde_norway::from_str(&sample("external-ips/kubeadm-config.yaml")).unwrap();
    let argument = &sample["apiServer"]["extraArgs"][0];
    assert_eq!(argument["name"], "enable-admission-plugins");
    assert_eq!(argument["value"], "NodeRestriction,DenyServiceExternalIPs");
}

#[test]
fn files_are_written_where_asked() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(&["--kubernetes-version=1.37"]);
    options.output_dir = directory.path().join("a/b");
    for path in write(&options).unwrap() {
        assert!(path.starts_with(&options.output_dir) && path.is_file(), "{}", path.display());
    }
    options.output_dir = "/dev/null/nothing".into();
    let error = write(&options).unwrap_err();
    assert!(error.to_string().contains("/dev/null/nothing"), "{error}");
}
