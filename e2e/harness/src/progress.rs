//! What the harness says while it works: always into the cluster's log, to the terminal if asked.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use time::OffsetDateTime;

/// Where progress lines go.
#[derive(Debug)]
pub(crate) struct Progress {
    log: File,
    terminal: Terminal,
}

/// Whether progress is shown on stderr as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terminal {
    Quiet,
    Shown,
}

impl Progress {
    pub(crate) fn create(path: &Path, terminal: Terminal) -> Result<Self> {
        let log = File::create(path).with_context(|| format!("create {}", path.display()))?;
        Ok(Self { log, terminal })
    }

    /// One line. A log that cannot be written is no reason to stop a cluster.
    pub(crate) fn say(&self, line: &str) {
        let now = OffsetDateTime::now_utc();
        let _ = writeln!(
            &self.log,
            "{:02}:{:02}:{:02}.{:03} {line}",
            now.hour(),
            now.minute(),
            now.second(),
            now.millisecond()
        );
        if self.terminal == Terminal::Shown {
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}
