//! From operators to a step, from steps to what users and owners feel: TTFT, TPOT, throughput, cost,
//! power. Knows nothing of how candidates are found.

pub mod disaggregated;
pub mod economy;
pub mod encode;
pub mod evaluate;
pub mod instance;
pub mod iteration;
pub mod metrics;
pub mod residency;
pub mod speculative;
pub mod step;
pub mod streamed;
pub mod tail;
pub mod terms;

use crate::quantity::formula::Formula;

/// Every formula of this floor; the readings test ticks them off.
pub fn formulas() -> Vec<&'static Formula> {
    [
        disaggregated::FORMULAS,
        economy::FORMULAS,
        encode::FORMULAS,
        evaluate::FORMULAS,
        metrics::FORMULAS,
        residency::FORMULAS,
        iteration::FORMULAS,
        speculative::FORMULAS,
        step::FORMULAS,
        streamed::FORMULAS,
        terms::FORMULAS,
        tail::FORMULAS,
    ]
    .concat()
}
