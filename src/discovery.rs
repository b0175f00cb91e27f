//! Aggregated discovery across servers: what every server says that it serves goes in, the document that clients read
//! comes out.
//!
//! Functions of their inputs, in the order in which a document passes them: [`parse()`] reads a server's answer into the
//! [`model`] (with [`legacy`] for servers that give no aggregated document), [`stale`] settles freshness over live and
//! lost servers, [`merge()`] makes one list, [`Documents`] hold it in every form, [`negotiate()`] tells which of them a
//! client asks for and [`serve()`] answers.
//!
//! This room does no I/O and knows nothing of connections, peers' health or time.

#[cfg(test)]
mod arbitrary;
pub mod documents;
pub mod legacy;
pub mod merge;
pub mod model;
pub mod negotiate;
#[cfg(test)]
mod oracle;
pub mod parse;
mod protobuf;
mod render;
pub mod serve;
pub mod sort;
pub mod stale;

pub use documents::{Documents, Found, Inputs};
pub use merge::merge;
pub use model::ApiGroupDiscoveryList;
pub use negotiate::{ACCEPT_LOCAL, Form, V2Beta1, accept_local_of, negotiate};
pub use parse::parse;
pub use serve::{Page, serve};
