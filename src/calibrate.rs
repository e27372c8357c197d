//! Runtime profiles fitted to measured deployments.

pub mod cross;
pub mod fit;
pub mod levels;
pub mod posed;
pub mod profile;
pub mod sample;
