//! The bytes of a file: a line with the format and the SHA-256 of the rest, then JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::Remembered;
use super::documents::OpenApi;
use crate::apimachinery::gvr::GroupVersion;
use crate::apimachinery::peer::{Peer, PeerKind};
use crate::apimachinery::server_id::ServerId;
use crate::discovery::ApiGroupDiscoveryList;
use crate::discovery::legacy::{ApiResourceList, ApiVersions, LegacyDocuments};
use crate::view::ServerVersion;

/// First word of a file. A file of another format is ignored, since a server says all of it again.
const FORMAT: &str = "peerfront-cache/1";

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// Of another release, or no such file at all.
    #[error("it does not begin with {FORMAT}")]
    Format,
    /// Cut off or damaged.
    #[error("its checksum is wrong")]
    Checksum,
    /// Renamed.
    #[error("it is of server {0:?}")]
    OtherServer(String),
    /// The same of a document in it.
    #[error("it has an OpenAPI document that cannot be decoded")]
    Document,
    /// Not written by this release.
    #[error("it cannot be decoded")]
    Decode(#[from] serde_json::Error),
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Contents<'a> {
    server: String,
    peer: Option<Address>,
    api: Option<Cow<'a, ApiGroupDiscoveryList>>,
    apis: Option<Cow<'a, ApiGroupDiscoveryList>>,
    legacy_api: Option<Cow<'a, ApiVersions>>,
    legacy_resources: BTreeMap<String, Cow<'a, ApiResourceList>>,
    version: Option<Version>,
    gives_v2beta1: bool,
    #[serde(rename = "openAPI")]
    openapi: Option<OpenApi>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Address {
    hostname: String,
    address: SocketAddr,
    is_front: bool,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Version {
    minor: u32,
    git_version: String,
}

pub(super) fn encode(id: &ServerId, remembered: &Remembered) -> Result<Vec<u8>, Error> {
    let Remembered { peer, api, apis, legacy, version, gives_v2beta1, openapi } = remembered;
    let version = version.clone().map(|ServerVersion { minor, git_version }| Version { minor, git_version });
    let resources = legacy.resources.iter();
    let body = serde_json::to_vec(&Contents {
        server: id.to_string(),
        peer: peer.as_deref().map(|peer| Address {
            hostname: peer.hostname.clone(),
            address: peer.address,
            is_front: peer.kind == PeerKind::Front,
        }),
        api: api.as_deref().map(Cow::Borrowed),
        apis: apis.as_deref().map(Cow::Borrowed),
        legacy_api: legacy.api.as_deref().map(Cow::Borrowed),
        legacy_resources: resources.map(|(name, list)| (name.to_string(), Cow::Borrowed(list.as_ref()))).collect(),
        version,
        gives_v2beta1: *gives_v2beta1,
        openapi: openapi.as_deref().map(OpenApi::of),
    })?;
    let mut bytes = format!("{FORMAT} {}\n", checksum(&body)).into_bytes();
    bytes.extend(body);
    Ok(bytes)
}

pub(super) fn decode(id: &ServerId, bytes: &[u8]) -> Result<Remembered, Error> {
    let rest = bytes.strip_prefix(FORMAT.as_bytes()).and_then(|rest| rest.strip_prefix(b" ")).ok_or(Error::Format)?;
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or(Error::Checksum)?;
    let (sum, body) = (&rest[..end], &rest[end + 1..]);
    if sum != checksum(body).as_bytes() {
        return Err(Error::Checksum);
    }
    let contents: Contents<'_> = serde_json::from_slice(body)?;
    if contents.server != id.to_string() {
        return Err(Error::OtherServer(contents.server));
    }
    let legacy = LegacyDocuments {
        api: contents.legacy_api.map(owned),
        resources: contents
            .legacy_resources
            .into_iter()
            .map(|(name, list)| (GroupVersion::parse(&name), owned(list)))
            .collect(),
    };
    let peer = contents.peer.map(|Address { hostname, address, is_front }| {
        let kind = if is_front { PeerKind::Front } else { PeerKind::Plain };
        Arc::new(Peer { id: id.clone(), hostname, address, kind })
    });
    Ok(Remembered {
        peer,
        api: contents.api.map(owned),
        apis: contents.apis.map(owned),
        legacy: Arc::new(legacy),
        version: contents.version.map(|Version { minor, git_version }| ServerVersion { minor, git_version }),
        gives_v2beta1: contents.gives_v2beta1,
        openapi: contents.openapi.map(OpenApi::remembered).transpose()?.map(Arc::new),
    })
}

fn owned<T: Clone>(value: Cow<'_, T>) -> Arc<T> {
    Arc::new(value.into_owned())
}

fn checksum(body: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, body).as_ref())
}
