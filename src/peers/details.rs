//! What else a server says of itself: its version, whether it still gives v2beta1, and its legacy documents, which say
//! what the aggregated forms have no place for.
//!
//! Read beside the lists and after them, by a task of its own: a list is published before the first of these is asked
//! for, and nothing here holds up the next one. What fails is kept as it was last read and asked for again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use futures_util::{StreamExt, stream};
use http::HeaderValue;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};

use self::version::Version;
use super::client::ServerClient;
use super::fetch::resources::{Budget, CONCURRENCY, fetch};
use super::fetch::{Condition, FetchError, Limits, Lists, get, is_same};
use crate::apimachinery::gvr::GroupVersion;
use crate::apimachinery::server_id::ServerId;
use crate::discovery::legacy::{ApiResourceList, LegacyDocuments, resources_path};
use crate::discovery::model::{ApiVersionDiscovery, Freshness};
use crate::discovery::parse::{is_v2beta1, parse_api_versions};
use crate::view::ServerVersion;

mod version;

/// `Accept` of a client that reads v2beta1 and nothing else.
const ACCEPT_V2BETA1: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// Longest pause between attempts at what fails. It begins with the interval of the reads and doubles, so that a right
/// that peerfront lacks does not cost a server a request per group version and second.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Most of `/version` that is read: some hundred times what a server says there, because it is kept as text.
const VERSION_BYTES: usize = 64 << 10;

/// How long what has been read may wait for the rest before it is reported.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// What a server says of itself beside its lists, as last read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Details {
    /// `/version`; `None` until read, or if it cannot be understood.
    pub(super) version: Option<ServerVersion>,
    /// Whether it answers a client that reads v2beta1 only in that form.
    pub(super) gives_v2beta1: bool,
    /// Its legacy documents. The same `Arc` until one changes.
    pub(super) legacy: Arc<LegacyDocuments>,
}

/// Reads the details of one server.
pub(super) struct DetailsReader {
    pub(super) server: ServerId,
    pub(super) client: ServerClient,
    pub(super) limits: Limits,
    /// First pause before what failed is asked for again.
    pub(super) pause: Duration,
}

impl DetailsReader {
    /// Follows the lists until nobody reads them, or wants the reports, any more.
    pub(super) async fn run(self, mut lists: watch::Receiver<Lists>, reports: mpsc::Sender<(ServerId, Details)>) {
        let mut known = Known::default();
        let mut pause = self.pause;
        let mut is_whole = true;
        loop {
            tokio::select! {
                changed = lists.changed() => match changed {
                    Ok(()) => pause = self.pause,
                    Err(_) => return,
                },
                () = sleep(pause), if !is_whole => pause = (pause * 2).min(LONGEST_PAUSE),
                () = reports.closed() => return,
            }
            let new = lists.borrow_and_update().clone();
            let Some(read) = self.read(&mut known, new, &reports).await else { return };
            is_whole = read;
        }
    }

    /// Reads what is due, and says whether all of it could be read; `None` if nobody wants to know.
    async fn read(&self, known: &mut Known, lists: Lists, reports: &mpsc::Sender<(ServerId, Details)>) -> Option<bool> {
        let has_arrived = known.lists.arrivals != lists.arrivals;
        let is_version_read = self.read_version(known, &lists).await;
        self.report(known, reports).await?;
        let due = known.take_lists(lists, has_arrived);
        let is_api_read = self.read_api(known).await;
        self.read_resources(known, due, reports).await?;
        self.report(known, reports).await?;
        Some(is_version_read && is_api_read && known.failed.is_empty())
    }

    async fn report(&self, known: &mut Known, reports: &mpsc::Sender<(ServerId, Details)>) -> Option<()> {
        if known.reported.as_ref() != Some(&known.details) {
            known.reported = Some(known.details.clone());
            reports.send((self.server.clone(), known.details.clone())).await.ok()?;
        }
        Some(())
    }

    /// A new version has new documents or, at the least, was away for a moment.
    async fn read_version(&self, known: &mut Known, lists: &Lists) -> bool {
        known.is_version_due |= !known.lists.is_same(lists);
        if !known.is_version_due {
            return true;
        }
        let (version, gives_v2beta1) = join(self.ask_version(), self.ask_v2beta1()).await;
        known.is_version_due = version.is_err() || gives_v2beta1.is_err();
        match version {
            Ok(version) => known.details.version = version,
            Err(error) => self.log(&error),
        }
        match gives_v2beta1 {
            Ok(gives) => known.details.gives_v2beta1 = gives,
            Err(error) => self.log(&error),
        }
        !known.is_version_due
    }

    async fn ask_version(&self) -> Result<Option<ServerVersion>, FetchError> {
        let path = "/version";
        let limits = Limits { bytes: VERSION_BYTES, ..self.limits };
        let Some(answer) = get(&self.client, path, Condition::json(), &limits).await? else { return Ok(None) };
        let version: Version =
            serde_json::from_slice(&answer.body).map_err(|source| FetchError::decode(path, source))?;
        Ok(version.into_server_version())
    }

