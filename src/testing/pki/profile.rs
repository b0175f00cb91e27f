//! What a certificate says, apart from who signed it.

use std::time::{Duration, SystemTime};

const COMMON_NAME: &[u64] = &[2, 5, 4, 3];
const ORGANIZATION: &[u64] = &[2, 5, 4, 10];
const UID: &[u64] = &[1, 3, 6, 1, 4, 1, 57683, 2];
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Version of the certificate format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Version {
    /// Without extensions, as `openssl x509 -req` made them for decades.
    V1,
    /// With extensions.
    V3,
}

/// ASN.1 type of a subject value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StringType {
    /// UTF8String.
    Utf8,
    /// PrintableString.
    Printable,
    /// T61String, read as Latin-1.
    T61,
    /// BMPString, two bytes a character.
    Bmp,
    /// IA5String.
    Ia5,
    /// Not a string at all: an INTEGER.
    Integer,
}

/// One attribute of a subject.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Object identifier of the attribute.
    pub oid: Vec<u64>,
    /// How the value is encoded.
    pub string_type: StringType,
    /// The value's bytes.
    pub value: Vec<u8>,
}

/// Purposes a certificate can be limited to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExtendedKeyUsage {
    /// TLS client.
    ClientAuth,
    /// TLS server.
    ServerAuth,
    /// Every purpose.
    Any,
}

/// What a certificate says.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Format version; extensions are left out of version 1.
    pub version: Version,
    /// Subject attributes in order, each in a set of its own.
    pub subject: Vec<Attribute>,
    /// Start of validity.
    pub not_before: SystemTime,
    /// End of validity.
    pub not_after: SystemTime,
    /// Purposes; empty leaves the extension out.
    pub extended_key_usages: Vec<ExtendedKeyUsage>,
    /// `Some(true)`: an authority; `Some(false)`: said not to be one; `None`: nothing said.
    pub authority: Option<bool>,
    /// Intermediates allowed below an authority.
    pub path_length: Option<u8>,
    /// Key usage: `Some(true)` certificate signing, `Some(false)` digital signature only, `None` nothing said.
    pub may_sign: Option<bool>,
    /// DNS names and IP addresses of a server.
    pub names: Vec<String>,
    /// Adds a critical extension that nobody knows.
    pub unknown_critical_extension: bool,
}

impl Profile {
    /// A client of this common name, valid from a day ago for a year.
    #[must_use]
    pub fn client(common_name: &str) -> Self {
        let now = SystemTime::now();
        Self {
            version: Version::V3,
            subject: Vec::new(),
            not_before: now - DAY,
            not_after: now + 365 * DAY,
            extended_key_usages: vec![ExtendedKeyUsage::ClientAuth],
            authority: None,
            path_length: None,
            may_sign: None,
            names: Vec::new(),
            unknown_critical_extension: false,
        }
        .attribute(COMMON_NAME, StringType::Utf8, common_name)
    }

    /// A server with these DNS names and IP addresses.
    #[must_use]
    pub fn server(common_name: &str, names: &[&str]) -> Self {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Self { extended_key_usages: vec![ExtendedKeyUsage::ServerAuth], names, ..Self::client(common_name) }
    }

    /// An authority of this common name.
    #[must_use]
    pub fn authority(common_name: &str) -> Self {
        Self {
            extended_key_usages: Vec::new(),
            authority: Some(true),
            may_sign: Some(true),
            ..Self::client(common_name)
        }
    }

    /// Adds an organization, which becomes a group.
    #[must_use]
    pub fn organization(self, value: &str) -> Self {
        self.attribute(ORGANIZATION, StringType::Utf8, value)
    }

    /// Adds a Kubernetes UID.
    #[must_use]
    pub fn uid(self, value: &str) -> Self {
        self.attribute(UID, StringType::Utf8, value)
    }

    /// Adds any subject attribute.
    #[must_use]
    pub fn attribute(mut self, oid: &[u64], string_type: StringType, value: impl AsRef<[u8]>) -> Self {
        self.subject.push(Attribute { oid: oid.to_vec(), string_type, value: value.as_ref().to_vec() });
        self
    }

    /// Without any subject attribute.
    #[must_use]
    pub fn without_subject(mut self) -> Self {
        self.subject.clear();
        self
    }

    /// Limited to these purposes; none leaves the extension out.
    #[must_use]
    pub fn usages(mut self, usages: &[ExtendedKeyUsage]) -> Self {
        self.extended_key_usages = usages.to_vec();
        self
    }

    /// Valid until a day ago.
    #[must_use]
    pub fn expired(mut self) -> Self {
        self.not_before = SystemTime::now() - 2 * DAY;
        self.not_after = SystemTime::now() - DAY;
        self
    }

    /// Valid from tomorrow on.
    #[must_use]
    pub fn not_yet_valid(mut self) -> Self {
        self.not_before = SystemTime::now() + DAY;
        self
    }

    /// Valid until this time.
    #[must_use]
    pub fn until(mut self, not_after: SystemTime) -> Self {
        self.not_after = not_after;
        self
    }

    /// In the version 1 format, without extensions.
    #[must_use]
    pub fn v1(mut self) -> Self {
        self.version = Version::V1;
        self
    }
}
