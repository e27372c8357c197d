//! Constants from measurements. Knows deployments that were laid out, not where their measurements lie.

pub mod fit;
pub mod posed;
