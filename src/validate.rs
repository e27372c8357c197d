//! Validation of predictions against measurements: rows, errors, and decision quality. Independent of files and
//! formulas.

pub mod decision;
mod drafted;
pub mod figures;
pub mod home_run;
pub mod imported;
pub mod measured;
pub mod measured_traffic;
pub mod peers;
mod pool_text;
mod recipes;
pub mod replayed;
pub mod run_cells;
pub mod run_kind;
pub mod score;
mod shared_prefix;
pub mod summary;
