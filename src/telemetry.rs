//! The log: text for people or JSON for machines, one target per subject.

use std::io;

use tracing_subscriber::EnvFilter;

/// Target of everything about forwarding to peers; the name of upstream's feature.
pub const MIXED_VERSION_PROXY: &str = "mixed_version_proxy";
/// Target of everything about discovery documents.
pub const AGGREGATED_DISCOVERY: &str = "aggregated_discovery";

/// Whether lines are for people or for machines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// One readable line per event.
    Text,
    /// One JSON object per event.
    Json,
}

/// Sends the log of this process to standard error.
///
/// # Errors
/// If the filter cannot be read, or a log was installed before.
pub fn install(format: Format, filter: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let filter = EnvFilter::try_new(filter)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        Format::Text => builder.with_ansi(false).try_init(),
        Format::Json => builder.json().flatten_event(true).try_init(),
    }
}

/// An error with its causes on one line, outermost first.
pub struct Chain<'a>(pub &'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
