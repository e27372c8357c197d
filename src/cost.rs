//! Costs of one operator, one collective and one device's memory, as formulas over [`crate::quantity::num::Qty`]. This
//! layer does not know requests, queues or candidates.

pub mod attention;
pub mod batch;
pub mod calibration;
pub mod collective;
pub mod compressed;
pub mod cross;
pub mod elementwise;
pub mod experts;
pub mod host;
pub mod indexer;
pub mod latent;
pub mod linear;
pub mod machine;
pub mod machine_builder;
pub mod memory;
pub mod recurrence;
pub mod roofline;
pub mod rope;
pub mod softmax;
pub mod task;

use crate::quantity::formula::Formula;

/// All formulas of this layer. The readings test checks that each one is exercised.
pub fn formulas() -> Vec<&'static Formula> {
    [
        attention::FORMULAS,
        batch::FORMULAS,
        calibration::FORMULAS,
        collective::FORMULAS,
        compressed::FORMULAS,
        cross::FORMULAS,
        elementwise::FORMULAS,
        experts::FORMULAS,
        host::FORMULAS,
        indexer::FORMULAS,
        latent::FORMULAS,
        linear::FORMULAS,
        memory::FORMULAS,
        recurrence::FORMULAS,
        roofline::FORMULAS,
        rope::FORMULAS,
        softmax::FORMULAS,
    ]
    .concat()
}
