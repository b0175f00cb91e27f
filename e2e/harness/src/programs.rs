//! The real programs, by name and version, and the tools of the machine the harness cannot do without.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::Records;
use crate::topology::Version;

/// The root of the repository this crate was built from.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(".")).to_path_buf()
}

/// Builds what is missing of these programs and says where they are, in the same order.
pub(crate) async fn build(wanted: &[(&str, Version)], records: &Records) -> Result<Vec<PathBuf>> {
    let names: Vec<String> = wanted.iter().map(|(program, version)| format!("{program}@{version}")).collect();
    provide("e2e/kubernetes/build", &names, records).await
}

/// Installs a client of `e2e/clients` if it is missing and says where it is.
pub(crate) async fn install(client: &str, records: &Records) -> Result<PathBuf> {
    Ok(provide("e2e/clients/install", &[client.to_owned()], records).await?.swap_remove(0))
}

/// Runs a script that prints `NAME PATH` for each of these names.
///
/// What it says besides is shown as it comes: the first build of a version takes minutes.
async fn provide(script: &str, names: &[String], records: &Records) -> Result<Vec<PathBuf>> {
    let what = || format!("run {script} {}", names.join(" "));
    let child = tokio::process::Command::new(repository().join(script))
        .args(names)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0)
        .spawn()
        .with_context(what)?;
    // The compiler runs below the script: all of the group ends if nobody waits for it any more.
    let group = records.watch("build", child.id().context("a build without an id")?)?;
    let output = child.wait_with_output().await.with_context(what)?;
    group.ended();
    ensure!(output.status.success(), "{script} {} failed: {}", names.join(" "), output.status);
    let text = String::from_utf8(output.stdout).context("read what the script printed")?;
    let paths: Vec<PathBuf> =
        text.lines().filter_map(|line| line.split_once(' ')).map(|(_, path)| path.into()).collect();
    ensure!(paths.len() == names.len(), "{script} answered {} of {} names: {text}", paths.len(), names.len());
    Ok(paths)
}

/// Fails with the command that installs what is missing.
pub(crate) fn require_tools() -> Result<()> {
    for (tool, package) in [("unshare", "util-linux"), ("hostname", "hostname"), ("bash", "bash")] {
        if !is_on_path(tool) {
            bail!("{tool} is not installed; install it with: apt-get install {package}");
        }
    }
    Ok(())
}

fn is_on_path(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_holds_this_crate() {
        assert!(repository().join("e2e/harness/Cargo.toml").is_file());
    }

    #[test]
    fn tools_are_looked_up_on_the_path() {
        assert!(is_on_path("sh"));
        assert!(!is_on_path("no-such-tool"));
    }

    #[tokio::test]
    async fn unknown_program_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let records = Records::create(folder.path().join("pids")).unwrap();
        let unknown = [("kube-nothing", Version { major: 1, minor: 37, patch: 2 })];
        let error = build(&unknown, &records).await.unwrap_err();
        assert!(format!("{error:#}").contains("kube-nothing@1.37.2"), "{error:#}");
    }
}
