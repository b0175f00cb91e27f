//! What becomes of reports and documents: without sockets, with made-up time.

use std::time::{Duration, SystemTime};

use http::HeaderValue;

use super::super::Published;
use super::*;
use crate::apimachinery::gvr::GroupVersionResource;
use crate::openapi::{Found, Index, OpenApi, Page};

/// node-a, whose front this is, and peers.
struct Fixture {
    known: Known,
    now: Instant,
    published: Published,
    is_overdue: bool,
}

/// Documents by key: what a server publishes.
type Publishes<'p> = &'p [(&'p str, &'p str)];

impl Fixture {
    fn new(peers: &[&str]) -> Self {
        Self::of(Known::default(), peers)
    }

    /// After a restart, of which `node-b` has heard nothing yet.
    fn restarted(&self) -> Self {
        let mut fixture = Self::of(Known::remembering(self.published.memory.clone()), &[]);
        fixture.hear_of_peer(false);
        fixture
    }

    fn hear_of_peer(&mut self, is_heard: bool) {
        let servers = [("node-a", true), ("node-b", is_heard)]
            .map(|(name, is_heard)| (ServerId::from_hostname(name), is_heard, name));
        self.known.set_servers(servers.iter().map(|(id, is_heard, name)| (id, *name == "node-a", *is_heard, *name)));
        self.proceed();
    }

    fn of(mut known: Known, peers: &[&str]) -> Self {
        let servers: Vec<(ServerId, bool, &str)> = std::iter::once(("node-a", true))
            .chain(peers.iter().map(|name| (*name, false)))
            .map(|(name, is_local)| (ServerId::from_hostname(name), is_local, name))
            .collect();
        known.set_servers(servers.iter().map(|(id, is_local, name)| (id, *is_local, true, *name)));
        let mut exclusions = Exclusions::default();
        let widgets =
            GroupVersionResource { group_version: GroupVersion::new("ex.com", "v1"), resource: "widgets".to_owned() };
        exclusions.set_custom_resources([widgets].into(), Instant::now());
        exclusions.set_api_services(BTreeSet::new(), Instant::now());
        known.set_exclusions(&exclusions);
        Self { known, now: Instant::now(), published: Published::default(), is_overdue: false }
    }

    /// A server says what it publishes: the JSON form of its documents by key.
    fn report(&mut self, server: &str, version: u64, publishes: Publishes<'_>) {
        let mut publications = Publications::default();
        for (key, json) in publishes {
            publications.entry((*key).to_owned()).or_default().insert(location(key, json));
        }
        let outcome = Ok((publications, vec![1, version]));
        self.known.reported(Report { server: ServerId::from_hostname(server), outcome });
        self.proceed();
    }

    fn fail(&mut self, server: &str) {
        let outcome = Err("it fails".to_owned());
        self.known.reported(Report { server: ServerId::from_hostname(server), outcome });
        self.proceed();
    }

    fn proceed(&mut self) {
        self.known.settle();
        if let Some(published) = self.known.publish(true, self.is_overdue) {
            self.published = published;
        }
    }

    /// Fetches what is wanted, and returns it as `server key`.
    fn fetch(&mut self, mut answer: impl FnMut(&str, &str) -> Option<Held>) -> Vec<String> {
        let mut asked = Vec::new();
        for wanted in self.known.take_wanted(self.now) {
            let server = self.known.servers[&wanted.server].hostname.clone();
            let key = match &wanted.document {
                Document::V3(location) => location.url.clone(),
                Document::V2 => "/openapi/v2".to_owned(),
            };
            let outcome = answer(&server, &key).ok_or_else(|| "it fails".to_owned());
            asked.push(format!("{server} {}", key.split('?').next().unwrap()));
            self.known.fetched(Fetched { wanted, outcome }, self.now);
            self.proceed();
        }
        asked.sort();
        asked
    }

    /// Everything that is wanted is fetched and merged.
    fn fetch_and_merge(&mut self) {
        self.fetch(|server, url| Some(good(server, url)));
        self.merge();
    }

