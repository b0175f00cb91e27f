//! Why settings are refused: every text names the setting, where it was set and what to do.

use std::io;
use std::path::PathBuf;

/// Why settings could not be loaded. All of them are for the operator and none for a client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that a setting names cannot be read.
    #[error("cannot read {} (--{flag})", path.display())]
    ReadFile {
        /// The setting that names the file.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not YAML of the shape expected.
    #[error("{origin} is not {expected}")]
    ParseYaml {
        /// The file.
        origin: String,
        /// What it should be.
        expected: &'static str,
        /// Where and why.
        source: serde_norway::Error,
    },
    /// A key, variable or gate that does not exist.
    #[error("unknown {kind} {name:?} in {origin}; the nearest known one is {nearest:?}")]
    UnknownName {
        /// What kind of name it is.
        kind: &'static str,
        /// The name.
        name: String,
        /// Where it was found.
        origin: String,
        /// What was probably meant.
        nearest: String,
    },
    /// A value that cannot be what the setting needs.
    #[error("--{flag} ({origin}): {value:?} is not {expected}")]
    Value {
        /// The setting.
        flag: &'static str,
        /// Where it was set.
        origin: String,
        /// What was set.
        value: String,
        /// What it should be.
        expected: String,
    },
    /// A setting that has no default and is not set.
    #[error("--{flag} is not set: {advice}")]
    Missing {
        /// The setting.
        flag: &'static str,
        /// Where to get the value from.
        advice: &'static str,
    },
    /// Settings that are good each but not together.
    #[error("{0}")]
    Relation(String),
    /// A manifest that is not a kube-apiserver's.
    #[error("{origin} (--kube-apiserver-manifest) {problem}")]
    Manifest {
        /// The manifest.
        origin: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A flag of the co-located kube-apiserver that clients would notice and that peerfront cannot follow.
    #[error("{origin}: kube-apiserver's --{flag}={value} {advice}")]
    ManifestFlag {
        /// The manifest.
        origin: String,
        /// The flag.
        flag: String,
        /// Its value.
        value: String,
        /// Why it cannot be followed and what to do.
        advice: String,
    },
    /// The layers do not fit together; a fault of this crate.
    #[error("cannot merge the layers of settings")]
    Merge(#[source] Box<figment::Error>),
}
