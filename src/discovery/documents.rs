//! One snapshot of everything that discovery says, in every form: whatever one form lists, every form lists.

mod resources;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Uri};

use self::resources::{Listing, Resources};
use super::legacy::{ApiGroup, ApiGroupList, ApiVersions, GroupVersionForDiscovery, LegacyDocuments};
use super::merge;
use super::model::{ApiGroupDiscovery, ApiGroupDiscoveryList, ApiVersionDiscovery, KIND, Unknown};
use super::negotiate::{Form, V2Beta1, Version, negotiate};
use super::render::{Object, Rendered, TypeMeta, etag};
use super::serve::Page;
use super::stale::Lists;
use crate::apimachinery::discovery_path::DiscoveryPath;
use crate::apimachinery::encoding::Encoding;
use crate::apimachinery::gvr::GroupVersion;
use crate::apimachinery::server_id::ServerId;

/// What a snapshot is made of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Inputs {
    /// The local server.
    pub local: ServerId,
    /// What every server lists at `/api`, with its freshness settled.
    pub api: Lists,
    /// What every server lists at `/apis`, with its freshness settled.
    pub apis: Lists,
    /// What servers say in documents of old.
    pub legacy: BTreeMap<ServerId, Arc<LegacyDocuments>>,
    /// Whether a live server gives the form of 1.27 to 1.29.
    pub v2beta1: V2Beta1,
}

/// Every discovery document of the cluster, ready to be sent.
#[derive(Debug)]
pub struct Documents {
    api: Aggregated,
    apis: Aggregated,
    /// `None` until the local server has said where it is reached.
    api_versions: Option<Rendered<ApiVersions>>,
    group_list: Rendered<ApiGroupList>,
    groups: BTreeMap<String, Rendered<ApiGroup>>,
    resources: BTreeMap<GroupVersion, Resources>,
    v2beta1: V2Beta1,
}

/// An aggregated list in both versions.
#[derive(Debug)]
struct Aggregated {
    v2: Rendered<ApiGroupDiscoveryList>,
    v2beta1: Rendered<ApiGroupDiscoveryList>,
    etag: HeaderValue,
}

/// What a snapshot has for a request.
#[derive(Debug)]
pub enum Found<'d> {
    /// The document in the form that is asked for.
    Page(Page<'d>),
    /// It is listed, and whoever serves it is lost.
    Unavailable,
    /// Nothing: the local server's own resources only are asked for.
    Local,
    /// Nothing: nobody lists it, it is asked for in a form that is not given here, or the local server knows best.
    LeftToUpstream,
}

impl Documents {
    /// Merges and renders. A function of its inputs, so that every node comes to the same bytes, save for the address of
    /// the local server.
    #[must_use]
    pub fn build(inputs: &Inputs) -> Self {
        let api = merge(&inputs.api, &inputs.local);
        let apis = merge(&inputs.apis, &inputs.local);
        let groups = groups(&apis);
        let group_list = Arc::new(ApiGroupList { groups: groups.clone(), unknown: Unknown::new() });
        let mut resources = resources_of(&apis, &inputs.apis, inputs);
        resources.extend(resources_of(&api, &inputs.api, inputs));
        Self {
            api_versions: api_versions(&api, inputs),
            api: Aggregated::new(api),
            apis: Aggregated::new(apis),
            group_list: rendered("APIGroupList", "v1", group_list),
            groups: groups
                .into_iter()
                .map(|group| (group.name.clone(), rendered("APIGroup", "v1", Arc::new(group))))
                .collect(),
            resources,
            v2beta1: inputs.v2beta1,
        }
    }

    /// The document that a GET or HEAD of this path asks for.
    #[must_use]
    pub fn find(&self, path: &DiscoveryPath, headers: &HeaderMap, uri: &Uri) -> Found<'_> {
        let form = negotiate(headers, uri, path, self.v2beta1);
        let page = match (path, form) {
            (_, Form::Local) => return Found::Local,
            (_, Form::LeftToUpstream) => None,
            (DiscoveryPath::Api, Form::Aggregated(version, encoding)) => Some(self.api.page(version, encoding)),
            (_, Form::Aggregated(version, encoding)) => Some(self.apis.page(version, encoding)),
            (DiscoveryPath::Api, Form::Legacy(encoding)) => self.api_versions.as_ref().map(|of| page(of, encoding)),
            (DiscoveryPath::Apis | DiscoveryPath::ApisSlash, Form::Legacy(encoding)) => {
                Some(page(&self.group_list, encoding))
            }
            (DiscoveryPath::Group(name), Form::Legacy(encoding)) => {
                self.groups.get(name).map(|group| page(group, encoding))
            }
            (DiscoveryPath::GroupVersion(group_version), Form::Legacy(encoding)) => {
                match self.resources.get(group_version) {
                    Some(Resources::Listed(list)) => Some(page(list, encoding)),
                    Some(Resources::Lost) => return Found::Unavailable,
                    Some(Resources::LeftToLocal) | None => None,
                }
            }
        };
        page.map_or(Found::LeftToUpstream, Found::Page)
    }
}

