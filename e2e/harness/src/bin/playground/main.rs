//! `./e2e/playground`: the whole of it on one machine, to try.
//!
//! Starts the `mixed` topology, shows one request that its node cannot serve itself, and leaves the rest to you.

mod demonstration;
mod nodes;
mod options;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use peerfront_e2e::{Cluster, Topology};
use tokio::signal::unix::{SignalKind, signal};

use options::Options;

#[tokio::main]
async fn main() -> ExitCode {
    // Invariant: whatever ends `run`, its cluster is dropped with it, and nothing that was started stays.
    let outcome = tokio::select! {
        outcome = run(Options::parse()) => outcome,
        outcome = interrupted() => outcome,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("playground: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<()> {
    let directory = options.directory()?;
    if options.stop {
        return stop(&directory).await;
    }
    let cluster = start(&options, &directory).await?;
    nodes::write(&cluster)?;
    demonstration::show(&cluster).await?;
    if options.detach {
        say(&format!("\nEverything runs on. Stop it: ./e2e/playground --stop --dir {}", directory.display()));
        cluster.detach();
        return Ok(());
    }
    say("\nCtrl-C stops everything.");
    watch(&cluster).await
}

async fn start(options: &Options, directory: &Path) -> Result<Cluster> {
    let mut topology = Topology::load("mixed")?;
    if !options.versions.is_empty() {
        topology = topology.with_versions(&options.versions)?;
    }
    let mut builder = Cluster::builder(topology).directory(directory).show_progress();
    builder = builder.peerfront(options.peerfront()?);
    builder.start().await
}

async fn stop(directory: &Path) -> Result<()> {
    if !directory.is_dir() {
        bail!("there is no playground in {}", directory.display());
    }
    let ended = Cluster::stop_detached(directory).await?;
    match ended.len() {
        0 => say("nothing runs there"),
        _ => say(&format!("stopped {}", ended.join(", "))),
    }
    Ok(())
}

/// Tells of processes that end by themselves. Whoever plays may have ended them on purpose, so the rest goes on.
async fn watch(cluster: &Cluster) -> Result<()> {
    let mut told: Vec<String> = Vec::new();
    loop {
        for process in cluster.ended() {
            if !told.iter().any(|name| name == process.name()) {
                say(&format!("{} has ended; its log is {}", process.name(), process.log().display()));
                told.push(process.name().to_owned());
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Returns when the user or a script asks for the end.
async fn interrupted() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut hangup = signal(SignalKind::hangup()).context("listen for SIGHUP")?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    say("stopping");
    Ok(())
}

/// Prints for people, where a closed pipe is no reason to stop.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The folder this program lies in, where cargo puts peerfront as well.
fn own_folder() -> Result<PathBuf> {
    let program = std::env::current_exe().context("find this program")?;
    program.parent().map(Path::to_path_buf).context("find this program's folder")
}
