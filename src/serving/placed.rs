//! Times of layers that are placed on several devices, one stage after the other.

use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::SECOND;

/// A stage of a step: `whole` is its time as if it prepared the step, `host` the part for the preparation.
pub fn placed_stage<N: Num>(whole: Qty<N>, host: Qty<N>) -> Qty<N> {
    (whole - host).is(&STAGE)
}

/// A step through stages and links, whose times are `parts`.
pub fn placed_step<N: Num>(parts: impl IntoIterator<Item = Qty<N>>) -> Qty<N> {
    parts.into_iter().fold(Qty::literal(0.0 * SECOND), |sum, part| sum + part).is(&STEP)
}

/// A request alone: its prefill, then a step of `token` for each further one of its output `tokens`.
pub fn request_alone<N: Num>(prefill: Qty<N>, token: Qty<N>, tokens: Qty<N>) -> Qty<N> {
    (prefill + (tokens - Qty::from(1.0)) * token).is(&REQUEST)
}

crate::formulas! {
    STAGE {
        symbol: "t_placed_stage",
        unit: SECOND,
        why: "a step of the layers of a stage; the host prepares a step once, on the first stage",
        cite: "Borzunov et al. 2023 (Petals), 3.1",
    }
    STEP {
        symbol: "t_placed_step",
        unit: SECOND,
        why: "the residual stream passes the stages one after the other, over the links between them",
        cite: "Borzunov et al. 2023 (Petals), 3.1",
    }
    REQUEST {
        symbol: "t_request_alone",
        unit: SECOND,
        why: "prefill yields the first token, each further one takes a decode step",
        cite: "definition of end-to-end latency",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up() {
        let qty = Qty::<f64>::from;
        assert_eq!(
            placed_step([placed_stage(qty(5.0), qty(0.0)), qty(2.0), placed_stage(qty(4.0), qty(1.0))])
                .value(),
            10.0
        );
        assert_eq!(request_alone(qty(7.0), qty(2.0), qty(5.0)).value(), 15.0);
    }
}
