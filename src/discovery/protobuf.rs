//! The documents as protobuf messages. Fields that this version does not know have no place in them.
//!
//! Upstream's encoder writes every scalar field that is not in a list, also an empty one: these are `Option`s here and
//! always set.

mod aggregated;
mod legacy;

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}
