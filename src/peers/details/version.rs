//! The version that a server gives itself.

use serde::Deserialize;

use crate::view::ServerVersion;

/// `/version`. Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/version/types.go>
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Version {
    minor: String,
    git_version: String,
}

impl Version {
    /// Vendors write `28+`.
    pub(super) fn into_server_version(self) -> Option<ServerVersion> {
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
