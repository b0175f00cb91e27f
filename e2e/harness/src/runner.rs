//! A test program whose tests share one thing that is slow to start, most often a cluster.
//!
//! The tests run one after another in the order listed; one that stops a server starts it again. A filter on the
//! command line chooses tests, as with any test program. Such a program needs `harness = false` in Cargo.toml.
//!
//! ```no_run
//! use peerfront_e2e::{Cluster, Topology, runner};
//!
//! mod whoami {
//!     pub async fn administrator_is_known(cluster: &peerfront_e2e::Cluster) -> anyhow::Result<()> {
//!         cluster.kubectl("node-a").run(&["auth", "whoami"]).await?.success().map(drop)
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let start = async || Cluster::builder(Topology::load("mixed")?).peerfront("target/debug/peerfront").start().await;
//!     runner::run(start, &runner::tests![whoami::administrator_is_known])
//! }
//! ```

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};

use crate::cluster::Cluster;

/// A test: an async function over the fixture.
pub type Test<F> = for<'a> fn(&'a F) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// What the tests share.
pub trait Fixture: Send + Sync + 'static {
    /// Ends it after the last test.
    ///
    /// # Errors
    /// If it does not end as it should, which fails the program.
    fn stop(self) -> impl Future<Output = Result<()>>;
}

impl Fixture for Cluster {
    fn stop(self) -> impl Future<Output = Result<()>> {
        Self::stop(self)
    }
}

/// A list of names and [tests](Test), made of the paths of async functions.
#[macro_export]
macro_rules! tests {
    ($($module:ident :: $name:ident),* $(,)?) => {
        [$((
            concat!(stringify!($module), "::", stringify!($name)),
            (|fixture| Box::pin($module::$name(fixture))) as $crate::runner::Test<_>,
        )),*]
    };
}
pub use crate::tests;

/// Starts the fixture unless the tests are only listed, runs those that the command line chooses, and stops it.
///
/// # Panics
/// If there can be no runtime.
pub fn run<F: Fixture>(start: impl AsyncFnOnce() -> Result<F>, tests: &[(&'static str, Test<F>)]) -> ExitCode {
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    if arguments.list {
        let trials = tests.iter().map(|(name, _)| Trial::test(*name, || Ok(()))).collect();
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let fixture = match runtime.block_on(start()) {
        Ok(fixture) => Arc::new(fixture),
        Err(error) => return failure("what the tests need does not start", &error),
    };
    let trial = |(name, test): &(&'static str, Test<F>)| {
        let (runtime, fixture, test) = (Arc::clone(&runtime), Arc::clone(&fixture), *test);
        Trial::test(*name, move || runtime.block_on(test(&fixture)).map_err(|error| Failed::from(format!("{error:#}"))))
    };
    let conclusion = libtest_mimic::run(&arguments, tests.iter().map(trial).collect());
    // A test that panicked may still hold it; then dropping it ends it.
    if let Some(fixture) = Arc::into_inner(fixture)
        && let Err(error) = runtime.block_on(fixture.stop())
    {
        return failure("what the tests needed does not stop", &error);
    }
    conclusion.exit_code()
}

#[allow(clippy::print_stderr, reason = "a test program has nowhere else to say it")]
fn failure(what: &str, error: &anyhow::Error) -> ExitCode {
    eprintln!("{what}: {error:#}");
    ExitCode::FAILURE
}
