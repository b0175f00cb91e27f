//! When routes and documents are computed, and how the local server and peers count meanwhile.

use super::*;
use crate::metrics::Registry;
use crate::peers::routes::Syncs;
use crate::peers::sync::due_view;
use crate::routing::Circuit;
use crate::settings::RouteSync;

/// The other peer of the scenes.
const OTHER: &str = "node-c";

/// A cluster with the gate in one of its positions.
struct Scene {
    fixture: Fixture,
    syncs: Syncs,
    registry: Arc<Registry>,
    views: usize,
}

impl Scene {
    fn new(mode: RouteSync) -> Self {
        let registry = Arc::new(Registry::new());
        let syncs = Syncs::register(mode, &registry, Instant::now());
        let mut fixture = Fixture::new(&["node-b", OTHER]);
        fixture.cluster.exclude(listed(&[], &[]), Instant::now());
        Self { fixture, syncs, registry, views: 0 }
    }

    /// What happens within a second in which every server answers as before.
    async fn second(&mut self) {
        for (server, apis) in [("node-a", "apps/v1=deployments"), ("node-b", "batch/v1=jobs"), (OTHER, "batch/v1=jobs")]
        {
            let known = self.fixture.cluster.servers().find(|known| known.hostname == server).unwrap();
            let mut reading = reading(&[apis]);
            if let (Some(api), Some(apis)) = (&known.api, &known.apis) {
                (reading.api, reading.apis) = (Some(api.clone()), Some(apis.clone()));
            }
            self.fixture.report(server, reading);
        }
        self.pass(SECOND).await;
    }

    /// Publishes what is due until the time has passed.
    async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            self.publish();
            let next = self.syncs.next(self.fixture.cluster.due()).map(|(at, _)| at);
            match next.into_iter().chain(self.fixture.cluster.next_wake(Instant::now())).min() {
                Some(at) if at < end => {
                    advance(at - Instant::now()).await;
                    self.fixture.cluster.wake(at);
                }
                _ => break,
            }
        }
        advance(end - Instant::now()).await;
    }

    fn publish(&mut self) -> Option<ClusterView> {
        let Fixture { cluster, builder } = &mut self.fixture;
        let view = due_view(cluster, builder, &mut self.syncs, Instant::now());
        self.views += usize::from(view.is_some());
        view
    }

    fn count(&self, trigger: &str, outcome: &str) -> u64 {
        let series = format!("route_controller_route_sync_total{{trigger=\"{trigger}\",outcome=\"{outcome}\"}} ");
        let metrics = self.registry.render();
        metrics.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
    }

    fn counts(&self) -> [u64; 6] {
        let of = |trigger| ["changed", "noop", "error"].map(|outcome| self.count(trigger, outcome));
        let ([a, b, c], [d, e, f]) = (of("node_change"), of("periodic"));
        [a, b, c, d, e, f]
    }
}