    /// Asked of `/api`, the smaller of the two: a server gives both in this form or none.
    async fn ask_v2beta1(&self) -> Result<bool, FetchError> {
        let condition = Condition { accept: HeaderValue::from_static(ACCEPT_V2BETA1), if_none_match: None };
        match get(&self.client, "/api", condition, &self.limits).await {
            Ok(answer) => Ok(answer.is_some_and(|answer| is_v2beta1(&answer.body, answer.content_type()))),
            Err(FetchError::Status { status, .. }) if status == http::StatusCode::NOT_ACCEPTABLE => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn read_api(&self, known: &mut Known) -> bool {
        if !known.is_api_due {
            return true;
        }
        let path = "/api";
        let read = match get(&self.client, path, Condition::json(), &self.limits).await {
            Ok(None) => Ok(None),
            Ok(Some(answer)) => parse_api_versions(&answer.body, answer.content_type())
                .map(Some)
                .map_err(|source| FetchError::decode(path, source)),
            Err(error) => Err(error),
        };
        match read {
            Ok(versions) => {
                known.is_api_due = false;
                let versions = versions.map(Arc::new);
                if known.details.legacy.api != versions {
                    Arc::make_mut(&mut known.details.legacy).api = versions;
                }
            }
            Err(error) => self.log(&error),
        }
        !known.is_api_due
    }

    async fn read_resources(
        &self,
        known: &mut Known,
        due: Vec<(GroupVersion, String)>,
        reports: &mpsc::Sender<(ServerId, Details)>,
    ) -> Option<()> {
        known.failed = due.iter().map(|(group_version, _)| group_version.clone()).collect();
        let deadline = Instant::now() + self.limits.walk;
        let budget = Budget::new(&self.limits);
        let mut answers = stream::iter(due)
            .map(|(group_version, path)| {
                let budget = &budget;
                async move {
                    let answer = fetch(&self.client, &group_version, &path, &self.limits, budget).await;
                    (group_version, answer)
                }
            })
            .buffer_unordered(CONCURRENCY);
        let mut next_report = Instant::now() + REPORT_AFTER;
        loop {
            match timeout_at(next_report.min(deadline), answers.next()).await {
                Ok(Some((group_version, Ok(list)))) => known.keep(group_version, list),
                Ok(Some((_, Err(error)))) => self.log(&error),
                Ok(None) => return Some(()),
                Err(_) if Instant::now() >= deadline => return Some(()),
                Err(_) => {
                    self.report(known, reports).await?;
                    next_report = Instant::now() + REPORT_AFTER;
                }
            }
        }
    }

    fn log(&self, error: &FetchError) {
        tracing::debug!(target: super::LOG, server = %self.server, error = super::chain(error), "cannot read a detail");
    }
}

/// What has been read, and of which lists.
#[derive(Default)]
struct Known {
    details: Details,
    reported: Option<Details>,
    lists: Lists,
    is_version_due: bool,
    is_api_due: bool,
    /// Group versions whose document could not be read the last time.
    failed: BTreeSet<GroupVersion>,
}

impl Known {
    /// Takes what is listed now, drops what is not listed any more, and says what is to be fetched: what is new or
    /// changed or failed, and everything of a server that was away. What a server itself calls stale it cannot give.
    fn take_lists(&mut self, lists: Lists, has_arrived: bool) -> Vec<(GroupVersion, String)> {
        let mut legacy = LegacyDocuments { api: self.details.legacy.api.clone(), ..LegacyDocuments::default() };
        let is_api_new = has_arrived || !is_same(self.lists.api.as_ref(), lists.api.as_ref());
        self.is_api_due |= is_api_new;
        if lists.walked.api.is_some() {
            legacy.api.clone_from(&lists.walked.api);
            self.is_api_due = false;
        }
        let before = by_group_version(&self.lists);
        let mut due = Vec::new();
        for (group_version, listed) in by_group_version(&lists) {
            let walked = lists.walked.resources.get(&group_version);
            if let Some(list) = walked.or_else(|| self.details.legacy.resources.get(&group_version)) {
                legacy.resources.insert(group_version.clone(), Arc::clone(list));
            }
            let is_new = before.get(&group_version).is_none_or(|known| *known != listed);
            let is_wanted = has_arrived || is_new || self.failed.contains(&group_version);
            if is_wanted && walked.is_none() && listed.freshness != Freshness::Stale {
                due.extend(resources_path(&group_version).map(|path| (group_version, path)));
            }
        }
        if *self.details.legacy != legacy {
            self.details.legacy = Arc::new(legacy);
        }
        self.lists = lists;
        due
    }

    fn keep(&mut self, group_version: GroupVersion, list: Option<ApiResourceList>) {
        self.failed.remove(&group_version);
        let list = list.map(Arc::new);
        if self.details.legacy.resources.get(&group_version) == list.as_ref() {
            return;
        }
        let resources = &mut Arc::make_mut(&mut self.details.legacy).resources;
        match list {
            Some(list) => resources.insert(group_version, list),
            None => resources.remove(&group_version),
        };
    }
}

fn by_group_version(lists: &Lists) -> BTreeMap<GroupVersion, &ApiVersionDiscovery> {
    let documents = lists.api.iter().chain(&lists.apis);
    let listed = documents.flat_map(|document| document.list.group_versions());
    listed.map(|(group, listed)| (GroupVersion::new(group, &listed.version), listed)).collect()
}

#[cfg(test)]
mod tests;
