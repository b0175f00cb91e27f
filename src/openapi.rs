//! OpenAPI across servers: one `/openapi/v3` index, its documents, and `/openapi/v2`, with what every server publishes.
//!
//! A document names the version of its server, so servers of different versions differ in every one of them. Functions
//! of their inputs, in the order in which a document passes them: [`Index`] is what one server lists, [`plan()`] tells
//! which documents can be left to the local server and which are to be merged of what, [`merge`] makes one of several,
//! [`Held`] keeps it ready to be sent, [`Documents`] is what a request looks into, and [`serve()`] answers.
//!
//! This room does no I/O and knows nothing of connections, peers' health or time.

pub mod content;
pub mod documents;
pub mod held;
pub mod index;
pub mod merge;
mod negotiate;
mod object;
pub mod plan;
pub mod serve;
mod splice;
pub mod steady;
#[cfg(test)]
mod testing;

pub use documents::{Documents, Entry, Found, OpenApi, Page};
pub use held::Held;
pub use index::Index;
pub use plan::plan;
pub use serve::serve;
