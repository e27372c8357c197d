//! What must hold of every deployment, whatever the figures: tried on random ones.

#![allow(clippy::unwrap_used)]

#[path = "support/ask.rs"]
mod ask;
#[path = "support/cases.rs"]
mod cases;
#[path = "properties/load.rs"]
mod load;
#[path = "properties/machine.rs"]
mod machine;
#[path = "properties/shards.rs"]
mod shards;
