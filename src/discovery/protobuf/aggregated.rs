//! Source: <https://github.com/kubernetes/api/blob/v0.36.3/apidiscovery/v2/generated.proto>

use prost::Message;

use super::text;
use crate::discovery::model;
use crate::discovery::render::Object;

/// `APIGroupDiscoveryList`, v2 and v2beta1 alike.
#[derive(Message)]
pub(in crate::discovery) struct GroupList {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(message, repeated, tag = "2")]
    items: Vec<Group>,
}

/// `k8s.io.apimachinery.pkg.apis.meta.v1.ListMeta`, of which a document sets nothing.
#[derive(Message)]
struct ListMeta {
    #[prost(string, optional, tag = "1")]
    self_link: Option<String>,
    #[prost(string, optional, tag = "2")]
    resource_version: Option<String>,
    #[prost(string, optional, tag = "3")]
    r#continue: Option<String>,
}

#[derive(Message)]
struct Group {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, repeated, tag = "2")]
    versions: Vec<Version>,
}

/// `k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta`, of which a document sets the name alone.
#[derive(Message)]
struct ObjectMeta {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    generate_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    namespace: Option<String>,
    #[prost(string, optional, tag = "4")]
    self_link: Option<String>,
    #[prost(string, optional, tag = "5")]
    uid: Option<String>,
    #[prost(string, optional, tag = "6")]
    resource_version: Option<String>,
    #[prost(int64, optional, tag = "7")]
    generation: Option<i64>,
    #[prost(message, optional, tag = "8")]
    creation_timestamp: Option<Time>,
}

/// `k8s.io.apimachinery.pkg.apis.meta.v1.Time`, always zero.
#[derive(Message)]
struct Time {}

#[derive(Message)]
struct Version {
    #[prost(string, optional, tag = "1")]
    version: Option<String>,
    #[prost(message, repeated, tag = "2")]
    resources: Vec<Resource>,
    #[prost(string, optional, tag = "3")]
    freshness: Option<String>,
}

#[derive(Message)]
struct Resource {
    #[prost(string, optional, tag = "1")]
    resource: Option<String>,
    #[prost(message, optional, tag = "2")]
    response_kind: Option<Kind>,
    #[prost(string, optional, tag = "3")]
    scope: Option<String>,
    #[prost(string, optional, tag = "4")]
    singular_resource: Option<String>,
    #[prost(string, repeated, tag = "5")]
    verbs: Vec<String>,
    #[prost(string, repeated, tag = "6")]
    short_names: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    categories: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    subresources: Vec<Subresource>,
}

#[derive(Message)]
struct Subresource {
    #[prost(string, optional, tag = "1")]
    subresource: Option<String>,
    #[prost(message, optional, tag = "2")]
    response_kind: Option<Kind>,
    #[prost(message, repeated, tag = "3")]
    accepted_types: Vec<Kind>,
    #[prost(string, repeated, tag = "4")]
    verbs: Vec<String>,
}

/// `k8s.io.apimachinery.pkg.apis.meta.v1.GroupVersionKind`.
#[derive(Message)]
struct Kind {
    #[prost(string, optional, tag = "1")]
    group: Option<String>,
    #[prost(string, optional, tag = "2")]
    version: Option<String>,
    #[prost(string, optional, tag = "3")]
    kind: Option<String>,
}

impl Object for model::ApiGroupDiscoveryList {
    type Message = GroupList;

    fn message(&self) -> GroupList {
        let metadata = ListMeta { self_link: text(""), resource_version: text(""), r#continue: text("") };
        GroupList { metadata: Some(metadata), items: self.items.iter().map(Group::of).collect() }
    }
}

impl Group {
    fn of(group: &model::ApiGroupDiscovery) -> Self {
        let metadata = ObjectMeta {
            name: text(group.name()),
            generate_name: text(""),
            namespace: text(""),
            self_link: text(""),
            uid: text(""),
            resource_version: text(""),
            generation: Some(0),
            creation_timestamp: Some(Time {}),
        };
        Self { metadata: Some(metadata), versions: group.versions.iter().map(Version::of).collect() }
    }
}

impl Version {
    fn of(version: &model::ApiVersionDiscovery) -> Self {
        Self {
            version: text(&version.version),
            resources: version.resources.iter().map(Resource::of).collect(),
            freshness: Some(version.freshness.clone().into()),
        }
    }
}

impl Resource {
    fn of(resource: &model::ApiResourceDiscovery) -> Self {
        Self {
            resource: text(&resource.resource),
            response_kind: Some(Kind::of(&resource.response_kind)),
            scope: text(&resource.scope),
            singular_resource: text(&resource.singular_resource),
            verbs: resource.verbs.clone().unwrap_or_default(),
            short_names: resource.short_names.clone(),
            categories: resource.categories.clone(),
            subresources: resource.subresources.iter().map(Subresource::of).collect(),
        }
    }
}

impl Subresource {
    fn of(subresource: &model::ApiSubresourceDiscovery) -> Self {
        Self {
            subresource: text(&subresource.subresource),
            response_kind: Some(Kind::of(&subresource.response_kind)),
            accepted_types: subresource.accepted_types.iter().map(Kind::of).collect(),
            verbs: subresource.verbs.clone().unwrap_or_default(),
        }
    }
}

impl Kind {
    fn of(kind: &model::GroupVersionKind) -> Self {
        Self { group: text(&kind.group), version: text(&kind.version), kind: text(&kind.kind) }
    }
}
