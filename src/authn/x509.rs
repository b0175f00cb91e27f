//! A certificate's subject as a user: common name, organizations, UID.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/authentication/request/x509/x509.go>
//! (`CommonNameUserConversion`)

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use rustls_pki_types::CertificateDer;
use x509_parser::asn1_rs::{Oid, Tag, oid};
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, X509Certificate};

use super::{Refusal, identity_headers};
use crate::apimachinery::user::UserInfo;

/// Extra key that names the credential.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/authentication/user/user.go> (`CredentialIDKey`)
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// Subject attribute that holds the UID.
/// Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/apis/asn1/oid.go> (`X509UID`)
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);
const COMMON_NAME: Oid<'static> = oid!(2.5.4.3);
const ORGANIZATION: Oid<'static> = oid!(2.5.4.10);
const UNREADABLE: Refusal = Refusal::Certificate(super::CertificateError::Parse);

/// First minor version whose kube-apiserver adds the credential ID.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.32.0/pkg/authentication/request/x509/x509.go>
const CREDENTIAL_ID_SINCE: u32 = 32;
/// First minor version that reads a UID from the subject by default (gate `AllowParsingUserUIDFromCertAuth`).
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/features/kube_features.go>
const UID_SINCE: u32 = 33;

/// What the co-located version takes from a certificate besides name and groups.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Compatibility {
    credential_id: bool,
    uid: bool,
}

impl Compatibility {
    /// That of Kubernetes 1.`minor`.
    pub(super) fn of_minor(minor: u32) -> Self {
        Self { credential_id: minor >= CREDENTIAL_ID_SINCE, uid: minor >= UID_SINCE }
    }
}

impl Default for Compatibility {
    fn default() -> Self {
        Self { credential_id: true, uid: true }
    }
}

/// The user of a verified certificate; `None` if it has no common name.
pub(super) fn user(leaf: &CertificateDer<'_>, compatibility: Compatibility) -> Result<Option<UserInfo>, Refusal> {
    let (_, parsed) = X509Certificate::from_der(leaf).map_err(|_| UNREADABLE)?;
    let (mut name, mut groups, mut uids) = (String::new(), Vec::new(), Vec::new());
    for attribute in parsed.subject().iter_attributes() {
        let oid = attribute.attr_type();
        if *oid == UID {
            uids.push(text(attribute)?);
        } else if *oid == COMMON_NAME {
            name = text(attribute)?; // The last one counts, as in Go.
        } else if *oid == ORGANIZATION {
            groups.push(text(attribute)?);
        }
    }
    if name.is_empty() {
        return Ok(None);
    }
    let uid = if compatibility.uid { single(uids)? } else { String::new() };
    let extra = if compatibility.credential_id { vec![credential_id(leaf)] } else { Vec::new() };
    let user = super::union::with_authenticated_group(UserInfo { name, uid, groups, extra });
    identity_headers::check(&user)?;
    Ok(Some(user))
}

/// The common name; `None` if there is none or it cannot be read.
pub(super) fn common_name(leaf: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(leaf).ok()?;
    let last = parsed.subject().iter_common_name().last()?;
    text(last).ok()
}

fn single(mut uids: Vec<String>) -> Result<String, Refusal> {
    match (uids.pop(), uids.is_empty()) {
        (None, _) => Ok(String::new()),
        (Some(uid), true) if !uid.is_empty() => Ok(uid),
        _ => Err(Refusal::Uid),
    }
}

fn credential_id(leaf: &CertificateDer<'_>) -> (String, Vec<String>) {
    let mut id = "X509SHA256=".to_owned();
    for byte in digest(&SHA256, leaf).as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    (CREDENTIAL_ID.to_owned(), vec![id])
}

/// The attribute's text as Go reads it; an error where Go refuses the whole certificate.
/// Source: <https://github.com/golang/go/blob/go1.26.0/src/crypto/x509/parser.go> (`parseASN1String`)
fn text(attribute: &AttributeTypeAndValue<'_>) -> Result<String, Refusal> {
    let value = attribute.attr_value();
    let bytes = value.data;
    let utf8 = || std::str::from_utf8(bytes).ok().map(str::to_owned);
    let only = |allowed: fn(&u8) -> bool| if bytes.iter().all(allowed) { utf8() } else { None };
    let text = match value.tag() {
        Tag::Utf8String => utf8(),
        Tag::PrintableString => only(is_printable),
        Tag::Ia5String => only(u8::is_ascii),
        Tag::NumericString => only(|byte| byte.is_ascii_digit() || *byte == b' '),
        Tag::T61String => Some(bytes.iter().copied().map(char::from).collect()),
        Tag::BmpString => two_byte_text(bytes),
        _ => None,
    };
    text.ok_or(UNREADABLE)
}

/// The characters of PrintableString, and `*` and `&`, which Go tolerates.
fn is_printable(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(byte)
}

fn two_byte_text(bytes: &[u8]) -> Option<String> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let bytes = bytes.strip_suffix(&[0, 0]).unwrap_or(bytes);
    let points = bytes.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let reserved = |point: u32| point == 0xfffe || point == 0xffff || (0xfdd0..=0xfdef).contains(&point);
    // `char::from_u32` refuses surrogates by itself.
    points.map(|point| char::from_u32(point).filter(|_| !reserved(point))).collect()
}

#[cfg(test)]
mod tests;
