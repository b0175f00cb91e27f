//! The differential test: the same requests to a kube-apiserver and to the peerfront before it; the answers are equal.
//!
//! `requests/*.http` is the table. Each request is sent by each [caller](callers), over HTTP/1.1 and HTTP/2, direct and
//! through peerfront: status, headers and body must be the same. [`compare`] holds the one list of what may differ.
//! Requests that change something are sent to a namespace of their side, so both sides begin and stay alike.

#![allow(clippy::panic, reason = "the lint spares functions marked as tests; all of this is one test")]

mod callers;
mod compare;
mod exchange;
mod sides;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use peerfront_e2e::suite::{self, Test};
use peerfront_e2e::{Cluster, Protocol, Topology};

use callers::{Callers, Role};
use sides::Pair;
use table::Group;

/// Fewer than this, and somebody has lost a part of the table.
const FEWEST_REQUESTS: usize = 200;

/// Differences shown of one group of requests; the first tells most.
const SHOWN: usize = 5;

/// The group whose requests are for what the front's own server does not serve.
const REROUTED: &str = "rerouted";

/// A peer that starts at the same time is heard at the second or third try.
const HEARD_WITHIN: Duration = Duration::from_secs(30);
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(100);

/// What only the newer node has: a resource, and its documentation.
const HEARD: [&str; 2] =
    ["/apis/certificates.k8s.io/v1/clustertrustbundles", "/openapi/v3/apis/storagemigration.k8s.io/v1"];

/// What all tests share.
struct Shared {
    /// A node alone.
    local: Place,
    /// A node beside a newer one.
    rerouted: Place,
}

/// A cluster, who calls it, and the two nodes whose answers must be equal.
struct Place {
    cluster: Cluster,
    callers: Callers,
    /// The node asked past its front.
    direct: &'static str,
    /// The node asked through its front.
    front: &'static str,
}

fn main() -> ExitCode {
    let groups = table::load();
    let mut tests = vec![
        Test::new("table/is_large_enough", |_: &Shared| Box::pin(async { table_is_large_enough() })),
        Test::new("compare/one_header_more_or_less_is_a_difference", |_: &Shared| {
            Box::pin(async { compare::one_header_more_or_less_is_a_difference() })
        }),
    ];
    for group in groups {
        for role in Role::ALL {
            for protocol in [Protocol::H1, Protocol::H2] {
                tests.extend(test_of(&group, role, protocol, tests.len()));
            }
        }
    }
    suite::run(tests, 2, start(), async |shared: Shared| {
        shared.local.cluster.stop().await?;
        shared.rerouted.cluster.stop().await
    })
}

/// The test of one group, caller and protocol, if the group has any request for them.
fn test_of(group: &Group, role: Role, protocol: Protocol, number: usize) -> Option<Test<Shared>> {
    let group = group.of(role, protocol)?;
    let name = format!("{}/{}/{protocol:?}", group.name, role.name()).to_lowercase();
    Some(Test::new(name, move |shared: &Shared| Box::pin(check(shared, group, role, protocol, number))))
}

/// Sends a group's requests one after another to both sides, and compares.
async fn check(shared: &Shared, group: Group, role: Role, protocol: Protocol, number: usize) -> Result<()> {
    let place = if group.name == REROUTED { &shared.rerouted } else { &shared.local };
    let mut pair = Pair::prepare(place, &group, role, protocol, number).await?;
    let mut differences = Vec::new();
    for request in &group.requests {
        let (direct, front) = pair.send(request).await?;
        let difference = compare::difference(request, pair.namespaces(), &direct, &front);
        differences.extend(difference.map(|difference| format!("{}: {difference}", request.name)));
    }
    if differences.is_empty() {
        return Ok(());
    }
    let shown = differences.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("\n\n");
    bail!("{} of {} answers differ\n\n{shown}\n", differences.len(), group.requests.len())
}

fn table_is_large_enough() -> Result<()> {
    let count: usize = table::load().iter().map(|group| group.requests.len()).sum();
    if count < FEWEST_REQUESTS { bail!("{count} requests") } else { Ok(()) }
}

async fn start() -> Result<Shared> {
    let (local, rerouted) =
        tokio::try_join!(Place::start("direct", "node-a", "node-a"), Place::start("rerouted", "node-c", "node-a"))?;
    Ok(Shared { local, rerouted })
}

/// Revisions that the store has before the first comparison: resource versions have four digits from then on, so that those
/// of both sides are equally long, which the lengths in protobuf tell.
const REVISIONS: u32 = 1000;

impl Place {
    async fn start(topology: &str, direct: &'static str, front: &'static str) -> Result<Self> {
        let builder = Cluster::builder(Topology::load(topology)?);
        let cluster = builder.peerfront(env!("CARGO_BIN_EXE_peerfront")).show_progress().start().await?;
        for _ in 0..REVISIONS {
            cluster.etcd().put("/revisions", "").await?;
        }
        let callers = Callers::create(&cluster).await?;
        let place = Self { cluster, callers, direct, front };
        place.wait_until_heard().await?;
        Ok(place)
    }

    /// A front is ready before it has heard its peers, and answers 503 for what only they may serve.
    async fn wait_until_heard(&self) -> Result<()> {
        let client = self.cluster.client(self.cluster.node(self.front).front(), &self.cluster.admin());
        let heard = async {
            for path in HEARD {
                while client.get(path).await?.status != 200 {
                    tokio::time::sleep(BETWEEN_QUESTIONS).await;
                }
            }
            Ok(())
        };
        tokio::time::timeout(HEARD_WITHIN, heard).await.context("the front has not heard its peer")?
    }
}
