//! OpenAPI as servers publish it.

use bolero::check;
use peerfront::openapi::Index;
use peerfront::openapi::index::group_version;
use peerfront::openapi::merge::{self, Kind, Merged, Source};

use crate::RUNS;
use crate::edits::Edits;

const INDEX: &str = include_str!("seeds/index.json");
const V2: &str = include_str!("seeds/v2.json");
const V3: &str = include_str!("seeds/v3.json");
/// The protobuf form of a document with the path `/a` and the schema `A`.
const V3_PROTOBUF: &str = "\x0a\x053.0.0\x22\x08\x0a\x06\x0a\x02/a\x12\x00\x2a\x09\x0a\x07\x0a\x05\x0a\x01A\x12\x00";

/// The same of OpenAPI v2.
const V2_PROTOBUF: &str = "\x0a\x032.0\x12\x00\x42\x08\x12\x06\x0a\x02/a\x12\x00\x4a\x07\x0a\x05\x0a\x01A\x12\x00";

#[test]
fn openapi_indexes() {
    check!().with_type::<Edits>().with_iterations(RUNS).for_each(|edits| {
        if let Ok(index) = Index::parse(&edits.of(INDEX)) {
            assert_eq!(Index::parse(index.to_json().as_bytes()).expect("an index"), index);
            for (key, location) in &index.paths {
                let _ = (group_version(key), location.hash(), location.is_document());
            }
        }
    });
}

#[test]
fn openapi_documents_in_json() {
    check!().with_type::<(bool, Edits, Edits)>().with_iterations(RUNS).for_each(|(is_v2, newer, older)| {
        let (kind, seed) = if *is_v2 { (Kind::V2, V2) } else { (Kind::V3, V3) };
        merged_is_a_document(kind, &[(newer.of(seed), None), (older.of(seed), None)]);
    });
}

#[test]
fn openapi_documents_in_protobuf() {
    let forms = [(Kind::V3, V3, V3_PROTOBUF), (Kind::V2, V2, V2_PROTOBUF)];
    for (kind, json, protobuf) in forms {
        assert!(merge::check(kind, json.as_bytes(), Some(protobuf.as_bytes())).is_ok(), "{kind:?}");
    }
    check!().with_type::<(bool, [Edits; 3])>().with_iterations(RUNS).for_each(|(is_v2, [newer, older, edits])| {
        let (kind, json, protobuf) = forms[usize::from(*is_v2)];
        let newer = (json.as_bytes().to_vec(), Some(newer.of(protobuf)));
        merged_is_a_document(kind, &[newer, (older.of(json), Some(edits.of(protobuf)))]);
    });
}

/// What is made of documents can be read as one.
fn merged_is_a_document(kind: Kind, documents: &[(Vec<u8>, Option<Vec<u8>>)]) {
    let sources: Vec<Source<'_>> = documents
        .iter()
        .map(|(json, protobuf)| Source { json, protobuf: protobuf.as_deref(), is_local: false, is_live: true })
        .collect();
    if let Ok(Merged::Own { json, protobuf }) = merge::merge(kind, &sources, &|_| false) {
        merge::check(kind, &json, protobuf.as_deref()).expect("a document");
    }
}
