//! What is known of one server.

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use tokio::time::Instant;

use crate::apimachinery::peer::Peer;
use crate::apimachinery::server_id::ServerId;
use crate::discovery::legacy::LegacyDocuments;
use crate::discovery::model::{ApiVersionDiscovery, Freshness};
use crate::peers::LOG;
use crate::peers::cache::Remembered;
use crate::peers::changes::Changes;
use crate::peers::details::Details;
use crate::peers::fetch::{Document, Reading};
use crate::peers::health::{Failure, Health};
use crate::routing::{Circuit, ServedResources};
use crate::view::ServerVersion;

/// One server.
pub(in crate::peers) struct Server {
    pub(in crate::peers) id: ServerId,
    pub(in crate::peers) hostname: String,
    /// How to forward to it; `None` for the local server.
    pub(in crate::peers) peer: Option<Arc<Peer>>,
    pub(in crate::peers) health: Health,
    pub(in crate::peers) api: Option<Document>,
    pub(in crate::peers) apis: Option<Document>,
    /// What the two list, in the words of routing.
    pub(in crate::peers) served: Option<Arc<ServedResources>>,
    /// Its legacy documents. They follow the two lists: what is new in these is missing here for a moment.
    pub(in crate::peers) legacy: Arc<LegacyDocuments>,
    pub(in crate::peers) version: Option<ServerVersion>,
    /// Whether it still gives clients of v2beta1 what they ask for.
    pub(in crate::peers) gives_v2beta1: bool,
    /// Whether its version has been asked for.
    pub(in crate::peers) is_detailed: bool,
    /// Whether its lists are those of an earlier run, and nothing has been read in this one.
    pub(in crate::peers) is_remembered: bool,
    /// Why the last read failed.
    pub(in crate::peers) error: Option<String>,
    /// When its documents were last known to be right.
    pub(in crate::peers) confirmed: Instant,
}

/// What a read has changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum News {
    /// Nothing.
    None,
    /// How it answers.
    State,
    /// What it serves, or whether that counts.
    Served,
}

impl Server {
    /// The co-located server.
    pub(in crate::peers) fn local(hostname: &str, now: Instant) -> Self {
        Self::new(ServerId::from_hostname(hostname), hostname, None, now)
    }

    pub(super) fn new(id: ServerId, hostname: &str, peer: Option<Arc<Peer>>, now: Instant) -> Self {
        Self {
            id,
            hostname: hostname.to_owned(),
            peer,
            health: Health::new(now),
            api: None,
            apis: None,
            served: None,
            legacy: Arc::default(),
            version: None,
            gives_v2beta1: false,
            is_detailed: false,
            is_remembered: false,
            error: None,
            confirmed: now,
        }
    }

    /// Takes what a read came to and says what is new.
    ///
    /// `served_alike` is what a server with the same lists serves.
    pub(super) fn apply(
        &mut self,
        reading: Reading,
        served_alike: Option<Arc<ServedResources>>,
        began: Instant,
        now: Instant,
    ) -> News {
        let before = self.health.standing();
        if reading.api.is_some() && reading.apis.is_some() {
            self.is_remembered = false;
        }
        let is_document_new = [
            self.take("/api", reading.api, |server| &mut server.api),
            self.take("/apis", reading.apis, |server| &mut server.apis),
        ]
        .contains(&true);
        if is_document_new {
            self.served = served_alike.or_else(|| self.documents_served());
        }
        let failure = reading.failure.as_ref().map(|(failure, _)| *failure);
        self.health.read(failure, began, now);
        if failure.is_none() {
            self.confirmed = began;
        }
        let is_error_new = self.take_error(reading.failure);
        let after = self.health.standing();
        // What was served in an earlier run counts while the server is away.
        let is_away_anew = self.is_remembered && before.is_available() != after.is_available();
        if is_document_new || is_away_anew || (before.lost, before.heard) != (after.lost, after.heard) {
            News::Served
        } else if is_error_new || before != after {
            News::State
        } else {
            News::None
        }
    }

    /// Takes what a server says beside its lists and says whether anything is new.
    pub(super) fn detail(&mut self, details: Details) -> bool {
        let Details { version, gives_v2beta1, legacy } = details;
        let is_same = self.version == version && self.gives_v2beta1 == gives_v2beta1 && self.legacy == legacy;
        let is_new = !is_same || !self.is_detailed;
        (self.version, self.gives_v2beta1, self.legacy, self.is_detailed) = (version, gives_v2beta1, legacy, true);
        is_new
    }

