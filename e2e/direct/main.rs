//! Fronts in this process, before servers that say what a test wants them to say.
#![allow(clippy::unwrap_used, reason = "helpers of tests, which may")]

mod fronts;
mod hops;
mod upstream;
