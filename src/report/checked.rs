//! The best plans of a search, as a simulation of single requests finds them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::simulate::ServedFigures;
use crate::spec::percentile::Percentile;

/// The simulation of the best plans. The optimum and its bound are those of the formulas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedCheck {
    /// Requests sent to each plan.
    pub requests: u64,
    /// Seed of their arrivals.
    pub seed: u64,
    /// The percentile of the latencies.
    pub percentile: Percentile,
    /// The best plan, and its first runners-up.
    pub plans: Vec<CheckedPlan>,
    /// The largest relative difference of a TTFT or TPOT of the formulas from the simulated one; null where nothing was
    /// simulated.
    pub largest_difference: Option<f64>,
    /// The first of the plans whose simulated requests meet the SLOs at the percentile, from 0; null if none does.
    pub first_within_slos: Option<u64>,
}

/// A plan by its formulas and by simulation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CheckedPlan {
    /// The plan in one line.
    pub notation: String,
    /// By the formulas.
    pub formulas: Option<ServedFigures>,
    /// By simulation.
    pub simulated: Option<ServedFigures>,
    /// Share of the requests within all latency limits; null without limits.
    pub within_slos: Option<f64>,
    /// Whether that share reaches the percentile; null where the plan was not simulated.
    pub meets_slos: Option<bool>,
    /// Why it was not simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A difference above which the simulation counts.
pub const TRUSTED: f64 = 0.1;

impl CheckedPlan {
    /// The larger of the relative differences of TTFT and TPOT.
    pub fn difference(&self) -> Option<f64> {
        let (formulas, simulated) = (self.formulas.as_ref()?, self.simulated.as_ref()?);
        let ratio = |one: f64, other: f64| if other > 0.0 { (one / other - 1.0).abs() } else { 0.0 };
        let ttft = ratio(formulas.ttft_ms, simulated.ttft_ms);
        Some(ttft.max(ratio(formulas.tpot_ms, simulated.tpot_ms)))
    }
}
