//! What the weights alone take, for whoever has too few devices. Knows no text.

use super::result::WeightsNeed;
use crate::search::question::Problem;
use crate::search::sizing::weights;

/// The kind under which the census counts what does not fit.
pub const OUT_OF_MEMORY: &str = "out_of_memory";

/// The whole model in each weight format, against what one device may give.
pub fn weights_need(question: &Problem) -> Vec<WeightsNeed> {
    let mut needs: Vec<WeightsNeed> = Vec::new();
    for (index, formats) in question.formats.iter().enumerate() {
        if needs.iter().any(|need| need.weight_format == formats.weights) {
            continue;
        }
        let (weights, usable) = weights(question, index);
        needs.push(WeightsNeed {
            weight_format: formats.weights.clone(),
            weights_bytes: weights,
            usable_bytes_per_device: usable,
            least_devices: (weights / usable).ceil() as u64,
        });
    }
    needs
}
