//! The types of the legacy documents, as `meta/v1` has them. A field that this version does not know is kept and written
//! after the known ones.
//!
//! Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/apis/meta/v1/types.go>

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::apimachinery::gvr::GroupVersion;
use crate::discovery::model::{Unknown, null_is_default};

/// Everything that one server says of itself in legacy documents, as far as it has been read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LegacyDocuments {
    /// `/api`.
    pub api: Option<Arc<ApiVersions>>,
    /// `/api/<version>` and `/apis/<group>/<version>`; those that the server lists but denies are not among them.
    pub resources: BTreeMap<GroupVersion, Arc<ApiResourceList>>,
}

/// `APIVersions`: what `/api` answers, without `kind`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiVersions {
    /// Versions of the core group.
    #[serde(default, deserialize_with = "null_is_default")]
    pub versions: Vec<String>,
    /// Where clients of a network reach the server: its own address.
    #[serde(default, rename = "serverAddressByClientCIDRs", deserialize_with = "null_is_default")]
    pub server_address_by_client_cidrs: Vec<ServerAddressByClientCidr>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// Where clients of one network reach a server.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerAddressByClientCidr {
    /// The network, such as `0.0.0.0/0`.
    #[serde(default, rename = "clientCIDR", deserialize_with = "null_is_default")]
    pub client_cidr: String,
    /// Host or host:port.
    #[serde(default, deserialize_with = "null_is_default")]
    pub server_address: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// `APIGroupList`: what `/apis` answers, without `kind` and `apiVersion`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ApiGroupList {
    /// Groups in the order of their priority.
    #[serde(default, deserialize_with = "null_is_default")]
    pub groups: Vec<ApiGroup>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// `APIGroup`: an item of `/apis`, and what `/apis/<group>` answers, without `kind` and `apiVersion`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiGroup {
    /// Name of the group.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
    /// Its versions.
    #[serde(default, deserialize_with = "null_is_default")]
    pub versions: Vec<GroupVersionForDiscovery>,
    /// The version that clients should use.
    #[serde(default, deserialize_with = "null_is_default")]
    pub preferred_version: GroupVersionForDiscovery,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// A version of a group, by both of its names.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupVersionForDiscovery {
    /// `group/version`, or `version` in the core group.
    #[serde(default, deserialize_with = "null_is_default")]
    pub group_version: String,
    /// `version`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub version: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// `APIResourceList`: what `/api/<version>` and `/apis/<group>/<version>` answer, without `kind` and `apiVersion`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiResourceList {
    /// `group/version`, or `version` in the core group.
    #[serde(default, deserialize_with = "null_is_default")]
    pub group_version: String,
    /// Resources and subresources.
    #[serde(default, deserialize_with = "null_is_default")]
    pub resources: Vec<ApiResource>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// One resource, or one subresource as `resource/subresource`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiResource {
    /// Plural name, such as `pods` or `pods/log`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
    /// Singular name, such as `pod`; empty for subresources.
    #[serde(default, deserialize_with = "null_is_default")]
    pub singular_name: String,
    /// Whether objects live in a namespace.
    #[serde(default, deserialize_with = "null_is_default")]
    pub namespaced: bool,
    /// Group of the kind; empty where it is that of the list.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Version of the kind; empty where it is that of the list.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Kind of the objects.
    #[serde(default, deserialize_with = "null_is_default")]
    pub kind: String,
    /// Kubernetes verbs; `None` where the document says null.
    #[serde(default)]
    pub verbs: Option<Vec<String>>,
    /// Short names, such as `po`.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Hash of group, version and kind in which objects are stored; the aggregated forms have no place for it.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    pub storage_version_hash: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub unknown: Unknown,
}
