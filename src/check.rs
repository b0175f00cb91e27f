//! Whether this node and its cluster have what a front needs, said before it is started or when something is wrong.
//!
//! Input: the settings that `serve` would have, and a kubeconfig for what is asked of the cluster. Output: findings, each
//! with its remedy. Nothing is changed anywhere.

mod certificates;
mod cluster;
mod ports;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

use crate::settings::{Flags, Peering, Settings};
use crate::telemetry::Chain;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// A front works, but something is missing or will be.
    Warning,
    /// A front does not work.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// How grave it is.
    pub verdict: Verdict,
    /// What was found.
    pub what: String,
    /// What to do; empty if nothing.
    pub remedy: String,
}

impl Finding {
    fn good(what: impl Into<String>) -> Self {
        Self { verdict: Verdict::Good, what: what.into(), remedy: String::new() }
    }

    fn warning(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, what: what.into(), remedy: remedy.into() }
    }

    fn bad(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Bad, what: what.into(), remedy: remedy.into() }
    }
}

/// A line as readiness has it, and the remedy below.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.verdict {
            Verdict::Good => '+',
            Verdict::Warning => '~',
            Verdict::Bad => '-',
        };
        write!(f, "[{mark}] {}", self.what)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "\n    {}", self.remedy) }
    }
}

/// Looks at everything.
///
/// `environment` and `hostname` are as for [`Settings::load`]. Without a kubeconfig nothing is asked of the cluster.
///
/// # Errors
/// If there can be no runtime.
pub fn run(
    flags: &Flags,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    hostname: &OsStr,
    kubeconfig: Option<&Path>,
) -> std::io::Result<Vec<Finding>> {
    let settings = match Settings::load(flags, environment, hostname) {
        Ok(settings) => settings,
        Err(error) => return Ok(vec![Finding::bad(format!("settings: {}", Chain(&error)), "")]),
    };
    let mut findings = vec![Finding::good("settings fit together")];
    findings.extend(settings.warnings.iter().map(|warning| Finding::warning(warning.clone(), "")));
    findings.extend(uid_headers(&settings));
    findings.extend(peer_networks(&settings));
    findings.extend(certificates::check(&settings));
    findings.extend(ports::check(&settings));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    findings.extend(runtime.block_on(cluster::check(&settings, kubeconfig)));
    Ok(findings)
}

fn uid_headers(settings: &Settings) -> Option<Finding> {
    settings.authentication.identity_headers.uid.is_empty().then(|| {
        Finding::warning(
            "the UID of certificate users does not reach the server",
            "from Kubernetes 1.33 on, add --requestheader-uid-headers=X-Remote-Uid to every kube-apiserver",
        )
    })
}

fn peer_networks(settings: &Settings) -> Option<Finding> {
    let Peering::On(peering) = &settings.peering else { return None };
    peering.cidrs.is_empty().then(|| {
        Finding::warning(
            "a Lease may name a peer at almost any address",
            "name the networks of the control-plane nodes: --peer-cidrs=10.0.0.0/24",
        )
    })
}

#[cfg(test)]
mod tests;
