//! Numbers: what they measure, where they come from, and the ways a formula over them is read.
//!
//! This floor knows nothing of models, devices or serving.

pub mod count;
pub mod datum;
pub mod formula;
pub mod ledger;
pub mod num;
pub mod read;
pub mod unit;
