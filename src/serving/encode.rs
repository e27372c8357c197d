//! Time of the vision encoder for the images of a prompt. The encoder runs before prefill.
//!
//! Excludes image decoding and resizing, which run on the host.

use super::step::{CostObserver, LayerTime, layer};
use super::step_part::StepPart;
use crate::cost::batch::Batch;
use crate::cost::machine::Machine;
use crate::plan::parallel::Phase;
use crate::plan::shard::ShardedEncoder;
use crate::quantity::num::Qty;
use crate::quantity::read::Reading;
use crate::quantity::unit::SECOND;

/// Time to encode all images of one prompt on one device.
pub(super) fn encode<R: Reading>(
    read: &R,
    encoder: &ShardedEncoder,
    machine: &Machine<Qty<R::N>>,
    watch: &mut impl CostObserver<R::N>,
) -> LayerTime<Qty<R::N>> {
    watch.on_part(Phase::Prefill, StepPart::Images);
    let one = Qty::from(1.0);
    let pieces = read.count(encoder.images) * read.count(encoder.crops);
    let nothing = Qty::literal(0.0 * SECOND);
    let mut sum = LayerTime { time: nothing, compute_time: nothing, memory_time: nothing };
    for (block, positions) in &encoder.parts {
        let batch = Batch::new((pieces, read.count(*positions), Qty::from(0.0)), (one, one, one));
        let layers = read.count(block.layers);
        // The encoder runs once per prompt and has no per-layer gaps, as for embedding and head.
        let launch = block.layers.value > 1;
        let each = read.within(format_args!("images"), || {
            layer(read, block, Phase::Prefill, &batch, machine, launch, watch)
        });
        sum.time = sum.time + layers * each.time;
        sum.compute_time = sum.compute_time + layers * each.compute_time;
        sum.memory_time = sum.memory_time + layers * each.memory_time;
    }
    let time = read.result_of("images", || sum.time.is(&ENCODE));
    LayerTime { time, ..sum }
}

crate::formulas! {
    ENCODE {
        symbol: "image_time",
        unit: SECOND,
        why: "all images of a prompt pass the encoder as one batch before prefill: its weights are read once, and attention stays inside each tile",
        cite: "Dosovitskiy et al. 2021 (ViT); vLLM, multi-modal encoder runs with the prefill that needs it",
    }
}
