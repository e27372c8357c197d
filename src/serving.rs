//! Step times, then the serving metrics of a deployment: TTFT, TPOT, throughput, cost, power. This layer does not know
//! how candidates are found.

pub mod admission;
pub mod disaggregated;
pub mod economy;
pub mod encode;
pub mod evaluate;
pub mod first_wave;
pub mod hosted;
pub mod instance;
pub mod iteration;
pub mod longest;
pub mod metrics;
pub mod mixed;
pub mod page_pool;
pub mod placed;
mod pool_capacity;
mod pool_state;
pub mod residency;
pub mod speculative;
pub mod stage_memory;
pub mod static_batch;
pub mod step;
pub mod step_part;
pub mod streamed;
pub mod tail;
pub mod terms;
pub mod utilization;

use crate::quantity::formula::Formula;

/// All formulas of this layer. The readings test checks that each one is exercised.
pub fn formulas() -> Vec<&'static Formula> {
    [
        disaggregated::FORMULAS,
        economy::FORMULAS,
        encode::FORMULAS,
        evaluate::FORMULAS,
        first_wave::FORMULAS,
        hosted::FORMULAS,
        metrics::FORMULAS,
        mixed::FORMULAS,
        placed::FORMULAS,
        pool_capacity::FORMULAS,
        pool_state::FORMULAS,
        longest::FORMULAS,
        residency::FORMULAS,
        iteration::FORMULAS,
        speculative::FORMULAS,
        static_batch::FORMULAS,
        step::FORMULAS,
        streamed::FORMULAS,
        terms::FORMULAS,
        tail::FORMULAS,
        utilization::FORMULAS,
    ]
    .concat()
}
