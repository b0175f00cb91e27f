//! What CRDs define and which group versions APIServices send elsewhere: the local server alone answers for these, so
//! they are never taken from peers. Watched at the local server, which reads them from the etcd that all servers share.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/util/peerproxy/gv_exclusion_manager.go>

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use kube::api::{Api, ApiResource, GroupVersionKind, NotUsed, Object};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_objects};
use kube::{Client, ResourceExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};

use crate::apimachinery::gvr::{GroupVersion, GroupVersionResource};

/// Objects per page of a list. A CRD with its schemas may weigh 100 KiB and more, and all but two fields of it are
/// dropped at once, so small pages keep the peak low.
const PAGE_SIZE: u32 = 50;

/// What the watches have found so far.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Excluded {
    /// What all CRDs define, in all their versions; `None` until they have been listed once.
    pub(super) custom_resources: Option<BTreeSet<GroupVersionResource>>,
    /// Group versions of all APIServices with a service; `None` until they have been listed once.
    pub(super) api_services: Option<BTreeSet<GroupVersion>>,
    /// Why one of the watches does not work: refused at any time, or failing before its first list.
    pub(super) problem: Option<Problem>,
}

/// Why CRDs or APIServices cannot be watched.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Problem {
    /// `system:kube-peerfront` may not read them.
    Forbidden,
    /// Anything else, mostly a local server that is away.
    Failed(String),
}

#[derive(Clone, Debug, Deserialize)]
struct CustomResourceDefinitionSpec {
    group: String,
    names: CustomResourceDefinitionNames,
    #[serde(default)]
    versions: Vec<CustomResourceDefinitionVersion>,
}

#[derive(Clone, Debug, Deserialize)]
struct CustomResourceDefinitionNames {
    plural: String,
}

#[derive(Clone, Debug, Deserialize)]
struct CustomResourceDefinitionVersion {
    name: String,
}

#[derive(Clone, Debug, Deserialize)]
struct ApiServiceSpec {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    service: Option<serde::de::IgnoredAny>,
}

/// An object whose spec says what is left to the local server.
trait Declares: Clone + Debug + DeserializeOwned + Send + Sync + 'static {
    /// What it declares.
    type Item: Clone + Ord + Send + Sync;

    fn declared(&self) -> Vec<Self::Item>;
}

impl Declares for CustomResourceDefinitionSpec {
    type Item = GroupVersionResource;

    /// All versions, served or not: one that is not served may be in use on a server with an older definition.
    fn declared(&self) -> Vec<GroupVersionResource> {
        let of_version = |version: &CustomResourceDefinitionVersion| GroupVersionResource {
            group_version: GroupVersion::new(&self.group, &version.name),
            resource: self.names.plural.clone(),
        };
        self.versions.iter().map(of_version).collect()
    }
}

impl Declares for ApiServiceSpec {
    type Item = GroupVersion;

    /// Without a service it is the server's own group version.
    fn declared(&self) -> Vec<GroupVersion> {
        self.service.iter().map(|_| GroupVersion::new(&self.group, &self.version)).collect()
    }
}

/// Watches until the last receiver is gone; after a refusal, tries again `retry` later. `changed` is notified of every
/// change of an object, also of one that declares the same as before: what it declares may be served from now on.
pub(super) async fn run(client: Client, retry: Duration, found: watch::Sender<Excluded>, changed: Arc<Notify>) {
    let (crds, api_services) = (watch::Sender::new(Watched::default()), watch::Sender::new(Watched::default()));
    let (mut crd_changes, mut api_service_changes) = (crds.subscribe(), api_services.subscribe());
    let join = async {
        loop {
            let both = join(&crd_changes.borrow_and_update(), &api_service_changes.borrow_and_update());
            found.send_if_modified(|excluded| {
                let is_new = *excluded != both;
                *excluded = both;
                is_new
            });
            tokio::select! {
                _ = crd_changes.changed() => {}
                _ = api_service_changes.changed() => {}
            }
        }
    };
    let crd = resource("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions");
    let api_service = resource("apiregistration.k8s.io", "APIService", "apiservices");
    tokio::select! {
        () = watch_one::<CustomResourceDefinitionSpec>(client.clone(), &crd, retry, &crds, &changed) => {}
        () = watch_one::<ApiServiceSpec>(client, &api_service, retry, &api_services, &changed) => {}
        () = join => {}
        () = found.closed() => {}
    }
}

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural)
}

