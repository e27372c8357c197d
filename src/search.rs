//! From a [`problem::Problem`] to the optimum and the Pareto front, or to the reasons for infeasibility.
//!
//! This module contains no transformer model: `serving` evaluates an instance configuration at a concurrency.

pub mod aggregated;
pub mod best_mix;
pub mod candidate;
pub mod capacity;
pub mod change;
pub mod conflict;
pub mod decode_options;
pub mod family;
pub mod fills;
pub mod fleet;
pub mod front_sampling;
pub mod front_thinning;
mod front_tree;
pub mod hosting;
pub mod layouts;
pub mod load_gap;
pub mod mip;
pub mod mixed;
pub mod outcome;
pub mod packing;
pub mod pareto;
pub mod physical_bound;
pub mod placement;
pub mod point;
pub mod prefill_options;
pub mod prepared;
pub mod problem;
pub mod ranking;
pub mod ratio;
pub mod region;
pub mod relax;
pub mod remaining_bound;
pub mod repeated;
pub mod required_metrics;
pub mod run;
pub mod sample;
pub mod shape;
pub mod shape_cache;
pub mod sides;
pub mod sizing;
pub mod split;
pub mod waves;
pub mod why;