    fn merge(&mut self) {
        if let Some(merging) = self.known.next_merging() {
            self.known.merged(merging.run(SystemTime::UNIX_EPOCH));
        }
        assert!(self.known.next_merging().is_none(), "nothing is merged twice");
        self.proceed();
    }

    /// `local`, `503`, `unknown` or the JSON that is served here.
    fn find(&self, path: &str) -> String {
        match self.published.state.find(path) {
            Found::Here(Page::Index(index)) => String::from_utf8(index.to_vec()).unwrap(),
            Found::Here(Page::V3(_, held) | Page::V2(held)) => String::from_utf8(held.json.unpack().to_vec()).unwrap(),
            Found::Upstream => "local".to_owned(),
            Found::Unknown => "unknown".to_owned(),
            Found::Unavailable(_) => "503".to_owned(),
        }
    }

    /// Keys that the index lists.
    fn listed(&self) -> Vec<String> {
        Index::parse(self.find("/openapi/v3").as_bytes()).unwrap().paths.into_keys().collect()
    }
}

/// The URL of a document names its content, so that [`good`] can answer it.
fn location(key: &str, json: &str) -> Location {
    Location { url: format!("/openapi/v3/{key}?hash={}", data_encoding::HEXUPPER.encode(json.as_bytes())) }
}