fn join(crds: &Watched<GroupVersionResource>, api_services: &Watched<GroupVersion>) -> Excluded {
    Excluded {
        custom_resources: crds.declared(),
        api_services: api_services.declared(),
        problem: crds.problem.clone().or_else(|| api_services.problem.clone()),
    }
}

/// What one watch has found.
#[derive(Debug)]
struct Watched<T> {
    /// By object name; `None` until listed once.
    objects: Option<HashMap<String, Vec<T>>>,
    /// The list in progress, which replaces `objects` when it is complete.
    listing: HashMap<String, Vec<T>>,
    problem: Option<Problem>,
}

impl<T> Default for Watched<T> {
    fn default() -> Self {
        Self { objects: None, listing: HashMap::new(), problem: None }
    }
}

impl<T: Clone + Ord> Watched<T> {
    fn declared(&self) -> Option<BTreeSet<T>> {
        self.objects.as_ref().map(|objects| objects.values().flatten().cloned().collect())
    }

    /// Takes one event and says whether there is news.
    fn apply<S: Declares<Item = T>>(&mut self, event: Event<Object<S, NotUsed>>) -> bool {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => {
                self.listing.insert(object.name_any(), object.spec.declared());
            }
            Event::InitDone => {
                let listed = Some(std::mem::take(&mut self.listing));
                let news = self.objects != listed || self.problem.is_some();
                self.objects = listed;
                self.problem = None;
                return news;
            }
            Event::Apply(object) => {
                let declared = object.spec.declared();
                let objects = self.objects.get_or_insert_default();
                return objects.insert(object.name_any(), declared.clone()) != Some(declared);
            }
            Event::Delete(object) => {
                return self.objects.get_or_insert_default().remove(&object.name_any()).is_some();
            }
        }
        false
    }

    /// Takes one error and says whether there is news. What was found once stands while the server is away.
    fn fail(&mut self, problem: Problem) -> bool {
        if self.objects.is_some() && problem != Problem::Forbidden {
            return false;
        }
        let news = self.problem.as_ref() != Some(&problem);
        self.problem = Some(problem);
        news
    }
}

async fn watch_one<S: Declares>(
    client: Client,
    resource: &ApiResource,
    retry: Duration,
    found: &watch::Sender<Watched<S::Item>>,
    changed: &Notify,
) {
    loop {
        let api: Api<Object<S, NotUsed>> = Api::all_with(client.clone(), resource);
        let events = watch_objects(api, watcher::Config::default().page_size(PAGE_SIZE)).default_backoff();
        let mut events = pin!(events);
        while let Some(event) = events.next().await {
            let forbidden = event.as_ref().is_err_and(is_forbidden);
            let is_change = matches!(event, Ok(Event::Apply(_) | Event::Delete(_) | Event::InitDone));
            found.send_if_modified(|watched| match event {
                Ok(event) => watched.apply(event),
                Err(error) => {
                    watched.fail(if forbidden { Problem::Forbidden } else { Problem::Failed(error.to_string()) })
                }
            });
            if is_change {
                changed.notify_one();
            }
            if forbidden {
                break;
            }
        }
        // Listed anew, so that the first success says that the rights are there again.
        tokio::time::sleep(retry).await;
    }
}

pub(super) fn is_forbidden(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status))
        | WatchError(status) => matches!(status.code, 401 | 403),
        _ => false,
    }
}
