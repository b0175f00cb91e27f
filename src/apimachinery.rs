//! Kubernetes words as types: no I/O, no async, nothing of this crate below it.

pub mod discovery_path;
pub mod encoding;
pub mod gvr;
pub mod media_type;
pub mod peer;
pub mod query;
pub mod server_id;
pub mod status;
pub mod upgrade;
pub mod user;