fn good(server: &str, url: &str) -> Held {
    let (hash, json) = match url.split_once("?hash=") {
        Some((_, hash)) => (hash.to_owned(), data_encoding::HEXUPPER.decode(hash.as_bytes()).unwrap()),
        None => (server.replace('-', ""), format!(r#"{{"paths":{{"/{server}":1}}}}"#).into_bytes()),
    };
    let etag = HeaderValue::try_from(format!("\"{hash}\"")).unwrap();
    Held::of_server(&etag, &json, None, SystemTime::UNIX_EPOCH).unwrap()
}

const OLD: &str = r#"{"info":"old","paths":{"/old":1}}"#;
const NEW: &str = r#"{"info":"new","paths":{"/new":1}}"#;
const BOTH: &str = r#"{"info":"new","paths":{"/new":1,"/old":1}}"#;
const CORE: &str = "/openapi/v3/api/v1";

#[test]
fn servers_that_agree_cost_nothing_and_are_left_alone() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", 36, &[("api/v1", OLD), ("apis/ex.com/v1", OLD)]);
    assert_eq!(fixture.find("/openapi/v3"), "503", "the peer may publish more");
    // A CRD that has not arrived everywhere is no difference.
    fixture.report("node-b", 36, &[("api/v1", OLD)]);
    assert_eq!(fixture.fetch(|_, _| None), [""; 0]);
    for path in ["/openapi/v3", "/openapi/v2", CORE] {
        assert_eq!(fixture.find(path), "unknown");
    }
}

#[test]
fn front_without_peers_says_nothing() {
    let fixture = Fixture::new(&[]);
    assert!(matches!(fixture.published.state, OpenApi::LeftToUpstream));
}

#[test]
fn documents_that_differ_are_fetched_once_and_merged() {
    let mut fixture = Fixture::new(&["node-b", "node-c"]);
    fixture.report("node-a", 36, &[("api/v1", OLD), ("version", OLD), ("apis/ex.com/v1", OLD)]);
    fixture.report("node-b", 36, &[("api/v1", OLD), ("version", OLD), ("apis/ex.com/v1", NEW)]);
    fixture.report("node-c", 37, &[("api/v1", NEW), ("version", OLD), ("apis/new/v1", NEW)]);
    let asked = fixture.fetch(|server, url| {
        assert_eq!(server == "node-c", url.contains(&*location("", NEW).hash().unwrap()) || server == "node-c");
        Some(good(server, url))
    });
    let v3 = asked.iter().filter(|asked| asked.ends_with(CORE)).count();
    assert_eq!((asked.len(), v3), (6, 2), "{asked:?}");
    assert!(fixture.fetch(|_, _| None).is_empty());
    assert_eq!(fixture.find("/openapi/v3"), "503", "nothing is merged yet");
    fixture.merge();
    assert_eq!(fixture.find(CORE), BOTH);
    assert_eq!(fixture.find("/openapi/v3/apis/new/v1"), NEW);
    assert_eq!(fixture.find("/openapi/v3/version"), "local");
    assert_eq!(fixture.find("/openapi/v3/apis/ex.com/v1"), "local");
    assert_eq!(fixture.find("/openapi/v3/apis/nobody/v1"), "unknown");
    assert_eq!(fixture.find("/openapi/v2"), r#"{"paths":{"/node-a":1,"/node-b":1,"/node-c":1}}"#);
    assert_eq!(fixture.listed(), ["api/v1", "apis/ex.com/v1", "apis/new/v1", "version"]);
    assert_eq!(fixture.published.missing, "");
}

#[test]
fn custom_resources_are_worded_by_the_newest_server() {
    let mut fixture = Fixture::new(&["node-b"]);
    let custom = "apis/ex.com/v1";
    fixture.report("node-a", 36, &[("api/v1", OLD), (custom, OLD)]);
    fixture.report("node-b", 37, &[("api/v1", NEW)]);
    fixture.fetch_and_merge();
    assert_eq!(fixture.listed(), ["api/v1", custom]);
    fixture.report("node-b", 37, &[("api/v1", NEW), (custom, NEW)]);
    assert_eq!(fixture.find("/openapi/v3/apis/ex.com/v1"), "local", "until the other one is there");
    fixture.fetch_and_merge();
    assert_eq!(fixture.find("/openapi/v3/apis/ex.com/v1"), NEW);
    fixture.report("node-a", 36, &[("api/v1", OLD)]);
    assert_eq!(fixture.listed(), ["api/v1"]);
}

#[test]
fn custom_resources_are_not_worded_by_a_server_that_is_lost() {
    let mut fixture = Fixture::new(&["node-b"]);
    let custom = "apis/ex.com/v1";
    fixture.report("node-a", 36, &[("api/v1", OLD), (custom, OLD)]);
    fixture.report("node-b", 37, &[("api/v1", NEW), (custom, NEW)]);
    assert_eq!(fixture.find("/openapi/v3"), "503");
    fixture.fetch_and_merge();
    assert_eq!(fixture.find("/openapi/v3/apis/ex.com/v1"), NEW);
    for _ in 0..GIVEN_UP_AFTER {
        assert_eq!(fixture.find("/openapi/v3/apis/ex.com/v1"), NEW, "not for one reading that fails");
        fixture.fail("node-b");
    }
    assert_eq!(fixture.find("/openapi/v3/apis/ex.com/v1"), "local");
    assert_eq!(fixture.find(CORE), BOTH);
}

#[test]
fn documents_that_come_by_turns_are_merged() {
    let mut fixture = Fixture::new(&["node-b"]);
    let key = "apis/new/v1";
    let by_turns: Publications = [(key.to_owned(), BTreeSet::from([location(key, OLD), location(key, NEW)]))].into();
    for server in ["node-a", "node-b"] {
        let outcome = Ok((by_turns.clone(), vec![1, 37]));
        fixture.known.reported(Report { server: ServerId::from_hostname(server), outcome });
    }
    fixture.proceed();
    assert_eq!(fixture.find("/openapi/v3"), "unknown", "both say the same");
    fixture.report("node-b", 36, &[(key, OLD)]);
    fixture.fetch_and_merge();
    assert_eq!(fixture.find("/openapi/v3/apis/new/v1"), BOTH);
}

#[test]
fn v2_is_asked_for_again_when_its_server_is_back() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", 36, &[("api/v1", OLD)]);
    fixture.report("node-b", 37, &[("api/v1", NEW)]);
    fixture.fetch(|server, url| (server != "node-b").then(|| good(server, url)));
    fixture.fail("node-b");
    assert_eq!(fixture.fetch(|_, _| None), [""; 0], "not at once");
    fixture.report("node-b", 37, &[("api/v1", NEW)]);
    let asked = fixture.fetch(|server, url| Some(good(server, url)));
    assert!(asked.contains(&"node-b /openapi/v2".to_owned()), "{asked:?}");
}

#[test]
fn all_nodes_come_to_the_same_index() {
    let indices = ["node-a", "node-b"].map(|local| {
        let peer = if local == "node-a" { "node-b" } else { "node-a" };
        let mut fixture = Fixture::new(&[]);
        let servers =
            [(local, true), (peer, false)].map(|(name, is_local)| (ServerId::from_hostname(name), is_local, name));
        fixture.known.set_servers(servers.iter().map(|(id, is_local, name)| (id, *is_local, true, *name)));
        // The same version, so that the ID tells which is the base.
        for server in [local, peer] {
            fixture.report(server, 36, &[("api/v1", if server == "node-a" { OLD } else { NEW })]);
        }
        fixture.fetch_and_merge();
        fixture.find("/openapi/v3")
    });
    assert_eq!(indices[0], indices[1]);
}

#[test]
fn lost_server_keeps_its_documents() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", 36, &[("api/v1", OLD)]);
    fixture.report("node-b", 37, &[("api/v1", NEW), ("apis/new/v1", NEW)]);
    fixture.fetch_and_merge();
    for _ in 0..10 {
        fixture.fail("node-b");
    }
    assert_eq!(fixture.listed(), ["api/v1", "apis/new/v1"]);
    assert_eq!(fixture.find(CORE), BOTH);
    assert_eq!(fixture.find("/openapi/v3/apis/new/v1"), NEW);
    assert_eq!(fixture.published.missing, "node-b: it fails");
}

