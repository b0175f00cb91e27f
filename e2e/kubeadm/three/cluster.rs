//! The cluster under load, and what its clients may notice of a change.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use peerfront_e2e::eventually;
use tokio::time::Instant;

use super::load::Load;
use super::machines::{Machines, administrator};
use super::skew;
use crate::checks::{self, SETTLED};
use crate::node::Node;
use crate::readme::Readme;

/// What the start or the end of one more pod takes, on a busy machine.
const ONE_MORE_POD: Duration = Duration::from_secs(5);

/// A kubelet waits from 10 to 15 seconds, as chance has it, before it starts a static pod that has changed.
/// Source: <https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/kubelet/pod_workers.go> (`workerBackOffPeriodJitterFactor`)
const CHANCE: Duration = Duration::from_secs(5);

/// What clients of other nodes may notice.
#[derive(Clone, Copy)]
pub(super) enum Others {
    /// Nothing.
    Unaware,
    /// That members of etcd come and go: servers turn requests away while there is no leader.
    AwareOfEtcd,
}

/// Nodes, clients of each, and the commands.
pub(super) struct Cluster<'a> {
    pub(super) machines: Machines,
    pub(super) load: Load,
    pub(super) readme: &'a Readme,
    /// Version that all nodes have.
    pub(super) version: &'static str,
    /// How long the client of a node was without answers while its server's manifest was changed, without peerfront.
    pub(super) baseline: Duration,
}

impl Cluster<'_> {
    /// A stage in which something happens to this node; returns how long its own client was without answers.
    pub(super) async fn stage(
        &self,
        stage: &str,
        name: &str,
        others: Others,
        work: impl AsyncFnOnce(&Node) -> Result<()>,
    ) -> Result<Duration> {
        let started = Instant::now();
        self.load.take();
        let done = work(self.machines.get(name)?).await;
        let seen = self.load.take();
        say(&format!("{stage} of {name}, {:.0?}", started.elapsed()));
        for (client, tally) in &seen {
            say(&format!("  client of {client}: {tally}"));
        }
        done.with_context(|| format!("{stage} of {name}"))?;
        for (client, tally) in &seen {
            ensure!(tally.wrong == 0, "{stage} of {name}: the client of {client} was told what is not so: {tally}");
            let allowed = match others {
                _ if client == name => usize::MAX,
                Others::Unaware => 0,
                Others::AwareOfEtcd => tally.turned_away,
            };
            ensure!(client == name || tally.served > 0, "{stage} of {name}: the client of {client} stands still");
            ensure!(tally.failures() <= allowed, "{stage} of {name}: the client of {client}: {tally}");
        }
        Ok(seen.iter().find(|(client, _)| client == name).map(|(_, tally)| tally.outage()).unwrap_or_default())
    }

    /// Every node is as it should be after the upgrade.
    pub(super) async fn check_all(&self) -> Result<()> {
        for node in self.machines.all() {
            let checked = checks::with_front(node, self.readme, self.version, &self.machines.addresses()).await;
            checked.with_context(|| node.name.clone())?;
        }
        Ok(())
    }

    /// A stage that takes no longer from the node's client than a plain change of its server, but for the front's own pod.
    pub(super) async fn stage_like_a_restart(
        &self,
        stage: &str,
        name: &str,
        work: impl AsyncFnOnce(&Node) -> Result<()>,
    ) -> Result<()> {
        let outage = self.stage(stage, name, Others::Unaware, work).await?;
        let baseline = self.baseline;
        say(&format!(
            "  own client without answers for {outage:.1?}; with a plain change of the server {baseline:.1?}"
        ));
        ensure!(outage <= baseline + CHANCE + ONE_MORE_POD, "{stage} of {name}: without answers for {outage:.1?}");
        Ok(())
    }

    /// All fronts have the same view, to the byte.
    pub(super) async fn views_are_equal(&self) -> Result<()> {
        let equal = async || {
            let mut all = Vec::new();
            for node in self.machines.all() {
                all.push((&node.name, skew::merged(&administrator(node)?).await?));
            }
            let [(_, first), others @ ..] = all.as_slice() else { bail!("no node") };
            for (name, other) in others {
                ensure!(first == other, "/apis of {name} differs from that of the first node");
            }
            Ok(())
        };
        eventually(SETTLED, equal).await
    }
}

/// One line of what is told while the test runs.
pub(super) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
