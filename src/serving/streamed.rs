//! KV-cache transfer of one prompt to another device: at once, or layer by layer during prefill.
//!
//! Devices and links are inputs.

use crate::cost::machine::{Chip, PricedLink};
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::SECOND;

/// Transfer time of `bytes` of KV cache over one link.
pub fn transfer<N: Num>(bytes: Qty<N>, link: &PricedLink<Qty<N>>, chip: &Chip<Qty<N>>) -> Qty<N> {
    (link.latency + bytes / (link.bandwidth * chip.collective_bandwidth)).is(&TRANSFER)
}

/// Arrival time of the last layer's KV cache. `layers` holds the compute time and the transfer time of each layer.
pub fn arrival<N: Num>(before: Qty<N>, layers: impl IntoIterator<Item = (Qty<N>, Qty<N>)>) -> Qty<N> {
    let (mut computed, mut arrived) = (before, Qty::literal(0.0 * SECOND));
    for (computing, travelling) in layers {
        computed = computed + computing;
        arrived = arrived.max(computed) + travelling;
    }
    arrived.is(&ARRIVAL)
}

crate::formulas! {
    TRANSFER {
        symbol: "kv_transfer",
        unit: SECOND,
        why: "KV cache from each device to its receiver over one link, at the achieved fraction of the link rate",
        cite: "Hockney 1994 (latency and bandwidth); Zhong et al. 2024 (DistServe)",
    }
    ARRIVAL {
        symbol: "cache_arrival",
        unit: SECOND,
        why: "the KV cache of a layer is sent once the layer is computed and the previous transfer is complete: if the links keep pace, all transfers but the last overlap with prefill",
        cite: "EXO Labs 2025 (DGX Spark and Mac Studio: KV streamed layer by layer); Patel et al. 2024 (Splitwise), 4.3",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrives(layers: usize, computing: f64, travelling: f64) -> f64 {
        let each = (Qty::from(computing), Qty::from(travelling));
        arrival(Qty::<f64>::from(0.0), std::iter::repeat_n(each, layers)).value()
    }

    #[test]
    fn all_but_the_last_transfer_hides_where_links_are_fast_enough() {
        assert_eq!(arrives(32, 4.0, 1.0), 32.0 * 4.0 + 1.0);
    }

    #[test]
    fn slow_links_hide_all_but_the_first_layer() {
        assert_eq!(arrives(32, 1.0, 4.0), 1.0 + 32.0 * 4.0);
    }
}
