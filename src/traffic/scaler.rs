//! How many replicas there should be.
//!
//! The rule of the Kubernetes HorizontalPodAutoscaler (<https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/>)
//! for an average value, as KEDA's triggers set it up: the sum of the signal over its target, rounded up; nothing within
//! the tolerance; the greatest recommendation of the delay before replicas are removed.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The signal that replicas are added and removed by, on average of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum ScaleSignal {
    /// Requests that wait.
    Queue,
    /// Requests that run or wait.
    Requests,
    /// The share of the KV cache in use.
    KvCache,
}

/// The settings of a scaler.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalerSettings {
    pub signal: ScaleSignal,
    /// The value of the signal that a replica should have.
    pub target: f64,
    /// Replicas, at least 1.
    pub least: usize,
    pub most: usize,
    /// Seconds between two readings of the signal.
    pub interval_s: f64,
    /// Seconds for which fewer replicas must have sufficed before any is removed.
    pub scale_down_s: f64,
}

/// The part by which the signal may miss its target: `--horizontal-pod-autoscaler-tolerance`.
const TOLERANCE: f64 = 0.1;
/// Replicas that an interval adds at most, if the number does not double: the HPA's default policies of scaling up, for
/// its default interval.
const MOST_ADDED: usize = 4;

/// A scaler at work.
pub struct Autoscaler {
    settings: ScalerSettings,
    /// Numbers of replicas that sufficed, with their times.
    recommended: VecDeque<(f64, usize)>,
}

impl Autoscaler {
    /// A scaler of `replicas` replicas.
    pub fn new(settings: ScalerSettings, replicas: usize) -> Autoscaler {
        Autoscaler { settings, recommended: VecDeque::from([(0.0, replicas)]) }
    }

    /// The number of replicas from now on, where there are `replicas`, and all have this sum of signals.
    pub fn wanted(&mut self, time_s: f64, replicas: usize, sum: f64) -> usize {
        let of = &self.settings;
        let needed = sum / of.target;
        let is_near = (needed / replicas.max(1) as f64 - 1.0).abs() <= TOLERANCE;
        let suffices = if is_near { replicas } else { libm::ceil(needed) as usize };
        let suffices = suffices.clamp(of.least, of.most);
        self.recommended.push_back((time_s, suffices));
        while self.recommended.front().is_some_and(|(at, _)| *at < time_s - of.scale_down_s) {
            self.recommended.pop_front();
        }
        let before = self.recommended.iter().map(|(_, replicas)| *replicas).max().unwrap_or(suffices);
        if suffices > replicas {
            suffices.min(replicas + replicas.max(MOST_ADDED))
        } else {
            before.min(replicas).clamp(of.least, of.most)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaler(scale_down_s: f64) -> Autoscaler {
        let (signal, target, interval_s) = (ScaleSignal::Requests, 10.0, 15.0);
        let settings = ScalerSettings { signal, target, least: 1, most: 20, interval_s, scale_down_s };
        Autoscaler::new(settings, 2)
    }

    #[test]
    fn more_replicas_come_at_once_and_fewer_after_the_delay() {
        let mut scaler = scaler(60.0);
        // Within a tenth of the target nothing changes.
        assert_eq!(scaler.wanted(15.0, 2, 21.9), 2);
        assert_eq!(scaler.wanted(30.0, 2, 22.1), 3);
        // At most four more, or twice as many.
        assert_eq!(scaler.wanted(45.0, 3, 150.0), 7);
        assert_eq!(scaler.wanted(60.0, 7, 150.0), 14);
        assert_eq!(scaler.wanted(75.0, 14, 1e6), 20);
        // The greatest number of the last minute.
        for (time_s, expected) in [(90.0, 20), (135.0, 20), (136.0, 1)] {
            assert_eq!(scaler.wanted(time_s, 20, 0.0), expected, "{time_s}");
        }
    }

    #[test]
    fn without_a_delay_replicas_go_at_once() {
        assert_eq!(scaler(0.0).wanted(15.0, 2, 1.0), 1);
    }
}
