//! What the user states: model, device, cluster, workload, objective. Knows nothing of graphs or costs.

pub mod error;
pub mod model;
