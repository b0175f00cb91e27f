use super::*;

/// What makes a server believe a front proxy.
const BELIEVES: &[&str] = &[
    "--requestheader-client-ca-file=/pki/front-proxy-ca.crt",
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
];

fn pod(command: &[&str], arguments: &[&str]) -> String {
    let container = serde_json::json!({"name": "kube-apiserver", "command": command, "args": arguments});
    serde_json::json!({"spec": {"containers": [{"name": "sidecar"}, container]}}).to_string()
}

fn read(text: &str) -> Result<Manifest, Error> {
    Reader { origin: "m.yaml".to_owned() }.read(text)
}

fn with(flags: &[&str]) -> Result<Manifest, Error> {
    read(&pod(&["kube-apiserver"], &[BELIEVES, flags].concat()))
}

#[track_caller]
fn refused(result: Result<Manifest, Error>, words: &[&str]) {
    let error = result.unwrap_err().to_string();
    for word in words.iter().chain(&["m.yaml"]) {
        assert!(error.contains(word), "{word:?} is missing in: {error}");
    }
}

#[test]
fn flags_are_split_as_kube_apiserver_splits_them() {
    let line = [
        "--a_b=1",
        "--secure-port",
        "6443",
        "--profiling",
        "-v",
        "2",
        "-v=3",
        "-v4",
        "--new-switch",
        "--x=y=z",
        "--new",
        "5",
    ];
    let given = Reader { origin: String::new() }.flags(line.map(str::to_owned).to_vec()).unwrap();
    let given = given.iter().map(|flag| (flag.name.as_str(), flag.value.as_str())).collect::<Vec<_>>();
    let expected = [
        ("a-b", "1"),
        ("secure-port", "6443"),
        ("profiling", "true"),
        ("v", "2"),
        ("v", "3"),
        ("v", ""),
        ("new-switch", "true"),
        ("x", "y=z"),
        ("new", "5"),
    ];
    assert_eq!(given, expected);
}

#[test]
fn the_binary_is_found_behind_a_wrapper_and_without_a_command() {
    let all = [BELIEVES, &["--client-ca-file=/pki/ca.crt"]].concat();
    let wrapped = [&["/go-runner", "--log-file=/l", "/usr/local/bin/kube-apiserver"], all.as_slice()].concat();
    for text in [pod(&wrapped, &[]), pod(&["kube-apiserver"], &all), pod(&[], &all)] {
        assert_eq!(read(&text).unwrap().layer.text("client-ca-file"), Some("/pki/ca.crt"));
    }
}

#[test]
fn other_manifests_are_refused() {
    refused(read("spec: {containers: [{name: etcd}, {name: proxy}]}"), &["kube-apiserver", "etcd, proxy"]);
    refused(read("hello"), &["static pod"]);
    refused(read(&pod(&["/bin/sh", "-c", "exec kube-apiserver --secure-port=6443"], &[])), &["/bin/sh", "shell"]);
    refused(with(&["surplus"]), &["surplus", "not a flag"]);
    refused(with(&["--tls-cert-file"]), &["--tls-cert-file", "without a value"]);
}

#[test]
fn upstream_follows_the_listener() {
    let table: &[(&[&str], &str, &str)] = &[
        (&[], "0.0.0.0:6443", "https://127.0.0.1:6443"),
        (&["--bind-address=127.0.0.1"], "127.0.0.1:6443", "https://127.0.0.1:6443"),
        (&["--bind-address=127.0.0.9", "--secure-port=7443"], "127.0.0.9:7443", "https://127.0.0.9:7443"),
        (&["--bind-address=::", "--secure-port=7443"], "[::]:7443", "https://[::1]:7443"),
        (&["--bind-address=10.0.0.1"], "10.0.0.1:6443", "https://10.0.0.1:6443"),
        (&["--secure-port=1", "--secure-port=2"], "0.0.0.0:2", "https://127.0.0.1:2"),
    ];
    for (flags, listener, upstream) in table {
        let manifest = with(flags).unwrap();
        assert_eq!(manifest.listener, listener.parse().unwrap(), "{flags:?}");
        assert_eq!(manifest.layer.text("upstream"), Some(*upstream), "{flags:?}");
        assert_eq!(manifest.layer.text("bind-address"), None);
    }
    refused(with(&["--bind-address=localhost"]), &["--bind-address", "localhost", "IP address"]);
    refused(with(&["--secure-port=0"]), &["--secure-port", "1 to 65535"]);
}

#[test]
fn what_clients_would_notice_is_refused_unless_it_changes_nothing() {
    let table: &[(&str, &str, &str, &str)] = &[
        ("disable-http2-serving", "true", "false", "HTTP/2"),
        ("goaway-chance", "0.001", "0.0", "set it to 0"),
        ("tls-curve-preferences", "29", "", "key exchanges"),
        ("strict-transport-security-directives", "max-age=1", "", "header"),
        ("cors-allowed-origins", "//example.com$", "", "CORS"),
    ];
    for (flag, value, harmless, words) in table {
        refused(with(&[&format!("--{flag}={value}")]), &[&format!("--{flag}={value}"), "cannot be followed", words]);
        assert!(with(&[&format!("--{flag}={harmless}")]).unwrap().warnings.is_empty());
    }
    refused(with(&["--disable-http2-serving"]), &["--disable-http2-serving=true"]);
}

#[test]
fn unknown_flags_warn_unless_their_family_shapes_the_port() {
    let warnings = with(&["--brand-new=1", "--audit-log-mode=batch"]).unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("--brand-new") && warnings[0].contains("not known"), "{warnings:?}");
    for flag in [
        "--tls-new=1",
        "--client-ca-new=1",
        "--requestheader-new=1",
        "--proxy-client-new=1",
        "--peer-new=1",
        "--http2-new=1",
    ] {
        refused(with(&[flag]), &[flag, "not known", "remove the flag"]);
    }
}

#[test]
fn values_from_the_containers_environment_are_refused_where_they_matter() {
    refused(with(&["--advertise-address=$(HOST_IP)"]), &["--advertise-address=$(HOST_IP)", "environment"]);
    refused(with(&["--bind-address=$(HOST_IP)"]), &["--bind-address", "environment"]);
    with(&["--etcd-servers=https://$(HOST_IP):2379"]).unwrap();
}

#[test]
fn a_server_that_believes_no_front_proxy_is_refused() {
    for missing in BELIEVES {
        let rest = BELIEVES.iter().filter(|flag| *flag != missing).copied().collect::<Vec<_>>();
        let name = missing.split('=').next().unwrap();
        refused(read(&pod(&["kube-apiserver"], &rest)), &[name, "would not believe", "add"]);
    }
}

#[test]
fn feature_gates_are_not_read() {
    let manifest = with(&["--feature-gates=UnknownVersionInteroperabilityProxy=false,Other=true"]).unwrap();
    assert!(manifest.warnings.is_empty());
    assert_eq!(manifest.layer.text("feature-gates"), None);
}
