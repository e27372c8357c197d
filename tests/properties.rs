//! What must hold of every deployment, whatever the figures: tried on random ones.

use crate::ask;
#[path = "properties/bounds.rs"]
mod bounds;
#[path = "properties/brute.rs"]
mod brute;
#[path = "properties/cache_ranks.rs"]
mod cache_ranks;
use crate::cases;
#[path = "properties/room.rs"]
mod headroom;
#[path = "properties/laws.rs"]
mod laws;
#[path = "properties/load.rs"]
mod load;
#[path = "properties/machine.rs"]
mod machine;
#[path = "properties/same.rs"]
mod same;
#[path = "properties/search.rs"]
mod search;
#[path = "properties/shards.rs"]
mod shards;
#[path = "properties/stopped.rs"]
mod stopped;
