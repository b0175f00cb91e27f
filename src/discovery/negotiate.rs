//! Which form of a discovery document a request asks for, decided as upstream decides.
//!
//! Sources: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/discovery/aggregated/wrapper.go>,
//! <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/handlers/negotiation/negotiate.go>

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Uri};

use super::model::{GROUP, KIND};
use crate::apimachinery::discovery_path::DiscoveryPath;
use crate::apimachinery::encoding::{self, Encoding, Pretty};
use crate::apimachinery::media_type::{self, MediaType};

/// The aggregated forms: the server's own resources only, else what a server >= 1.30 gives, else the form of 1.27 to
/// 1.29. Source: <https://github.com/kubernetes/client-go/blob/v0.36.3/discovery/discovery_client.go>
macro_rules! aggregated {
    () => {
        concat!(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,",
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,",
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
        )
    };
}

/// `Accept` for one server's own document in whatever form it can give, at last the legacy one.
pub const ACCEPT_LOCAL: &str = concat!(aggregated!(), "application/json");

/// The same for a client that accepts something else than the legacy document. Its own clauses come last and decide how
/// the server words an error, for which none of the others counts.
#[must_use]
pub fn accept_local_of(client: &HeaderMap) -> HeaderValue {
    let own = client.get(http::header::ACCEPT).map_or(&[][..], HeaderValue::as_bytes);
    HeaderValue::from_bytes(&[aggregated!().as_bytes(), own].concat()).unwrap_or(HeaderValue::from_static(ACCEPT_LOCAL))
}

/// The form in which a document is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// A list of groups with all that is below them.
    Aggregated(Version, Encoding),
    /// The document of old.
    Legacy(Encoding),
    /// The list of the local server's own resources only (`profile=nopeer`), which it gives itself.
    Local,
    /// Not one that peerfront gives: none that kube-apiserver gives either, or one that knows no peers.
    LeftToUpstream,
}

/// Version of the aggregated form. The two differ in name only.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Version {
    /// Servers >= 1.30.
    V2,
    /// Servers 1.27 to 1.34.
    V2Beta1,
}

/// Whether v2beta1 is given. Where it is not, a clause that names it does not count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum V2Beta1 {
    /// As by servers up to 1.34 that have it switched on.
    Given,
    /// As by newer ones.
    Gone,
}

/// Reads off the headers and the query in which form a document is asked for.
///
/// Of `/api` and `/apis`, the first clause of `Accept`, best quality first, that names an aggregated form in an encoding
/// that there is wins; clauses without one, such as a plain `application/json` before it, do not count. Without any such
/// clause, and of all other documents, it is the first that names an encoding and nothing else. Only the first `Accept`
/// header is looked at.
#[must_use]
pub fn negotiate(headers: &HeaderMap, uri: &Uri, path: &DiscoveryPath, v2beta1: V2Beta1) -> Form {
    if path.is_routed_by_type() && !passes_router(headers) {
        return Form::LeftToUpstream;
    }
    let pretty = Pretty::of(uri, headers);
    if matches!(path, DiscoveryPath::Api | DiscoveryPath::Apis) {
        let clauses = media_type::accept(media_type::accept_header(headers));
        let aggregated = clauses.iter().find_map(|clause| aggregated(&clause.media_type, pretty, v2beta1));
        if let Some(form) = aggregated {
            return form;
        }
    }
    encoding::negotiate(headers, pretty).map_or(Form::LeftToUpstream, Form::Legacy)
}

/// The aggregated form that a clause names, if it names one.
fn aggregated(clause: &MediaType, pretty: Pretty, v2beta1: V2Beta1) -> Option<Form> {
    let parameter = |name| clause.parameter(name).unwrap_or_default();
    let version = match (parameter("g"), parameter("v"), parameter("as")) {
        (GROUP, "v2", KIND) => Version::V2,
        (GROUP, "v2beta1", KIND) if v2beta1 == V2Beta1::Given => Version::V2Beta1,
        _ => return None,
    };
    let encoding = Encoding::accepted(clause, pretty)?;
    Some(match (parameter("profile"), version) {
        ("nopeer", Version::V2) => Form::Local,
        ("nopeer", Version::V2Beta1) => Form::LeftToUpstream,
        _ => Form::Aggregated(version, encoding),
    })
}

/// Whether go-restful lets a request through: it knows whole media types and `*/*`, no other ranges and no qualities.
/// Source: <https://github.com/emicklei/go-restful/blob/v3.13.0/route.go> (`matchesAccept`, `matchesContentType`)
fn passes_router(headers: &HeaderMap) -> bool {
    let names = |name, allowed: &[&str]| {
        let value = headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
        let types = value.split(|byte| *byte == b',').map(|one| one.split(|byte| *byte == b';').next());
        let mut types = types.map(|one| one.unwrap_or_default().trim_ascii());
        value.is_empty() || types.any(|one| allowed.iter().any(|allowed| allowed.as_bytes() == one))
    };
    let [json, yaml, protobuf] = [Encoding::Json, Encoding::Yaml, Encoding::Protobuf].map(Encoding::media_type);
    names(ACCEPT, &["*/*", json, yaml, protobuf]) && names(CONTENT_TYPE, &[json, yaml, protobuf])
}

#[cfg(test)]
mod tests;
