//! Latencies at a risk level: the upper end of the prediction interval.
//!
//! The margins come from measured prediction errors.

use super::machine::Machine;
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::SECOND;

/// Latency multipliers at the upper end of the prediction interval.
#[derive(Clone, Copy, Debug)]
pub struct LatencyMargin<T> {
    /// Multiplier of TTFT.
    pub ttft: T,
    /// Multiplier of TPOT.
    pub tpot: T,
}

/// Margins by deployment type.
#[derive(Clone, Copy, Debug)]
pub struct PredictionMargin<T> {
    /// Aggregated serving.
    pub aggregated: LatencyMargin<T>,
    /// Disaggregated serving.
    pub disaggregated: LatencyMargin<T>,
}

impl<T> PredictionMargin<T> {
    /// The same margins in another reading.
    pub fn map<U>(&self, with: impl Fn(&T) -> U) -> PredictionMargin<U> {
        let late = |late: &LatencyMargin<T>| LatencyMargin { ttft: with(&late.ttft), tpot: with(&late.tpot) };
        PredictionMargin { aggregated: late(&self.aggregated), disaggregated: late(&self.disaggregated) }
    }

    fn of(&self, apart: bool) -> &LatencyMargin<T> {
        if apart { &self.disaggregated } else { &self.aggregated }
    }
}

impl<N: Num> Machine<Qty<N>> {
    /// TTFT at the risk level; `apart`: disaggregated.
    #[inline(always)]
    pub fn ttft_with_margin(&self, ttft: Qty<N>, apart: bool) -> Qty<N> {
        self.margin.as_ref().map_or(ttft, |risk| (ttft * risk.of(apart).ttft).is(&TTFT_AT_RISK))
    }

    /// TPOT at the risk level; `apart`: disaggregated.
    #[inline(always)]
    pub fn tpot_with_margin(&self, tpot: Qty<N>, apart: bool) -> Qty<N> {
        self.margin.as_ref().map_or(tpot, |risk| (tpot * risk.of(apart).tpot).is(&TPOT_AT_RISK))
    }
}

crate::formulas! {
    TTFT_AT_RISK {
        symbol: "ttft_at_risk",
        unit: SECOND,
        why: "one measurement in ten exceeds this multiple of the prediction",
        cite: "Vovk, Gammerman, Shafer 2005 (split-conformal prediction), on left-out measurements",
    }
    TPOT_AT_RISK {
        symbol: "tpot_at_risk",
        unit: SECOND,
        why: "one measurement in ten exceeds this multiple of the prediction",
        cite: "Vovk, Gammerman, Shafer 2005 (split-conformal prediction), on left-out measurements",
    }
}
