//! The co-located server: its documents as any other's, and its version.

use serde::Deserialize;

use super::fetch::{Condition, FetchError, Reading, ServerReader, get};
use super::poll::Source;
use crate::view::ServerVersion;

/// Reads the co-located server.
pub(super) struct LocalReader {
    reader: ServerReader,
    version: Option<ServerVersion>,
    /// Set when the server may have been replaced since `version` was read.
    is_version_due: bool,
    last: Reading,
}

impl LocalReader {
    /// Makes a reader that knows nothing yet.
    pub(super) fn new(reader: ServerReader) -> Self {
        Self { reader, version: None, is_version_due: true, last: Reading::default() }
    }

    async fn read_version(&self) -> Result<Option<ServerVersion>, FetchError> {
        let path = "/version";
        let Some(answer) = get(self.reader.client(), path, Condition::json(), self.reader.limits()).await? else {
            return Ok(None);
        };
        let version: Version =
            serde_json::from_slice(&answer.body).map_err(|source| FetchError::decode(path, source))?;
        Ok(version.into_server_version())
    }
}

impl Source for LocalReader {
    async fn read(&mut self) -> Reading {
        let mut reading = self.reader.read().await;
        // A new version has new documents or, at the least, was away for a moment.
        self.is_version_due |= reading.failure.is_some() || !reading.has_same_documents(&self.last);
        if self.is_version_due && reading.failure.is_none() {
            match self.read_version().await {
                Ok(version) => {
                    self.is_version_due = false;
                    self.version = version;
                }
                Err(error) => tracing::debug!(
                    target: super::LOG,
                    error = super::chain(&error),
                    "cannot read the version of the local server"
                ),
            }
        }
        reading.version.clone_from(&self.version);
        self.last = reading.clone();
        reading
    }

    fn forget_connections(&mut self) {
        self.reader.forget_connections();
    }
}

/// `/version`. Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/version/types.go>
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    minor: String,
    git_version: String,
}

impl Version {
    /// Vendors write `28+`.
    fn into_server_version(self) -> Option<ServerVersion> {
        let digits = self.minor.trim_end_matches(|c: char| !c.is_ascii_digit());
        Some(ServerVersion { minor: digits.parse().ok()?, git_version: self.git_version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minor_version_is_read_with_and_without_a_vendors_plus() {
        let minor = |text: &str| {
            let version = Version { minor: text.to_owned(), git_version: "v1.28.3".to_owned() };
            version.into_server_version().map(|version| version.minor)
        };
        assert_eq!(minor("28"), Some(28));
        assert_eq!(minor("28+"), Some(28));
        assert_eq!(minor(""), None);
    }
}
