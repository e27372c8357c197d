//! What the user states: model, device, cluster, workload, objective. Knows nothing of graphs or costs.

pub mod cluster;
pub mod device;
pub mod error;
<<<<<<< HEAD
pub mod figure;
pub mod format;
pub mod objective;
pub mod runtime;
pub mod text;
=======
pub mod model;
>>>>>>> graph
