//! What a front shows that starts again, and that nothing flaps.

use super::*;

impl Fixture {
    /// The front as it starts again, with what this one has kept.
    fn restarted(&self) -> Self {
        let mut next = Self::new(&self.cluster.peers.values().map(|peer| peer.hostname.as_str()).collect::<Vec<_>>());
        for (id, remembered) in self.cluster.remember() {
            next.cluster.restore([(id, remembered)].into(), Instant::now());
        }
        next.cluster.exclude(listed(&[], &[]), Instant::now());
        next
    }
}

#[tokio::test(start_paused = true)]
async fn remembered_peer_is_listed_as_soon_as_the_local_server_is_heard_and_sent_nothing_until_it_is() {
    let mut fixture = Fixture::heard(&["apps/v1=deployments"], &["batch/v1=jobs"]).restarted();
    assert!(fixture.view().documents().is_none(), "the local server may have been replaced meanwhile");
    assert_eq!(decision(&fixture.view(), "/apis/apps/v1/deployments"), "local, then 503");
    fixture.report("node-a", reading(&["apps/v1=deployments"]));
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "batch/v1=jobs"]);
    let view = fixture.view();
    assert_eq!(decision(&view, "/apis/batch/v1/jobs"), "nobody");
    assert_eq!(decision(&view, "/apis/unknown.k8s.io/v1/things"), "local, then 503");
    assert!(view.is_ready() && !view.peers[0].is_available() && !view.peers[0].heard && !view.peers[0].lost);
    let expected = "node-b: not asked yet (what it served before this front's start is listed)".to_owned();
    assert_eq!(condition(&view, "peer-discovery"), (ConditionState::Degraded, expected));
    fixture.report("node-b", reading(&["batch/v1=jobs"]));
    assert_eq!(decision(&fixture.view(), "/apis/batch/v1/jobs"), "peer");
    assert_eq!(condition(&fixture.view(), "peer-discovery").0, ConditionState::Met);
}

#[tokio::test(start_paused = true)]
async fn remembered_peer_that_refuses_to_be_read_counts_as_lost_after_five_minutes() {
    let mut fixture = Fixture::heard(&["apps/v1=deployments"], &["batch/v1=jobs"]).restarted();
    fixture.report("node-a", reading(&["apps/v1=deployments"]));
    fixture.fail("node-b", Failure::Refused);
    advance(fixture.cluster.next_wake(Instant::now()).unwrap() - Instant::now() - SECOND).await;
    fixture.fail("node-b", Failure::Refused);
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "batch/v1=jobs"]);
    advance(SECOND).await;
    fixture.cluster.wake(Instant::now());
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "!batch/v1=jobs"]);
    assert!(fixture.view().peers[0].lost);
    assert_eq!(decision(&fixture.view(), "/apis/batch/v1/jobs"), "nobody");
}

#[tokio::test(start_paused = true)]
async fn local_server_that_does_not_return_after_a_restart_is_listed_as_a_lost_one() {
    let mut fixture = Fixture::heard(&["apps/v1=deployments", "local.k8s.io/v1=things"], &["apps/v1=deployments"]);
    fixture = fixture.restarted();
    fixture.report("node-b", reading(&["apps/v1=deployments"]));
    fixture.fail("node-a", Failure::Down);
    assert!(fixture.view().documents().is_none(), "one failure is no loss");
    fixture.fail("node-a", Failure::Down);
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "!local.k8s.io/v1=things"]);
    fixture.report("node-a", reading(&["apps/v1=deployments", "local.k8s.io/v1=things"]));
    assert_eq!(fixture.listed(), ["apps/v1=deployments", "local.k8s.io/v1=things"]);
}

/// What two servers serve, and what a front's merged document says of it, step by step: nothing that is served, or that
/// a server which is away has not said to be gone, is ever missing, and each step changes the document at most once.
#[tokio::test(start_paused = true)]
async fn merged_document_never_lacks_what_is_served_and_never_flaps() {
    const LOCAL: &[&str] = &["apps/v1=deployments"];
    const BOTH: &[&str] = &["apps/v1=deployments", "batch/v1=jobs", "policy/v1=budgets"];
    const FEWER: &[&str] = &["apps/v1=deployments", "batch/v1=jobs"];
    let lost = ["apps/v1=deployments", "!batch/v1=jobs", "!policy/v1=budgets"];
    type Step = (&'static str, fn(&mut Fixture));
    let steps: &[(Step, &[&str])] = &[
        (("the peer fails once", |it| it.fail("node-b", Failure::Failing)), BOTH),
        (
            ("a connect fails", |it| {
                let _ = it.cluster.connect_failed(&ServerId::from_hostname("node-b"), Instant::now());
            }),
            BOTH,
        ),
        (("it fails again", |it| it.fail("node-b", Failure::Down)), &lost),
        (("and again", |it| it.fail("node-b", Failure::Down)), &lost),
        (("it returns", |it| it.report("node-b", reading(BOTH))), BOTH),
        (("it is busy", |it| it.fail("node-b", Failure::Refused)), BOTH),
        (("this front restarts", |it| *it = it.restarted()), &[]),
        (("the local server is heard", |it| it.report("node-a", reading(LOCAL))), BOTH),
        (("the peer is away", |it| it.fail("node-b", Failure::Down)), BOTH),
        (("and stays away", |it| it.fail("node-b", Failure::Down)), &lost),
        (("this front restarts again", |it| *it = it.restarted()), &[]),
        (("the local server is heard again", |it| it.report("node-a", reading(LOCAL))), BOTH),
        (("the peer starts", |it| it.fail("node-b", Failure::Failing)), BOTH),
        (("it answers", |it| it.report("node-b", reading(BOTH))), BOTH),
        (("it is replaced by an older one", |it| it.fail("node-b", Failure::Down)), BOTH),
        (("which serves less", |it| it.report("node-b", reading(FEWER))), FEWER),
        (("the local server halts", |it| it.fail("node-a", Failure::Down)), FEWER),
        (("for longer", |it| it.fail("node-a", Failure::Down)), FEWER),
    ];
    let mut fixture = Fixture::heard(LOCAL, BOTH);
    assert_eq!(fixture.listed(), BOTH);
    for ((what, step), expected) in steps {
        advance(SECOND).await;
        step(&mut fixture);
        let view = fixture.view();
        let listed = view.documents().map(|_| listed_in(&view)).unwrap_or_default();
        assert_eq!(listed, *expected, "{what}");
        let again = fixture.view();
        let place = |view: &ClusterView| view.documents().map(std::ptr::from_ref);
        assert_eq!(place(&view), place(&again), "{what}");
    }
}
