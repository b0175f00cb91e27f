//! `/statusz`: how this front stands and what it knows of the others, for people.
//!
//! Opens like kube-apiserver's own page, with the same promise that its form is none to be parsed.
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/server/statusz/textserializer.go>

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::SystemTime;

use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::{Started, readiness};
use crate::apimachinery::peer::PeerKind;
use crate::apimachinery::server_id::ServerId;
use crate::routing::Circuit;
use crate::view::{ClusterView, LocalState, Origin, PeerState};

const HEADER: &str = "
peerfront statusz
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.
";

/// As Go's `time.UnixDate`.
const UNIX_DATE: &str = "%a %b %e %H:%M:%S UTC %Y";

/// The whole page. `hostname` is that of the co-located server.
pub(super) fn page(hostname: &str, started: Started, view: &ClusterView, is_draining: bool) -> String {
    let now = Instant::now();
    let mut page = HEADER.to_owned();
    section(&mut page, "", about(started, now));
    section(&mut page, "Local server:", [format!("{hostname}: {}", local(&view.local))]);
    section(&mut page, "Peers:", peers(view, now));
    section(&mut page, "Resources that only some servers serve:", skew(view));
    section(&mut page, "Readiness:", readiness::lines(view, is_draining));
    page
}

/// Lines below a title, after an empty one.
fn section(page: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    let title = if title.is_empty() { String::new() } else { format!("{title}\n") };
    let lines: String = lines.into_iter().map(|line| line + "\n").collect();
    let lines = if lines.is_empty() { "none\n" } else { &lines };
    // Writing to a String does not fail.
    let _ = write!(page, "\n{title}{lines}");
}

fn about(started: Started, now: Instant) -> [String; 4] {
    let seconds = (now - started.clock).as_secs();
    [
        format!("Started: {}", date(started.time)),
        format!("Up: {} hr {:02} min {:02} sec", seconds / 3600, seconds / 60 % 60, seconds % 60),
        format!("Binary version: {}", env!("CARGO_PKG_VERSION")),
        "Paths: /livez /metrics /readyz /statusz".to_owned(),
    ]
}

fn date(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(|_| "unknown".to_owned(), |time| time.strftime(UNIX_DATE).to_string())
}

fn local(state: &LocalState) -> String {
    let version = state.version.as_ref().map_or("unknown version", |version| &version.git_version);
    let mut words = vec![version];
    words.push(if state.available { "available" } else { "not available" });
    words.extend((!state.heard).then_some("never heard"));
    with_error(words.join(", "), state.error.as_deref())
}

/// A line per peer.
fn peers(view: &ClusterView, now: Instant) -> Vec<String> {
    let routes: BTreeMap<&ServerId, usize> =
        view.routes.routes_by_peer().map(|(peer, routes)| (&peer.id, routes)).collect();
    let lines =
        view.peers.iter().map(|state| peer(state, routes.get(&state.peer.id).copied().unwrap_or_default(), now));
    lines.collect()
}

fn peer(state: &PeerState, routes: usize, now: Instant) -> String {
    let kind = match state.peer.kind {
        PeerKind::Front => "front",
        PeerKind::Plain => "plain kube-apiserver",
    };
    let origin = match state.origin {
        Origin::Static => "found by --peers",
        Origin::Lease => "found by its Lease",
        Origin::Remembered => "remembered of an earlier run",
    };
    let mut words = vec![kind.to_owned(), origin.to_owned()];
    words.extend(standing(state).into_iter().map(str::to_owned));
    words.extend(state.lease.as_ref().map(|lease| format!("Lease renewed {} s ago", lease.age(now).as_secs())));
    words.push(format!("{routes} routes"));
    let line = format!("{} at {}: {}", state.peer.hostname, state.peer.address, words.join(", "));
    with_error(line, state.error.as_deref())
}

/// Whether requests are sent to it, in words.
fn standing(state: &PeerState) -> Vec<&'static str> {
    let mut words = vec![match state.circuit {
        Circuit::Closed => "available",
        Circuit::HalfOpen => "available again (circuit half-open)",
        Circuit::Open => "not available (circuit open)",
    }];
    words.extend(state.vanished.then_some("vanished"));
    words.extend((!state.heard).then_some("never heard"));
    words.extend(state.lost.then_some("lost"));
    words
}

