//! The model split over devices, all in integers: degrees, sharding, collectives, and why a split
//! cannot be. Knows nothing of time or price.

pub mod algorithm;
pub mod collective;
pub mod enumerate;
pub mod group;
pub mod infeasible;
pub mod layout;
pub mod legal;
pub mod parallel;
pub mod shard;
pub mod sharding;
pub mod stages;
