//! Control groups of a node, in each hierarchy below this program's own, removed when the node is gone.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

const ROOT: &str = "/sys/fs/cgroup";

/// One group per hierarchy.
#[derive(Debug)]
pub(crate) struct ControlGroups {
    folders: Vec<PathBuf>,
}

impl ControlGroups {
    /// Makes them.
    ///
    /// # Errors
    /// If the kernel does not let this program.
    pub(crate) fn create(name: &str) -> Result<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").context("read this program's control groups")?;
        let is_v1 = own.lines().any(|line| !line.starts_with("0::"));
        let mut groups = Self { folders: Vec::new() };
        for line in own.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            if is_v1 && controllers.is_empty() {
                continue; // The hierarchy of version 2 is not used beside those of version 1.
            }
            let hierarchy = Path::new(ROOT).join(controllers.trim_start_matches("name="));
            let folder = hierarchy.join(path.trim_start_matches('/')).join(name);
            std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
            groups.folders.push(folder);
        }
        for folder in &groups.folders {
            // A new group of this controller has nothing and can hold no process.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let above = folder.parent().map(|parent| parent.join(file)).filter(|above| is_v1 && above.is_file());
                if let Some(above) = above {
                    std::fs::write(folder.join(file), std::fs::read(above)?)?;
                }
            }
        }
        Ok(groups)
    }

    /// A command line that moves its shell into the groups and goes on as another program.
    pub(crate) fn script(&self) -> String {
        let enter: String =
            self.folders.iter().map(|folder| format!("echo $$ >'{}/cgroup.procs'; ", folder.display())).collect();
        format!("set -e; {enter}exec \"$@\"")
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        for folder in &self.folders {
            remove(folder);
        }
    }
}

/// Removes a group and those below it, which are empty when their processes are gone.
fn remove(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove(&entry.path());
        }
    }
    let _ = std::fs::remove_dir(folder);
}