#[tokio::test(start_paused = true)]
async fn unchanged_cluster_is_synced_never_in_ten_minutes_or_sixty_times() {
    for (mode, expected) in [(RouteSync::WatchBased, [0; 6]), (RouteSync::Periodic, [0, 0, 0, 0, 60, 0])] {
        let mut scene = Scene::new(mode);
        for _ in 0..30 {
            scene.second().await;
        }
        let before = scene.counts();
        for _ in 0..600 {
            scene.second().await;
        }
        let after = scene.counts();
        let grown: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        assert_eq!(grown, expected, "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn change_is_a_sync_at_once_or_when_it_is_time() {
    for (mode, seconds) in [(RouteSync::WatchBased, 0), (RouteSync::Periodic, 10)] {
        let mut scene = Scene::new(mode);
        for _ in 0..20 {
            scene.second().await;
        }
        let before = scene.counts();
        scene.fixture.report(OTHER, reading(&["batch/v1=jobs", "events.k8s.io/v1=events"]));
        let began = Instant::now();
        let is_listed = |view: ClusterView| listed_in(&view).contains(&"events.k8s.io/v1=events".to_owned());
        while !scene.publish().is_some_and(is_listed) {
            advance(SECOND).await;
            assert!(began.elapsed() <= 10 * SECOND, "{mode:?}");
        }
        assert!(began.elapsed().as_secs() <= seconds, "{mode:?} {:?}", began.elapsed());
        let changed = if mode == RouteSync::WatchBased { 0 } else { 3 };
        assert_eq!(scene.counts()[changed], before[changed] + 1, "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn burst_of_events_is_two_syncs() {
    let mut scene = Scene::new(RouteSync::WatchBased);
    scene.second().await;
    let before = scene.counts()[0];
    for number in 0..50 {
        scene.fixture.report(OTHER, reading(&[&format!("batch/v1=jobs{number}")]));
        scene.publish();
    }
    scene.pass(SECOND).await;
    assert_eq!(scene.counts()[0] - before, 2, "the first at once, the others together");
}

#[tokio::test(start_paused = true)]
async fn not_found_is_held_back_until_what_a_new_peer_says_is_in_the_table() {
    for mode in [RouteSync::WatchBased, RouteSync::Periodic] {
        let mut scene = Scene::new(mode);
        for _ in 0..20 {
            scene.second().await;
        }
        scene.fixture.cluster.add(&peer("node-new"), Instant::now());
        scene.publish().unwrap();
        advance(SECOND / 100).await;
        scene.fixture.report("node-new", reading(&["events.k8s.io/v1=events"]));
        let (began, mut held_back) = (Instant::now(), 0);
        let last = loop {
            if let Some(view) = scene.publish() {
                match decision(&view, "/apis/events.k8s.io/v1/events") {
                    "peer" => break view,
                    other => assert_eq!(other, "local, then 503", "{mode:?}"),
                }
                held_back += 1;
            }
            advance(SECOND / 100).await;
            assert!(began.elapsed() <= 10 * SECOND, "{mode:?}");
        };
        assert!(held_back > 0, "{mode:?}");
        assert_eq!(decision(&last, "/apis/nobodys.k8s.io/v1/things"), "local", "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn sync_that_cannot_read_a_server_is_an_error_and_one_that_finds_nothing_new_is_none() {
    let mut scene = Scene::new(RouteSync::Periodic);
    for _ in 0..20 {
        scene.second().await;
    }
    let before = scene.counts();
    scene.fixture.fail(OTHER, Failure::Down);
    scene.pass(10 * SECOND).await;
    scene.second().await;
    scene.pass(10 * SECOND).await;
    let after = scene.counts();
    assert_eq!((after[5] - before[5], after[4] - before[4]), (1, 2), "{before:?} {after:?}");
}

#[tokio::test(start_paused = true)]
async fn failed_connect_is_published_without_a_sync_and_the_peer_comes_back_behind_others() {
    let mut scene = Scene::new(RouteSync::Periodic);
    for _ in 0..20 {
        scene.second().await;
    }
    scene.publish(); // It was time.
    let id = ServerId::from_hostname(OTHER);
    let before = scene.counts();
    let circuit = |view: &ClusterView| view.peers.iter().find(|state| state.peer.id == id).unwrap().circuit;
    assert!(scene.fixture.cluster.connect_failed(&id, Instant::now()));
    assert_eq!(circuit(&scene.publish().unwrap()), Circuit::Open);
    assert_eq!(scene.counts(), before);
    advance(Duration::from_millis(1)).await;
    scene.fixture.report(OTHER, reading(&["batch/v1=jobs"]));
    assert_eq!(circuit(&scene.publish().unwrap()), Circuit::HalfOpen);
    let settled = scene.fixture.cluster.next_wake(Instant::now()).unwrap();
    assert_eq!(settled - Instant::now(), SECOND);
    advance(SECOND).await;
    scene.fixture.cluster.wake(settled);
    assert_eq!(circuit(&scene.publish().unwrap()), Circuit::Closed);
}

#[tokio::test(start_paused = true)]
async fn local_server_that_stops_is_spared_and_comes_back_step_by_step() {
    let mut fixture = Fixture::heard(&["apps/v1=deployments"], &["apps/v1=deployments"]);
    let spared = |view: &ClusterView| {
        let uri: Uri = "/apis/apps/v1/deployments".parse().unwrap();
        let info = RequestInfo::parse(&Method::GET, &uri).unwrap();
        match decide(&info, Hop::First, &view.routes) {
            Decision::Upstream { otherwise: Some(peers), .. } => {
                (0..100).filter(|client| peers.go_first(|| *client)).count()
            }
            Decision::Peer(_) => 100,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(spared(&fixture.view()), 0);
    fixture.report("node-a", Reading { is_stopping: true, ..reading(&["apps/v1=deployments"]) });
    assert!(fixture.take_due());
    assert_eq!(spared(&fixture.view()), 100, "it is told to stop");
    fixture.fail("node-a", Failure::Down);
    assert_eq!(spared(&fixture.view()), 100, "it is gone");
    advance(SECOND).await;
    fixture.report("node-a", reading(&["apps/v1=deployments"]));
    let mut steps = vec![spared(&fixture.view())];
    while let Some(next) = fixture.cluster.next_wake(Instant::now()) {
        advance(next - Instant::now()).await;
        fixture.cluster.wake(Instant::now());
        assert!(fixture.take_due());
        steps.push(spared(&fixture.view()));
    }
    steps.dedup();
    assert_eq!(steps, [90, 80, 70, 60, 50, 40, 30, 20, 10, 0]);
}
