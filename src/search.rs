//! From a question to the proved optimum and the Pareto front, or the reasons there is none.
//!
//! Knows nothing of transformers: a shape is something that `serving` evaluates at a concurrency.

pub mod aggregated;
pub mod answers;
pub mod bench;
pub mod candidate;
pub mod change;
pub mod conflict;
pub mod family;
pub mod fills;
pub mod fleet;
pub mod front_sampling;
pub mod layouts;
pub mod looks;
pub mod mixed;
pub mod offers;
pub mod outcome;
pub mod packing;
pub mod pareto;
pub mod placement;
pub mod point;
pub mod programme;
pub mod promise;
pub mod prompts;
pub mod question;
pub mod ratio;
pub mod region;
pub mod relax;
pub mod room;
pub mod run;
pub mod sample;
pub mod shape;
pub mod sizing;
pub mod split;
pub mod unlike;
pub mod why;
