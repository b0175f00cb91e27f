//! What the tests of this room share.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use prost::encoding::{WireType, encode_key, encode_varint};

use super::held::Held;
use super::index::{Index, Location, Publications};

/// When every document of a test was made: 2026-11-30 19:12:35 UTC.
pub(super) fn made() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_065_955)
}

pub(super) fn held(json: &[u8]) -> Arc<Held> {
    Arc::new(Held::new(json, Some(b"protobuf"), made()))
}

pub(super) fn location(key: &str, hash: &str) -> Location {
    Location { url: format!("/openapi/v3/{key}?hash={hash}") }
}

pub(super) fn index(paths: &[(&str, &str)]) -> Index {
    Index { paths: paths.iter().map(|(key, hash)| ((*key).to_owned(), location(key, hash))).collect() }
}

/// Several documents of one key are published by turns.
pub(super) fn publications(documents: &[(&str, &str)]) -> Publications {
    let mut publications = Publications::default();
    for (key, hash) in documents {
        publications.entry((*key).to_owned()).or_default().insert(location(key, hash));
    }
    publications
}

/// A field that holds these bytes.
pub(super) fn message(number: u32, parts: &[Vec<u8>]) -> Vec<u8> {
    let payload = parts.concat();
    let mut field = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut field);
    encode_varint(payload.len() as u64, &mut field);
    field.extend(payload);
    field
}

/// A named entry.
pub(super) fn named(number: u32, name: &str, value: &[u8]) -> Vec<u8> {
    message(number, &[message(1, &[name.as_bytes().to_vec()]), message(2, &[value.to_vec()])])
}
