//! Latencies as long as they may be: at the end of what measurements lead to expect.
//!
//! Knows neither how far off predictions are nor why: that is measured.

use super::machine::Machine;
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::SECOND;

/// How many times as long latencies take as predicted, at the end of what is to be expected.
#[derive(Clone, Copy, Debug)]
pub struct Risk<T> {
    /// Time to first token.
    pub ttft: T,
    /// Time per output token.
    pub tpot: T,
}

impl<N: Num> Machine<Qty<N>> {
    /// A time to first token, as long as it may be.
    #[inline(always)]
    pub fn ttft_at_risk(&self, ttft: Qty<N>) -> Qty<N> {
        self.risk.as_ref().map_or(ttft, |risk| (ttft * risk.ttft).is(&TTFT_AT_RISK))
    }

    /// A time per output token, as long as it may be.
    #[inline(always)]
    pub fn tpot_at_risk(&self, tpot: Qty<N>) -> Qty<N> {
        self.risk.as_ref().map_or(tpot, |risk| (tpot * risk.tpot).is(&TPOT_AT_RISK))
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
