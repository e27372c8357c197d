//! What the weights alone take, for whoever has too few devices. Knows no text.

use super::result::WeightsNeed;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::quantity::read::Plain;
use crate::search::question::Question;
use crate::serving::evaluate::residency;
use crate::serving::instance::Instance;

/// The kind under which the census counts what does not fit.
pub const OUT_OF_MEMORY: &str = "out_of_memory";

/// The whole model in each weight format, against what one device may give.
pub fn weights_need(question: &Question) -> Vec<WeightsNeed> {
    let layers = vec![question.graph.layer_block.len() as u32];
    let whole = Instance::new(&question.graph, ParallelPlan::SINGLE, layers, question.tiers());
    let mut needs: Vec<WeightsNeed> = Vec::new();
    for formats in &question.formats {
        if needs.iter().any(|need| need.weight_format == formats.weights) {
            continue;
        }
        let held = residency(&Plain, &whole, Phase::Decode, formats.plain(), question.terms(), 1);
        let (weights, usable) = (held.weights.value(), held.usable.value());
        needs.push(WeightsNeed {
            weight_format: formats.weights.clone(),
            weights_bytes: weights,
            usable_bytes_per_device: usable,
            least_devices: (weights / usable).ceil() as u64,
        });
    }
    needs
}
