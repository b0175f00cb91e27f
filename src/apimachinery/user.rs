//! Who asks, in the words of `k8s.io/apiserver/pkg/authentication/user`.

/// Group of every caller that proved who it is.
/// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/authentication/user/user.go>
pub const ALL_AUTHENTICATED: &str = "system:authenticated";
/// Group of every caller that did not.
pub const ALL_UNAUTHENTICATED: &str = "system:unauthenticated";
/// Name of the caller without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// Name under which peerfront itself asks the cluster.
pub const KUBE_PEERFRONT: &str = "system:kube-peerfront";

/// An authenticated identity, exactly as kube-apiserver would see it.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct UserInfo {
    /// User name, never empty.
    pub name: String,
    /// UID; empty if there is none.
    pub uid: String,
    /// Groups in the order in which they were found.
    pub groups: Vec<String>,
    /// Extra keys with their values, in the order in which they were found; each key once.
    pub extra: Vec<(String, Vec<String>)>,
}