#[test]
fn restart_beside_a_lost_server_shows_no_less() {
    let custom = "apis/ex.com/v1";
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", 36, &[("api/v1", OLD), (custom, OLD)]);
    fixture.report("node-b", 37, &[("api/v1", NEW), ("apis/new/v1", NEW), (custom, NEW)]);
    fixture.fetch_and_merge();
    let v2 = fixture.find("/openapi/v2");

    let mut fixture = fixture.restarted();
    assert_eq!(fixture.find("/openapi/v3"), "503", "the local server may say something else by now");
    fixture.report("node-a", 36, &[("api/v1", OLD), (custom, OLD)]);
    assert_eq!(
        fixture.fetch(|server, url| Some(good(server, url))),
        ["node-a /openapi/v2"],
        "it may be another by now"
    );
    fixture.merge();
    assert_eq!(fixture.listed(), ["api/v1", custom, "apis/new/v1"]);
    assert_eq!(fixture.find(CORE), BOTH);
    assert_eq!(fixture.find("/openapi/v3/apis/new/v1"), NEW);
    assert_eq!(fixture.find("/openapi/v3/apis/ex.com/v1"), "local", "a lost server may not know how it is by now");
    assert_eq!(fixture.find("/openapi/v2"), v2);

    let mut fixture = fixture.restarted();
    fixture.report("node-a", 36, &[("api/v1", OLD)]);
    fixture.merge();
    assert_eq!(fixture.find(CORE), BOTH, "nor does a second restart");
    fixture.hear_of_peer(true);
    assert_eq!(fixture.published.missing, "node-b: not asked yet");
    fixture.report("node-b", 38, &[("api/v1", OLD)]);
    assert_eq!(fixture.find(CORE), "unknown", "all agree");
}

#[test]
fn server_that_is_heard_after_a_restart_is_asked_first() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", 36, &[("api/v1", OLD)]);
    fixture.report("node-b", 37, &[("api/v1", NEW)]);
    fixture.fetch_and_merge();
    let mut fixture = fixture.restarted();
    fixture.hear_of_peer(true);
    fixture.report("node-a", 36, &[("api/v1", OLD)]);
    fixture.merge();
    assert_eq!(fixture.find(CORE), "503");
    fixture.report("node-b", 37, &[("api/v1", NEW)]);
    assert_eq!(fixture.find(CORE), BOTH);
}

