//! Runtime profiles fitted to measured deployments.

pub mod cross;
pub mod deployment;
pub mod fit;
pub mod levels;
pub mod profile;
pub mod sample;
pub mod settings;
