use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

use super::Records;

/// Waits for a word or for the end of this program, whatever ends it; without a word it kills what is recorded in $1
/// and removes the folder $2, if one is named.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
read -r word
if [ -n "$word" ]; then exit; fi
for record in "$1"/*; do
    read -r pid start <"$record" || continue
    if [ "$(cut -d ' ' -f 22 "/proc/$pid/stat")" = "$start" ]; then kill -s KILL -- "-$pid"; fi
done
if [ -n "$2" ]; then rm -rf -- "$2"; fi
"#;

/// A shell that outlives this program just long enough to end its processes.
#[derive(Debug)]
pub(crate) struct Warden(pub(super) Child);

impl Warden {
    /// Starts the warden of these processes; `throw_away` is a folder that goes with them.
    pub(crate) fn start(records: &Records, throw_away: Option<&Path>) -> Result<Self> {
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "warden"])
            .arg(records.folder())
            .arg(throw_away.unwrap_or(Path::new("")))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("start the warden")?;
        Ok(Self(child))
    }

    /// Lets the processes run on without a warden, or ends the watch over those that are gone.
    pub(crate) fn dismiss(&mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            let _ = pipe.write_all(b"dismissed\n");
        }
        let _ = self.0.wait();
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        // Whoever drops the warden has ended the processes; the warden is for those who cannot.
        self.dismiss();
    }
}
