//! From a request and the table to the server that answers, with the reason.

use std::fmt;

use http::Method;

use super::candidates::Candidates;
use super::exclusion::Exclusion;
use super::served::Verb;
use super::standing::RoutingTable;
use super::table::{Entry, ResourceRoutes};
use crate::apimachinery::discovery_path::DiscoveryPath;
use crate::apimachinery::gvr::{GroupVersion, GroupVersionResource};
use crate::apimachinery::peer::Hop;
use crate::request_info::RequestInfo;

/// Who answers a request. Its `Display` is the reason in words, for logs and commands.
#[derive(Debug)]
pub enum Decision<'v> {
    /// peerfront itself, with a merged document; if it has none for this request, [`unmerged`] goes on.
    Discovery(DiscoveryPath),
    /// peerfront itself or the local server, as it stands with the OpenAPI document.
    OpenApi,
    /// peerfront itself, with its metrics.
    Metrics,
    /// The local server.
    Upstream {
        /// Why it, and not a peer.
        why: Local,
        /// What becomes of its answer that it does not serve such a thing.
        not_found: NotFound,
        /// Peers that can answer as well: if the local server cannot be reached and nothing was sent to it, and for the
        /// clients for which [`Candidates::go_first`].
        otherwise: Option<Candidates<'v>>,
    },
    /// One of these peers.
    Peer(Candidates<'v>),
    /// Nobody: whoever serves it cannot be reached.
    Unavailable(Unavailable<'v>),
}

/// Why the local server answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Local {
    /// The request is for no resource.
    NonResource,
    /// A front proxy forwarded it here, and there is at most one hop.
    AlreadyForwarded,
    /// Its documents have not been read yet, so that it may serve anything.
    NotRead,
    /// It serves it.
    ServesIt,
    /// It serves the resource; nobody knows the verb.
    VerbUnknown,
    /// Peers do not count for this.
    LeftToIt(Exclusion),
    /// Nobody is known to serve it: the local server has the last word.
    ServedByNobody,
}

/// Why a peer answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Elsewhere {
    /// The local server does not serve the resource.
    Resource,
    /// The local server serves the resource without the subresource.
    Subresource,
    /// The local server serves it without the verb.
    Verb,
    /// The local server does not serve the group version, of which a document is asked for.
    GroupVersion,
    /// The local server serves it and cannot be reached.
    LocalUnreachable,
    /// The local server serves it and is stopping, or has come back a moment ago.
    LocalSpared,
}

/// What becomes of an answer "no such path or resource". It has two forms: plain text "404 page not found" for a group
/// version that is not served, and for anything else below one a `Status` 404 without name and kind in its details
/// ("the server could not find the requested resource"). A `Status` 404 that names an object is always passed on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotFound {
    /// It is passed on.
    Pass,
    /// The plain-text form becomes a `Status` 503, because the table knows better; the other may be about the path.
    PlainUnavailable,
    /// Both forms become a `Status` 503, because somebody else may serve it.
    Unavailable,
}

/// Nobody who serves it can be reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unavailable<'v> {
    /// What was asked for, as found in the table.
    pub key: &'v GroupVersionResource,
    /// Why a peer was needed.
    pub why: Elsewhere,
}

/// Decides who answers.
#[must_use]
pub fn decide<'v>(info: &RequestInfo<'_>, hop: Hop, table: &'v RoutingTable) -> Decision<'v> {
    if !info.is_resource_request {
        return non_resource(info, hop, table);
    }
    let question = Question { info, table, entry: table.find(info), verb: Verb::parse(&info.verb) };
    if hop == Hop::Last {
        return question.upstream(Local::AlreadyForwarded, None);
    }
    if !table.local_read() && table.local_reachable() {
        return question.upstream(Local::NotRead, Some(Elsewhere::LocalUnreachable));
    }
    let local = question.entry.routes.and_then(|routes| routes.local);
    if local.is_some_and(|verbs| verbs.allow(question.verb)) {
        return question.served_here(Local::ServesIt);
    }
    if let Some(exclusion) = question.entry.exclusion.filter(|_| local.is_none()) {
        return question.upstream(Local::LeftToIt(exclusion), None);
    }
    match (question.entry, local) {
        (Entry { resource: Some(resource), routes: Some(routes), .. }, None) if routes.has_peer(None) => {
            let subresource = !info.subresource.is_empty() && resource.itself.local.is_some();
            question.served_elsewhere(match table.local_read() {
                false => Elsewhere::LocalUnreachable,
                true if subresource => Elsewhere::Subresource,
                true => Elsewhere::Resource,
            })
        }
        (Entry { routes: Some(routes), exclusion: None, .. }, Some(_)) if routes.has_peer(question.verb) => {
            question.served_elsewhere(Elsewhere::Verb)
        }
        (_, Some(_)) => question.served_here(Local::VerbUnknown),
        (_, None) => question.upstream(Local::ServedByNobody, None),
    }
}

