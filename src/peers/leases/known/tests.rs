use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// node-a's view of Leases, with a clock that only the test moves.
struct Fixture {
    known: Known,
    now: Instant,
    renewals: i64,
    forgotten: Vec<ObjectMeta>,
}

impl Fixture {
    fn new() -> Self {
        let id = ServerId::from_hostname("node-a");
        let own = name_of(&id);
        let trust = Trust { cidrs: Vec::new(), own: ["10.0.0.1:6443".parse().unwrap()].into() };
        let mut fixture =
            Self { known: Known::new(id, own, trust), now: Instant::now(), renewals: 0, forgotten: Vec::new() };
        fixture.renew(Source::Front, "node-a", "10.0.0.1:6443");
        fixture
    }

    fn take(&mut self, source: Source, event: Event<Lease>) {
        self.forgotten.extend(self.known.take(source, Ok(event), self.now));
    }

    fn renew(&mut self, source: Source, node: &str, address: &str) {
        self.renewals += 1;
        let lease = lease(source, node, address, self.renewals);
        self.take(source, Event::Apply(lease));
    }

    /// Time passes, in which this front's own renewals come back.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += SECOND;
            self.renew(Source::Front, "node-a", "10.0.0.1:6443");
        }
    }

    /// Time passes, in which the watch stands still.
    fn stand_still(&mut self, seconds: u64) {
        self.now += SECOND * u32::try_from(seconds).unwrap();
    }

    /// `name@address`, `plain:` before the name of a plain kube-apiserver.
    fn peers(&self) -> Vec<String> {
        let found = self.known.found(None);
        let text = |peer: &Arc<Peer>| {
            let kind = if peer.kind == PeerKind::Plain { "plain:" } else { "" };
            format!("{kind}{}@{}", peer.hostname, peer.address)
        };
        let mut peers: Vec<_> = found.peers.iter().map(text).collect();
        peers.sort();
        peers
    }
}

fn lease(source: Source, node: &str, address: &str, renewal: i64) -> Lease {
    let id = ServerId::from_hostname(node);
    let name = if source == Source::Front { name_of(&id) } else { id.to_string() };
    let seconds = if source == Source::Front { 15 } else { 3600 };
    let renewed = Timestamp::from_second(renewal).unwrap().to_string();
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "labels": { HOSTNAME: node },
            "annotations": { PEER_ADVERTISE_ADDRESS: address, SERVED_HASH: "1", "from/the-future": "x" },
        },
        "spec": { "holderIdentity": node, "leaseDurationSeconds": seconds, "renewTime": renewed },
    }))
    .unwrap()
}

const B: &str = "10.0.0.2:6443";

#[test]
fn fronts_and_plain_servers_are_found() {
    let mut fixture = Fixture::new();
    fixture.renew(Source::Front, "node-b", B);
    fixture.renew(Source::Plain, "node-c", "10.0.0.3:6443");
    // The servers behind fronts keep identity Leases too.
    fixture.renew(Source::Plain, "node-b", B);
    fixture.renew(Source::Plain, "node-a", "10.0.0.1:6443");
    assert_eq!(fixture.peers(), ["node-b@10.0.0.2:6443", "plain:node-c@10.0.0.3:6443"]);
    let announced = fixture.known.found(None).announced;
    assert_eq!(announced[&ServerId::from_hostname("node-b")], "node-b 1");
}

#[test]
fn lease_that_is_not_renewed_ends_after_its_duration_and_a_grace() {
    let mut fixture = Fixture::new();
    fixture.renew(Source::Front, "node-b", B);
    fixture.pass(14 + GRACE.as_secs());
    assert_eq!(fixture.peers(), ["node-b@10.0.0.2:6443"]);
    assert!(fixture.forgotten.is_empty());
    fixture.pass(1);
    assert!(fixture.peers().is_empty());
    let forgotten: Vec<_> = fixture.forgotten.iter().filter_map(|lease| lease.name.clone()).collect();
    assert_eq!(forgotten, [name_of(&ServerId::from_hostname("node-b"))]);
    fixture.renew(Source::Front, "node-b", B);
    assert_eq!(fixture.peers(), ["node-b@10.0.0.2:6443"]);
}

#[test]
fn age_of_a_lease_is_counted_from_its_last_renewal() {
    let mut fixture = Fixture::new();
    fixture.renew(Source::Front, "node-b", B);
    let found = fixture.known.found(None);
    let age = |fixture: &Fixture| found.leases[&ServerId::from_hostname("node-b")].age(fixture.now);
    fixture.pass(3);
    assert_eq!(age(&fixture), 3 * SECOND);
    let last = fixture.renewals;
    fixture.renew(Source::Front, "node-b", B);
    assert_eq!(age(&fixture), Duration::ZERO);
    fixture.stand_still(20);
    // Written again without a renewal.
    fixture.take(Source::Front, Event::Apply(lease(Source::Front, "node-b", B, last + 1)));
    assert_eq!(age(&fixture), 20 * SECOND, "it counts while nothing is seen at all");
    assert_eq!(fixture.known.found(None).leases, found.leases, "a renewal is no news");
}

