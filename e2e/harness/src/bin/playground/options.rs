use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;
use peerfront_e2e::Version;

/// Real kube-apiservers of three versions on this machine, each behind a peerfront.
#[derive(Debug, Parser)]
#[command(bin_name = "./e2e/playground")]
pub(crate) struct Options {
    /// Where everything is written: kubeconfigs, pki/, logs/, nodes.json [default: playground beside the built programs]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Return as soon as all of it is ready and leave it running
    #[arg(long)]
    pub(crate) detach: bool,

    /// Stop what runs in --dir
    #[arg(long, requires = "dir", conflicts_with = "detach")]
    pub(crate) stop: bool,

    /// Versions of the kube-apiservers, one node each [default: 1.35.4,1.36.3,1.37.2]
    #[arg(long, value_name = "VERSION,...", value_delimiter = ',')]
    pub(crate) versions: Vec<Version>,

    /// Cargo profile of peerfront, such as release
    #[arg(long, value_name = "PROFILE", default_value = "dev")]
    profile: String,

    /// The peerfront to run, instead of the one just built
    #[arg(long, value_name = "PROGRAM")]
    peerfront: Option<PathBuf>,
}

impl Options {
    pub(crate) fn directory(&self) -> Result<PathBuf> {
        match &self.dir {
            Some(directory) => Ok(std::path::absolute(directory)?),
            None => Ok(super::own_folder()?.join("../playground")),
        }
    }

    /// The script builds both programs with the profile, so that they lie side by side.
    pub(crate) fn peerfront(&self) -> Result<PathBuf> {
        let program = match &self.peerfront {
            Some(program) => std::path::absolute(program)?,
            None => super::own_folder()?.join("peerfront"),
        };
        if !program.is_file() {
            bail!("{} is missing; build it with: cargo build --profile {}", program.display(), self.profile);
        }
        Ok(program)
    }
}