    /// Takes what an earlier run knew of it.
    pub(super) fn restore(&mut self, remembered: Remembered) {
        let document = |list| Document { list, etag: None };
        self.api = remembered.api.map(document);
        self.apis = remembered.apis.map(document);
        self.served = self.documents_served();
        self.legacy = remembered.legacy;
        self.version = remembered.version;
        self.gives_v2beta1 = remembered.gives_v2beta1;
        self.is_remembered = true;
    }

    /// What the next run may need to know, but for OpenAPI.
    pub(super) fn remember(&self) -> Option<Remembered> {
        let list = |document: &Document| Arc::clone(&document.list);
        self.served.as_ref()?;
        Some(Remembered {
            peer: self.peer.clone(),
            api: self.api.as_ref().map(list),
            apis: self.apis.as_ref().map(list),
            legacy: Arc::clone(&self.legacy),
            version: self.version.clone(),
            gives_v2beta1: self.gives_v2beta1,
            openapi: None,
        })
    }

    /// Whether requests are forwarded to it. What it served in an earlier run may be another server's by now.
    pub(in crate::peers) fn circuit(&self) -> Circuit {
        if self.is_remembered { Circuit::Open } else { self.health.standing().circuit }
    }

    fn take(
        &mut self,
        path: &'static str,
        new: Option<Document>,
        place: fn(&mut Self) -> &mut Option<Document>,
    ) -> bool {
        // What a loop has not read yet may be known of the server from an earlier one.
        let Some(new) = new else { return false };
        let hostname = self.hostname.clone();
        let known = place(self);
        let is_same_list = known.as_ref().is_some_and(|known| Arc::ptr_eq(&known.list, &new.list));
        if !is_same_list {
            let changes = Changes::between(known.as_ref().map(|known| known.list.as_ref()), &new.list);
            tracing::info!(target: LOG, server = hostname, path, %changes, "a server's document is new");
        }
        let is_etag_same = known.as_ref().is_some_and(|known| known.etag == new.etag);
        *known = Some(new);
        !is_same_list || !is_etag_same
    }

    /// Whether its lists are the very same as those that were read elsewhere.
    pub(super) fn lists_as(&self, reading: &Reading) -> bool {
        let is_same = |own: &Option<Document>, read: &Option<Document>| {
            own.as_ref().zip(read.as_ref()).is_some_and(|(own, read)| Arc::ptr_eq(&own.list, &read.list))
        };
        is_same(&self.api, &reading.api) && is_same(&self.apis, &reading.apis)
    }

    fn documents_served(&self) -> Option<Arc<ServedResources>> {
        let mut served = None;
        for document in self.api.iter().chain(&self.apis) {
            let served = served.get_or_insert_with(ServedResources::default);
            for (group, listed) in document.list.group_versions() {
                add_version(served, group, listed);
            }
        }
        served.map(Arc::new)
    }

    /// Digest of what it serves, in upper-case hex; `None` until both documents have been read in this run.
    pub(in crate::peers) fn served_hash(&self) -> Option<String> {
        if self.is_remembered {
            return None;
        }
        let mut digest = Context::new(&SHA256);
        for document in [self.api.as_ref()?, self.apis.as_ref()?] {
            digest.update(&serde_json::to_vec(document.list.as_ref()).ok()?);
        }
        Some(data_encoding::HEXUPPER.encode(&digest.finish().as_ref()[..16]))
    }

    /// Keeps the reason, and logs it once.
    fn take_error(&mut self, failure: Option<(Failure, String)>) -> bool {
        let error = failure.map(|(_, error)| error);
        if error == self.error {
            return false;
        }
        let server = self.hostname.as_str();
        match &error {
            Some(error) => tracing::warn!(
                target: LOG, server, error,
                "cannot read a server's documents; what it served last is kept"
            ),
            None => tracing::info!(target: LOG, server, "a server's documents can be read again"),
        }
        self.error = error;
        true
    }
}

fn add_version(served: &mut ServedResources, group: &str, listed: &ApiVersionDiscovery) {
    let version = listed.version.as_str();
    if listed.freshness == Freshness::Stale && listed.resources.is_empty() {
        served.insert_unread_group_version(group, version);
        return;
    }
    served.insert_group_version(group, version);
    for resource in &listed.resources {
        // Without verbs it only stands for its subresources.
        if let Some(verbs) = &resource.verbs {
            served.insert(group, version, &resource.resource, None, verbs);
        }
        for subresource in &resource.subresources {
            let verbs = subresource.verbs.as_deref().unwrap_or_default();
            served.insert(group, version, &resource.resource, Some(&subresource.subresource), verbs);
        }
    }
}
