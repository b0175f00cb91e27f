//! Documents of several servers into one: every path and every schema that any of them has.
//!
//! The newest server's document is the base: of what two servers have, its word counts, and everything but paths and
//! schemas is its own, byte for byte. The protobuf form is put together of the same choices as the JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::object::{Object, write_object};
use super::splice::{self, Place};
use crate::apimachinery::gvr::GroupVersion;

/// Which OpenAPI a document is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A document of `/openapi/v3/…`.
    V3,
    /// `/openapi/v2`.
    V2,
}

/// A server's document.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The JSON form.
    pub json: &'a [u8],
    /// The protobuf form, if the server gives it.
    pub protobuf: Option<&'a [u8]>,
    /// Whether it is the local server's.
    pub is_local: bool,
    /// Whether its server can be read now. One that cannot may not know how a CRD is by now.
    pub is_live: bool,
}

/// What several documents come to.
#[derive(Debug, Eq, PartialEq)]
pub enum Merged {
    /// The newest one has everything that the others have.
    Newest,
    /// A document that no server has.
    Own {
        /// The JSON form.
        json: Vec<u8>,
        /// The protobuf form, if every server that adds something gives it.
        protobuf: Option<Vec<u8>>,
    },
}

/// Why documents cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// One of them is no OpenAPI document in JSON.
    #[error("it is no OpenAPI document")]
    Json(#[from] serde_json::Error),
    /// One of them is none in protobuf, or lacks what its JSON form has.
    #[error("its protobuf form is no OpenAPI document")]
    Protobuf(#[from] splice::Error),
    /// There is none.
    #[error("there is no document")]
    None,
}

/// Merges documents, the newest server's first.
///
/// Of what `left_to_local` names, CRDs and aggregated APIs, there is what the local server's document has, in the words of
/// the newest server that lives. Only
/// `/openapi/v2` has it beside built-in groups.
///
/// # Errors
/// If any of them is no document.
pub fn merge(
    kind: Kind,
    sources: &[Source<'_>],
    left_to_local: &dyn Fn(&GroupVersion) -> bool,
) -> Result<Merged, Error> {
    let parsed = sources.iter().map(|source| Parsed::new(kind, source)).collect::<Result<Vec<_>, _>>()?;
    let base = parsed.first().ok_or(Error::None)?;
    let paths = choose(&parsed, |one| &one.paths, &|name, _| of_path(name).is_some_and(|one| left_to_local(&one)));
    let is_left = |_: &str, schema: &RawValue| kind == Kind::V2 && is_left_schema(schema, left_to_local);
    let schemas = choose(&parsed, |one| &one.schemas, &is_left);
    if paths.is_base(base.paths.0.len()) && schemas.is_base(base.schemas.0.len()) {
        return Ok(Merged::Newest);
    }
    let json = base.write(kind, &paths, &schemas).into_bytes();
    let protobuf = protobuf(kind, sources, &paths, &schemas)?;
    Ok(Merged::Own { json, protobuf })
}

/// Checks that bytes are a document that can be merged.
///
/// # Errors
/// If they are not.
pub fn check(kind: Kind, json: &[u8], protobuf: Option<&[u8]>) -> Result<(), Error> {
    Parsed::new(kind, &Source { json, protobuf, is_local: false, is_live: true })?;
    for place in kind.places() {
        protobuf.map(|bytes| splice::entries(bytes, place)).transpose()?;
    }
    Ok(())
}

impl Kind {
    fn places(self) -> [Place; 2] {
        match self {
            Self::V3 => [splice::V3_PATHS, splice::V3_SCHEMAS],
            Self::V2 => [splice::V2_PATHS, splice::V2_DEFINITIONS],
        }
    }
}

/// A document taken apart.
struct Parsed<'a> {
    top: Object<'a>,
    /// v3 only.
    components: Object<'a>,
    paths: Object<'a>,
    schemas: Object<'a>,
    is_local: bool,
    is_live: bool,
}

impl<'a> Parsed<'a> {
    fn new(kind: Kind, source: &Source<'a>) -> Result<Self, serde_json::Error> {
        let top: Object<'a> = serde_json::from_slice(source.json)?;
        let components = top.object("components")?;
        let schemas = match kind {
            Kind::V3 => components.object("schemas")?,
            Kind::V2 => top.object("definitions")?,
        };
        let Source { is_local, is_live, .. } = *source;
        Ok(Self { paths: top.object("paths")?, top, components, schemas, is_local, is_live })
    }

    /// This document with other paths and schemas.
    fn write(&self, kind: Kind, paths: &Chosen<'_>, schemas: &Chosen<'_>) -> String {
        let (paths, mut schemas) = (paths.write(), schemas.write());
        let name = match kind {
            Kind::V2 => "definitions",
            Kind::V3 => {
                schemas = with(&self.components, &[("schemas", &schemas)]);
                "components"
            }
        };
        with(&self.top, &[("paths", &paths), (name, &schemas)])
    }
}

/// An object with some members replaced or, where it has none of the name, added at the end.
fn with(object: &Object<'_>, replaced: &[(&str, &str)]) -> String {
    let new = |name: &str| replaced.iter().find(|(found, _)| *found == name).map(|(_, value)| *value);
    let own = object.0.iter().map(|(name, value)| (name.as_str(), new(name).unwrap_or_else(|| value.get())));
    let added = replaced.iter().copied().filter(|(name, value)| object.get(name).is_none() && *value != "{}");
    let mut out = String::new();
    write_object(&mut out, own.chain(added));
    out
}

/// Which document each entry is taken from, by name.
struct Chosen<'a>(BTreeMap<&'a str, (usize, &'a RawValue)>);

fn choose<'p>(
    parsed: &'p [Parsed<'p>],
    entries: impl Fn(&'p Parsed<'p>) -> &'p Object<'p>,
    is_left_to_local: &dyn Fn(&str, &RawValue) -> bool,
) -> Chosen<'p> {
    let of_local: BTreeSet<&str> = parsed
        .iter()
        .filter(|one| one.is_local)
        .flat_map(|one| &entries(one).0)
        .map(|(name, _)| name.as_str())
        .collect();
    let mut chosen = BTreeMap::new();
    for (index, one) in parsed.iter().enumerate() {
        for (name, value) in &entries(one).0 {
            // What begins with `x-` in the place of a path is an extension, which only the base has a say in.
            let is_extension = index > 0 && name.starts_with("x-");
            let may_word = one.is_local || (one.is_live && of_local.contains(name.as_str()));
            if !is_extension && (may_word || !is_left_to_local(name, value)) {
                chosen.entry(name.as_str()).or_insert((index, *value));
            }
        }
    }
    Chosen(chosen)
}

