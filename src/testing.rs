//! What tests of this crate and of its users share; feature `testing`, never part of a product build.
//!
//! Helpers here panic with a reason instead of returning errors: a test has nothing better to do with one.
#![allow(clippy::panic, clippy::unwrap_used, reason = "only tests use this room")]

pub mod api_server;
pub mod pki;
