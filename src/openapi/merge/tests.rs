//! Documents in both forms that say the same, merged: by examples and by properties.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::testing::{message, named};
use super::*;

/// A document: its server, its paths and its schemas, each with what it says.
#[derive(Clone, Debug, Default)]
struct Document {
    server: String,
    paths: BTreeMap<String, String>,
    schemas: BTreeMap<String, String>,
}

impl Document {
    fn new(server: &str, paths: &[(&str, &str)], schemas: &[(&str, &str)]) -> Self {
        let owned = |entries: &[(&str, &str)]| {
            entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        Self { server: server.to_owned(), paths: owned(paths), schemas: owned(schemas) }
    }

    /// In upstream's order of members.
    fn json(&self, kind: Kind) -> String {
        let object = |entries: &BTreeMap<String, String>| {
            let mut out = String::new();
            let quoted: Vec<_> = entries.iter().map(|(name, value)| (name, format!(r#"{{"x":"{value}"}}"#))).collect();
            write_object(&mut out, quoted.iter().map(|(name, value)| (name.as_str(), value.as_str())));
            out
        };
        let (server, paths, schemas) = (&self.server, object(&self.paths), object(&self.schemas));
        match kind {
            Kind::V3 => format!(
                r#"{{"openapi":"3.0.0","info":{{"version":"{server}"}},"paths":{paths},"components":{{"schemas":{schemas},"securitySchemes":{{"x":"{server}"}}}}}}"#
            ),
            Kind::V2 => format!(
                r#"{{"swagger":"2.0","info":{{"version":"{server}"}},"paths":{paths},"definitions":{schemas},"security":["{server}"]}}"#
            ),
        }
    }

    fn protobuf(&self, kind: Kind) -> Vec<u8> {
        let entries = |number, entries: &BTreeMap<String, String>| -> Vec<Vec<u8>> {
            entries.iter().map(|(name, value)| named(number, name, value.as_bytes())).collect()
        };
        let info = message(2, &[self.server.clone().into_bytes()]);
        match kind {
            Kind::V3 => [
                info,
                message(4, &entries(1, &self.paths)),
                message(5, &[message(1, &entries(1, &self.schemas)), message(7, &[b"security".to_vec()])]),
            ]
            .concat(),
            Kind::V2 => [
                info,
                message(8, &entries(2, &self.paths)),
                message(9, &entries(1, &self.schemas)),
                message(12, &[b"security".to_vec()]),
            ]
            .concat(),
        }
    }
}

/// Merges documents, the newest first, and returns both forms.
fn merged(kind: Kind, documents: &[Document]) -> (String, Vec<u8>) {
    let forms: Vec<(String, Vec<u8>)> =
        documents.iter().map(|document| (document.json(kind), document.protobuf(kind))).collect();
    let sources: Vec<Source<'_>> = forms
        .iter()
        .map(|(json, protobuf)| Source {
            json: json.as_bytes(),
            protobuf: Some(protobuf),
            is_local: false,
            is_live: true,
        })
        .collect();
    match merge(kind, &sources, &|_| false).unwrap() {
        Merged::Newest => forms[0].clone(),
        Merged::Own { json, protobuf } => (String::from_utf8(json).unwrap(), protobuf.unwrap()),
    }
}

#[test]
fn older_servers_add_what_the_newest_lacks() {
    let newest = Document::new("1.37", &[("/b", "new"), ("/c", "new")], &[("io.B", "new")]);
    let older = Document::new("1.36", &[("/a", "old"), ("/b", "old")], &[("io.A", "old"), ("io.B", "old")]);
    let expected =
        Document::new("1.37", &[("/a", "old"), ("/b", "new"), ("/c", "new")], &[("io.A", "old"), ("io.B", "new")]);
    for kind in [Kind::V3, Kind::V2] {
        let (json, protobuf) = merged(kind, &[newest.clone(), older.clone()]);
        assert_eq!(json, expected.json(kind));
        assert_eq!(protobuf, expected.protobuf(kind));
    }
}

#[test]
fn newest_document_with_everything_stays_as_it_is() {
    let newest = Document::new("1.37", &[("/a", "new"), ("/b", "new")], &[("io.A", "new")]);
    let older = Document::new("1.36", &[("/a", "old")], &[("io.A", "old")]);
    let (newest, older) = (newest.json(Kind::V3), older.json(Kind::V3));
    let source = |json: &'static str| Source { json: json.as_bytes(), protobuf: None, is_local: false, is_live: true };
    let sources = [source(newest.leak()), source(older.leak())];
    assert_eq!(merge(Kind::V3, &sources, &|_| false).unwrap(), Merged::Newest);
    assert!(matches!(
        merge(Kind::V3, &[sources[1], sources[0]], &|_| false).unwrap(),
        Merged::Own { protobuf: None, .. }
    ));
}

#[test]
fn unknown_content_keeps_its_bytes() {
    let newest = r#"{"new":{ "z" : 1e9 },"paths":{"/a":{"get" : 1.0},"x-p":1},"components":{"future":[ ],"schemas":{"A":{}}},"end":"\u003c"}"#;
    let older =
        r#"{"old":1,"paths":{"/b":{"put":2.50},"x-q":2},"components":{"past":1,"schemas":{"B":{"x":"\u2028"}}}}"#;
    let source = |json: &'static str| Source { json: json.as_bytes(), protobuf: None, is_local: false, is_live: true };
    let Merged::Own { json, .. } = merge(Kind::V3, &[source(newest), source(older)], &|_| false).unwrap() else {
        panic!("the older one adds something")
    };
    let expected = r#"{"new":{ "z" : 1e9 },"paths":{"/a":{"get" : 1.0},"/b":{"put":2.50},"x-p":1},"components":{"future":[ ],"schemas":{"A":{},"B":{"x":"\u2028"}}},"end":"\u003c"}"#;
    assert_eq!(String::from_utf8(json).unwrap(), expected);
}

#[test]
fn missing_members_are_added() {
    let source = |json: &'static str| Source { json: json.as_bytes(), protobuf: None, is_local: false, is_live: true };
    let older = r#"{"paths":{"/b":1},"components":{"schemas":{"B":1}}}"#;
    let Merged::Own { json, .. } =
        merge(Kind::V3, &[source(r#"{"openapi":"3.0.0"}"#), source(older)], &|_| false).unwrap()
    else {
        panic!("the older one adds something")
    };
    let expected = r#"{"openapi":"3.0.0","paths":{"/b":1},"components":{"schemas":{"B":1}}}"#;
    assert_eq!(String::from_utf8(json).unwrap(), expected);
}

#[test]
fn custom_resources_are_those_of_the_local_server_in_the_words_of_the_newest() {
    let schema = |gv: &str, x: &str| {
        let (group, version) = gv.split_once('/').unwrap();
        format!(
            r#"{{"x":"{x}","x-kubernetes-group-version-kind":[{{"group":"{group}","version":"{version}","kind":"K"}}]}}"#
        )
    };
    let document = |x: &str, gone: &str| {
        format!(
            r#"{{"paths":{{"/apis/apps/v1/d":"{x}","/apis/ex.com/v1/c":"{x}"{gone}}},"definitions":{{"com.ex.C":{},"io.D":{}}}}}"#,
            schema("ex.com/v1", x),
            schema("apps/v1", x),
        )
    };
    let (newest, local) = (document("peer", r#","/apis/ex.com/v2/gone":"peer""#), document("local", ""));
    // A server that is lost may not know how they are by now.
    for (is_live, word) in [(true, "peer"), (false, "local")] {
        let sources = [
            Source { json: newest.as_bytes(), protobuf: None, is_local: false, is_live },
            Source { json: local.as_bytes(), protobuf: None, is_local: true, is_live: true },
        ];
        let Merged::Own { json, .. } = merge(Kind::V2, &sources, &|one| one.group == "ex.com").unwrap() else {
            panic!("what the local server does not have is left out")
        };
        let expected = format!(
            r#"{{"paths":{{"/apis/apps/v1/d":"peer","/apis/ex.com/v1/c":"{word}"}},"definitions":{{"com.ex.C":{},"io.D":{}}}}}"#,
            schema("ex.com/v1", word),
            schema("apps/v1", "peer"),
        );
        assert_eq!(String::from_utf8(json).unwrap(), expected);
    }
}

#[test]
fn forms_that_do_not_agree_are_refused() {
    let document = Document::new("1", &[("/a", "1")], &[]);
    let other = Document::new("1", &[("/b", "1")], &[]);
    let (json, protobuf) = (document.json(Kind::V3), document.protobuf(Kind::V3));
    let (other_json, wrong) = (other.json(Kind::V3), document.protobuf(Kind::V3));
    let sources = [
        Source { json: json.as_bytes(), protobuf: Some(&protobuf), is_local: false, is_live: true },
        Source { json: other_json.as_bytes(), protobuf: Some(&wrong), is_local: false, is_live: true },
    ];
    assert!(matches!(merge(Kind::V3, &sources, &|_| false), Err(Error::Protobuf(_))));
}

#[test]
fn what_is_no_document_is_refused() {
    for json in ["", "[]", "{", "null", r#"{"paths":1}"#, r#"{"components":[]}"#, r#"{"components":{"schemas":1}}"#] {
        assert!(check(Kind::V3, json.as_bytes(), None).is_err(), "{json}");
    }
    assert!(check(Kind::V2, br#"{"definitions":1}"#, None).is_err());
    assert!(check(Kind::V3, b"{}", Some(b"\x22\x05x")).is_err());
    assert!(check(Kind::V3, "[".repeat(100_000).as_bytes(), None).is_err());
    let deep = format!(r#"{{"paths":{{"/a":{}1{}}}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    // Values are passed over, not entered, so that depth needs no stack.
    let source = Source { json: deep.as_bytes(), protobuf: None, is_local: false, is_live: true };
    assert_eq!(merge(Kind::V3, &[source, source], &|_| true).unwrap(), Merged::Newest);
    assert!(matches!(merge(Kind::V3, &[], &|_| false), Err(Error::None)));
}

fn entries() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map("/[a-d<&]", "[a-c]", 0..4)
}

fn document() -> impl Strategy<Value = Document> {
    ("[0-9]", entries(), entries()).prop_map(|(server, paths, schemas)| Document { server, paths, schemas })
}

fn names(json: &str, kind: Kind) -> (BTreeSet<String>, BTreeSet<String>) {
    let source = Source { json: json.as_bytes(), protobuf: None, is_local: false, is_live: true };
    let parsed = Parsed::new(kind, &source).unwrap();
    let names = |object: &Object<'_>| object.0.iter().map(|(name, _)| name.clone()).collect();
    (names(&parsed.paths), names(&parsed.schemas))
}

proptest! {
    #[test]
    fn merging_is_a_union_in_which_the_newest_has_the_word(documents in proptest::collection::vec(document(), 1..4)) {
        for kind in [Kind::V3, Kind::V2] {
            let (json, protobuf) = merged(kind, &documents);
            let mut expected = documents[0].clone();
            for older in &documents[1..] {
                for (name, value) in &older.paths {
                    expected.paths.entry(name.clone()).or_insert(value.clone());
                }
                for (name, value) in &older.schemas {
                    expected.schemas.entry(name.clone()).or_insert(value.clone());
                }
            }
            prop_assert_eq!(&json, &expected.json(kind));
            // Both forms have the same names.
            let (paths, schemas) = names(&json, kind);
            let [in_paths, in_schemas] = kind.places().map(|place| {
                splice::entries(&protobuf, place).unwrap().into_keys().map(str::to_owned).collect::<BTreeSet<_>>()
            });
            prop_assert_eq!((paths, schemas), (in_paths, in_schemas));
        }
    }

    #[test]
    fn merging_again_changes_nothing(documents in proptest::collection::vec(document(), 1..4)) {
        let once = merged(Kind::V3, &documents);
        let source = |form: &(String, Vec<u8>)| (form.0.clone().into_bytes(), form.1.clone());
        let (json, protobuf) = source(&once);
        let (other_json, other_protobuf) = (documents[0].json(Kind::V3), documents[0].protobuf(Kind::V3));
        for sources in [
            vec![Source { json: &json, protobuf: Some(&protobuf), is_local: false, is_live: true }; 2],
            vec![
                Source { json: &json, protobuf: Some(&protobuf), is_local: false, is_live: true },
                Source { json: other_json.as_bytes(), protobuf: Some(&other_protobuf), is_local: false, is_live: true },
            ],
        ] {
            prop_assert_eq!(merge(Kind::V3, &sources, &|_| false).unwrap(), Merged::Newest);
        }
    }

    #[test]
    fn no_bytes_panic(json in "[{}\\[\\]\":,a-z0-9/]{0,60}", protobuf in proptest::collection::vec(any::<u8>(), 0..60)) {
        for kind in [Kind::V3, Kind::V2] {
            let _ = check(kind, json.as_bytes(), Some(&protobuf));
            let source = Source { json: json.as_bytes(), protobuf: Some(&protobuf), is_local: false, is_live: true };
            let _ = merge(kind, &[source, source], &|_| false);
            let good = r#"{"paths":{"/a":1}}"#;
            let good = Source { json: good.as_bytes(), protobuf: Some(&protobuf), is_local: true, is_live: true };
            let _ = merge(kind, &[good, source], &|_| true);
        }
    }
}
