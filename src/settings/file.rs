//! The shape of settings on disk: one flat map, the keys being the flags in camelCase.
//!
//! Every layer has this shape before it is merged, and [`Settings`] prints itself in it, so that what is printed can be
//! used as a file again. Texts are not understood here; `resolve` does that.

use std::collections::BTreeMap;
use std::fmt;

use http::HeaderName;
use serde::{Deserialize, Serialize};

use crate::apimachinery::peer::PeerKind;

use super::{KeyPairFiles, LogFormat, Peering, PeeringSettings, Settings, SniCertificate, StaticPeer, TlsVersion};

/// All settings as written. Absent and empty mean the same: not set.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct File {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) bind_address: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secure_port: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advertise_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_cert_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_private_key_file: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tls_sni_cert_key: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_min_version: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tls_cipher_suites: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) http2_max_streams_per_connection: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_ca_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requestheader_client_ca_file: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) requestheader_allowed_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) requestheader_username_headers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) requestheader_uid_headers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) requestheader_group_headers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) requestheader_extra_headers_prefix: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proxy_client_cert_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proxy_client_key_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) upstream: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) upstream_ca_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) upstream_server_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer_ca_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer_advertise_ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer_advertise_port: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) peers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) peer_cidrs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hostname_override: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) admin_bind_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_dir: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) feature_gates: BTreeMap<String, bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) log_format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) log_filter: Option<String>,
}

/// The effective settings as YAML that `--config` reads. There are no secrets in it: keys are named by their file.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_norway::to_string(&File::from(self)).map_err(|_| fmt::Error)?)
    }
}

/// The effective settings in the shape of the file.
impl Serialize for Settings {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        File::from(self).serialize(serializer)
    }
}

impl From<&Settings> for File {
    fn from(settings: &Settings) -> Self {
        let file = Self::default().with_serving(settings).with_authentication(settings).with_peering(&settings.peering);
        let (proxy_client_cert_file, proxy_client_key_file) = pair(&settings.proxy_client);
        Self {
            proxy_client_cert_file,
            proxy_client_key_file,
            upstream: Some(format!("https://{}", settings.upstream.address)),
            upstream_ca_file: Some(settings.upstream.ca_file.display().to_string()),
            upstream_server_name: Some(settings.upstream.server_name.clone()),
            hostname_override: Some(settings.hostname.clone()),
            admin_bind_address: Some(settings.admin_bind_address.to_string()),
            // Nowhere is an empty text: without any the default would count.
            cache_dir: Some(settings.cache_dir.as_ref().map(|path| path.display().to_string()).unwrap_or_default()),
            feature_gates: settings.feature_gates.iter().map(|(name, on)| (name.clone(), *on)).collect(),
            log_format: Some(settings.logging.format.to_string()),
            log_filter: Some(settings.logging.filter.clone()),
            ..file
        }
    }
}

impl File {
    fn with_serving(self, settings: &Settings) -> Self {
        let serving = &settings.serving;
        let (tls_cert_file, tls_private_key_file) = pair(&serving.certificate);
        Self {
            bind_address: strings(&serving.bind_addresses),
            secure_port: Some(u64::from(serving.secure_port)),
            advertise_address: settings.advertise_address.map(|address| address.to_string()),
            tls_cert_file,
            tls_private_key_file,
            tls_sni_cert_key: strings(&serving.sni_certificates),
            tls_min_version: Some(serving.tls_min_version.to_string()),
            tls_cipher_suites: serving.tls_cipher_suites.clone(),
            http2_max_streams_per_connection: Some(u64::from(serving.http2_max_streams_per_connection)),
            ..self
        }
    }

    fn with_authentication(self, settings: &Settings) -> Self {
        let authentication = &settings.authentication;
        let request_header = authentication.request_header.as_ref();
        let headers = &authentication.identity_headers;
        Self {
            client_ca_file: authentication.client_ca_file.as_ref().map(|path| path.display().to_string()),
            requestheader_client_ca_file: request_header.map(|rh| rh.client_ca_file.display().to_string()),
            requestheader_allowed_names: request_header.map(|rh| rh.allowed_names.clone()).unwrap_or_default(),
            requestheader_username_headers: strings::<HeaderName>(&headers.username),
            requestheader_uid_headers: strings::<HeaderName>(&headers.uid),
            requestheader_group_headers: strings::<HeaderName>(&headers.group),
            requestheader_extra_headers_prefix: headers.extra_prefix.clone(),
            ..self
        }
    }

    fn with_peering(self, peering: &Peering) -> Self {
        let Peering::On(PeeringSettings { ca_file, advertise_address, static_peers, cidrs }) = peering else {
            return self;
        };
        // Port 0 stands for the free port that --secure-port=0 takes and cannot be written down.
        let advertised = (advertise_address.port() != 0).then_some(advertise_address);
        Self {
            peer_ca_file: Some(ca_file.display().to_string()),
            peer_advertise_ip: advertised.map(|address| address.ip().to_string()),
            peer_advertise_port: advertised.map(|address| u64::from(address.port())),
            peers: strings(static_peers),
            peer_cidrs: strings(cidrs),
            ..self
        }
    }
}

fn pair(files: &KeyPairFiles) -> (Option<String>, Option<String>) {
    (Some(files.certificate.display().to_string()), Some(files.private_key.display().to_string()))
}

fn strings<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(T::to_string).collect()
}

impl fmt::Display for SniCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.files.certificate.display(), self.files.private_key.display())?;
        if self.names.is_empty() { Ok(()) } else { write!(f, ":{}", self.names.join(",")) }
    }
}

impl fmt::Display for StaticPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = if self.kind == PeerKind::Plain { "plain:" } else { "" };
        write!(f, "{}={plain}{}", self.hostname, self.address)
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_2 => "VersionTLS12",
            Self::V1_3 => "VersionTLS13",
        })
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}