/// Where a front's metrics are, for those who may read `/metrics` of its server.
const OWN_METRICS: &str = "/peerfront/metrics";

/// Paths that tell of one server and that no other can answer for.
const OF_ONE_SERVER: [&str; 7] = ["/livez", "/readyz", "/healthz", "/metrics", "/debug", "/logs", "/peerfront"];

/// Peers that can answer in place of a local server that cannot be reached, whatever they serve: for requests that are
/// for no resource and mean the same on every server, such as discovery, `/version` and OpenAPI.
#[must_use]
pub fn stand_ins<'v>(info: &RequestInfo<'_>, hop: Hop, table: &'v RoutingTable) -> Option<Candidates<'v>> {
    let is_below =
        |root: &str| info.path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if hop == Hop::Last || info.is_resource_request || OF_ONE_SERVER.iter().any(|root| is_below(root)) {
        return None;
    }
    let (key, routes) = table.everything();
    table.available(routes, None).next()?;
    // That a peer has no such document says nothing of the local server.
    let (why, not_found) = (Elsewhere::LocalUnreachable, NotFound::Unavailable);
    Some(Candidates { table, key, routes, verb: None, why, not_found })
}

fn non_resource<'v>(info: &RequestInfo<'_>, hop: Hop, table: &'v RoutingTable) -> Decision<'v> {
    let path = DiscoveryPath::parse(&info.path).filter(|path| hop == Hop::First && path.answers(info.method));
    match path {
        Some(DiscoveryPath::GroupVersion(of)) if table.exclusion_of(&of.group, &of.version).is_some() => {
            unmerged(info, hop, table)
        }
        Some(path) => Decision::Discovery(path),
        None if hop == Hop::First && is_open_api(info) => Decision::OpenApi,
        None if hop == Hop::First && is_read(info) && info.path == OWN_METRICS => Decision::Metrics,
        None => unmerged(info, hop, table),
    }
}

/// Whether it is for an OpenAPI document; its handlers take any method.
fn is_open_api(info: &RequestInfo<'_>) -> bool {
    matches!(&*info.path, "/openapi/v2" | "/openapi/v3") || info.path.starts_with("/openapi/v3/")
}

fn is_read(info: &RequestInfo<'_>) -> bool {
    matches!(*info.method, Method::GET | Method::HEAD)
}

/// Decides about a request for no resource that no merged document answers: the local server does, but for documents of
/// what only peers serve.
#[must_use]
pub fn unmerged<'v>(info: &RequestInfo<'_>, hop: Hop, table: &'v RoutingTable) -> Decision<'v> {
    let left = |not_found, otherwise| Decision::Upstream { why: Local::NonResource, not_found, otherwise };
    let asked = match DiscoveryPath::parse(&info.path) {
        Some(DiscoveryPath::Group(group)) => GroupVersion::new(group, ""),
        Some(DiscoveryPath::GroupVersion(group_version)) => group_version,
        _ => return left(NotFound::Pass, None),
    };
    if table.exclusion_of(&asked.group, &asked.version).is_some() {
        return left(NotFound::Pass, None);
    }
    let routes = table.of_document(&asked).filter(|_| hop == Hop::First);
    let (key, _) = table.everything();
    let candidates = |why| {
        let routes = routes.filter(|routes| table.available(routes, None).next().is_some())?;
        Some(Candidates { table, key, routes, verb: None, why, not_found: NotFound::Unavailable })
    };
    if table.local_read() && routes.is_some_and(|routes| routes.local.is_none()) {
        return match candidates(Elsewhere::GroupVersion) {
            Some(candidates) => Decision::Peer(candidates),
            None => Decision::Unavailable(Unavailable { key, why: Elsewhere::GroupVersion }),
        };
    }
    let may_be_served = table.may_have_more(&asked.group, &asked.version) && !asked.group.is_empty();
    left(if may_be_served { NotFound::Unavailable } else { NotFound::Pass }, candidates(Elsewhere::LocalUnreachable))
}

