//! Files, folders and the network: where catalogues, models and questions come from. Knows nothing of formulas.

pub mod catalog;
pub mod check;
pub mod fetch;
pub mod file;
pub mod hardware;
pub mod host;
pub mod hub;
pub mod interrupt;
pub mod kind;
pub mod launch;
pub mod market;
pub mod model;
pub mod pose;
pub mod problem;
pub mod rig;
mod speculation;
pub mod sure;
