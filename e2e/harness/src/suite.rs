//! Test programs whose tests share one thing that takes long to start, such as a cluster.
//!
//! The thing is started once, before the first test, and stopped after the last. Arguments are those of any test
//! program: a filter chooses tests, `--list` lists them without starting anything.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};

/// A test on its way.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

type Body<S> = Box<dyn for<'a> FnOnce(&'a S) -> Running<'a> + Send>;

/// A named test of something shared.
pub struct Test<S> {
    name: String,
    body: Body<S>,
}

impl<S> fmt::Debug for Test<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Test").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<S> Test<S> {
    /// A test that fails with the error it returns.
    pub fn new(name: impl Into<String>, body: impl for<'a> FnOnce(&'a S) -> Running<'a> + Send + 'static) -> Self {
        Self { name: name.into(), body: Box::new(body) }
    }
}

/// Starts what is shared, runs the tests that the command line chooses, `threads` at a time unless it says otherwise,
/// and stops what was started.
///
/// # Panics
/// If no async runtime can be made.
pub fn run<S: Send + Sync + 'static>(
    tests: Vec<Test<S>>,
    threads: usize,
    start: impl Future<Output = Result<S>>,
    stop: impl AsyncFnOnce(S) -> Result<()>,
) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(threads);
    if arguments.list {
        let names = tests.into_iter().map(|test| Trial::test(test.name, || Ok(()))).collect();
        return libtest_mimic::run(&arguments, names).exit_code();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let shared = match runtime.block_on(start) {
        Ok(shared) => Arc::new(shared),
        Err(error) => return failure("start", &error),
    };
    let trials = tests.into_iter().map(|Test { name, body }| {
        let (runtime, shared) = (Arc::clone(&runtime), Arc::clone(&shared));
        Trial::test(name, move || runtime.block_on(body(&shared)).map_err(|error| Failed::from(format!("{error:#}"))))
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    if let Some(shared) = Arc::into_inner(shared)
        && let Err(error) = runtime.block_on(stop(shared))
    {
        return failure("stop", &error);
    }
    conclusion.exit_code()
}

fn failure(step: &str, error: &anyhow::Error) -> ExitCode {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "what the tests share does not {step}: {error:#}");
    ExitCode::FAILURE
}
