//! Reads the command line, runs what it asks for, chooses the exit code.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use peerfront::check::{self, Verdict};
use peerfront::cli::{self, Command};
use peerfront::settings::{Flags, Settings};
use peerfront::telemetry::Chain;
use peerfront::{admin, app, kubeadm};

/// Exit code of a start that failed. Bad input has [`cli::EXIT_USAGE`].
const FAILED: u8 = 1;

fn main() -> ExitCode {
    match cli::parse(std::env::args_os()) {
        Ok(Command::Serve(flags)) => serve(&flags),
        Ok(Command::Check(flags, kubeconfig)) => check(&flags, kubeconfig.as_deref()),
        Ok(Command::KubeadmRender(options)) => kubeadm_render(&options),
        Ok(Command::Healthcheck(address)) => match admin::ask(address) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => say(FAILED, &format!("peerfront: {}", Chain(&error))),
        },
        Ok(Command::Version) => {
            let _ = writeln!(std::io::stdout(), "{}", cli::VERSION);
            ExitCode::SUCCESS
        }
        Err(error) => say(error.exit_code(), &error.to_string()),
    }
}

fn serve(flags: &Flags) -> ExitCode {
    let settings = match Settings::load(flags, std::env::vars_os(), &gethostname::gethostname()) {
        Ok(settings) => settings,
        Err(error) => return say(cli::EXIT_USAGE, &format!("peerfront: {}", Chain(&error))),
    };
    match app::serve(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => say(FAILED, &format!("peerfront: cannot start: {}", Chain(error.as_ref() as &dyn Error))),
    }
}

fn check(flags: &Flags, kubeconfig: Option<&Path>) -> ExitCode {
    let findings = match check::run(flags, std::env::vars_os(), &gethostname::gethostname(), kubeconfig) {
        Ok(findings) => findings,
        Err(error) => return say(FAILED, &format!("peerfront: {}", Chain(&error))),
    };
    for finding in &findings {
        let _ = writeln!(std::io::stdout(), "{finding}");
    }
    let is_bad = findings.iter().any(|finding| finding.verdict == Verdict::Bad);
    ExitCode::from(if is_bad { FAILED } else { 0 })
}

fn kubeadm_render(options: &kubeadm::Options) -> ExitCode {
    match kubeadm::write(options) {
        Ok(paths) => say(0, &paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join("\n")),
        Err(error @ kubeadm::Error::Write { .. }) => say(FAILED, &format!("peerfront: {}", Chain(&error))),
        Err(error) => say(cli::EXIT_USAGE, &format!("peerfront: {}", Chain(&error))),
    }
}

/// Help and versions go to standard output, what is wrong to standard error.
fn say(code: u8, text: &str) -> ExitCode {
    // A closed terminal is no reason for another exit code.
    let _ = if code == 0 { writeln!(std::io::stdout(), "{text}") } else { writeln!(std::io::stderr(), "{text}") };
    ExitCode::from(code)
}
