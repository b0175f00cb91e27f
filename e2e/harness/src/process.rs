//! One process of a cluster: started in a group of its own, watched until it is ready, ended by its id.
//!
//! Invariant: while a process runs, `pids/NAME` holds its id and its start time, and both must match before a signal
//! is sent on the strength of that file. The *warden*, a shell that waits for this program's end on a pipe, uses the
//! same files: no process outlives a program that was killed, and a later `--stop` ends exactly what was started.

mod ready;
mod record;
mod warden;

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::{Instant, sleep};

pub(crate) use ready::Ready;
pub(crate) use record::{Records, end_recorded, is_any_recorded_alive};
pub(crate) use warden::Warden;

/// How long a process may take until it is ready: three kube-apiservers at once on two busy cores.
const READY_DEADLINE: Duration = Duration::from_secs(180);
/// How long a process may take to end after SIGTERM, before SIGKILL.
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// Neither the end of a process nor its readiness can be awaited without owning the runtime it was started on.
const POLL: Duration = Duration::from_millis(50);

/// What to start and how to know that it is ready.
#[derive(Debug)]
pub(crate) struct Spec {
    /// Name of the log, of the record and in messages.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// A hostname of the process' own; absent: the machine's.
    pub(crate) hostname: Option<String>,
    pub(crate) log: PathBuf,
    pub(crate) ready: Ready,
}

/// A process that can be stopped, killed and started again.
#[derive(Debug)]
pub struct Process {
    spec: Spec,
    records: Records,
    // A std lock because Drop has no runtime; it is never held over an await.
    #[allow(clippy::disallowed_types)]
    child: std::sync::Mutex<Option<Child>>,
    /// Flags that have another value from the next start on.
    #[allow(clippy::disallowed_types)] // As above.
    changed: std::sync::Mutex<Vec<OsString>>,
}

impl Process {
    /// Describes a process without starting it.
    #[allow(clippy::disallowed_types)]
    pub(crate) fn new(spec: Spec, records: Records) -> Self {
        Self { spec, records, child: std::sync::Mutex::new(None), changed: std::sync::Mutex::default() }
    }

    /// Name of the process, such as `node-a-upstream`.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Id of the process, which is its group's too; absent while it does not run.
    pub fn pid(&self) -> Option<u32> {
        self.with_child(|child| child.as_ref().map(Child::id))
    }

    /// Where the process writes.
    pub fn log(&self) -> &Path {
        &self.spec.log
    }

    /// All that the process has written since the cluster was made.
    pub fn log_text(&self) -> String {
        std::fs::read(&self.spec.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// How the process ended by itself; absent while it runs, and after it was stopped.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.with_child(|child| child.as_mut().and_then(|child| child.try_wait().ok().flatten()))
    }

    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// With the end of the log, if it ends or is not ready in three minutes.
    pub async fn start(&self) -> Result<()> {
        self.spawn()?;
        self.wait_ready().await
    }

    /// Starts it without waiting.
    ///
    /// # Errors
    /// If it runs already or cannot be started.
    pub fn spawn(&self) -> Result<()> {
        self.with_child(|slot| {
            if slot.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
                bail!("{} runs already", self.name());
            }
            let log = File::options()
                .append(true)
                .create(true)
                .open(self.log())
                .with_context(|| format!("open {}", self.log().display()))?;
            let child = self
                .command()
                .stdin(Stdio::null())
                .stdout(log.try_clone().context("share the log")?)
                .stderr(log)
                .process_group(0)
                .spawn()
                .with_context(|| format!("start {}", self.name()))?;
            self.records.add(self.name(), child.id())?;
            *slot = Some(child);
            Ok(())
        })
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// As [`Process::start`].
    pub async fn wait_ready(&self) -> Result<()> {
        let deadline = Instant::now() + READY_DEADLINE;
        loop {
            let why = match self.spec.ready.check().await {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            if let Some(status) = self.ended() {
                bail!("{} ended with {status} before it was ready; {}", self.name(), self.log_tail());
            }
            if self.pid().is_none() {
                bail!("{} does not run", self.name());
            }
            if Instant::now() > deadline {
                bail!("{} is not ready after {READY_DEADLINE:?}: {why:#}; {}", self.name(), self.log_tail());
            }
            sleep(POLL).await;
        }
    }

    /// Ends it as an operator would, and by force if it does not end in ten seconds. Nothing to do if it has ended.
    ///
    /// # Errors
    /// If it cannot be signaled.
    pub async fn stop(&self) -> Result<()> {
        self.signal(Signal::TERM)?;
        // A frozen one would not hear it.
        self.signal(Signal::CONT)?;
        let deadline = Instant::now() + STOP_DEADLINE;
        while self.pid().is_some() && self.ended().is_none() {
            if Instant::now() > deadline {
                self.signal(Signal::KILL)?;
            }
            sleep(POLL).await;
        }
        self.forget();
        Ok(())
    }

    /// Ends it at once, as a crash would.
    ///
    /// # Errors
    /// If it cannot be signaled.
    pub async fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)?;
        while self.pid().is_some() && self.ended().is_none() {
            sleep(POLL).await;
        }
        self.forget();
        Ok(())
    }

