//! Predictions held against measurements: rows, errors, and the choices they lead to. Knows no file and no formula.

pub mod decision;
pub mod measured;
pub mod score;
pub mod summary;
