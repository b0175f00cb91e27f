//! The authorities and files of one control plane, named as kubeadm names them.

use std::path::{Path, PathBuf};

use super::{Identity, Profile, pem};
use crate::settings::{
    AuthenticationSettings, IdentityHeaderNames, KeyPairFiles, RequestHeaderSettings, ServingSettings, TlsVersion,
};

/// Name that kubeadm gives a front proxy's certificate.
pub const FRONT_PROXY_CLIENT: &str = "front-proxy-client";

/// Three authorities and a serving pair for `kubernetes.default.svc` and 127.0.0.1.
#[derive(Debug)]
pub struct ControlPlane {
    /// Signs serving certificates.
    pub serving_ca: Identity,
    /// Signs users.
    pub client_ca: Identity,
    /// Signs front proxies.
    pub front_proxy_ca: Identity,
    directory: PathBuf,
    certificate: KeyPairFiles,
}

impl ControlPlane {
    /// Makes the keys and writes `serving-ca.crt`, `ca.crt`, `front-proxy-ca.crt` and `apiserver.{crt,key}`.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        let serving_ca = Identity::root("serving-ca");
        let serving = serving_ca.issue(&Profile::server("kube-apiserver", &["kubernetes.default.svc", "127.0.0.1"]));
        let plane = Self {
            client_ca: Identity::root("kubernetes"),
            front_proxy_ca: Identity::root("front-proxy-ca"),
            certificate: serving.write(directory, "apiserver"),
            directory: directory.to_owned(),
            serving_ca,
        };
        plane.write_bundle("serving-ca.crt", &[&plane.serving_ca]);
        plane.write_bundle("ca.crt", &[&plane.client_ca]);
        plane.write_bundle("front-proxy-ca.crt", &[&plane.front_proxy_ca]);
        plane
    }

    /// Where a file of this name lies or would lie.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes certificates, without what signed them, as one bundle.
    pub fn write_bundle(&self, name: &str, members: &[&Identity]) -> PathBuf {
        let certificates: Vec<_> = members.iter().map(|member| member.certificate().clone()).collect();
        let path = self.path(name);
        std::fs::write(&path, pem(&certificates)).unwrap();
        path
    }

    /// A user of these groups.
    #[must_use]
    pub fn user(&self, name: &str, groups: &[&str]) -> Identity {
        self.client_ca.issue(&groups.iter().fold(Profile::client(name), |profile, group| profile.organization(group)))
    }

    /// A front proxy whose word is accepted.
    #[must_use]
    pub fn front_proxy(&self) -> Identity {
        self.front_proxy_ca.issue(&Profile::client(FRONT_PROXY_CLIENT))
    }

    /// Settings of a listener on a free loopback port.
    #[must_use]
    pub fn serving_settings(&self) -> ServingSettings {
        ServingSettings {
            bind_addresses: vec![std::net::Ipv4Addr::LOCALHOST.into()],
            secure_port: 0,
            certificate: self.certificate.clone(),
            sni_certificates: Vec::new(),
            tls_min_version: TlsVersion::V1_2,
            tls_cipher_suites: Vec::new(),
            http2_max_streams_per_connection: 100,
        }
    }

    /// Users of `ca.crt`, and front proxies of `front-proxy-ca.crt` named `front-proxy-client`.
    #[must_use]
    pub fn authentication_settings(&self) -> AuthenticationSettings {
        AuthenticationSettings {
            client_ca_file: Some(self.path("ca.crt")),
            request_header: Some(RequestHeaderSettings {
                client_ca_file: self.path("front-proxy-ca.crt"),
                allowed_names: vec![FRONT_PROXY_CLIENT.to_owned()],
            }),
            identity_headers: IdentityHeaderNames::default(),
        }
    }
}
