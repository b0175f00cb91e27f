//! Which encoding a client asks for.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/handlers/negotiation/negotiate.go>

use http::{HeaderMap, Uri, header};

use super::Encoding;
use crate::apimachinery::media_type::{self, MediaType};
use crate::apimachinery::query;

/// Openings of the user agents that people look through.
const HUMAN_AGENTS: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];

/// Whether JSON is to be indented.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pretty {
    /// For people.
    Yes,
    /// For programs.
    No,
}

impl Pretty {
    /// What the `pretty` query parameter says, else whether the user agent is one that people look through.
    #[must_use]
    pub fn of(uri: &Uri, headers: &HeaderMap) -> Self {
        let asked = uri.query().and_then(|query| query::first(query, "pretty"));
        let pretty = match asked.as_deref() {
            Some(value) if !value.is_empty() => matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"),
            _ => headers.get(header::USER_AGENT).is_some_and(|agent| {
                HUMAN_AGENTS.iter().any(|opening| agent.as_bytes().starts_with(opening.as_bytes()))
            }),
        };
        if pretty { Self::Yes } else { Self::No }
    }
}

/// Chooses the encoding of an object that is written as it is, whatever it is; `None` if the client accepts none.
#[must_use]
pub fn negotiate(headers: &HeaderMap, pretty: Pretty) -> Option<Encoding> {
    let header = media_type::accept_header(headers);
    if header.is_empty() {
        return Some(Encoding::indented(pretty));
    }
    let as_it_is = |clause: &MediaType| ["as", "g", "v"].iter().all(|name| clause.parameter(name).is_none());
    media_type::accept(header)
        .iter()
        .filter(|clause| as_it_is(&clause.media_type))
        .find_map(|clause| Encoding::accepted(&clause.media_type, pretty))
}

/// The encodings in upstream's order, which decides what a wildcard means.
const ENCODINGS: [(Encoding, &str); 3] =
    [(Encoding::Json, "json"), (Encoding::Yaml, "yaml"), (Encoding::Protobuf, "vnd.kubernetes.protobuf")];

impl Encoding {
    /// The encoding that one clause of `Accept` asks for, its `as`, `g` and `v` not looked at.
    pub(crate) fn accepted(clause: &MediaType, pretty: Pretty) -> Option<Self> {
        let parameter = |name| clause.parameter(name).unwrap_or_default();
        if !parameter("sv").is_empty() {
            return None;
        }
        let stream = parameter("stream");
        let (encoding, _) = ENCODINGS.into_iter().find(|(encoding, sub)| {
            // Streams of YAML do not exist, and `watch` is the only schema of a stream.
            let is_streamed = stream.is_empty() || (stream == "watch" && *encoding != Self::Yaml);
            clause.includes("application", sub) && is_streamed
        })?;
        Some(match encoding {
            Self::Json if parameter("pretty") == "1" => Self::PrettyJson,
            Self::Json => Self::indented(pretty),
            other => other,
        })
    }

    fn indented(pretty: Pretty) -> Self {
        if pretty == Pretty::Yes { Self::PrettyJson } else { Self::Json }
    }
}
