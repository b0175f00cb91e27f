use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

use super::*;
use crate::settings::names;
use crate::testing::pki::{ControlPlane, Profile};

/// What is found with the files of this control plane, its server on a port that nobody holds.
fn found(control_plane: &ControlPlane, changed: &[(&str, String)]) -> Vec<Finding> {
    let path = |name: &str| control_plane.path(name).display().to_string();
    let mut given = vec![
        ("advertise-address", "127.0.0.1".to_owned()),
        ("secure-port", "0".to_owned()),
        ("admin-bind-address", "127.0.0.1:0".to_owned()),
        ("upstream", "https://127.0.0.1:1".to_owned()),
        ("tls-cert-file", path("apiserver.crt")),
        ("tls-private-key-file", path("apiserver.key")),
        ("client-ca-file", path("ca.crt")),
        ("upstream-ca-file", path("serving-ca.crt")),
        ("peer-ca-file", path("serving-ca.crt")),
        ("requestheader-client-ca-file", path("front-proxy-ca.crt")),
        ("requestheader-allowed-names", "front-proxy-client".to_owned()),
        ("proxy-client-cert-file", path("front-proxy-client.crt")),
        ("proxy-client-key-file", path("front-proxy-client.key")),
    ];
    given.retain(|(flag, _)| !changed.iter().any(|(other, _)| other == flag));
    given.extend(changed.iter().cloned());
    let flags = given.into_iter().map(|(flag, value)| (names::by_flag(flag).unwrap(), vec![value]));
    run(&Flags(flags.collect()), std::iter::empty(), OsStr::new("node-a"), None).unwrap()
}

/// The findings of this verdict, each with its remedy.
fn of(findings: &[Finding], verdict: Verdict) -> Vec<String> {
    findings.iter().filter(|finding| finding.verdict == verdict).map(ToString::to_string).collect()
}

fn control_plane() -> (tempfile::TempDir, ControlPlane) {
    let directory = tempfile::tempdir().unwrap();
    let control_plane = ControlPlane::new(directory.path());
    control_plane.front_proxy().write(directory.path(), "front-proxy-client");
    (directory, control_plane)
}

#[test]
fn only_the_server_is_missing_where_all_is_well() {
    let (_directory, control_plane) = control_plane();
    let findings = found(&control_plane, &[]);
    let bad = of(&findings, Verdict::Bad);
    assert!(bad.iter().all(|finding| finding.contains("--upstream")) && bad.len() == 2, "{bad:#?}");
    let warnings = of(&findings, Verdict::Warning);
    assert_eq!(warnings.len(), 3, "UID, networks of peers and kubeconfig: {warnings:#?}");
    assert!(warnings.iter().all(|warning| warning.contains("\n    ")), "{warnings:#?}");
}

#[test]
fn networks_of_peers_that_are_named_are_no_finding() {
    let (_directory, control_plane) = control_plane();
    let found = |changed: &[(&str, String)]| of(&found(&control_plane, changed), Verdict::Warning).join("\n");
    assert!(found(&[]).contains("--peer-cidrs"));
    assert!(!found(&[("peer-cidrs", "10.0.0.0/24".to_owned())]).contains("--peer-cidrs"));
    assert!(!found(&[("peer-ca-file", String::new())]).contains("--peer-cidrs"), "without peers");
}

#[test]
fn settings_that_serve_refuses_are_the_only_finding() {
    let (_directory, control_plane) = control_plane();
    let findings = found(&control_plane, &[("peer-ca-file", String::new()), ("peers", "b=127.0.0.2:6443".to_owned())]);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].what.contains("--peer-ca-file"), "{}", findings[0]);
}

#[test]
fn each_wrong_certificate_is_found() {
    let (directory, control_plane) = control_plane();
    let day = Duration::from_secs(24 * 3600);
    let serving = |name: &str, profile: Profile| {
        let files = control_plane.serving_ca.issue(&profile).write(directory.path(), name);
        vec![
            ("tls-cert-file", files.certificate.display().to_string()),
            ("tls-private-key-file", files.private_key.display().to_string()),
        ]
    };
    let profile = || Profile::server("kube-apiserver", &["kubernetes.default.svc", "127.0.0.1"]);
    let now = SystemTime::now();
    let stranger =
        control_plane.client_ca.issue(&Profile::client("front-proxy-client")).write(directory.path(), "stranger");
    let other = control_plane.front_proxy_ca.issue(&Profile::client("somebody")).write(directory.path(), "somebody");
    let proxy = |files: &crate::settings::KeyPairFiles| {
        vec![
            ("proxy-client-cert-file", files.certificate.display().to_string()),
            ("proxy-client-key-file", files.private_key.display().to_string()),
        ]
    };
    let own_key = control_plane.path("apiserver.key").display().to_string();
    let table = [
        (serving("old", Profile { not_after: now - day, ..profile() }), Verdict::Bad, "has ended"),
        (serving("ageing", Profile { not_after: now + 29 * day, ..profile() }), Verdict::Warning, "ends on"),
        (serving("early", Profile { not_before: now + day, ..profile() }), Verdict::Bad, "not valid yet"),
        (serving("nameless", Profile::server("kube-apiserver", &["127.0.0.1"])), Verdict::Bad, "peers refuse"),
        (
            serving("homeless", Profile::server("kube-apiserver", &["kubernetes.default.svc"])),
            Verdict::Warning,
            "does not carry 127.0.0.1",
        ),
        (vec![("tls-cert-file", "/nothing/here".to_owned())], Verdict::Bad, "/nothing/here"),
        (vec![("proxy-client-key-file", own_key)], Verdict::Bad, "do not form a usable pair"),
        (proxy(&stranger), Verdict::Bad, "servers do not believe"),
        (proxy(&other), Verdict::Bad, "its name is somebody"),
        (vec![("peer-ca-file", control_plane.path("ca.crt").display().to_string())], Verdict::Bad, "peers refuse"),
    ];
    for (changed, verdict, words) in table {
        let findings = found(&control_plane, &changed);
        let of_verdict = of(&findings, verdict);
        assert!(of_verdict.iter().any(|finding| finding.contains(words)), "{words}: {findings:#?}");
    }
}
