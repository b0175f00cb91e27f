//! Which form of a discovery document a request asks for, decided as upstream decides.
//!
//! Sources: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/discovery/aggregated/wrapper.go>,
//! <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/handlers/negotiation/negotiate.go>

use http::{HeaderMap, HeaderValue, Uri};

use super::model::{GROUP, KIND};
use crate::apimachinery::media_type::{self, MediaType};
use crate::apimachinery::status::Pretty;

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

/// The form that a request asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// The aggregated v2 form in JSON: peerfront answers.
    AggregatedV2Json {
        /// Of which servers.
        profile: Profile,
        /// Whether it is written for people.
        pretty: Pretty,
    },
    /// Any other (v2beta1, legacy, YAML, protobuf, not acceptable): the local kube-apiserver answers.
    Other,
}

/// Whose resources a document lists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Profile {
    /// Those of all servers.
    Merged,
    /// Those of the local server alone.
    NoPeer,
}

/// Reads off the headers and the query of a GET which form it asks for.
///
/// The first clause of `Accept`, best quality first, that names an aggregated form in a media type which is served
/// wins; clauses without one, such as a plain `application/json` before it, do not count. Only the first `Accept`
/// header is looked at.
#[must_use]
pub fn negotiate(headers: &HeaderMap, uri: &Uri) -> Form {
    let clauses = media_type::accept(media_type::accept_header(headers));
    let Some(accepted) = clauses.iter().find_map(|clause| Accepted::try_from_clause(&clause.media_type)) else {
        return Form::Other;
    };
    if accepted.version != Version::V2 || accepted.encoding != Encoding::Json {
        return Form::Other;
    }
    let pretty = if accepted.is_pretty { Pretty::Yes } else { Pretty::of(uri, headers) };
    Form::AggregatedV2Json { profile: accepted.profile, pretty }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Version {
    V2,
    V2Beta1,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// Encodings in upstream's order, which decides what a wildcard means.
const ENCODINGS: [(Encoding, &str); 3] =
    [(Encoding::Json, "json"), (Encoding::Yaml, "yaml"), (Encoding::Protobuf, "vnd.kubernetes.protobuf")];

/// A clause that names an aggregated form.
struct Accepted {
    encoding: Encoding,
    version: Version,
    profile: Profile,
    is_pretty: bool,
}

impl Accepted {
    fn try_from_clause(clause: &MediaType) -> Option<Self> {
        let parameter = |name| clause.parameter(name).unwrap_or_default();
        let version = match (parameter("g"), parameter("v"), parameter("as")) {
            (GROUP, "v2", KIND) => Version::V2,
            (GROUP, "v2beta1", KIND) => Version::V2Beta1,
            _ => return None,
        };
        if !parameter("sv").is_empty() {
            return None;
        }
        let stream = parameter("stream");
        let encoding = ENCODINGS.iter().find(|(encoding, sub)| {
            let is_type = clause.includes("application", sub);
            // Streams of YAML do not exist, and `watch` is the only schema of a stream.
            is_type && (stream.is_empty() || (stream == "watch" && *encoding != Encoding::Yaml))
        })?;
        let profile = if parameter("profile") == "nopeer" { Profile::NoPeer } else { Profile::Merged };
        Some(Self { encoding: encoding.0, version, profile, is_pretty: parameter("pretty") == "1" })
    }
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, USER_AGENT};

    use super::*;

    const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const V2_BETA1: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    const MERGED: Form = Form::AggregatedV2Json { profile: Profile::Merged, pretty: Pretty::No };
    const NO_PEER: Form = Form::AggregatedV2Json { profile: Profile::NoPeer, pretty: Pretty::No };
    const PRETTY: Form = Form::AggregatedV2Json { profile: Profile::Merged, pretty: Pretty::Yes };

    fn form(headers: &[(http::HeaderName, &str)], uri: &str) -> Form {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        negotiate(&map, &uri.parse().unwrap())
    }

    fn check(accept: &str, expected: Form) {
        assert_eq!(form(&[(ACCEPT, accept)], "/apis"), expected, "{accept}");
    }

    #[test]
    fn clauses_of_the_client_come_last() {
        let client = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/yaml;q=0.9"))]);
        let accept = accept_local_of(&client);
        let (aggregated, own) = accept.to_str().unwrap().rsplit_once(',').unwrap();
        assert_eq!(own, "application/yaml;q=0.9");
        assert_eq!(format!("{aggregated},application/json"), ACCEPT_LOCAL);
    }

    #[test]
    fn aggregated_clauses_win_in_order_of_quality() {
        check(V2, MERGED);
        check(&format!("{V2},application/json"), MERGED);
        // A clause without conversion is not allowed here and does not count, even before the other.
        check(&format!("application/json,{V2}"), MERGED);
        check(&format!("{V2};profile=nopeer,{V2},application/json"), NO_PEER);
        check(&format!("{V2};profile=nopeer;q=0.5,{V2};q=0.9"), MERGED);
        check(&format!("{V2};profile=local"), MERGED);
        check("application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io", MERGED);
        check(&V2.replace("application/json", "*/*"), MERGED);
        check(&V2.replace("application/json", "application/*"), MERGED);
        check(&format!("{V2};stream=watch"), MERGED);
        check(&format!("{V2};pretty=1"), PRETTY);
    }

    #[test]
    fn other_forms_are_left_to_the_upstream() {
        check("", Form::Other);
        check("application/json", Form::Other);
        check("*/*", Form::Other);
        check("text/html", Form::Other);
        check(V2_BETA1, Form::Other);
        check(&format!("{V2_BETA1},{V2}"), Form::Other);
        check(&V2.replace("json", "yaml"), Form::Other);
        check(&V2.replace("json", "vnd.kubernetes.protobuf"), Form::Other);
        check(&format!("{},{V2}", V2.replace("json", "vnd.kubernetes.protobuf")), Form::Other);
        check(&V2.replace("v=v2", "v=v3"), Form::Other);
        check(&V2.replace("as=API", "as=XPI"), Form::Other);
        check(&V2.replace("g=api", "g=xpi"), Form::Other);
        check(&format!("{V2};sv=v1"), Form::Other);
        check(&format!("{V2};stream=other"), Form::Other);
        assert_eq!(form(&[], "/apis"), Form::Other);
        assert_eq!(form(&[(ACCEPT, "application/json"), (ACCEPT, V2)], "/apis"), Form::Other);
    }

    #[test]
    fn people_get_indented_json() {
        let from = |agent, uri| form(&[(ACCEPT, V2), (USER_AGENT, agent)], uri);
        for agent in ["curl/8.0", "Wget/1", "Mozilla/5.0 (X11)"] {
            assert_eq!(from(agent, "/apis"), PRETTY, "{agent}");
            assert_eq!(from(agent, "/apis?pretty="), PRETTY, "{agent}");
            assert_eq!(from(agent, "/apis?pretty=0"), MERGED, "{agent}");
            assert_eq!(from(agent, "/apis?pretty=yes"), MERGED, "{agent}");
        }
        assert_eq!(from("kubectl/v1.37.2", "/apis"), MERGED);
        assert_eq!(from("Mozilla/4.0", "/apis"), MERGED);
        assert_eq!(from("kubectl/v1.37.2", "/apis?a=b&pretty=true&pretty=false"), PRETTY);
    }
}