#[test]
fn renew_time_is_never_compared_with_a_clock() {
    let mut fixture = Fixture::new();
    for renewal in [-1_000_000, 4_000_000_000, 5, -7] {
        fixture.take(Source::Front, Event::Apply(lease(Source::Front, "node-b", B, renewal)));
        fixture.pass(GRACE.as_secs());
        assert_eq!(fixture.peers(), ["node-b@10.0.0.2:6443"], "{renewal}");
    }
    // Written, but not renewed.
    for _ in 0..15 {
        fixture.take(Source::Front, Event::Apply(lease(Source::Front, "node-b", B, -7)));
        fixture.pass(1);
    }
    assert!(fixture.peers().is_empty());
}

#[test]
fn nobody_ends_while_the_watch_stands_still() {
    let mut fixture = Fixture::new();
    fixture.renew(Source::Front, "node-b", B);
    fixture.stand_still(10_000);
    fixture.pass(10);
    assert_eq!(fixture.peers(), ["node-b@10.0.0.2:6443"]);
}

#[test]
fn deleted_lease_is_kept_for_the_grace_only() {
    let mut fixture = Fixture::new();
    fixture.renew(Source::Front, "node-b", B);
    fixture.take(Source::Front, Event::Delete(lease(Source::Front, "node-b", B, 1)));
    assert!(fixture.known.found(None).ended.contains(&ServerId::from_hostname("node-b")));
    fixture.pass(GRACE.as_secs() - 1);
    assert_eq!(fixture.peers(), ["node-b@10.0.0.2:6443"]);
    fixture.pass(1);
    assert!(fixture.peers().is_empty());
}

#[test]
fn lease_that_is_missing_from_a_new_list_counts_as_deleted() {
    let mut fixture = Fixture::new();
    fixture.renew(Source::Front, "node-b", B);
    fixture.renew(Source::Plain, "node-c", "10.0.0.3:6443");
    fixture.take(Source::Front, Event::Init);
    fixture.take(Source::Front, Event::InitApply(lease(Source::Front, "node-d", "10.0.0.4:6443", 1)));
    fixture.take(Source::Front, Event::InitDone);
    for _ in 0..GRACE.as_secs() {
        fixture.renew(Source::Front, "node-d", "10.0.0.4:6443");
        fixture.renew(Source::Plain, "node-c", "10.0.0.3:6443");
        fixture.pass(1);
    }
    assert_eq!(fixture.peers(), ["node-d@10.0.0.4:6443", "plain:node-c@10.0.0.3:6443"]);
}

#[test]
fn changed_address_and_new_name_replace_the_old() {
    let mut fixture = Fixture::new();
    fixture.renew(Source::Front, "node-b", B);
    fixture.renew(Source::Front, "node-b", "10.0.0.9:6443");
    assert_eq!(fixture.peers(), ["node-b@10.0.0.9:6443"]);
    fixture.take(Source::Front, Event::Delete(lease(Source::Front, "node-b", "10.0.0.9:6443", 1)));
    fixture.renew(Source::Front, "node-renamed", "10.0.0.9:6443");
    assert_eq!(fixture.peers(), ["node-renamed@10.0.0.9:6443"]);
}

#[test]
fn what_no_peer_can_be_is_not_taken() {
    let mut fixture = Fixture::new();
    for address in ["127.0.0.1:6443", "10.0.0.1:6443", "169.254.169.254:80", "node-b:6443", "", "10.0.0.2"] {
        fixture.renew(Source::Front, "node-b", address);
        assert!(fixture.peers().is_empty(), "{address}");
    }
    fixture.renew(Source::Front, "node-b", "10.0.0.2");
    assert_eq!(fixture.known.refusals(), 6, "each address is counted once");
    let mut unnamed = lease(Source::Front, "node-b", B, 1);
    for name in ["kube-peerfront-", "kube-peerfront-../../x", "other", "kube-peerfront-aaaa"] {
        unnamed.metadata.name = Some(name.to_owned());
        fixture.take(Source::Front, Event::Apply(unnamed.clone()));
        assert!(fixture.peers().is_empty(), "{name}");
    }
    // A peer whose Lease is overwritten with such an address is kept where it was, for the grace.
    fixture.renew(Source::Front, "node-b", B);
    fixture.renew(Source::Front, "node-b", "127.0.0.1:6443");
    assert_eq!(fixture.peers(), ["node-b@10.0.0.2:6443"]);
}

#[test]
fn peers_may_be_missing_until_both_are_listed_or_refused() {
    let mut fixture = Fixture::new();
    fixture.take(Source::Front, Event::Init);
    fixture.take(Source::Front, Event::InitDone);
    fixture.known.take(Source::Plain, Err(Problem::Failed("away".to_owned())), fixture.now);
    assert!(!fixture.known.found(None).is_complete);
    fixture.known.take(Source::Plain, Err(Problem::Forbidden), fixture.now);
    assert!(fixture.known.found(None).is_complete);
}

#[test]
fn problem_goes_with_the_next_event() {
    let mut fixture = Fixture::new();
    fixture.known.take(Source::Plain, Err(Problem::Forbidden), fixture.now);
    assert_eq!(fixture.known.found(None).problem, Some(Problem::Forbidden));
    fixture.take(Source::Plain, Event::Init);
    assert_eq!(fixture.known.found(None).problem, None);
    assert_eq!(fixture.known.found(Some(Problem::Forbidden)).problem, Some(Problem::Forbidden));
}
