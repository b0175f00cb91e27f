//! Aggregated discovery across servers: what every server says that it serves goes in, the document that clients read
//! comes out.
//!
//! Functions of their inputs, in the order in which a document passes them: [`parse()`] reads a server's answer into the
//! [`model`] (with [`legacy`] for servers that give no aggregated document), [`stale`] settles freshness over live and
//! lost servers, [`merge()`] makes one list, [`Rendered`] holds its bytes, [`negotiate()`] tells which form a client
//! asks for and [`serve()`] answers.
//!
//! This room does no I/O and knows nothing of connections, peers' health or time.

#[cfg(test)]
mod arbitrary;
pub mod legacy;
pub mod merge;
pub mod model;
pub mod negotiate;
#[cfg(test)]
mod oracle;
pub mod parse;
pub mod render;
pub mod serve;
pub mod sort;
pub mod stale;

pub use merge::merge;
pub use model::ApiGroupDiscoveryList;
pub use negotiate::{ACCEPT_LOCAL, Form, Profile, accept_local_of, negotiate};
pub use parse::parse;
pub use render::Rendered;
pub use serve::serve;
