//! Memory of the weights alone, for systems with too few devices.

use super::result::WeightsNeed;
use crate::search::problem::Problem;
use crate::search::sizing::weights;

/// Rejection kind of candidates that do not fit.
pub const OUT_OF_MEMORY: &str = "out_of_memory";

/// The whole model in each weight format, against the usable memory of one device.
pub fn weights_need(problem: &Problem) -> Vec<WeightsNeed> {
    let mut needs: Vec<WeightsNeed> = Vec::new();
    for (formats, (weights, usable)) in problem.formats.iter().zip(weights(problem)) {
        if needs.iter().any(|need| need.weight_format == formats.weights) {
            continue;
        }
        needs.push(WeightsNeed {
            weight_format: formats.weights.clone(),
            weights_bytes: weights,
            usable_bytes_per_device: usable,
            least_devices: (weights / usable).ceil() as u64,
        });
    }
    needs
}
