//! Sharding of a model over devices, in integers: degrees, shardings, collectives, and reasons for infeasibility. This
//! layer does not know times or prices.

pub mod adapters;
pub mod algorithm;
pub mod collective;
pub mod enumerate;
pub mod group;
pub mod infeasible;
pub mod layout;
pub mod legal;
pub mod legal_degrees;
pub mod locality;
pub mod parallel;
pub mod rules;
pub mod scale_blocks;
pub mod shard;
pub mod sharding;
pub mod stages;
