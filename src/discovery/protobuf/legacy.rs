//! Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/apis/meta/v1/generated.proto>

use prost::Message;

use super::text;
use crate::discovery::legacy;
use crate::discovery::render::Object;

/// `APIVersions`
#[derive(Message)]
pub(in crate::discovery) struct Versions {
    #[prost(string, repeated, tag = "1")]
    versions: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    server_addresses: Vec<ServerAddress>,
}

/// `ServerAddressByClientCIDR`
#[derive(Message)]
struct ServerAddress {
    #[prost(string, optional, tag = "1")]
    client_cidr: Option<String>,
    #[prost(string, optional, tag = "2")]
    server_address: Option<String>,
}

/// `APIGroupList`
#[derive(Message)]
pub(in crate::discovery) struct GroupList {
    #[prost(message, repeated, tag = "1")]
    groups: Vec<Group>,
}

/// `APIGroup`
#[derive(Message)]
pub(in crate::discovery) struct Group {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(message, repeated, tag = "2")]
    versions: Vec<Version>,
    #[prost(message, optional, tag = "3")]
    preferred_version: Option<Version>,
}

/// `GroupVersionForDiscovery`
#[derive(Message)]
struct Version {
    #[prost(string, optional, tag = "1")]
    group_version: Option<String>,
    #[prost(string, optional, tag = "2")]
    version: Option<String>,
}

/// `APIResourceList`
#[derive(Message)]
pub(in crate::discovery) struct ResourceList {
    #[prost(string, optional, tag = "1")]
    group_version: Option<String>,
    #[prost(message, repeated, tag = "2")]
    resources: Vec<Resource>,
}

/// `APIResource`
#[derive(Message)]
struct Resource {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(bool, optional, tag = "2")]
    namespaced: Option<bool>,
    #[prost(string, optional, tag = "3")]
    kind: Option<String>,
    #[prost(message, optional, tag = "4")]
    verbs: Option<Verbs>,
    #[prost(string, repeated, tag = "5")]
    short_names: Vec<String>,
    #[prost(string, optional, tag = "6")]
    singular_name: Option<String>,
    #[prost(string, repeated, tag = "7")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "8")]
    group: Option<String>,
    #[prost(string, optional, tag = "9")]
    version: Option<String>,
    #[prost(string, optional, tag = "10")]
    storage_version_hash: Option<String>,
}

/// `Verbs`
#[derive(Message)]
struct Verbs {
    #[prost(string, repeated, tag = "1")]
    items: Vec<String>,
}

impl Object for legacy::ApiVersions {
    type Message = Versions;

    fn message(&self) -> Versions {
        let address = |listed: &legacy::ServerAddressByClientCidr| ServerAddress {
            client_cidr: text(&listed.client_cidr),
            server_address: text(&listed.server_address),
        };
        let server_addresses = self.server_address_by_client_cidrs.iter().map(address).collect();
        Versions { versions: self.versions.clone(), server_addresses }
    }
}

impl Object for legacy::ApiGroupList {
    type Message = GroupList;

    fn message(&self) -> GroupList {
        GroupList { groups: self.groups.iter().map(Object::message).collect() }
    }
}

impl Object for legacy::ApiGroup {
    type Message = Group;

    fn message(&self) -> Group {
        let version = |listed: &legacy::GroupVersionForDiscovery| Version {
            group_version: text(&listed.group_version),
            version: text(&listed.version),
        };
        Group {
            name: text(&self.name),
            versions: self.versions.iter().map(version).collect(),
            preferred_version: Some(version(&self.preferred_version)),
        }
    }
}

impl Object for legacy::ApiResourceList {
    type Message = ResourceList;

    fn message(&self) -> ResourceList {
        let resource = |listed: &legacy::ApiResource| Resource {
            name: text(&listed.name),
            namespaced: Some(listed.namespaced),
            kind: text(&listed.kind),
            verbs: listed.verbs.clone().map(|items| Verbs { items }),
            short_names: listed.short_names.clone(),
            singular_name: text(&listed.singular_name),
            categories: listed.categories.clone(),
            group: text(&listed.group),
            version: text(&listed.version),
            storage_version_hash: text(&listed.storage_version_hash),
        };
        ResourceList {
            group_version: text(&self.group_version),
            resources: self.resources.iter().map(resource).collect(),
        }
    }
}