impl Aggregated {
    fn new(list: Arc<ApiGroupDiscoveryList>) -> Self {
        let etag = etag(&list);
        let v2 = rendered(KIND, "apidiscovery.k8s.io/v2", Arc::clone(&list));
        v2.body(Encoding::Json);
        Self { v2, v2beta1: rendered(KIND, "apidiscovery.k8s.io/v2beta1", list), etag }
    }

    fn page(&self, version: Version, encoding: Encoding) -> Page<'_> {
        let rendered = match version {
            Version::V2 => &self.v2,
            Version::V2Beta1 => &self.v2beta1,
        };
        let content_type = content_type(version, encoding);
        Page { body: rendered.body(encoding), content_type, etag: Some(&self.etag) }
    }
}

/// `profile` is never echoed.
fn content_type(version: Version, encoding: Encoding) -> &'static str {
    /// Media type, version.
    macro_rules! typed {
        ($media_type:literal, $version:literal) => {
            concat!($media_type, ";g=apidiscovery.k8s.io;v=", $version, ";as=APIGroupDiscoveryList")
        };
    }
    match (version, encoding) {
        (Version::V2, Encoding::Json | Encoding::PrettyJson) => typed!("application/json", "v2"),
        (Version::V2, Encoding::Yaml) => typed!("application/yaml", "v2"),
        (Version::V2, Encoding::Protobuf) => typed!("application/vnd.kubernetes.protobuf", "v2"),
        (Version::V2Beta1, Encoding::Json | Encoding::PrettyJson) => typed!("application/json", "v2beta1"),
        (Version::V2Beta1, Encoding::Yaml) => typed!("application/yaml", "v2beta1"),
        (Version::V2Beta1, Encoding::Protobuf) => typed!("application/vnd.kubernetes.protobuf", "v2beta1"),
    }
}

fn page<T: Object>(rendered: &Rendered<T>, encoding: Encoding) -> Page<'_> {
    Page { body: rendered.body(encoding), content_type: encoding.media_type(), etag: None }
}

fn rendered<T: Object>(kind: &'static str, api_version: &'static str, object: Arc<T>) -> Rendered<T> {
    Rendered::new(TypeMeta { kind, api_version }, object)
}

/// `/api`: the merged versions, and what the local server says of itself.
fn api_versions(api: &ApiGroupDiscoveryList, inputs: &Inputs) -> Option<Rendered<ApiVersions>> {
    let local = inputs.legacy.get(&inputs.local)?.api.as_ref()?;
    let versions = api.group_versions().map(|(_, listed)| listed.version.clone()).collect();
    Some(rendered("APIVersions", "", Arc::new(ApiVersions { versions, ..ApiVersions::clone(local) })))
}

/// The groups of the list that have versions; the first version is the preferred one.
fn groups(apis: &ApiGroupDiscoveryList) -> Vec<ApiGroup> {
    let mut seen = HashSet::new();
    apis.items.iter().filter(|group| seen.insert(group.name())).filter_map(group).collect()
}

fn group(group: &ApiGroupDiscovery) -> Option<ApiGroup> {
    let mut seen = HashSet::new();
    let versions: Vec<GroupVersionForDiscovery> = group
        .versions
        .iter()
        .filter(|listed| seen.insert(&listed.version))
        .map(|listed| GroupVersionForDiscovery {
            group_version: GroupVersion::new(group.name(), &listed.version).to_string(),
            version: listed.version.clone(),
            unknown: Unknown::new(),
        })
        .collect();
    let preferred_version = versions.first()?.clone();
    Some(ApiGroup { name: group.name().to_owned(), versions, preferred_version, unknown: Unknown::new() })
}

/// The document of every group version of a merged list.
fn resources_of(merged: &ApiGroupDiscoveryList, lists: &Lists, inputs: &Inputs) -> BTreeMap<GroupVersion, Resources> {
    let indexed: Vec<(&ServerId, Index<'_>)> = lists.iter().map(|(id, list)| (id, index(list))).collect();
    let mut all = BTreeMap::new();
    for (group, listed) in merged.group_versions() {
        let group_version = GroupVersion::new(group, &listed.version);
        let listings = indexed.iter().filter_map(|(id, versions)| {
            let listed = *versions.get(&(group, listed.version.as_str()))?;
            let document = inputs.legacy.get(*id).and_then(|legacy| legacy.resources.get(&group_version));
            Some(Listing { is_local: **id == inputs.local, listed, document })
        });
        let listings: Vec<Listing<'_>> = listings.collect();
        all.entry(group_version.clone()).or_insert_with(|| Resources::of(&group_version, listed, &listings));
    }
    all
}

/// One server's versions by group and version.
type Index<'i> = HashMap<(&'i str, &'i str), &'i ApiVersionDiscovery>;

fn index(list: &ApiGroupDiscoveryList) -> Index<'_> {
    let mut versions = HashMap::new();
    for (group, listed) in list.group_versions() {
        versions.entry((group, listed.version.as_str())).or_insert(listed);
    }
    versions
}
