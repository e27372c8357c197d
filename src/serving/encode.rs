//! The images of a prompt through their encoder, before the prompt itself.
//!
//! Knows nothing of how pixels come in: decoding and resizing pictures is the host's work and is not told.

use super::step::{CostObserver, LayerTime, layer};
use crate::cost::batch::Batch;
use crate::cost::machine::Machine;
use crate::plan::parallel::Phase;
use crate::plan::shard::ShardedEncoder;
use crate::quantity::num::Qty;
use crate::quantity::read::Reading;
use crate::quantity::unit::SECOND;

/// All images of one prompt on one device.
pub(super) fn encode<R: Reading>(
    read: &R,
    encoder: &ShardedEncoder,
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> LayerTime<Qty<R::N>> {
    let one = Qty::from(1.0);
    let pieces = read.count(encoder.images) * read.count(encoder.crops);
    let nothing = Qty::literal(0.0 * SECOND);
    let mut sum = LayerTime { time: nothing, computing: nothing, moving: nothing };
    for (block, positions) in &encoder.parts {
        let batch = Batch::new((pieces, read.count(*positions), Qty::from(0.0)), (one, one, one));
        let layers = read.count(block.layers);
        // What comes once has no gaps of its own, as embedding and head have none.
        let launch = block.layers.value > 1;
        let each = layer(read, block, Phase::Prefill, &batch, machine, launch, watch);
        sum.time = sum.time + layers * each.time;
        sum.computing = sum.computing + layers * each.computing;
        sum.moving = sum.moving + layers * each.moving;
    }
    LayerTime { time: sum.time.is(&ENCODE).at(format_args!("prefill/images")), ..sum }
}

crate::formulas! {
    ENCODE {
        symbol: "image_time",
        unit: SECOND,
        why: "the images of a prompt pass the encoder together before the prompt: its weights are read once, and each piece of an image attends to itself alone",
        cite: "Dosovitskiy et al. 2021 (ViT); vLLM, multi-modal encoder runs with the prefill that needs it",
    }
}
