//! The real kubectl, of any version, as any user, on any server; and other clients that read the same kubeconfig.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use crate::process::Records;
use crate::programs;
use crate::topology::Version;

/// Longer than any command takes that is going to end, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// kubectl with a kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    cache: PathBuf,
    variables: Vec<(String, String)>,
    records: Records,
}

/// What a command said and how it ended.
#[derive(Clone, Debug)]
pub struct KubectlOutput {
    /// Exit code 0.
    pub success: bool,
    /// The exit code; absent if a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// Warnings and errors.
    pub stderr: String,
}

impl Kubectl {
    pub(crate) fn new(program: PathBuf, kubeconfig: PathBuf, cache: PathBuf, records: Records) -> Self {
        Self { program, kubeconfig, cache, variables: Vec::new(), records }
    }

    /// The same with another version, built if it is missing.
    ///
    /// # Errors
    /// If it cannot be built.
    pub async fn version(mut self, version: &Version) -> Result<Self> {
        self.program = programs::build(&[("kubectl", version.clone())], &self.records).await?.swap_remove(0);
        Ok(self)
    }

    /// The same with another client in its place, which finds the kubeconfig in `KUBECONFIG`.
    #[must_use]
    pub fn replaced_by(mut self, program: &Path) -> Self {
        self.program = program.to_owned();
        self
    }

    /// The same with another kubeconfig.
    #[must_use]
    pub fn kubeconfig(mut self, kubeconfig: &Path) -> Self {
        self.kubeconfig = kubeconfig.to_owned();
        self
    }

    /// The same with one more environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// If it cannot be started or does not end in two minutes; not if it fails.
    pub async fn run(&self, arguments: &[&str]) -> Result<KubectlOutput> {
        self.run_with_input(arguments, "").await
    }

    /// Runs a command that reads its input, such as `apply -f -`.
    ///
    /// # Errors
    /// As [`Kubectl::run`].
    pub async fn run_with_input(&self, arguments: &[&str], input: &str) -> Result<KubectlOutput> {
        let what = || format!("{} {}", self.program.display(), arguments.join(" "));
        let mut child = self.spawn(arguments)?;
        let mut stdin = child.stdin.take();
        let exchange = async {
            if let Some(pipe) = &mut stdin {
                // A command that does not read its input ends before; its output tells why.
                let _ = pipe.write_all(input.as_bytes()).await;
            }
            drop(stdin);
            child.wait_with_output().await
        };
        let output = tokio::time::timeout(TIMEOUT, exchange).await.with_context(what)?.with_context(what)?;
        Ok(KubectlOutput {
            success: output.status.success(),
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Starts a command with all three streams piped; dropping it kills it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<Child> {
        Command::new(&self.program)
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            // Discovery is cached by address, which another cluster may have had before.
            .env("KUBECACHEDIR", &self.cache)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {}", self.program.display()))
    }
}

impl KubectlOutput {
    /// What it printed, if it succeeded.
    ///
    /// # Errors
    /// With what it complained of.
    pub fn success(self) -> Result<String> {
        if self.success { Ok(self.stdout) } else { bail!("failed: {}{}", self.stderr, self.stdout) }
    }

    /// What it complained of, if it failed.
    ///
    /// # Errors
    /// With what it printed.
    pub fn failure(self) -> Result<String> {
        if self.success { bail!("did not fail: {}{}", self.stdout, self.stderr) } else { Ok(self.stderr) }
    }
}
