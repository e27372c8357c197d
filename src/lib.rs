//! Finds the best way to serve a language model on given accelerators.

pub mod cli;
pub mod cost;
pub mod graph;
pub mod plan;
pub mod quantity;
pub mod report;
pub mod search;
pub mod serving;
pub mod spec;
pub mod store;
