use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};

/// The folder with one file per running process, named after it: `PID START`.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    folder: PathBuf,
}

impl Records {
    pub(crate) fn create(folder: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        Ok(Self { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn add(&self, name: &str, pid: u32) -> Result<()> {
        let path = self.folder.join(name);
        // A process that has ended already has no start time, and no signal will be sent to it.
        let start = start_time(pid).unwrap_or_default();
        std::fs::write(&path, format!("{pid} {start}\n")).with_context(|| format!("write {}", path.display()))
    }

    /// Records a process group for as long as somebody waits for it, and ends it if that wait is given up.
    pub(crate) fn watch(&self, name: &str, pid: u32) -> Result<Watched> {
        self.add(name, pid)?;
        Ok(Watched { record: self.folder.join(name) })
    }

    pub(super) fn remove(&self, name: &str) {
        let _ = std::fs::remove_file(self.folder.join(name));
    }
}

/// A process group somebody waits for.
#[derive(Debug)]
pub(crate) struct Watched {
    record: PathBuf,
}

impl Watched {
    /// The wait is over because the process has ended.
    pub(crate) fn ended(self) {
        let _ = std::fs::remove_file(&self.record);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(group) = running(&self.record) {
            let _ = kill_process_group(group, Signal::TERM);
        }
        let _ = std::fs::remove_file(&self.record);
    }
}

/// When a process was started, in the kernel's ticks since boot: with the id it names one process for good.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold anything; the start is the 22nd.
    let (_, fields) = stat.rsplit_once(") ")?;
    // A zombie runs no more.
    if fields.starts_with('Z') {
        return None;
    }
    fields.split(' ').nth(19)?.parse().ok()
}

/// The group of a recorded process that still runs.
fn running(record: &Path) -> Option<Pid> {
    let text = std::fs::read_to_string(record).ok()?;
    let (pid, start) = text.trim().split_once(' ')?;
    let (pid, start): (u32, u64) = (pid.parse().ok()?, start.parse().ok()?);
    (start_time(pid) == Some(start)).then(|| Pid::from_raw(pid.cast_signed())).flatten()
}

fn records(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Whether any recorded process of this folder still runs.
pub(crate) fn is_any_recorded_alive(folder: &Path) -> bool {
    records(folder).iter().any(|record| running(record).is_some())
}

/// How long recorded processes may take to end before they are killed: the data is thrown away, and a kube-apiserver
/// whose etcd has ended first would wait for it in vain.
const PATIENCE: Duration = Duration::from_secs(3);

/// Ends the recorded processes, by force after three seconds, and returns the names of those that ran.
pub(crate) async fn end_recorded(folder: &Path) -> Result<Vec<String>> {
    let mut ended = Vec::new();
    for record in records(folder) {
        if let Some(group) = running(&record) {
            kill_process_group(group, Signal::TERM).with_context(|| format!("end {}", record.display()))?;
            ended.push(record.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    let deadline = tokio::time::Instant::now() + PATIENCE;
    for record in records(folder) {
        while let Some(group) = running(&record) {
            if tokio::time::Instant::now() > deadline {
                kill_process_group(group, Signal::KILL).with_context(|| format!("kill {}", record.display()))?;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        std::fs::remove_file(&record).with_context(|| format!("remove {}", record.display()))?;
    }
    ended.sort();
    Ok(ended)
}
