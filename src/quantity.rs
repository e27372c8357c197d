//! Quantities: units, sources, and the readings of a formula over them.
//!
//! This layer does not know models, devices or serving.

pub mod count;
pub mod datum;
pub mod dual;
pub mod formula;
pub mod ledger;
pub mod num;
pub mod read;
pub mod tolerance;
pub mod unit;
