//! The main job on real kube-apiservers of three versions: one cluster, started once, for every test of this program.
//!
//! Tests run one after another in the order listed; one that stops a server starts it again. A filter on the command
//! line chooses tests, as with any test program.

mod rerouting;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};
use peerfront_e2e::{Cluster, Topology};

type Test = fn(&Cluster) -> std::pin::Pin<Box<dyn Future<Output = Result<()>> + '_>>;

/// A test's name and the test, made of an async function over the cluster.
macro_rules! tests {
    ($($module:ident::$name:ident),* $(,)?) => {
        [$((concat!(stringify!($module), "::", stringify!($name)), (|cluster| Box::pin($module::$name(cluster))) as Test)),*]
    };
}

fn main() -> ExitCode {
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let tests = tests![
        rerouting::resources_that_only_a_peer_serves_are_listed_through_every_node,
        rerouting::without_peerfront_the_same_requests_fail,
    ];
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());
    if arguments.list {
        return libtest_mimic::run(&arguments, tests.iter().map(|(name, _)| Trial::test(*name, || Ok(()))).collect())
            .exit_code();
    }
    let cluster = match runtime.block_on(start()) {
        Ok(cluster) => Arc::new(cluster),
        Err(error) => {
            eprintln!("the cluster does not start: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let trials = tests.map(|(name, test)| {
        let (runtime, cluster) = (Arc::clone(&runtime), Arc::clone(&cluster));
        Trial::test(name, move || {
            runtime.block_on(test(&cluster)).map_err(|error| Failed::from(format!("{error:#}")))
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.into());
    if let Some(cluster) = Arc::into_inner(cluster) {
        if let Err(error) = runtime.block_on(cluster.stop()) {
            eprintln!("the cluster does not stop: {error:#}");
            return ExitCode::FAILURE;
        }
    }
    conclusion.exit_code()
}

async fn start() -> Result<Cluster> {
    let topology = Topology::load(&std::env::var("TRY").unwrap_or("mixed".into()))?;
    Cluster::builder(topology).peerfront(env!("CARGO_BIN_EXE_peerfront")).show_progress().start().await
}
