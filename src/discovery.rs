//! Aggregated discovery across servers: what every server says that it serves goes in, the document that clients read
//! comes out.
//!
//! Functions of their inputs, in the order in which a document passes them: [`stale`] settles freshness over live and
//! lost servers, [`merge()`] makes one list, [`Rendered`] holds its bytes.
//!
//! This room does no I/O and knows nothing of connections, peers' health or time.

#[cfg(test)]
mod arbitrary;
pub mod merge;
pub mod model;
pub mod render;
pub mod sort;
pub mod stale;

pub use merge::merge;
pub use model::ApiGroupDiscoveryList;
pub use render::Rendered;
