//! Reads the command line, runs what it asks for, chooses the exit code.

use std::process::ExitCode;

use peerfront::telemetry::Chain;
use peerfront::{app, cli};

/// A start that failed. Bad input has [`cli::BAD_INPUT`].
const FAILED: u8 = 1;

fn main() -> ExitCode {
    match cli::parse(std::env::args_os(), std::env::vars_os()) {
        Ok(cli::Command::Serve(settings)) => serve(&settings),
        Ok(cli::Command::Print(text)) => print(&text),
        Err(error) => {
            eprintln!("{}", Chain(&error));
            ExitCode::from(error.exit_code())
        }
    }
}

fn serve(settings: &peerfront::settings::Settings) -> ExitCode {
    match app::serve(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("cannot start: {}", Chain(error.as_ref()));
            ExitCode::from(FAILED)
        }
    }
}
