//! A document kept ready to be sent.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::time::SystemTime;

use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::HeaderValue;

/// One document in its two forms.
#[derive(Clone)]
pub struct Held {
    /// Hash of the content, as the index names it: the SHA-512 of the JSON form in upper-case hex. Both forms have it.
    /// Source: <https://github.com/kubernetes/kube-openapi/blob/43fb72c5454a/pkg/handler3/handler.go> (`computeETag`)
    pub hash: String,
    /// The hash in quotes.
    pub etag: HeaderValue,
    /// When this content was first seen or made here.
    pub modified: SystemTime,
    /// The JSON form.
    pub json: Packed,
    /// The protobuf form. A server may have none.
    pub protobuf: Option<Packed>,
}

impl Held {
    /// Keeps a document that was made here. Nothing if its hash is none that a header can carry.
    #[must_use]
    pub fn new(json: &[u8], protobuf: Option<&[u8]>, modified: SystemTime) -> Self {
        let hash = data_encoding::HEXUPPER.encode(digest(&SHA512, json).as_ref());
        let etag = HeaderValue::try_from(format!("\"{hash}\"")).expect("hex digits and quotes make a header value");
        Self { hash, etag, modified, json: Packed::new(json), protobuf: protobuf.map(Packed::new) }
    }

    /// Keeps a server's document under the entity tag that the server gave it; none if that is no strong tag.
    #[must_use]
    pub fn of_server(etag: &HeaderValue, json: &[u8], protobuf: Option<&[u8]>, modified: SystemTime) -> Option<Self> {
        let hash = etag.to_str().ok()?.strip_prefix('"')?.strip_suffix('"')?;
        let is_plain = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_plain.then(|| Self {
            hash: hash.to_owned(),
            etag: etag.clone(),
            modified,
            json: Packed::new(json),
            protobuf: protobuf.map(Packed::new),
        })
    }

    /// Bytes that it takes in memory.
    #[must_use]
    pub fn packed_bytes(&self) -> usize {
        self.json.gzip.len() + self.protobuf.as_ref().map_or(0, |packed| packed.gzip.len())
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("hash", &self.hash).field("bytes", &self.json.length).finish_non_exhaustive()
    }
}

/// Bytes kept compressed: OpenAPI shrinks to a tenth.
#[derive(Clone)]
pub struct Packed {
    gzip: Bytes,
    length: usize,
}

impl Packed {
    /// Compresses.
    #[must_use]
    pub fn new(plain: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(plain).and_then(|()| encoder.finish());
        Self { gzip: written.expect("memory takes every write").into(), length: plain.len() }
    }

    /// Takes what was compressed before; nothing if it cannot be unpacked, or has more than `most` bytes then.
    #[must_use]
    pub fn of_gzip(gzip: Bytes, most: usize) -> Option<Self> {
        let mut unpacked = GzDecoder::new(&*gzip).take(most as u64 + 1);
        let length = std::io::copy(&mut unpacked, &mut std::io::sink()).ok()?;
        let length = usize::try_from(length).ok().filter(|length| *length <= most)?;
        Some(Self { gzip, length })
    }

    /// Bytes that it unpacks to.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it unpacks to nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// As it is kept: for clients that take gzip.
    #[must_use]
    pub fn gzip(&self) -> Bytes {
        self.gzip.clone()
    }

    /// As it was.
    #[must_use]
    pub fn unpack(&self) -> Bytes {
        let mut plain = Vec::with_capacity(self.length);
        GzDecoder::new(&*self.gzip).read_to_end(&mut plain).expect("it was compressed here");
        plain.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_made_here_is_hashed_as_upstream_hashes() {
        let held = Held::new(b"{}", Some(b"pb"), SystemTime::UNIX_EPOCH);
        // printf '{}' | sha512sum | tr a-f A-F
        let expected = "27C74670ADB75075FAD058D5CEAF7B20C4E7786C83BAE8A32F626F9782AF34C9\
                        A33C2046EF60FD2A7878D378E29FEC851806BBD9A67878F3A9F1CDA4830763FD";
        assert_eq!(held.hash, expected);
        assert_eq!(held.etag, format!("\"{expected}\""));
        assert_eq!((held.json.unpack(), held.json.len()), (Bytes::from_static(b"{}"), 2));
        assert_eq!(held.protobuf.unwrap().unpack(), "pb");
    }

    #[test]
    fn only_what_unpacks_within_bounds_is_taken_as_compressed() {
        let gzip = Packed::new(b"openapi").gzip();
        let packed = Packed::of_gzip(gzip.clone(), 7).unwrap();
        assert_eq!((packed.len(), packed.unpack()), (7, Bytes::from_static(b"openapi")));
        assert!(Packed::of_gzip(gzip.clone(), 6).is_none());
        assert!(Packed::of_gzip(gzip.slice(..gzip.len() - 1), 7).is_none());
        assert!(Packed::of_gzip(Bytes::from_static(b"openapi"), 7).is_none());
    }

    #[test]
    fn only_a_strong_tag_of_letters_and_digits_is_taken() {
        let of = |tag: &'static str| {
            Held::of_server(&HeaderValue::from_static(tag), b"{}", None, SystemTime::UNIX_EPOCH).map(|held| held.hash)
        };
        assert_eq!(of("\"A1\"").as_deref(), Some("A1"));
        for tag in ["", "A1", "W/\"A1\"", "\"\"", "\"a b\"", "\"a&b\""] {
            assert_eq!(of(tag), None, "{tag}");
        }
    }
}
