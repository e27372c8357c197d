//! User inputs: model, device, cluster, workload, objective. Independent of graphs and costs.

pub mod cluster;
pub mod defaults;
pub mod deployment;
pub mod device;
pub mod error;
pub mod figure;
pub mod fleet;
pub mod format;
pub mod host_part;
pub mod image;
pub mod limits;
pub mod link;
pub mod model;
pub mod nearness;
pub mod notation;
pub mod objective;
pub mod percentile;
pub mod placing;
pub mod plausible;
pub mod precision;
pub mod ranges;
pub mod rig;
pub mod runtime;
pub mod scenario;
pub mod text;
pub mod visible;
