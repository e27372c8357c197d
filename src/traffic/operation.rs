//! The operation of a deployment: clients that give up, replicas that fail, and replicas that come and go with the load.

use super::fault::FaultTimes;
use super::scaler::ScalerSettings;

/// The settings of an operation; by default clients wait, and all replicas serve all the time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationSettings {
    /// Seconds from the arrival of a request until its client gives it up; none where clients wait.
    pub client_timeout_s: Option<f64>,
    /// When replicas fail.
    pub faults: Option<FaultTimes>,
    /// The rule by which replicas are added and removed.
    pub scaler: Option<ScalerSettings>,
    /// Seconds from the start of a replica, after a fault or when it is added, until it takes requests.
    pub startup_s: f64,
}

impl OperationSettings {
    /// Whether replicas may come or go.
    pub fn changes_replicas(&self) -> bool {
        self.faults.is_some() || self.scaler.is_some()
    }
}