#[test]
fn document_that_changes_stays_until_the_new_one_is_there() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", 36, &[("api/v1", OLD)]);
    fixture.report("node-b", 37, &[("api/v1", NEW)]);
    fixture.fetch_and_merge();
    let before = fixture.find("/openapi/v3");
    let newer = r#"{"info":"newer","paths":{"/newer":1}}"#;
    fixture.report("node-b", 38, &[("api/v1", newer), ("apis/more/v1", newer)]);
    assert_eq!(fixture.find("/openapi/v3"), before, "what nobody can have yet is not listed");
    assert_eq!(fixture.find(CORE), BOTH);
    fixture.fetch_and_merge();
    assert_eq!(fixture.find(CORE), r#"{"info":"newer","paths":{"/newer":1,"/old":1}}"#);
    assert_eq!(fixture.listed(), ["api/v1", "apis/more/v1"]);
}

#[test]
fn document_that_cannot_be_read_is_listed_and_refused_and_tried_again() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", 36, &[("api/v1", OLD)]);
    fixture.report("node-b", 37, &[("api/v1", NEW), ("apis/new/v1", NEW)]);
    let mut rounds = 0;
    while fixture.find("/openapi/v3") == "503" {
        fixture.fetch(|server, url| (server == "node-a").then(|| good(server, url)));
        fixture.merge();
        fixture.now += Duration::from_secs(5);
        rounds += 1;
        assert!(rounds <= 3, "nobody waits for ever");
    }
    assert_eq!(fixture.listed(), ["api/v1", "apis/new/v1"]);
    assert_eq!(fixture.find("/openapi/v3/apis/new/v1"), "503");
    assert_eq!(fixture.find(CORE), OLD, "better the old one than none");
    fixture.now += Duration::from_secs(61);
    fixture.fetch_and_merge();
    assert_eq!(fixture.find("/openapi/v3/apis/new/v1"), NEW);
    assert_eq!(fixture.find(CORE), BOTH);
}

#[test]
fn server_whose_index_cannot_be_read_is_not_waited_for_for_ever() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", 36, &[("api/v1", OLD)]);
    for _ in 0..3 {
        assert_eq!(fixture.find("/openapi/v3"), "503");
        fixture.fail("node-b");
    }
    assert_eq!(fixture.find("/openapi/v3"), "unknown");
    // One that says nothing at all is given up by time.
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", 36, &[("api/v1", OLD)]);
    assert_eq!(fixture.find("/openapi/v3"), "503");
    fixture.is_overdue = true;
    fixture.proceed();
    assert_eq!(fixture.find("/openapi/v3"), "unknown");
    assert_eq!(fixture.published.missing, "node-b: not asked yet");
}

#[test]
fn nothing_but_documents_is_asked_for() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", 36, &[]);
    let secret = Location { url: "/api/v1/secrets".to_owned() };
    let publications = Publications::from([("apis/new/v1".to_owned(), BTreeSet::from([secret]))]);
    fixture.known.reported(Report { server: ServerId::from_hostname("node-b"), outcome: Ok((publications, vec![])) });
    fixture.proceed();
    let asked = fixture.fetch(|server, url| Some(good(server, url)));
    assert_eq!(asked, ["node-a /openapi/v2", "node-b /openapi/v2"]);
}

#[test]
fn v2_is_fetched_when_an_index_changes_but_not_too_often() {
    let mut fixture = Fixture::new(&["node-b"]);
    fixture.report("node-a", 36, &[("api/v1", OLD)]);
    fixture.report("node-b", 37, &[("api/v1", NEW)]);
    fixture.fetch_and_merge();
    fixture.report("node-a", 36, &[("api/v1", OLD), ("apis/ex.com/v1", NEW)]);
    assert!(fixture.fetch(|_, _| None).is_empty(), "a moment ago");
    fixture.now += V2_PAUSE;
    assert_eq!(fixture.fetch(|server, url| Some(good(server, url))), ["node-a /openapi/v2"]);
    fixture.now += V2_PAUSE;
    assert!(fixture.fetch(|_, _| None).is_empty());
}
