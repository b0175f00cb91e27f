//! The identity of a kube-apiserver, which is also the name of its identity Lease.

use std::fmt;

use aws_lc_rs::digest::{Context, SHA256};

/// What every ID begins with.
const PREFIX: &str = "apiserver-";
/// Characters after it: 16 bytes in base32.
const SUFFIX_LENGTH: usize = 26;

/// Name of a kube-apiserver's identity Lease in `kube-system`: `apiserver-` and 26 lower-case base32 characters.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerId(String);

impl ServerId {
    /// Computes the ID that a kube-apiserver on a host of this name gives itself.
    ///
    /// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/server/config.go> (`NewConfig`)
    #[must_use]
    pub fn from_hostname(hostname: &str) -> Self {
        let mut hash = Context::new(&SHA256);
        for part in [hostname, "kube-apiserver"] {
            let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
            hash.update(&length.to_be_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finish();
        let encoded = data_encoding::BASE32_NOPAD.encode(&digest.as_ref()[..16]);
        Self(format!("{PREFIX}{}", encoded.to_ascii_lowercase()))
    }

    /// Reads an ID; `None` if a kube-apiserver gives itself no such ID.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let suffix = text.strip_prefix(PREFIX)?;
        let is_base32 = |byte: u8| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte);
        (suffix.len() == SUFFIX_LENGTH && suffix.bytes().all(is_base32)).then(|| Self(text.to_owned()))
    }

    /// The part that differs between servers.
    #[must_use]
    pub fn suffix(&self) -> &str {
        &self.0[PREFIX.len()..]
    }

    /// The ID as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
