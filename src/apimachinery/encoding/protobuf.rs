//! The envelope of Kubernetes' protobuf documents.
//!
//! Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/runtime/generated.proto>

use prost::Message;

/// Opening of every document.
const MAGIC: &[u8] = b"k8s\0";

/// A message in the envelope that says what it is.
///
/// Upstream's encoder writes every scalar field, also an empty one: those of `message` are `optional` and set.
#[must_use]
pub fn protobuf(api_version: &str, kind: &str, message: &impl Message) -> Vec<u8> {
    let unknown = Unknown {
        type_meta: Some(TypeMeta { api_version: Some(api_version.to_owned()), kind: Some(kind.to_owned()) }),
        raw: Some(message.encode_to_vec()),
        content_encoding: Some(String::new()),
        content_type: Some(String::new()),
    };
    [MAGIC, &unknown.encode_to_vec()].concat()
}

/// `k8s.io.apimachinery.pkg.runtime.Unknown`.
#[derive(Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "vec", optional, tag = "2")]
    raw: Option<Vec<u8>>,
    #[prost(string, optional, tag = "3")]
    content_encoding: Option<String>,
    #[prost(string, optional, tag = "4")]
    content_type: Option<String>,
}

/// `k8s.io.apimachinery.pkg.runtime.TypeMeta`.
#[derive(Message)]
struct TypeMeta {
    #[prost(string, optional, tag = "1")]
    api_version: Option<String>,
    #[prost(string, optional, tag = "2")]
    kind: Option<String>,
}
