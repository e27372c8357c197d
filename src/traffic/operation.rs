//! The operation of a deployment: clients that give up, replicas that fail, and replicas that come and go with the load.

use fastrand::Rng;

use super::content::mixed;
use super::scaler::ScalerSettings;

/// The settings of an operation; by default clients wait, and all replicas serve all the time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationSettings {
    /// Seconds from the arrival of a request until its client gives it up; none where clients wait.
    pub client_timeout_s: Option<f64>,
    /// When replicas fail.
    pub faults: Option<FaultTimes>,
    /// How often the router sends a request again that was lost in a fault, at most; then the request fails.
    pub retries: u32,
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

/// When replicas fail. One that starts does not fail before it serves.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultTimes {
    /// One replica, at these seconds from the start of the run.
    At { times_s: Vec<f64>, replica: usize },
    /// Each replica, this many seconds on average after it began to serve; exponential.
    Drawn { mean_s: f64 },
}

/// Uses of random numbers of a replica.
const USE: u64 = 12;

impl FaultTimes {
    /// Faults of `replica`, which begins to serve at `time_s` for the time numbered `life`, from 0.
    pub(super) fn of_life(&self, seed: u64, (replica, life): (usize, u64), time_s: f64) -> Vec<f64> {
        match self {
            FaultTimes::At { times_s, replica: fails } if *fails == replica && life == 0 => times_s.clone(),
            FaultTimes::At { .. } => vec![],
            FaultTimes::Drawn { mean_s } => {
                let seed = mixed(mixed(mixed(seed, replica as u64), life), USE);
                vec![time_s - mean_s * libm::log(1.0 - Rng::with_seed(seed).f64())]
            }
        }
    }

    /// Whether a fault of a life is one of the lives after it too.
    pub(super) fn outlast_life(&self) -> bool {
        matches!(self, FaultTimes::At { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_faults_have_their_mean_and_differ_by_replica_and_life() {
        let faults = FaultTimes::Drawn { mean_s: 50.0 };
        let after: Vec<f64> =
            (0..20_000).map(|at| faults.of_life(3, (at % 100, (at / 100) as u64), 7.0)[0] - 7.0).collect();
        let mean = after.iter().sum::<f64>() / after.len() as f64;
        assert!((mean / 50.0 - 1.0).abs() < 0.03, "{mean}");
        assert!(after.iter().all(|seconds| *seconds >= 0.0));
        let mut different = after.clone();
        different.sort_by(f64::total_cmp);
        different.dedup();
        assert_eq!(different.len(), after.len());
    }
}
