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

use std::process::ExitCode;

use anyhow::Result;

use crate::cluster::Cluster;
use crate::suite::{self, Running};

/// A test: an async function over the fixture.
pub type Test<F> = for<'a> fn(&'a F) -> Running<'a>;

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
    let tests = tests.iter().map(|(name, test)| suite::Test::new(*name, *test)).collect();
    suite::run(tests, 1, start(), F::stop)
}
