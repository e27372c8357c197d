//! From a question to the proved optimum and the Pareto front, or the reasons there is none.
//!
//! Knows nothing of transformers: a shape is something that `serving` evaluates at a concurrency.

pub mod aggregated;
pub mod answers;
pub mod candidate;
pub mod conflict;
pub mod fleet;
pub mod layouts;
pub mod looks;
pub mod offers;
pub mod outcome;
pub mod packing;
pub mod pareto;
pub mod placement;
pub mod point;
pub mod programme;
pub mod prompts;
pub mod question;
pub mod region;
pub mod run;
pub mod shape;
pub mod sizing;
pub mod split;
