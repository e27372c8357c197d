//! Runtime profiles fitted to measured deployments.

pub mod cross;
pub mod deployment;
pub mod fit;
pub mod levels;
pub mod measured_run;
pub mod profile;
pub mod sample;
pub mod settings;
pub mod staged;
