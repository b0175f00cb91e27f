//! A front among a hundred peers that serve five thousand resources: with paused time, so that it is the same each time.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::metrics::Registry;
use crate::peers::poll::Intervals;
use crate::peers::routes::Syncs;
use crate::peers::sync::due_view;
use crate::settings::RouteSync;

const PEERS: usize = 100;
const GROUPS: usize = 50;
const RESOURCES_OF_A_GROUP: usize = 100;
/// What only upgraded servers list.
const NEW: &str = "storagemigration.k8s.io/v1=storageversionmigrations";

/// What the servers are like.
#[derive(Clone, Default)]
struct State {
    old: Reading,
    new: Reading,
    /// Peers below this number are upgraded.
    upgraded: usize,
    /// Packets to and from peers below this number are dropped.
    cut_off: usize,
}

/// One of the servers.
struct Simulated {
    number: usize,
    state: watch::Receiver<State>,
    messages: Arc<AtomicUsize>,
}

impl Source for Simulated {
    async fn read(&mut self) -> Reading {
        self.messages.fetch_add(2, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(2)).await;
        let state = self.state.borrow().clone();
        let is_upgraded = self.number < state.upgraded;
        if self.number < state.cut_off {
            tokio::time::sleep(3 * SECOND).await;
            let failure = Some((Failure::Vanished, "no connection".to_owned()));
            return Reading { failure, ..Reading::default() };
        }
        if is_upgraded { state.new } else { state.old }
    }
}

/// The front.
struct Simulation {
    fixture: Fixture,
    syncs: Syncs,
    registry: Arc<Registry>,
    state: watch::Sender<State>,
    signals: Vec<Arc<Signals>>,
    messages: Arc<AtomicUsize>,
    reported: mpsc::Receiver<Report>,
    view: ClusterView,
}

impl Simulation {
    fn start() -> Self {
        let names: Vec<String> = (0..PEERS).map(|number| format!("node-{number:03}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut fixture = Fixture::new(&names);
        fixture.cluster.exclude(listed(&[], &[]), Instant::now());
        let resources: Vec<String> = (0..RESOURCES_OF_A_GROUP).map(|number| format!("resource{number}")).collect();
        let groups: Vec<String> =
            (0..GROUPS).map(|number| format!("group{number}.k8s.io/v1={}", resources.join(","))).collect();
        let mut groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let old = reading(&groups);
        groups.push(NEW);
        let (state, watched) = watch::channel(State { old: old.clone(), new: reading(&groups), ..State::default() });
        let (reports, reported) = mpsc::channel(64);
        let messages = Arc::new(AtomicUsize::new(0));
        let pace = watch::Sender::new(Intervals::default().of_peers(PEERS)).subscribe();
        let mut signals = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let source = Simulated { number, state: watched.clone(), messages: Arc::clone(&messages) };
            let (id, signal) = (ServerId::from_hostname(name), Arc::new(Signals::default()));
            tokio::spawn(poll::run(id, source, pace.clone(), Arc::clone(&signal), reports.clone()));
            signals.push(signal);
        }
        fixture.report("node-a", old);
        let registry = Arc::new(Registry::new());
        let syncs = Syncs::register(RouteSync::WatchBased, &registry, Instant::now());
        let view = fixture.view();
        Self { fixture, syncs, registry, state, signals, messages, reported, view }
    }

    /// Goes on until the view is as it should be; how long that takes.
    async fn until(&mut self, wanted: impl Fn(&ClusterView) -> bool) -> Duration {
        let began = Instant::now();
        loop {
            self.publish();
            if wanted(&self.view) {
                return began.elapsed();
            }
            assert!(began.elapsed() < 60 * SECOND, "not within a minute");
            self.wait(began + 60 * SECOND).await;
        }
    }

    async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.publish();
            self.wait(end).await;
        }
    }

    fn publish(&mut self) {
        let Fixture { cluster, builder } = &mut self.fixture;
        if let Some(view) = due_view(cluster, builder, &mut self.syncs, Instant::now()) {
            self.view = view;
        }
    }

    /// Waits for reports, or until something is due.
    async fn wait(&mut self, end: Instant) {
        let cluster = &mut self.fixture.cluster;
        let sync = self.syncs.next(cluster.due()).map(|(at, _)| at);
        let wake = cluster.next_wake(Instant::now());
        let next = sync.into_iter().chain(wake).chain([end]).min().unwrap();
        tokio::select! {
            Some(report) = self.reported.recv() => self.take(report),
            () = tokio::time::sleep_until(next) => if wake == Some(next) { cluster.wake(next) },
        }
        while let Ok(report) = self.reported.try_recv() {
            self.take(report);
        }
    }

    fn take(&mut self, report: Report) {
        let is_due = self.fixture.cluster.servers().any(|known| known.id == report.server && !known.is_detailed);
        if is_due {
            self.fixture.cluster.detail(&report.server, Details::default(), Instant::now());
        }
        self.fixture.cluster.report(report, Instant::now());
    }

    fn syncs(&self) -> u64 {
        let metrics = self.registry.render();
        let lines = metrics.lines().filter(|line| line.starts_with("route_controller_route_sync_total{"));
        lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    }

    /// What has been sent since this was last asked.
    fn sent(&self) -> usize {
        self.messages.swap(0, Ordering::Relaxed)
    }
}

