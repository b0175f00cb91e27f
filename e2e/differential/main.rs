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

use anyhow::{Result, bail};
use peerfront_e2e::suite::{self, Test};
use peerfront_e2e::{Cluster, Protocol, Topology};

use callers::{Callers, Role};
use sides::Pair;
use table::Group;

/// Fewer than this, and somebody has lost a part of the table.
const FEWEST_REQUESTS: usize = 200;

/// Differences shown of one group of requests; the first tells most.
const SHOWN: usize = 5;

/// What all tests share.
struct Shared {
    cluster: Cluster,
    callers: Callers,
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
    suite::run(tests, 2, start(), async |shared: Shared| shared.cluster.stop().await)
}

/// The test of one group, caller and protocol, if the group has any request for them.
fn test_of(group: &Group, role: Role, protocol: Protocol, number: usize) -> Option<Test<Shared>> {
    let group = group.of(role, protocol)?;
    let name = format!("{}/{}/{protocol:?}", group.name, role.name()).to_lowercase();
    Some(Test::new(name, move |shared: &Shared| Box::pin(check(shared, group, role, protocol, number))))
}

/// Sends a group's requests one after another to both sides, and compares.
async fn check(shared: &Shared, group: Group, role: Role, protocol: Protocol, number: usize) -> Result<()> {
    let caller = shared.callers.get(role);
    let mut pair = Pair::prepare(&shared.cluster, &group, caller, protocol, number).await?;
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
    let builder = Cluster::builder(Topology::load("direct")?);
    let cluster = builder.peerfront(env!("CARGO_BIN_EXE_peerfront")).show_progress().start().await?;
    let callers = Callers::create(&cluster).await?;
    Ok(Shared { cluster, callers })
}
