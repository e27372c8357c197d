//! A prompt's cache on its way to another device: whole, or layer by layer while later layers are still computed.
//!
//! Knows neither which devices those are nor over which links.

use crate::cost::machine::{Chip, PricedLink};
use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::SECOND;

/// What `bytes` of a cache take over one link.
pub fn transfer<N: Num>(bytes: Qty<N>, link: &PricedLink<Qty<N>>, chip: &Chip<Qty<N>>) -> Qty<N> {
    (link.latency + bytes / (link.bandwidth * chip.collective_bandwidth)).is(&TRANSFER)
}

/// When the last layer's cache has arrived: `layers` are each one's time of computing and of travelling.
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
        why: "keys and values from each device to the one that receives them, over one link, at the fraction of its rate that transfers reach",
        cite: "Hockney 1994 (latency and bandwidth); Zhong et al. 2024 (DistServe)",
    }
    ARRIVAL {
        symbol: "cache_arrival",
        unit: SECOND,
        why: "a layer's cache leaves when the layer is computed and the one before it is through: all but the last hide behind the prompt where links keep pace",
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
    fn all_but_the_last_transfer_hides_where_links_keep_pace() {
        assert_eq!(arrives(32, 4.0, 1.0), 32.0 * 4.0 + 1.0);
    }

    #[test]
    fn slow_links_hide_all_but_the_first_layer() {
        assert_eq!(arrives(32, 1.0, 4.0), 1.0 + 32.0 * 4.0);
    }
}
