//! Paths of discovery documents, as kube-apiserver serves them.
//!
//! Sources: <https://github.com/kubernetes/kube-aggregator/blob/v0.36.3/pkg/apiserver/apiserver.go>,
//! <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/discovery/legacy.go>, `group.go` and `version.go`
//! beside it

use http::Method;

use super::gvr::GroupVersion;

/// The one group whose document the aggregator leaves to the server below it.
const AGGREGATOR_GROUP: &str = "apiregistration.k8s.io";

/// A discovery document by its path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DiscoveryPath {
    /// `/api`, with or without slashes behind it: the versions of the core group.
    Api,
    /// `/apis`: all other groups.
    Apis,
    /// `/apis/`: the same, and never in an aggregated form.
    ApisSlash,
    /// `/apis/<group>`: the versions of one group.
    Group(String),
    /// `/api/<version>` or `/apis/<group>/<version>`: the resources of one group version.
    GroupVersion(GroupVersion),
}

impl DiscoveryPath {
    /// Reads a decoded path; `None` if it is not one of a discovery document.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let rest = match path {
            "/apis" => return Some(Self::Apis),
            "/apis/" => return Some(Self::ApisSlash),
            _ => path.trim_end_matches('/'),
        };
        if rest == "/api" {
            return Some(Self::Api);
        }
        if let Some(version) = rest.strip_prefix("/api/") {
            return is_name(version).then(|| Self::GroupVersion(GroupVersion::new("", version)));
        }
        let rest = rest.strip_prefix("/apis/")?;
        match rest.split_once('/') {
            None => is_name(rest).then(|| Self::Group(rest.to_owned())),
            Some((group, version)) => {
                (is_name(group) && is_name(version)).then(|| Self::GroupVersion(GroupVersion::new(group, version)))
            }
        }
    }

    /// Whether the document is the answer to this method. Some paths answer HEAD, the others refuse it; that a few
    /// answer any method is left to the server.
    #[must_use]
    pub fn answers(&self, method: &Method) -> bool {
        *method == Method::GET || (*method == Method::HEAD && !self.is_routed_by_type())
    }

    /// Whether requests pass go-restful, which judges method, `Accept` and `Content-Type` before the server does. Those
    /// for documents of CRDs do not, but for them the difference is left to the server too.
    #[must_use]
    pub fn is_routed_by_type(&self) -> bool {
        match self {
            Self::Api | Self::GroupVersion(_) => true,
            Self::Group(group) => group == AGGREGATOR_GROUP,
            Self::Apis | Self::ApisSlash => false,
        }
    }
}

fn is_name(segment: &str) -> bool {
    !segment.is_empty() && !segment.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_that_kube_apiserver_serves() {
        let group = |name: &str| Some(DiscoveryPath::Group(name.into()));
        let version = |text: &str| Some(DiscoveryPath::GroupVersion(GroupVersion::parse(text)));
        for (path, expected) in [
            ("/api", Some(DiscoveryPath::Api)),
            ("/api/", Some(DiscoveryPath::Api)),
            ("/api//", Some(DiscoveryPath::Api)),
            ("/apis", Some(DiscoveryPath::Apis)),
            ("/apis/", Some(DiscoveryPath::ApisSlash)),
            ("/apis//", None),
            ("/apis/apps", group("apps")),
            ("/apis/apps//", group("apps")),
            ("/apis//apps", None),
            ("/apis/apps/v1/", version("apps/v1")),
            ("/apis/apps/v1/pods", None),
            ("/api/v1", version("v1")),
            ("/api/v1/pods", None),
            ("/apix", None),
            ("//api", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(DiscoveryPath::parse(path), expected, "{path}");
        }
    }

    #[test]
    fn some_documents_answer_head() {
        let check = |path: &str, method: Method| DiscoveryPath::parse(path).unwrap().answers(&method);
        for path in ["/api", "/apis", "/apis/", "/apis/apps", "/apis/apps/v1", "/api/v1"] {
            assert!(check(path, Method::GET), "{path}");
            assert!(!check(path, Method::POST), "{path}");
        }
        assert!(["/apis", "/apis/", "/apis/apps"].iter().all(|path| check(path, Method::HEAD)));
        let refused = ["/api", "/api/v1", "/apis/apps/v1", "/apis/apiregistration.k8s.io"];
        assert!(!refused.iter().any(|path| check(path, Method::HEAD)));
    }
}
