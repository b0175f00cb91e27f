//! What a server published of OpenAPI, in the words of its file. Documents are kept as they lie in memory: compressed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use data_encoding::BASE64;
use http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::file::Error;
use crate::openapi::Held;
use crate::openapi::held::Packed;
use crate::openapi::index::{Location, Publications};
use crate::peers::openapi::Remembered;

/// Bytes that one server's documents may take, compressed. Of a server with more only the index is kept, so that its
/// lists have room: its documents are then listed and answered with 503 until it is heard.
const MAX_PACKED_BYTES: usize = 24 << 20;

/// Bytes that one document may unpack to: what is taken of a server.
const MAX_BYTES: usize = 64 << 20;

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OpenApi {
    version: Vec<u64>,
    publications: Publications,
    documents: Vec<Document>,
    v2: Option<Document>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    url: String,
    hash: String,
    /// Seconds since 1970, which is as exact as headers are.
    modified: u64,
    json: String,
    protobuf: Option<String>,
}

impl OpenApi {
    pub(super) fn of(remembered: &Remembered) -> Self {
        let Remembered { publications, version, documents, v2 } = remembered;
        let bytes: usize = documents.values().chain(v2).map(|held| held.packed_bytes()).sum();
        let is_kept = bytes <= MAX_PACKED_BYTES;
        Self {
            version: version.clone(),
            publications: publications.clone(),
            documents: documents.iter().filter(|_| is_kept).map(|(at, held)| Document::of(&at.url, held)).collect(),
            v2: v2.as_ref().filter(|_| is_kept).map(|held| Document::of("/openapi/v2", held)),
        }
    }

    pub(super) fn remembered(self) -> Result<Remembered, Error> {
        let documents = self.documents.into_iter().map(|one| {
            let (location, held) = one.held()?;
            // What is asked for by its hash is never another document.
            let is_right = location.hash().is_none_or(|hash| hash == held.hash);
            is_right.then_some((location, held)).ok_or(Error::Document)
        });
        Ok(Remembered {
            documents: documents.collect::<Result<BTreeMap<_, _>, Error>>()?,
            v2: self.v2.map(Document::held).transpose()?.map(|(_, held)| held),
            publications: self.publications,
            version: self.version,
        })
    }
}

impl Document {
    fn of(url: &str, held: &Held) -> Self {
        let text = |packed: &Packed| BASE64.encode(&packed.gzip());
        let modified = held.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            url: url.to_owned(),
            hash: held.hash.clone(),
            modified: modified.as_secs(),
            json: text(&held.json),
            protobuf: held.protobuf.as_ref().map(text),
        }
    }

    fn held(self) -> Result<(Location, Arc<Held>), Error> {
        let packed = |text: String| {
            let gzip = BASE64.decode(text.as_bytes()).map_err(|_| Error::Document)?;
            Packed::of_gzip(gzip.into(), MAX_BYTES).ok_or(Error::Document)
        };
        let held = Held {
            etag: HeaderValue::try_from(format!("\"{}\"", self.hash)).map_err(|_| Error::Document)?,
            hash: self.hash,
            modified: SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(self.modified)).ok_or(Error::Document)?,
            json: packed(self.json)?,
            protobuf: self.protobuf.map(packed).transpose()?,
        };
        Ok((Location { url: self.url }, Arc::new(held)))
    }
}
