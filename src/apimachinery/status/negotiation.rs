//! The form in which a client wants a `Status`.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/handlers/negotiation/negotiate.go>

use http::{HeaderMap, Uri, header};

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

/// The forms of a `Status`, in upstream's order of preference.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// One line, and a line break.
    Json,
    /// Indented, without a line break at the end.
    PrettyJson,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf envelope.
    Protobuf,
}

impl Form {
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Json | Self::PrettyJson => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// Chooses a form. A failure is never hidden behind a 406: where nothing fits it is indented JSON.
pub(super) fn negotiate(headers: &HeaderMap, pretty: Pretty) -> Form {
    let header = media_type::accept_header(headers);
    if header.is_empty() {
        return json(pretty == Pretty::Yes);
    }
    let clauses = media_type::accept(header);
    clauses.iter().find_map(|clause| accepted(&clause.media_type, pretty)).unwrap_or(Form::PrettyJson)
}

fn accepted(wanted: &MediaType, pretty: Pretty) -> Option<Form> {
    let indented = pretty == Pretty::Yes || wanted.parameter("pretty") == Some("1");
    [("json", json(indented)), ("yaml", Form::Yaml), ("vnd.kubernetes.protobuf", Form::Protobuf)]
        .into_iter()
        .find(|(sub, form)| wanted.includes("application", sub) && allows(wanted, *form))
        .map(|(_, form)| form)
}

fn json(indented: bool) -> Form {
    if indented { Form::PrettyJson } else { Form::Json }
}

/// Whether the clause's parameters ask for nothing that a `Status` cannot be: a table, a stream of YAML, a server
/// version.
fn allows(wanted: &MediaType, form: Form) -> bool {
    wanted.parameters.iter().all(|(name, value)| match name.as_str() {
        "as" | "g" | "v" => false,
        "stream" => value.is_empty() || (value == "watch" && form != Form::Yaml),
        "sv" => value.is_empty(),
        _ => true,
    })
}
