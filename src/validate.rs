//! Validation of predictions against measurements: rows, errors, and decision quality. Independent of files and
//! formulas.

pub mod decision;
pub mod measured;
mod recipes;
pub mod replayed;
pub mod score;
pub mod summary;