/// What this process takes of the machine's memory, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim_end_matches("kB").trim().parse().unwrap()
}

fn freshness(view: &ClusterView) -> Option<bool> {
    let listed = listed_in(view);
    let of_new = listed.iter().find(|listed| listed.ends_with(NEW))?;
    Some(!of_new.starts_with('!'))
}

#[tokio::test(start_paused = true)]
async fn hundred_peers_and_five_thousand_resources_converge_with_few_messages() {
    let at_start = resident();
    let mut simulation = Simulation::start();
    let heard = simulation.until(|view| view.peers.iter().all(|peer| peer.heard) && view.documents().is_some()).await;
    assert!(heard <= SECOND, "{heard:?}");
    let routed: usize = simulation.view.routes.routes_by_peer().map(|(_, routes)| routes).sum();
    assert_eq!(routed, PEERS * (GROUPS * RESOURCES_OF_A_GROUP + 1));

    simulation.sent();
    let before = simulation.syncs();
    simulation.pass(60 * SECOND).await;
    let sent = simulation.sent();
    assert!(sent <= 2 * PEERS * 7, "{sent} messages in a quiet minute");
    assert_eq!(simulation.syncs(), before, "nothing has changed");

    for _ in 0..20 {
        // A CRD is created, and another one.
        simulation.signals.iter().for_each(|signals| signals.common_change.notify_one());
        simulation.pass(SECOND / 4).await;
    }
    let sent = simulation.sent();
    assert!(sent <= 2 * PEERS * 4, "{sent} messages while twenty objects declare resources within five seconds");

    simulation.state.send_modify(|state| state.upgraded = PEERS / 2);
    for signal in &simulation.signals[..PEERS / 2] {
        signal.announced(Some(&"holder before".to_owned()), "holder after");
    }
    let listed = simulation.until(|view| freshness(view) == Some(true)).await;
    simulation.pass(5 * SECOND).await;
    assert!(listed <= SECOND, "{listed:?}");
    assert!(simulation.syncs() - before <= 5, "fifty changes at once are few syncs: {}", simulation.syncs() - before);
    let sent = simulation.sent();
    assert!(sent <= PEERS * 20, "{sent} messages after fifty announcements");

    simulation.state.send_modify(|state| state.cut_off = PEERS / 2);
    let stale = simulation.until(|view| freshness(view) == Some(false)).await;
    assert!(stale <= 20 * SECOND, "{stale:?}");
    simulation.sent();
    simulation.pass(30 * SECOND).await;
    let sent = simulation.sent();
    assert!(sent <= 2 * PEERS * 8, "{sent} messages in half a minute with half of the peers cut off");

    simulation.state.send_modify(|state| state.cut_off = 0);
    let is_whole = |view: &ClusterView| freshness(view) == Some(true) && view.peers.iter().all(|peer| !peer.lost);
    let healed = simulation.until(is_whole).await;
    assert!(healed <= 5 * SECOND, "{healed:?}");
    // Of this test only if it runs alone.
    let grown = resident().saturating_sub(at_start);
    let _ = writeln!(std::io::stderr(), "memory of all peers' documents, views and routes: {grown} KiB");
}
