//! Protobuf documents taken apart and put together at their named entries; everything else keeps its bytes.
//!
//! Only the way to the entries is known here. What an entry says is never decoded, so fields of newer releases survive.
//!
//! Sources: <https://github.com/google/gnostic-models/blob/v0.7.0/openapiv3/OpenAPIv3.proto>,
//! <https://github.com/google/gnostic-models/blob/v0.7.0/openapiv2/OpenAPIv2.proto>

use std::collections::BTreeMap;

use bytes::Buf;
use prost::DecodeError;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};

/// Where a document keeps a kind of entries: fields that lead to the message that holds them, and their own number
/// in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    way: &'static [u32],
    entry: u32,
}

/// `Document.paths.path` of OpenAPI v3.
pub(super) const V3_PATHS: Place = Place { way: &[4], entry: 1 };
/// `Document.components.schemas.additional_properties` of OpenAPI v3.
pub(super) const V3_SCHEMAS: Place = Place { way: &[5, 1], entry: 1 };
/// `Document.paths.path` of OpenAPI v2.
pub(super) const V2_PATHS: Place = Place { way: &[8], entry: 2 };
/// `Document.definitions.additional_properties` of OpenAPI v2.
pub(super) const V2_DEFINITIONS: Place = Place { way: &[9], entry: 1 };

/// Field of an entry's name, in all four.
const NAME: u32 = 1;

/// Why bytes are no document.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They do not follow the encoding.
    #[error("it is no protobuf")]
    Decode(#[from] DecodeError),
    /// A length reaches beyond the end, or a group is used, which no document has.
    #[error("it breaks off or has a field of an unknown form")]
    Broken,
}

/// One field with its bytes.
struct Field<'a> {
    number: u32,
    /// Key, length and value.
    whole: &'a [u8],
    /// The value of a message, text or bytes.
    payload: Option<&'a [u8]>,
}

/// The fields of a message, in order.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = Result<Field<'_>, Error>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = field(rest);
        rest = field.as_ref().map_or(&[], |field| &rest[field.whole.len()..]);
        Some(field)
    })
}

fn field(message: &[u8]) -> Result<Field<'_>, Error> {
    let mut rest = message;
    let (number, wire_type) = decode_key(&mut rest)?;
    let length = match wire_type {
        WireType::Varint => {
            decode_varint(&mut rest)?;
            0
        }
        WireType::ThirtyTwoBit => 4,
        WireType::SixtyFourBit => 8,
        WireType::LengthDelimited => usize::try_from(decode_varint(&mut rest)?).map_err(|_| Error::Broken)?,
        WireType::StartGroup | WireType::EndGroup => return Err(Error::Broken),
    };
    let payload = rest.get(..length).ok_or(Error::Broken)?;
    let whole = &message[..message.len() - rest.remaining() + length];
    Ok(Field { number, whole, payload: (wire_type == WireType::LengthDelimited).then_some(payload) })
}

/// The entries at a place, each with its key and length, by name.
pub(super) fn entries(document: &[u8], place: Place) -> Result<BTreeMap<&str, &[u8]>, Error> {
    let mut holders = vec![document];
    for number in place.way {
        let mut below = Vec::new();
        for holder in holders {
            for field in fields(holder) {
                let field = field?;
                below.extend(field.payload.filter(|_| field.number == *number));
            }
        }
        holders = below;
    }
    let mut found = BTreeMap::new();
    for holder in holders {
        for field in fields(holder) {
            let field = field?;
            if let Some(entry) = field.payload.filter(|_| field.number == place.entry) {
                found.insert(name_of(entry)?, field.whole);
            }
        }
    }
    Ok(found)
}

fn name_of(entry: &[u8]) -> Result<&str, Error> {
    for field in fields(entry) {
        let field = field?;
        if let Some(name) = field.payload.filter(|_| field.number == NAME) {
            return std::str::from_utf8(name).map_err(|_| Error::Broken);
        }
    }
    Ok("")
}

/// The document with these entries at a place, instead of its own.
pub(super) fn replace(document: &[u8], place: Place, entries: &[&[u8]]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(document.len() + document.len() / 8);
    replace_below(document, place.way, place.entry, entries, &mut out)?;
    Ok(out)
}

fn replace_below(message: &[u8], way: &[u32], entry: u32, entries: &[&[u8]], out: &mut Vec<u8>) -> Result<(), Error> {
    let (next, rest) = way.split_first().map_or((entry, None), |(next, rest)| (*next, Some(rest)));
    let write = |below: &[u8], out: &mut Vec<u8>| match rest {
        None => {
            entries.iter().for_each(|entry| out.extend_from_slice(entry));
            Ok(())
        }
        Some(rest) => {
            let mut replaced = Vec::with_capacity(below.len());
            replace_below(below, rest, entry, entries, &mut replaced)?;
            encode_key(next, WireType::LengthDelimited, out);
            encode_varint(replaced.len() as u64, out);
            out.extend_from_slice(&replaced);
            Ok::<_, Error>(())
        }
    };
    let mut is_written = false;
    for field in fields(message) {
        let field = field?;
        match field.payload.filter(|_| field.number == next) {
            None => out.extend_from_slice(field.whole),
            Some(below) if !is_written => {
                is_written = true;
                write(below, out)?;
            }
            Some(_) => {}
        }
    }
    if !is_written && !entries.is_empty() {
        write(&[], out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{message, named};
    use super::*;

    #[test]
    fn entries_are_found_by_name_and_replaced_in_place() {
        let (a, b) = (named(1, "/a", b"1"), named(1, "/b", b"2"));
        let schemas = message(5, &[message(1, &[named(1, "s", b"x")]), message(7, &[b"".to_vec()])]);
        let document = [message(1, &[b"3.0.0".to_vec()]), message(4, &[a.clone(), message(2, &[])]), schemas].concat();
        assert_eq!(entries(&document, V3_PATHS).unwrap().into_iter().collect::<Vec<_>>(), [("/a", a.as_slice())]);
        assert_eq!(entries(&document, V3_SCHEMAS).unwrap().keys().collect::<Vec<_>>(), [&"s"]);
        assert!(entries(&document, V2_PATHS).unwrap().is_empty());
        let replaced = replace(&document, V3_PATHS, &[&a, &b]).unwrap();
        assert_eq!(entries(&replaced, V3_PATHS).unwrap().keys().collect::<Vec<_>>(), [&"/a", &"/b"]);
        assert_eq!(replace(&replaced, V3_PATHS, &[&a]).unwrap(), document, "everything else keeps its bytes");
    }

    #[test]
    fn missing_place_is_made() {
        let entry = named(1, "s", b"x");
        let replaced = replace(b"", V3_SCHEMAS, &[&entry]).unwrap();
        assert_eq!(entries(&replaced, V3_SCHEMAS).unwrap().keys().collect::<Vec<_>>(), [&"s"]);
        assert_eq!(replace(b"", V3_SCHEMAS, &[]).unwrap(), b"");
    }

    #[test]
    fn broken_bytes_are_refused() {
        let good = message(4, &[named(1, "/a", b"1")]);
        for length in 1..good.len() {
            assert!(entries(&good[..length], V3_PATHS).is_err(), "{length}");
        }
        assert!(entries(&[0x23], V3_PATHS).is_err(), "a group");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            for place in [V3_PATHS, V3_SCHEMAS, V2_PATHS, V2_DEFINITIONS] {
                if let Ok(found) = entries(&bytes, place) {
                    let all: Vec<&[u8]> = found.into_values().collect();
                    let _ = replace(&bytes, place, &all);
                }
            }
        }
    }
}
