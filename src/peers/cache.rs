//! What every server said last, kept on disk for the next start: then a peer that does not answer at that moment is
//! listed as before, where clients would otherwise take what it serves as gone.
//!
//! One file per server in a directory of this front alone. Whatever is wrong with a file or the directory is said in
//! readiness, and the front works without. Reading and writing happen on threads for blocking work, never on those of
//! the control loops.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

use self::directory::Directory;
use super::openapi;
use crate::apimachinery::peer::Peer;
use crate::apimachinery::server_id::ServerId;
use crate::discovery::ApiGroupDiscoveryList;
use crate::discovery::legacy::LegacyDocuments;
use crate::view::ServerVersion;

mod directory;
mod documents;
mod file;

/// Shortest time between two writes: servers that start change their documents many times, and what has not been
/// written yet is unknown after a crash.
const PAUSE: Duration = Duration::from_secs(2);

/// The same after a write that failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);

/// How long the start waits for the disk, and the end for the last write.
const PATIENCE: Duration = Duration::from_secs(5);

/// What one server said last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Remembered {
    /// How it was reached; `None` for the local server.
    pub(super) peer: Option<Arc<Peer>>,
    pub(super) api: Option<Arc<ApiGroupDiscoveryList>>,
    pub(super) apis: Option<Arc<ApiGroupDiscoveryList>>,
    pub(super) legacy: Arc<LegacyDocuments>,
    pub(super) version: Option<ServerVersion>,
    pub(super) gives_v2beta1: bool,
    pub(super) openapi: Option<Arc<openapi::Remembered>>,
}

/// Of all servers.
pub(super) type Memory = BTreeMap<ServerId, Remembered>;

/// What is wrong: with single files, and with all of them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Problems {
    directory: Option<String>,
    files: BTreeMap<ServerId, String>,
}

impl Problems {
    fn text(&self) -> Option<String> {
        let all: Vec<&str> = self.directory.iter().chain(self.files.values()).map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Writes what it is offered, in a task of its own.
pub(super) struct Cache {
    offered: watch::Sender<Memory>,
    problem: watch::Receiver<Option<String>>,
    task: JoinHandle<()>,
}

impl Cache {
    /// Reads what is known, and starts the task.
    pub(super) async fn open(path: PathBuf) -> (Self, Memory) {
        let directory = Arc::new(Directory::new(path));
        let (memory, problems) = load(&directory).await;
        for problem in problems.files.values().chain(&problems.directory) {
            tracing::warn!(target: super::LOG, problem, "what servers served before this start is not known");
        }
        let (offered, wanted) = watch::channel(memory.clone());
        let (said, problem) = watch::channel(problems.text());
        let writer = Writer { directory, wanted, written: memory.clone(), problems, said };
        (Self { offered, problem, task: tokio::spawn(writer.run()) }, memory)
    }

    /// Has this written, soon; files of servers that are not in it are removed.
    pub(super) fn offer(&self, memory: Memory) {
        self.offered.send_if_modified(|offered| {
            let is_new = *offered != memory;
            *offered = memory;
            is_new
        });
    }

    /// Waits for news of what is wrong. `None` if nothing is.
    pub(super) async fn problem(&mut self) -> Option<String> {
        if self.problem.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.problem.borrow_and_update().clone()
    }

    /// What is wrong now.
    pub(super) fn current_problem(&mut self) -> Option<String> {
        self.problem.borrow_and_update().clone()
    }

    /// Waits until what was offered is written.
    pub(super) async fn close(self) {
        drop(self.offered);
        let _ = timeout(PATIENCE, self.task).await;
    }
}

async fn load(directory: &Arc<Directory>) -> (Memory, Problems) {
    let directory = Arc::clone(directory);
    let read = spawn_blocking(move || {
        let mut memory = Memory::new();
        let mut problems = Problems { directory: directory.prepare().err(), files: BTreeMap::new() };
        for id in directory.servers() {
            match directory.read(&id) {
                Ok(Some(remembered)) => drop(memory.insert(id, remembered)),
                Ok(None) => {}
                Err(problem) => drop(problems.files.insert(id, problem)),
            }
        }
        (memory, problems)
    });
    match timeout(PATIENCE, read).await {
        Ok(Ok(read)) => read,
        Ok(Err(_)) | Err(_) => {
            let problem = "the cache directory does not answer".to_owned();
            (Memory::new(), Problems { directory: Some(problem), files: BTreeMap::new() })
        }
    }
}

/// The task.
struct Writer {
    directory: Arc<Directory>,
    wanted: watch::Receiver<Memory>,
    written: Memory,
    problems: Problems,
    said: watch::Sender<Option<String>>,
}

impl Writer {
    /// Runs until nobody offers anything any more, and what was offered is written.
    async fn run(mut self) {
        loop {
            let is_over = self.wait().await;
            let wanted = self.wanted.borrow_and_update().clone();
            let is_written = wanted == self.written || self.write(wanted).await;
            if is_over {
                return;
            }
            let pause = if is_written { PAUSE } else { PAUSE_AFTER_FAILURE };
            tokio::select! {
                () = sleep(pause) => {}
                () = gone(&mut self.wanted) => {}
            }
        }
    }

    /// Waits for something to write, and says whether that is the last.
    async fn wait(&mut self) -> bool {
        loop {
            if *self.wanted.borrow_and_update() != self.written {
                return self.wanted.has_changed().is_err();
            }
            if self.wanted.changed().await.is_err() {
                return true;
            }
        }
    }

    /// Says whether all of it is written; more may be wanted by then.
    async fn write(&mut self, wanted: Memory) -> bool {
        let (directory, mut written, mut problems) =
            (Arc::clone(&self.directory), self.written.clone(), self.problems.clone());
        let done = spawn_blocking(move || {
            write(&directory, &wanted, &mut written, &mut problems);
            (written == wanted, written, problems)
        });
        let Ok((is_whole, written, problems)) = done.await else { return false };
        self.written = written;
        if self.problems != problems {
            self.problems = problems;
            let text = self.problems.text();
            if let Some(problem) = &text {
                tracing::warn!(target: super::LOG, problem, "what servers serve cannot be kept for the next start");
            }
            self.said.send_replace(text);
        }
        is_whole
    }
}

async fn gone(wanted: &mut watch::Receiver<Memory>) {
    while wanted.changed().await.is_ok() {}
}

/// Writes what is new and removes what is gone. `written` becomes what lies in the directory.
fn write(directory: &Directory, wanted: &Memory, written: &mut Memory, problems: &mut Problems) {
    problems.directory = directory.prepare().err();
    if problems.directory.is_some() {
        return;
    }
    let gone: Vec<ServerId> = written.keys().filter(|id| !wanted.contains_key(*id)).cloned().collect();
    for id in gone {
        directory.remove(&id);
        written.remove(&id);
        problems.files.remove(&id);
    }
    for (id, remembered) in wanted {
        if written.get(id) == Some(remembered) {
            continue;
        }
        match directory.write(id, remembered) {
            Ok(()) => {
                problems.files.remove(id);
                written.insert(id.clone(), remembered.clone());
            }
            Err(problem) => drop(problems.files.insert(id.clone(), problem)),
        }
    }
}

#[cfg(test)]
mod tests;
