mod delivered;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

/// The least that lets `serve` start without a manifest.
const LEAST: &[&str] = &[
    "advertise-address=10.0.0.1",
    "tls-cert-file=/pki/apiserver.crt",
    "tls-private-key-file=/pki/apiserver.key",
    "client-ca-file=/pki/ca.crt",
    "proxy-client-cert-file=/pki/front-proxy-client.crt",
    "proxy-client-key-file=/pki/front-proxy-client.key",
];

/// The CAs without which there is no work with peers.
const PEERING: &[&str] = &["peer-ca-file=/pki/ca.crt", "requestheader-client-ca-file=/pki/front-proxy-ca.crt"];

/// What kubeadm 1.36 writes, peerfront's patch of the bind address included.
const KUBEADM: &str = r"
apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 10.0.0.1:6443
  labels: {component: kube-apiserver, tier: control-plane}
  name: kube-apiserver
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-apiserver
    - --advertise-address=10.0.0.1
    - --allow-privileged=true
    - --authorization-mode=Node,RBAC
    - --bind-address=127.0.0.1
    - --client-ca-file=/etc/kubernetes/pki/ca.crt
    - --enable-admission-plugins=NodeRestriction
    - --enable-bootstrap-token-auth=true
    - --etcd-cafile=/etc/kubernetes/pki/etcd/ca.crt
    - --etcd-certfile=/etc/kubernetes/pki/apiserver-etcd-client.crt
    - --etcd-keyfile=/etc/kubernetes/pki/apiserver-etcd-client.key
    - --etcd-servers=https://127.0.0.1:2379
    - --kubelet-client-certificate=/etc/kubernetes/pki/apiserver-kubelet-client.crt
    - --kubelet-client-key=/etc/kubernetes/pki/apiserver-kubelet-client.key
    - --kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname
    - --proxy-client-cert-file=/etc/kubernetes/pki/front-proxy-client.crt
    - --proxy-client-key-file=/etc/kubernetes/pki/front-proxy-client.key
    - --requestheader-allowed-names=front-proxy-client
    - --requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt
    - --requestheader-extra-headers-prefix=X-Remote-Extra-
    - --requestheader-group-headers=X-Remote-Group
    - --requestheader-username-headers=X-Remote-User
    - --runtime-config=
    - --secure-port=6443
    - --service-account-issuer=https://kubernetes.default.svc.cluster.local
    - --service-account-key-file=/etc/kubernetes/pki/sa.pub
    - --service-account-signing-key-file=/etc/kubernetes/pki/sa.key
    - --service-cluster-ip-range=10.96.0.0/12
    - --tls-cert-file=/etc/kubernetes/pki/apiserver.crt
    - --tls-private-key-file=/etc/kubernetes/pki/apiserver.key
    - --feature-gates=UnknownVersionInteroperabilityProxy=false
    image: registry.k8s.io/kube-apiserver:v1.36.3
    name: kube-apiserver
    ports:
    - {containerPort: 6443, hostPort: 6443, name: probe-port, protocol: TCP}
  hostNetwork: true
  priorityClassName: system-node-critical
status: {}
";

/// One start of `serve`: what stands in each layer.
struct Scene {
    directory: TempDir,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Scene {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), flags: Vec::new(), environment: Vec::new() }
    }

    /// A scene that loads, to be broken by the test.
    fn least() -> Self {
        Self::new().flags(LEAST)
    }

    fn kubeadm() -> Self {
        Self::new().manifest(KUBEADM)
    }

    fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    fn manifest(self, text: &str) -> Self {
        let path = self.write("kube-apiserver.yaml", text);
        self.flags(&[&format!("kube-apiserver-manifest={}", path.display())])
    }

    fn config(self, text: &str) -> Self {
        let path = self.write("peerfront.yaml", text);
        self.flags(&[&format!("config={}", path.display())])
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn load(&self) -> Result<Settings, Error> {
        let mut flags = Flags::default();
        for flag in &self.flags {
            let (name, value) = flag.split_once('=').unwrap();
            let setting = names::by_flag(name).unwrap();
            match flags.0.iter_mut().find(|(known, _)| *known == setting) {
                Some((_, values)) => values.push(value.to_owned()),
                None => flags.0.push((setting, vec![value.to_owned()])),
            }
        }
        let environment = self.environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Settings::load(&flags, environment, OsStr::new("node-a"))
    }

    #[track_caller]
    fn settings(&self) -> Settings {
        self.load().unwrap_or_else(|error| panic!("{error}: {:?}", std::error::Error::source(&error)))
    }

    /// Loads, must fail, and the error must contain each of the words.
    #[track_caller]
    fn refused(&self, words: &[&str]) {
        let error = match self.load() {
            Ok(settings) => panic!("accepted, expected {words:?}:\n{settings}"),
            Err(error) => error.to_string(),
        };
        for word in words {
            assert!(error.contains(word), "{word:?} is missing in: {error}");
        }
    }
}