    /// Stops it, starts it and waits until it is ready.
    ///
    /// # Errors
    /// As [`Process::stop`] and [`Process::start`].
    pub async fn restart(&self) -> Result<()> {
        self.stop().await?;
        self.start().await
    }

    /// Halts it without ending it: connections stay open and nothing is answered.
    ///
    /// # Errors
    /// If it cannot be signaled.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on after [`Process::freeze`].
    ///
    /// # Errors
    /// If it cannot be signaled.
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Leaves it running and forgets it, so that dropping this value does not end it.
    pub(crate) fn release(&self) {
        self.with_child(|child| *child = None);
    }

    /// Asks it to end without waiting.
    pub(crate) fn ask_to_end(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        self.with_child(|child| {
            // Invariant: a child that was not waited for keeps its id, so the signal cannot reach anybody else.
            let Some(child) = child.as_mut() else { return Ok(()) };
            if !matches!(child.try_wait(), Ok(None)) {
                return Ok(());
            }
            match Pid::from_raw(child.id().cast_signed()) {
                Some(group) => kill_process_group(group, signal).with_context(|| format!("signal {}", self.name())),
                None => Ok(()),
            }
        })
    }

    fn forget(&self) {
        self.with_child(|child| *child = None);
        self.records.remove(self.name());
    }

    #[allow(clippy::disallowed_types)]
    fn with_child<T>(&self, work: impl FnOnce(&mut Option<Child>) -> T) -> T {
        work(&mut self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Gives flags another value from the next start on, and all others their first one again.
    pub fn change_flags(&self, flags: &[(&str, &str)]) {
        let flags = flags.iter().map(|(name, value)| OsString::from(format!("--{name}={value}")));
        *self.changed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = flags.collect();
    }

    fn arguments(&self) -> Vec<OsString> {
        let changed = self.changed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let name = |flag: &OsString| flag.to_string_lossy().split_once('=').map(|(name, _)| name.to_owned());
        let kept = self.spec.arguments.iter().filter(|flag| {
            let name_of_flag = name(flag);
            name_of_flag.is_none() || !changed.iter().any(|new| name(new) == name_of_flag)
        });
        kept.chain(changed.iter()).cloned().collect()
    }

    fn command(&self) -> Command {
        let mut command = self.bare_command();
        // The settings of the harness and of whoever runs it are none of the process': peerfront reads this prefix.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PEERFRONT_")) {
            command.env_remove(name);
        }
        command
    }

    fn bare_command(&self) -> Command {
        let Some(hostname) = &self.spec.hostname else {
            let mut command = Command::new(&self.spec.program);
            command.args(self.arguments());
            return command;
        };
        let mut command = Command::new("unshare");
        command.arg("--uts");
        if !rustix::process::geteuid().is_root() {
            // A hostname needs rights over its namespace, which everybody has over one of their own.
            command.arg("--map-root-user");
        }
        command.args(["sh", "-c", r#"hostname "$0" && exec "$@""#, hostname]);
        command.arg(&self.spec.program).args(self.arguments());
        command
    }

    fn log_tail(&self) -> String {
        const LINES: usize = 20;
        let text = self.log_text();
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LINES)..];
        format!("the end of {}:\n  {}", self.log().display(), tail.join("\n  "))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Dropped while it runs: the test is over or has failed, and nothing of the cluster is kept.
        let _ = self.signal(Signal::KILL);
        if let Some(mut child) = self.with_child(Option::take) {
            let _ = child.wait();
            self.records.remove(self.name());
        }
    }
}

#[cfg(test)]
mod tests;
