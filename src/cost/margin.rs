//! Latencies as long as they may be: at the end of what measurements lead to expect.
//!
//! Knows neither how far off predictions are nor why: that is measured.

use super::machine::Machine;
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::SECOND;

/// How many times as long latencies take as predicted, at the end of what is to be expected.
#[derive(Clone, Copy, Debug)]
pub struct LatencyMargin<T> {
    /// Time to first token.
    pub ttft: T,
    /// Time per output token.
    pub tpot: T,
}

/// The same of either way to serve.
#[derive(Clone, Copy, Debug)]
pub struct PredictionMargin<T> {
    /// Where the same instances prefill and decode.
    pub together: LatencyMargin<T>,
    /// Where pools of their own do.
    pub apart: LatencyMargin<T>,
}

impl<T> PredictionMargin<T> {
    /// The same with other figures.
    pub fn map<U>(&self, with: impl Fn(&T) -> U) -> PredictionMargin<U> {
        let late = |late: &LatencyMargin<T>| LatencyMargin { ttft: with(&late.ttft), tpot: with(&late.tpot) };
        PredictionMargin { together: late(&self.together), apart: late(&self.apart) }
    }

    fn of(&self, apart: bool) -> &LatencyMargin<T> {
        if apart { &self.apart } else { &self.together }
    }
}

impl<N: Num> Machine<Qty<N>> {
    /// A time to first token, as long as it may be where pools are `apart` or not.
    #[inline(always)]
    pub fn ttft_at_risk(&self, ttft: Qty<N>, apart: bool) -> Qty<N> {
        self.risk.as_ref().map_or(ttft, |risk| (ttft * risk.of(apart).ttft).is(&TTFT_AT_RISK))
    }

    /// A time per output token, as long as it may be where pools are `apart` or not.
    #[inline(always)]
    pub fn tpot_at_risk(&self, tpot: Qty<N>, apart: bool) -> Qty<N> {
        self.risk.as_ref().map_or(tpot, |risk| (tpot * risk.of(apart).tpot).is(&TPOT_AT_RISK))
    }
}

crate::formulas! {
    TTFT_AT_RISK {
        symbol: "ttft_at_risk",
        unit: SECOND,
        why: "one measurement in ten takes longer than so many times what is predicted",
        cite: "Vovk, Gammerman, Shafer 2005 (split-conformal prediction), on left-out measurements",
    }
    TPOT_AT_RISK {
        symbol: "tpot_at_risk",
        unit: SECOND,
        why: "one measurement in ten takes longer than so many times what is predicted",
        cite: "Vovk, Gammerman, Shafer 2005 (split-conformal prediction), on left-out measurements",
    }
}
