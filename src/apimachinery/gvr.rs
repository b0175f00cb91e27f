//! Group, version and resource names. The core group is the empty string.

use std::fmt;

/// A group and version, such as `apps/v1`; the core group is the empty string and displays as `v1`.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct GroupVersion {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, such as `v1` or `v1beta1`.
    pub version: String,
}

impl GroupVersion {
    /// Makes a group version of its two parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into() }
    }

    /// Reads `group/version`, or `version` alone for the core group.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.split_once('/') {
            Some((group, version)) => Self::new(group, version),
            None => Self::new("", text),
        }
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.version) } else { write!(f, "{}/{}", self.group, self.version) }
    }
}

/// A resource (plural, lower case) of a group version.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct GroupVersionResource {
    /// The group and version that the resource belongs to.
    pub group_version: GroupVersion,
    /// Plural, lower-case name, such as `pods`.
    pub resource: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_group_displays_as_version_alone() {
        assert_eq!(GroupVersion::parse("v1").to_string(), "v1");
        assert_eq!(GroupVersion::parse("apps/v1"), GroupVersion::new("apps", "v1"));
        assert_eq!(GroupVersion::parse("apps/v1").to_string(), "apps/v1");
    }
}
