//! Kubernetes words as types: no I/O, no async, nothing of this crate below it.

pub mod gvr;
pub mod peer;
pub mod server_id;
pub mod user;
