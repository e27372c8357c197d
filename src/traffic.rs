//! Traffic as it comes: single requests, the schedulers that batch them, and the caches that they share, step by step.
//!
//! This layer knows neither models nor devices: what a step costs is a function of its batch ([`step_load::StepClock`]),
//! which the layer above makes from the formulas of [`crate::serving`]. Given the same requests, settings and clock, a
//! run is equal bit for bit.

pub mod agents;
pub mod block_lru;
pub mod block_pool;
pub mod block_tree;
pub mod cache_tier;
pub mod capacity;
pub mod content;
pub mod draft;
mod due;
pub mod engine;
pub mod handover;
pub mod llamacpp;
pub mod number_map;
pub mod operation;
pub mod outcome;
pub mod prefix_pool;
pub mod radix_tree;
pub mod replica;
pub mod replica_set;
pub mod replica_state;
pub mod replica_use;
pub mod router;
pub mod run;
pub mod run_totals;
pub mod sample_error;
pub mod scaler;
pub mod session;
pub mod sglang;
pub mod source;
pub mod step_load;
pub mod thinned;
pub mod time_windows;
pub mod trial;
pub mod trtllm;
pub mod unlimited_cache;
pub mod vllm;
