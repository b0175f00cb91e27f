//! Kubernetes objects as bytes, equal to those that kube-apiserver writes, and which encoding a client asks for.
//!
//! Sources: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/runtime/serializer/json/json.go>,
//! <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/runtime/serializer/protobuf/protobuf.go>

mod json;
mod negotiation;
mod protobuf;
mod yaml;

pub use json::{json, pretty_json};
pub use negotiation::{Pretty, negotiate};
pub use protobuf::protobuf;
pub use yaml::yaml;

/// How an object is written, in upstream's order of preference.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Encoding {
    /// One line, and a line break.
    Json,
    /// Indented JSON, without a line break at the end.
    PrettyJson,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf envelope.
    Protobuf,
}

impl Encoding {
    /// The media type, as `Content-Type` has it.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json | Self::PrettyJson => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}
