use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// A released version such as 1.37.2, ordered by age.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number: the release of Kubernetes.
    pub minor: u32,
    /// Third number.
    pub patch: u32,
}

/// A text that is no version.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no version such as 1.37.2", self.0)
    }
}

impl std::error::Error for ParseError {}

impl FromStr for Version {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let numbers: Option<Vec<u32>> =
            text.strip_prefix('v').unwrap_or(text).split('.').map(|part| part.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[major, minor, patch]) => Ok(Self { major, minor, patch }),
            _ => Err(ParseError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Version {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number() {
        let parse = |text: &str| text.parse::<Version>().unwrap();
        assert!(parse("1.9.10") < parse("1.10.2"));
        assert_eq!(parse("v1.37.2").to_string(), "1.37.2");
        for wrong in ["", "1.37", "1.37.2-rc.1", "1.37.2.3", "a.b.c"] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong}");
        }
    }
}
