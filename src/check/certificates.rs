//! Certificates: readable, matching, valid for some time, with the names that clients and peers use.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Finding;
use crate::settings::{KeyPairFiles, Peering, Settings};
use crate::telemetry::Chain;
use crate::tls::{self, material};

/// Seconds before its end from which a certificate is near it: a month, in which somebody looks at it once.
const NEAR: i64 = 30 * 24 * 3600;

/// What a kubeadm cluster does about an old certificate.
const RENEW: &str = "renew it (kubeadm certs renew all), then start kube-apiserver and peerfront anew";

pub(super) fn check(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let serving = std::iter::once(&settings.serving.certificate);
    let pairs = serving.chain(settings.serving.sni_certificates.iter().map(|sni| &sni.files));
    for files in pairs.chain([&settings.proxy_client]) {
        findings.push(pair(files));
        findings.extend(ages(&files.certificate));
    }
    let mut bundles: Vec<&Path> = authorities(settings);
    bundles.sort_unstable();
    bundles.dedup();
    for bundle in bundles {
        findings.extend(ages(bundle));
    }
    findings.extend(names(settings));
    findings.extend(seen_by_peers(settings));
    findings.extend(believed_as_front_proxy(settings));
    findings
}

fn authorities(settings: &Settings) -> Vec<&Path> {
    let authentication = &settings.authentication;
    let peers = match &settings.peering {
        Peering::On(peering) => Some(peering.ca_file.as_path()),
        Peering::Off(_) => None,
    };
    let request_header = authentication.request_header.as_ref().map(|it| it.client_ca_file.as_path());
    let all = [authentication.client_ca_file.as_deref(), request_header, Some(&*settings.upstream.ca_file), peers];
    all.into_iter().flatten().collect()
}

fn pair(files: &KeyPairFiles) -> Finding {
    match material::key_pair(files, &tls::provider()) {
        Ok(_) => Finding::good(format!("{} and its key belong together", files.certificate.display())),
        Err(error) => Finding::bad(Chain(&error).to_string(), ""),
    }
}

/// One finding for each certificate that has ended or is about to, else one for the file.
fn ages(path: &Path) -> Vec<Finding> {
    let certificates = match material::certificates(path) {
        Ok(certificates) => certificates,
        Err(error) => return vec![Finding::bad(Chain(&error).to_string(), "")],
    };
    let now = seconds_now();
    let mut findings = Vec::new();
    for certificate in &certificates {
        let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
            findings
                .push(Finding::bad(format!("{} holds a certificate that is not X.509", path.display()), "replace it"));
            continue;
        };
        let (subject, end) = (parsed.subject(), &parsed.validity().not_after);
        let what = |verb| format!("{}: the certificate of {subject} {verb} on {end}", path.display());
        match end.timestamp() - now {
            left if left <= 0 => findings.push(Finding::bad(what("has ended"), RENEW)),
            left if left < NEAR => findings.push(Finding::warning(what("ends"), RENEW)),
            _ if parsed.validity().not_before.timestamp() > now => {
                findings
                    .push(Finding::bad(format!("{}: not valid yet", path.display()), "look at this machine's clock"));
            }
            _ => {}
        }
    }
    if findings.is_empty() {
        findings.push(Finding::good(format!("{} is valid for more than 30 days", path.display())));
    }
    findings
}

fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The serving certificate must carry every address that clients are told.
fn names(settings: &Settings) -> Vec<Finding> {
    let path = &settings.serving.certificate.certificate;
    let Some(leaf) = leaf(path) else { return Vec::new() };
    let carried = addresses(&leaf);
    let wanted = settings.serving.bind_addresses.iter().copied().chain(settings.advertise_address);
    let mut missing: Vec<IpAddr> =
        wanted.filter(|address| !address.is_unspecified() && !carried.contains(address)).collect();
    missing.dedup();
    let finding = |address: IpAddr| {
        Finding::warning(
            format!("{} does not carry {address}: clients that connect to it refuse the certificate", path.display()),
            "add the address to apiServer.certSANs of kubeadm's configuration and make the certificate anew",
        )
    };
    missing.into_iter().map(finding).collect()
}

fn leaf(path: &Path) -> Option<CertificateDer<'static>> {
    material::certificates(path).ok()?.into_iter().next()
}

fn addresses(certificate: &CertificateDer<'_>) -> Vec<IpAddr> {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return Vec::new() };
    let Ok(Some(names)) = parsed.subject_alternative_name() else { return Vec::new() };
    let address = |name: &GeneralName<'_>| match name {
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(IpAddr::from),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(IpAddr::from),
        },
        _ => None,
    };
    names.value.general_names.iter().filter_map(address).collect()
}

/// Peers accept this front only under the name that every kube-apiserver has, signed by the CA that they share.
fn seen_by_peers(settings: &Settings) -> Option<Finding> {
    let Peering::On(peering) = &settings.peering else { return None };
    let path = &settings.serving.certificate.certificate;
    let (chain, roots) = (material::certificates(path).ok()?, roots(&peering.ca_file)?);
    let (leaf, intermediates) = chain.split_first()?;
    let name = ServerName::try_from(tls::PEER_SERVER_NAME).ok()?;
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, tls::provider()).build().ok()?;
    Some(match verifier.verify_server_cert(leaf, intermediates, &name, &[], UnixTime::now()) {
        Ok(_) => Finding::good(format!("peers accept {} as {}", path.display(), tls::PEER_SERVER_NAME)),
        Err(error) => Finding::bad(
            format!("peers refuse {}: {error}", path.display()),
            format!(
                "it must carry {} and be signed by {} (--peer-ca-file)",
                tls::PEER_SERVER_NAME,
                peering.ca_file.display()
            ),
        ),
    })
}

/// Servers and peers believe what this front says of callers only if its client certificate is a front proxy's.
fn believed_as_front_proxy(settings: &Settings) -> Option<Finding> {
    let request_header = settings.authentication.request_header.as_ref()?;
    let path = &settings.proxy_client.certificate;
    let (chain, roots) = (material::certificates(path).ok()?, roots(&request_header.client_ca_file)?);
    let (leaf, intermediates) = chain.split_first()?;
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, tls::provider()).build().ok()?;
    if let Err(error) = verifier.verify_client_cert(leaf, intermediates, UnixTime::now()) {
        return Some(Finding::bad(
            format!("servers do not believe {}: {error}", path.display()),
            format!(
                "it must be signed by {} (--requestheader-client-ca-file)",
                request_header.client_ca_file.display()
            ),
        ));
    }
    let name = common_name(leaf)?;
    if request_header.allowed_names.is_empty() || request_header.allowed_names.contains(&name) {
        return Some(Finding::good(format!("servers believe {} as front proxy {name}", path.display())));
    }
    Some(Finding::bad(
        format!("servers do not believe {}: its name is {name}", path.display()),
        format!("--requestheader-allowed-names has only: {}", request_header.allowed_names.join(", ")),
    ))
}

fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let name = parsed.subject().iter_common_name().next()?.as_str().ok()?;
    Some(name.to_owned())
}

fn roots(path: &Path) -> Option<Arc<RootCertStore>> {
    let mut roots = RootCertStore::empty();
    for certificate in material::certificates(path).ok()? {
        roots.add(certificate).ok()?;
    }
    Some(Arc::new(roots))
}