/// A resource request with what the table says of it.
struct Question<'q, 'v> {
    info: &'q RequestInfo<'q>,
    table: &'v RoutingTable,
    entry: Entry<'v>,
    verb: Option<Verb>,
}

impl<'v> Question<'_, 'v> {
    /// The local server, or while it is down a peer in its stead.
    fn served_here(&self, why: Local) -> Decision<'v> {
        match self.candidates(Elsewhere::LocalUnreachable) {
            Some(candidates) if !self.table.local_reachable() => Decision::Peer(candidates),
            _ => self.upstream(why, Some(Elsewhere::LocalUnreachable)),
        }
    }

    fn served_elsewhere(&self, why: Elsewhere) -> Decision<'v> {
        match (self.candidates(why), self.entry.resource) {
            (Some(candidates), _) => Decision::Peer(candidates),
            (None, Some(ResourceRoutes { key, .. })) => Decision::Unavailable(Unavailable { key, why }),
            (None, None) => self.upstream(Local::ServedByNobody, None),
        }
    }

    fn upstream(&self, why: Local, otherwise: Option<Elsewhere>) -> Decision<'v> {
        let otherwise = otherwise.and_then(|why| self.candidates(why));
        Decision::Upstream { why, not_found: self.not_found(why), otherwise }
    }

    fn not_found(&self, why: Local) -> NotFound {
        if self.is_final() {
            return NotFound::Pass;
        }
        let served_here = self.entry.routes.is_some_and(|routes| routes.local.is_some());
        match why {
            _ if served_here => NotFound::PlainUnavailable,
            Local::AlreadyForwarded | Local::NotRead => NotFound::Unavailable,
            _ if self.table.incomplete() || self.entry.unread => NotFound::Unavailable,
            _ => NotFound::Pass,
        }
    }

    /// Whether a 404 says what it says: a proxied server means itself, of what is excluded every server knows alike, and
    /// no server knows a path that begins with two slashes.
    fn is_final(&self) -> bool {
        self.info.path.starts_with("//")
            || self.info.verb == "proxy"
            || self.info.subresource == "proxy"
            || self.entry.exclusion.is_some()
    }

    /// The available peers that know the verb; if no peer at all knows it, those that serve the rest.
    fn candidates(&self, why: Elsewhere) -> Option<Candidates<'v>> {
        let (table, resource, routes) = (self.table, self.entry.resource?, self.entry.routes?);
        if self.entry.exclusion.is_some() && routes.local.is_none() {
            return None;
        }
        let verb = self.verb.filter(|verb| routes.has_peer(Some(*verb)));
        table.available(routes, verb).next()?;
        let not_found = match why {
            _ if self.is_final() => NotFound::Pass,
            Elsewhere::LocalUnreachable => NotFound::PlainUnavailable,
            _ => NotFound::Unavailable,
        };
        Some(Candidates { table, key: &resource.key, routes, verb, why, not_found })
    }
}

impl fmt::Display for Decision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discovery(_) => f.write_str("answered here with the merged document"),
            Self::OpenApi => f.write_str("answered here, or left to the local server where all servers agree"),
            Self::Metrics => f.write_str("answered here with this front's metrics"),
            Self::Upstream { why, .. } => write!(f, "local server: {why}"),
            Self::Peer(candidates) => write!(f, "peer: {}", candidates.why),
            Self::Unavailable(unavailable) => write!(f, "nobody: {unavailable}"),
        }
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NonResource => "not a resource",
            Self::AlreadyForwarded => "forwarded once already",
            Self::NotRead => "its documents have not been read yet",
            Self::ServesIt => "it serves this",
            Self::VerbUnknown => "it serves this, and nobody knows the verb",
            Self::LeftToIt(exclusion) => return write!(f, "left to it, because {exclusion}"),
            Self::ServedByNobody => "nobody is known to serve this",
        })
    }
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resource => "the local server does not serve the resource",
            Self::Subresource => "the local server does not serve the subresource",
            Self::Verb => "the local server does not serve the verb",
            Self::GroupVersion => "the local server does not serve the group version",
            Self::LocalUnreachable => "the local server cannot be reached",
            Self::LocalSpared => "the local server is stopping or has only just come back",
        })
    }
}

impl fmt::Display for Unavailable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, and no peer that does can be reached", self.why)
    }
}
