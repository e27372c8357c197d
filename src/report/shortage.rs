//! Memory that is short: the weights alone, and the first condition that fails.

use super::number::{count, gib};
use super::result::WeightsNeed;
use crate::search::hosting::least_host_memories;
use crate::search::problem::Problem;
use crate::search::shortage::{HeldPart, Shortage};
use crate::search::sizing::weights;
use crate::spec::offload::OffloadPolicy;

/// Rejection kind of candidates that do not fit.
pub const OUT_OF_MEMORY: &str = "out_of_memory";

/// The whole model in each weight format, against the usable memory of one device.
pub fn weights_need(problem: &Problem) -> Vec<WeightsNeed> {
    let mut needs: Vec<WeightsNeed> = Vec::new();
    let hosts = least_host_memories(problem);
    for (at, (formats, (weights, usable))) in problem.formats.iter().zip(weights(problem)).enumerate() {
        let host = hosts.get(&at).copied();
        if let Some(need) = needs.iter_mut().find(|need| need.weight_format == formats.weights) {
            need.least_host_bytes = need.least_host_bytes.into_iter().chain(host).reduce(f64::min);
            continue;
        }
        needs.push(WeightsNeed {
            weight_format: formats.weights.clone(),
            weights_bytes: weights,
            usable_bytes_per_device: usable,
            least_devices: (weights / usable).ceil() as u64,
            least_host_bytes: host,
        });
    }
    needs
}

pub fn shortage_words(short: &Shortage, problem: &Problem) -> String {
    let Shortage { part, needed, usable, plan, weight_format } = short;
    let (needed, usable) = (gib(*needed), gib(*usable));
    let plan = plan.as_ref().map_or_else(String::new, |plan| format!("{plan}, "));
    let fullest = format!("on the fullest device ({plan}{weight_format})");
    let devices = count(problem.cluster.devices(), "device");
    let osl = problem.workload.lengths.osl;
    let held = match part {
        HeldPart::AllWeights => format!("{weight_format} weights take {needed} on {devices}"),
        HeldPart::Weights => format!("weights take {needed} {fullest}"),
        HeldPart::WithoutCache => format!("weights, activations and buffers take {needed} {fullest}"),
        HeldPart::Request => format!(
            "weights, activations, buffers and a request of 1 prompt token and {osl} of output take {needed} {fullest}"
        ),
    };
    format!("{held}, {usable} usable{}", beyond(problem))
}

/// That host memory does not help, where it may be used.
fn beyond(problem: &Problem) -> String {
    let known = problem.host_memory.filter(|_| problem.offload != OffloadPolicy::Never);
    known.map_or_else(String::new, |bytes| {
        format!("; a part in the {} of host memory does not make it fit", gib(bytes))
    })
}