impl Chosen<'_> {
    /// Whether this is what the base has.
    fn is_base(&self, entries_of_base: usize) -> bool {
        self.0.len() == entries_of_base && self.0.values().all(|(index, _)| *index == 0)
    }

    fn write(&self) -> String {
        let mut out = String::new();
        write_object(&mut out, self.0.iter().map(|(name, (_, value))| (*name, value.get())));
        out
    }
}

/// The protobuf form of the same choices; none if a document that adds something has none.
fn protobuf(
    kind: Kind,
    sources: &[Source<'_>],
    paths: &Chosen<'_>,
    schemas: &Chosen<'_>,
) -> Result<Option<Vec<u8>>, splice::Error> {
    let Some(mut document) = sources.first().and_then(|base| base.protobuf).map(<[u8]>::to_vec) else {
        return Ok(None);
    };
    for (place, chosen) in kind.places().into_iter().zip([paths, schemas]) {
        let mut known = Vec::new();
        for source in sources {
            known.push(source.protobuf.map(|bytes| splice::entries(bytes, place)).transpose()?);
        }
        let mut entries = Vec::with_capacity(chosen.0.len());
        for (name, (index, _)) in chosen.0.iter().filter(|(name, _)| !name.starts_with("x-")) {
            match known.get(*index).and_then(Option::as_ref).map(|known| known.get(name)) {
                Some(Some(entry)) => entries.push(*entry),
                Some(None) => return Err(splice::Error::Broken),
                None => return Ok(None),
            }
        }
        document = splice::replace(&document, place, &entries)?;
    }
    Ok(Some(document))
}

/// The group version of a path such as `/apis/apps/v1/deployments`.
fn of_path(path: &str) -> Option<GroupVersion> {
    let mut parts = path.strip_prefix("/apis/")?.split('/');
    let (group, version) = (parts.next()?, parts.next()?);
    (!version.is_empty()).then(|| GroupVersion::new(group, version))
}

/// Whether a schema is that of kinds which are left to the local server, and of no others.
fn is_left_schema(schema: &RawValue, left_to_local: &dyn Fn(&GroupVersion) -> bool) -> bool {
    #[derive(Deserialize)]
    struct Kinds {
        #[serde(rename = "x-kubernetes-group-version-kind", default)]
        kinds: Vec<Kind>,
    }
    #[derive(Deserialize)]
    struct Kind {
        group: String,
        version: String,
    }
    let kinds = serde_json::from_str::<Kinds>(schema.get()).map(|found| found.kinds).unwrap_or_default();
    !kinds.is_empty() && kinds.iter().all(|kind| left_to_local(&GroupVersion::new(&kind.group, &kind.version)))
}

#[cfg(test)]
mod tests;