fn skew(view: &ClusterView) -> Vec<String> {
    let skewed = view.skew().into_iter().filter(|(_, count)| *count > 0);
    skewed.map(|(group_version, count)| format!("{group_version}: {count}")).collect()
}

fn with_error(line: String, error: Option<&str>) -> String {
    match error {
        Some(error) => format!("{line}; last error: {error}"),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;
    use crate::apimachinery::peer::Peer;
    use crate::openapi::OpenApi;
    use crate::routing::{Exclusions, RoutingTable, ServedResources, Standing, Table};
    use crate::view::{Condition, ConditionState, Discovery, Renewal, ServerVersion};

    fn state(hostname: &str, address: &str, kind: PeerKind) -> PeerState {
        let id = ServerId::from_hostname(hostname);
        let peer = Arc::new(Peer { id, hostname: hostname.to_owned(), address: address.parse().unwrap(), kind });
        PeerState {
            peer,
            origin: Origin::Static,
            lease: None,
            circuit: Circuit::Closed,
            vanished: false,
            heard: true,
            lost: false,
            error: None,
        }
    }

    fn served(resources: &[&str]) -> ServedResources {
        let mut served = ServedResources::new();
        resources.iter().for_each(|name| served.insert("batch", "v1", name, None, &["get"]));
        served
    }

    fn view(peers: Vec<PeerState>) -> ClusterView {
        let (own, others) = (served(&["jobs"]), served(&["jobs", "cronjobs"]));
        let serve: Vec<_> =
            peers.iter().map(|state| (Arc::clone(&state.peer), state.heard.then_some(&others))).collect();
        let table = Table::build(Some(&own), &serve, &Exclusions::default());
        let version = ServerVersion { minor: 35, git_version: "v1.35.4".to_owned() };
        let message = "node-c: timed out".to_owned();
        ClusterView {
            routes: RoutingTable::new(Arc::new(table), Standing::default()),
            discovery: Discovery::Awaited,
            openapi: OpenApi::LeftToUpstream,
            local: LocalState { heard: true, available: true, version: Some(version), ..LocalState::default() },
            peers,
            readiness: vec![Condition { name: "peer-discovery", state: ConditionState::Degraded, message }],
        }
    }

    #[tokio::test(start_paused = true)]
    async fn page_says_how_the_front_stands_and_what_it_knows_of_everybody() {
        let started = Started { time: SystemTime::UNIX_EPOCH, clock: Instant::now() };
        let leased = PeerState {
            origin: Origin::Lease,
            lease: Some(Renewal::new(Instant::now())),
            ..state("node-b", "192.0.2.2:6443", PeerKind::Front)
        };
        let lost = PeerState {
            circuit: Circuit::Open,
            vanished: true,
            heard: false,
            lost: true,
            error: Some("timed out".to_owned()),
            ..state("node-c", "[2001:db8::3]:6443", PeerKind::Plain)
        };
        let old = PeerState {
            origin: Origin::Remembered,
            circuit: Circuit::HalfOpen,
            ..state("node-d", "192.0.2.4:6443", PeerKind::Front)
        };
        advance(Duration::from_secs(3723)).await;
        let page = page("node-a", started, &view(vec![leased, lost, old]), false);
        let (header, body) = page.split_at(HEADER.len());
        assert_eq!(header, HEADER);
        let expected = "
Started: Thu Jan  1 00:00:00 UTC 1970
Up: 1 hr 02 min 03 sec
Binary version: 0.1.0
Paths: /livez /metrics /readyz /statusz

Local server:
node-a: v1.35.4, available

Peers:
node-b at 192.0.2.2:6443: front, found by its Lease, available, Lease renewed 3723 s ago, 2 routes
node-c at [2001:db8::3]:6443: plain kube-apiserver, found by --peers, not available (circuit open), vanished, never heard, lost, 0 routes; last error: timed out
node-d at 192.0.2.4:6443: front, remembered of an earlier run, available again (circuit half-open), 2 routes

Resources that only some servers serve:
batch/v1: 1

Readiness:
[~]peer-discovery: node-c: timed out
[+]shutdown
";
        assert_eq!(body, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn page_of_a_front_alone_says_that_there_is_nobody() {
        let page = page("node-a", Started::now(), &view(Vec::new()), true);
        assert!(page.contains("\nPeers:\nnone\n"), "{page}");
        assert!(page.ends_with("[-]shutdown\n"), "{page}");
    }
}