fn peering(settings: &Settings) -> &PeeringSettings {
    match &settings.peering {
        Peering::On(peering) => peering,
        Peering::Off(reason) => panic!("off: {reason}"),
    }
}

fn off(settings: &Settings) -> &str {
    match &settings.peering {
        Peering::On(peering) => panic!("on: {peering:?}"),
        Peering::Off(reason) => reason,
    }
}

#[test]
fn the_least_gets_every_default() {
    let settings = Scene::least().settings();
    assert_eq!(settings.serving.bind_addresses, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
    assert_eq!(settings.serving.secure_port, 6443);
    assert_eq!(settings.serving.tls_min_version, TlsVersion::V1_2);
    assert_eq!(settings.serving.http2_max_streams_per_connection, 100);
    assert_eq!(settings.upstream.address, "127.0.0.1:6443".parse().unwrap());
    assert_eq!(settings.upstream.server_name, "kubernetes.default.svc");
    assert_eq!(settings.upstream.ca_file, PathBuf::from("/pki/ca.crt"));
    assert_eq!(settings.admin_bind_address, "127.0.0.1:6440".parse().unwrap());
    assert_eq!(settings.hostname, "node-a");
    assert!(settings.authentication.request_header.is_none());
    assert_eq!(settings.authentication.identity_headers.username, ["x-remote-user"]);
    assert_eq!(settings.authentication.identity_headers.extra_prefix, ["x-remote-extra-"]);
    assert_eq!(settings.logging.filter, "info,kube_runtime=error");
    assert_eq!(off(&settings), "--peer-ca-file is not set");
    assert!(settings.warnings.is_empty());
}

#[test]
fn a_kubeadm_manifest_is_all_that_is_needed() {
    let settings = Scene::kubeadm().settings();
    let pki = |name: &str| PathBuf::from("/etc/kubernetes/pki").join(name);
    assert_eq!(settings.serving.bind_addresses, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
    assert_eq!(settings.serving.secure_port, 6443);
    assert_eq!(settings.serving.certificate.certificate, pki("apiserver.crt"));
    assert_eq!(settings.serving.certificate.private_key, pki("apiserver.key"));
    assert_eq!(settings.authentication.client_ca_file, Some(pki("ca.crt")));
    let request_header = settings.authentication.request_header.as_ref().unwrap();
    assert_eq!(request_header.client_ca_file, pki("front-proxy-ca.crt"));
    assert_eq!(request_header.allowed_names, ["front-proxy-client"]);
    assert_eq!(settings.proxy_client.certificate, pki("front-proxy-client.crt"));
    assert_eq!(settings.proxy_client.private_key, pki("front-proxy-client.key"));
    assert_eq!(settings.upstream.address, "127.0.0.1:6443".parse().unwrap());
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
    // Its gates are its own: upstream's proxy is off in it, peerfront's is not.
    let settings = Scene::kubeadm().flags(&["peer-ca-file=/etc/kubernetes/pki/ca.crt"]).settings();
    assert_eq!(peering(&settings).advertise_address, "10.0.0.1:6443".parse().unwrap());
}

#[test]
fn later_layers_win() {
    let port = |settings: &Settings| settings.serving.http2_max_streams_per_connection;
    let manifest = KUBEADM.replace("--allow-privileged=true", "--http2-max-streams-per-connection=2");
    let mut scene = Scene::least();
    assert_eq!(port(&scene.settings()), 100, "default");
    scene = scene.manifest(&manifest);
    assert_eq!(port(&scene.settings()), 2, "manifest");
    scene = scene.config("http2MaxStreamsPerConnection: 3\n");
    assert_eq!(port(&scene.settings()), 3, "file");
    scene = scene.variable("PEERFRONT_HTTP2_MAX_STREAMS_PER_CONNECTION", "4");
    assert_eq!(port(&scene.settings()), 4, "environment");
    scene = scene.flags(&["http2-max-streams-per-connection=5"]);
    assert_eq!(port(&scene.settings()), 5, "flag");
}

#[test]
fn config_and_manifest_can_be_named_by_other_layers() {
    let scene = Scene::new();
    let manifest = scene.write("m.yaml", KUBEADM);
    let config = scene.write("c.yaml", &format!("kubeApiserverManifest: {}\nlogFormat: json\n", manifest.display()));
    let settings = scene.variable("PEERFRONT_CONFIG", config.to_str().unwrap()).settings();
    assert_eq!(settings.logging.format, LogFormat::Json);
    assert_eq!(settings.authentication.client_ca_file, Some(PathBuf::from("/etc/kubernetes/pki/ca.crt")));
}

#[test]
fn an_empty_value_takes_back_what_a_lower_layer_set() {
    let manifest = KUBEADM.replace("--allow-privileged=true", "--peer-ca-file=/etc/kubernetes/pki/ca.crt");
    let scene = Scene::new().manifest(&manifest);
    peering(&scene.settings());
    assert_eq!(off(&scene.flags(&["peer-ca-file="]).settings()), "--peer-ca-file is not set");
}

#[test]
fn values_may_be_written_as_text_or_as_yaml() {
    for config in [
        "bindAddress: [10.0.0.1, 10.0.0.2]\npeers: [b=10.0.0.3:6443, 'c=[fd00::1]:6443']\n\
         tlsSniCertKey: ['a.crt,a.key:x,*.y']\nsecurePort: 7000\nfeatureGates: {UnknownVersionInteroperabilityProxy: true}",
        "bindAddress: 10.0.0.1, 10.0.0.2\npeers: b=10.0.0.3:6443,c=[fd00::1]:6443\n\
         tlsSniCertKey: a.crt,a.key:x,*.y\nsecurePort: '7000'\nfeatureGates: UnknownVersionInteroperabilityProxy=t\nlogFilter:",
    ] {
        let settings = Scene::least().flags(PEERING).config(config).settings();
        assert_eq!(settings.serving.bind_addresses.len(), 2);
        assert_eq!(settings.serving.secure_port, 7000);
        assert_eq!(peering(&settings).static_peers.len(), 2);
        assert_eq!(settings.serving.sni_certificates[0].names, ["x", "*.y"]);
        assert_eq!(settings.logging.filter, "info,kube_runtime=error");
    }
    let settings = Scene::least().variable("PEERFRONT_TLS_SNI_CERT_KEY", "a.crt,a.key;b.crt,b.key:b").settings();
    assert_eq!(settings.serving.sni_certificates.len(), 2);
    assert_eq!(settings.serving.sni_certificates[1].names, ["b"]);
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    Scene::least().config("tlsCertFlie: x").refused(&["key", "tlsCertFlie", "peerfront.yaml", "\"tlsCertFile\""]);
    Scene::least().config("tls-cert-file: x").refused(&["\"tlsCertFile\""]);
    Scene::least().config("config: x").refused(&["unknown key \"config\""]);
    Scene::least().variable("PEERFRONT_PEER_CA", "x").refused(&[
        "variable",
        "environment",
        "\"PEERFRONT_PEER_CA\"",
        "\"PEERFRONT_PEER_CA_FILE\"",
    ]);
    for scene in [
        Scene::least().flags(&["feature-gates=UnknownVersionInteropProxy=true"]),
        Scene::least().variable("PEERFRONT_FEATURE_GATES", "UnknownVersionInteropProxy=true"),
        Scene::least().config("featureGates: {UnknownVersionInteropProxy: true}"),
    ] {
        scene.refused(&["feature gate", "UnknownVersionInteropProxy", "\"UnknownVersionInteroperabilityProxy\""]);
    }
}

#[test]
fn variables_of_others_are_left_alone() {
    Scene::least()
        .variable("PATH", "/bin")
        .variable("PEERFRONTISH", "x")
        .variable("PEERFRONT_PORT", "tcp://10.96.0.9:80")
        .variable("PEERFRONT_METRICS_SERVICE_HOST", "10.96.0.9")
        .variable("PEERFRONT_METRICS_SERVICE_PORT_HTTP", "80")
        .variable("PEERFRONT_METRICS_PORT_80_TCP_ADDR", "10.96.0.9")
        .settings();
}

#[test]
fn a_variable_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let value = OsString::from_vec(vec![b'/', 0xff]);
    let environment = [(OsString::from("PEERFRONT_CLIENT_CA_FILE"), value)];
    let error = Settings::load(&Flags::default(), environment, OsStr::new("node-a")).unwrap_err().to_string();
    assert!(error.contains("--client-ca-file") && error.contains("UTF-8"), "{error}");
}

#[test]
fn values_are_refused_with_setting_and_place() {
    let table: &[(&str, &[&str])] = &[
        ("secure-port=https", &["--secure-port", "command line", "\"https\"", "whole number"]),
        ("secure-port=70000", &["--secure-port", "command line", "70000", "65535"]),
        ("bind-address=node-a", &["--bind-address", "node-a", "IP address"]),
        ("bind-address=10.0.0.1,10.0.0.1", &["--bind-address", "once only"]),
        ("advertise-address=node-a", &["--advertise-address", "IP address"]),
        ("tls-min-version=VersionTLS10", &["--tls-min-version", "VersionTLS10", "VersionTLS12"]),
        ("tls-sni-cert-key=a.crt", &["--tls-sni-cert-key", "cert,key"]),
        ("tls-sni-cert-key=a.crt,a.key:", &["--tls-sni-cert-key", "cert,key:name"]),
        ("tls-sni-cert-key=a.crt,a.key,b", &["--tls-sni-cert-key", "cert,key"]),
        ("requestheader-username-headers=X Remote", &["--requestheader-username-headers", "header name"]),
        ("requestheader-group-headers=", &["--requestheader-group-headers", "at least one"]),
        ("upstream=http://127.0.0.1:6443", &["--upstream", "https://ip:port"]),
        ("upstream=https://localhost:6443", &["--upstream", "IP address"]),
        ("upstream=https://127.0.0.1", &["--upstream", "port"]),
        ("upstream=https://127.0.0.1:6443/api", &["--upstream", "without a path"]),
        ("admin-bind-address=6440", &["--admin-bind-address", "ip:port"]),
        ("log-format=yaml", &["--log-format", "text or json"]),
        ("feature-gates=UnknownVersionInteroperabilityProxy=maybe", &["--feature-gates", "maybe", "true"]),
        ("feature-gates=UnknownVersionInteroperabilityProxy", &["--feature-gates", "Name=true"]),
        ("peers=node-b=10.0.0.2", &["--peers", "node-b=10.0.0.2", "name=plain:ip:port"]),
    ];
    for (flag, words) in table {
        Scene::least().flags(&[flag]).refused(words);
    }
    Scene::least().config("peers: {a: b}").refused(&["--peers", "peerfront.yaml", "list of texts"]);
    Scene::least().config("peers: [1]").refused(&["--peers", "list of texts"]);
    Scene::least().config("securePort: true").refused(&["--secure-port", "true", "whole number"]);
    Scene::least().config("securePort: 1\nsecurePort: 2").refused(&["peerfront.yaml", "YAML map"]);
    Scene::least().config("- a").refused(&["peerfront.yaml", "YAML map"]);
    Scene::least().flags(&["config=/nowhere/p.yaml"]).refused(&["cannot read", "/nowhere/p.yaml", "--config"]);
    Scene::least().flags(&["kube-apiserver-manifest=/nowhere/m.yaml"]).refused(&[
        "cannot read",
        "/nowhere/m.yaml",
        "--kube-apiserver-manifest",
    ]);
}

#[test]
fn what_has_no_default_must_be_set() {
    for (flag, words) in [
        ("advertise-address", &["--advertise-address", "--bind-address"][..]),
        ("tls-cert-file", &["--tls-cert-file", "--cert-dir"]),
        ("tls-private-key-file", &["--tls-private-key-file"]),
        ("client-ca-file", &["--upstream-ca-file", "--client-ca-file"]),
        ("proxy-client-cert-file", &["--proxy-client-cert-file", "front-proxy-client.crt"]),
        ("proxy-client-key-file", &["--proxy-client-key-file"]),
    ] {
        Scene::least().flags(&[&format!("{flag}=")]).refused(words);
    }
    let settings = Scene::least().flags(&["client-ca-file=", "upstream-ca-file=/pki/up.crt"]).settings();
    assert_eq!(settings.authentication.client_ca_file, None);
    assert_eq!(settings.upstream.ca_file, PathBuf::from("/pki/up.crt"));
}

#[test]
fn the_port_is_not_taken_from_under_another_listener() {
    let table: &[(&[&str], &[&str])] = &[
        (&["bind-address=0.0.0.0"], &["0.0.0.0:6443", "127.0.0.1:6443", "--upstream", "beside it", "--bind-address"]),
        (&["bind-address=::"], &["[::]:6443", "127.0.0.1:6443"]),
        (&["bind-address=127.0.0.1"], &["127.0.0.1:6443"]),
        (&["upstream=https://10.0.0.1:6443"], &["10.0.0.1:6443", "--upstream"]),
        (&["bind-address=0.0.0.0", "upstream=https://127.0.0.1:7443", "secure-port=6440"], &["--admin-bind-address"]),
    ];
    for (flags, words) in table {
        Scene::least().flags(flags).refused(words);
    }
    for flags in [
        &["bind-address=0.0.0.0", "upstream=https://127.0.0.1:7443"][..],
        &["bind-address=0.0.0.0", "secure-port=0"],
        &["bind-address=127.0.0.2"],
        &["bind-address=0.0.0.0", "upstream=https://[::1]:6443"],
    ] {
        Scene::least().flags(flags).settings();
    }
}

#[test]
fn a_server_that_still_holds_the_port_is_named() {
    for (bind, listener) in [("0.0.0.0", "0.0.0.0:6443"), ("::", "[::]:6443"), ("10.0.0.1", "10.0.0.1:6443")] {
        let manifest = KUBEADM.replace("--bind-address=127.0.0.1", &format!("'--bind-address={bind}'"));
        Scene::new().manifest(&manifest).refused(&["10.0.0.1:6443", listener, "manifest", "--bind-address=127.0.0.1"]);
        // Naming another upstream does not free the port.
        let flags = ["upstream=https://127.0.0.1:7443"];
        Scene::new().manifest(&manifest).flags(&flags).refused(&["10.0.0.1:6443", listener]);
        Scene::new().manifest(&manifest).flags(&["secure-port=7443"]).settings();
    }
}

#[test]
fn upstream_follows_the_manifests_port_and_the_front_does_not() {
    let scene = Scene::new().manifest(&KUBEADM.replace("--secure-port=6443", "--secure-port=7443"));
    let settings = scene.settings();
    assert_eq!(settings.upstream.address, "127.0.0.1:7443".parse().unwrap());
    assert_eq!(settings.serving.secure_port, 6443);
    assert_eq!(settings.warnings.len(), 1);
    for word in ["7443", "6443", "--secure-port=7443"] {
        assert!(settings.warnings[0].contains(word), "{:?}", settings.warnings);
    }
    assert!(scene.flags(&["secure-port=7443"]).settings().warnings.is_empty());
}

#[test]
fn warnings_of_the_manifest_reach_the_settings() {
    let settings = Scene::new().manifest(&KUBEADM.replace("--runtime-config=", "--from-the-future=1")).settings();
    assert!(settings.warnings[0].contains("--from-the-future"), "{:?}", settings.warnings);
}

#[test]
fn the_advertise_address_falls_back_to_the_bind_address() {
    let scene = Scene::least().flags(PEERING).flags(&["advertise-address=0.0.0.0", "bind-address=10.0.0.7"]);
    assert_eq!(peering(&scene.settings()).advertise_address, "10.0.0.7:6443".parse().unwrap());
    let flags = ["advertise-address=", "bind-address=0.0.0.0", "upstream=https://127.0.0.1:7443"];
    Scene::least().flags(PEERING).flags(&flags).refused(&["--advertise-address", "peers must be told"]);
}

#[test]
fn the_peer_address_is_a_pair_or_the_advertise_address() {
    let scene = || Scene::least().flags(PEERING).flags(&["secure-port=7000"]);
    assert_eq!(peering(&scene().settings()).advertise_address, "10.0.0.1:7000".parse().unwrap());
    let pair = ["peer-advertise-ip=10.1.0.1", "peer-advertise-port=8000"];
    assert_eq!(peering(&scene().flags(&pair).settings()).advertise_address, "10.1.0.1:8000".parse().unwrap());
    scene().flags(&pair[..1]).refused(&["--peer-advertise-ip", "needs --peer-advertise-port", "both or none"]);
    scene().flags(&pair[1..]).refused(&["--peer-advertise-port", "needs --peer-advertise-ip"]);
    scene().flags(&["peer-advertise-ip=10.1.0.1", "peer-advertise-port=0"]).refused(&["--peer-advertise-port", "1 to"]);
    scene().flags(&["peer-advertise-ip=::", "peer-advertise-port=1"]).refused(&["--peer-advertise-ip", "reach"]);
}

#[test]
fn peers_are_listed_without_this_node() {
    let scene = || Scene::least().flags(PEERING);
    let peers = "peers=node-a=10.0.0.1:6443,node-b=10.0.0.2:6443,node-c=plain:[fd00::3]:6443";
    let settings = scene().flags(&[peers]).settings();
    let static_peers = &peering(&settings).static_peers;
    assert_eq!(static_peers.iter().map(|peer| peer.hostname.as_str()).collect::<Vec<_>>(), ["node-b", "node-c"]);
    assert_eq!(static_peers[1].kind, PeerKind::Plain);
    let settings = scene().flags(&[peers, "hostname-override=node-b"]).settings();
    assert_eq!(settings.hostname, "node-b");
    assert_eq!(peering(&settings).static_peers[0].hostname, "node-a");
    scene().flags(&["peers=b=10.0.0.2:6443,b=10.0.0.3:6443"]).refused(&["--peers", "b=10.0.0.2:6443", "twice"]);
    scene().flags(&["peers=b=10.0.0.2:6443,c=10.0.0.2:6443"]).refused(&["--peers", "c=10.0.0.2:6443", "twice"]);
}

#[test]
fn peers_need_a_ca_unless_the_gate_is_off() {
    let peers = "peers=b=10.0.0.2:6443";
    Scene::least().flags(&[peers]).refused(&["--peer-ca-file", "--peers"]);
    Scene::least().flags(&PEERING[..1]).refused(&["--requestheader-client-ca-file", "forwarded again"]);
    let gate = "feature-gates=UnknownVersionInteroperabilityProxy=false";
    let settings = Scene::least().flags(&[peers, gate]).settings();
    assert_eq!(off(&settings), "feature gate UnknownVersionInteroperabilityProxy is off");
    let settings = Scene::least().flags(&[peers, gate, "peer-ca-file=/pki/ca.crt"]).settings();
    assert!(off(&settings).contains("gate"));
}

#[test]
fn printed_settings_load_again_as_they_are() {
    let rich = [
        "peer-ca-file=/ca",
        "peers=b=plain:10.0.0.2:6443",
        "peer-cidrs=10.0.0.0/24",
        "tls-sni-cert-key=a,b:c,d",
        "log-format=json",
    ];
    for flags in [&[][..], &rich, &["feature-gates=UnknownVersionInteroperabilityProxy=false"]] {
        let settings = Scene::kubeadm().flags(flags).settings();
        let again = Scene::new().config(&settings.to_string()).settings();
        assert_eq!(format!("{settings:?}"), format!("{again:?}"));
    }
}

#[test]
fn every_setting_is_a_field_of_the_file() {
    let printed = serde_json::to_value(Scene::kubeadm().flags(&RICH).settings()).unwrap();
    let keys = printed.as_object().unwrap();
    for setting in names::SETTINGS.iter().filter(|setting| ![names::CONFIG, names::MANIFEST].contains(&setting.flag)) {
        assert!(keys.contains_key(&setting.key()), "{} is not printed", setting.key());
    }
}

/// Sets what kubeadm's manifest leaves out.
const RICH: [&str; 6] = [
    "peer-ca-file=/ca",
    "peers=b=10.0.0.2:6443",
    "peer-cidrs=10.0.0.0/24,fd00::/64",
    "tls-sni-cert-key=a,b",
    "tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "requestheader-uid-headers=X-Remote-Uid",
];
