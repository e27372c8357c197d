//! Why a system holds no request of the shortest prompt: the first condition on memory that fails.

use std::sync::Arc;

use super::layouts::each;
use super::outcome::Census;
use super::problem::Problem;
use super::sizing::weights;
use crate::cost::memory::Footprint;
use crate::plan::parallel::Phase;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::admission::residency;
use crate::serving::instance::Instance;

/// The part of the memory that a condition counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldPart {
    /// The weights on all devices together.
    AllWeights,
    /// The weights on the fullest device.
    Weights,
    /// Weights, activations and buffers on the fullest device.
    WithoutCache,
    /// All of that and the cache of one request.
    Request,
}

/// A condition on memory that no plan meets, by the plan and formats that miss it least.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage {
    pub part: HeldPart,
    pub needed: f64,
    /// The bytes that may be used.
    pub usable: f64,
    /// Label of the plan; none where the condition does not depend on it.
    pub plan: Option<String>,
    pub weight_format: String,
}

/// A footprint with the plan and the formats that have it.
struct Held {
    footprint: Footprint<Qty<f64>>,
    formats: usize,
    plan: String,
}

impl Held {
    fn bytes(&self, part: HeldPart) -> f64 {
        let held = &self.footprint;
        match part {
            HeldPart::AllWeights | HeldPart::Weights => held.weights.value(),
            HeldPart::WithoutCache => held.weights.value() + held.activations.value() + held.buffers.value(),
            HeldPart::Request => held.total.value(),
        }
    }

    fn over(&self, part: HeldPart) -> f64 {
        self.bytes(part) - self.footprint.usable.value()
    }
}

/// The first condition that fails for one request of the problem's lengths, in device memory: weights, then weights with
/// activations and buffers, then one request. None where a plan holds it, or no plan is legal.
pub fn shortage(problem: &Problem) -> Option<Shortage> {
    if let Some(all) = all_weights(problem) {
        return Some(all);
    }
    let plans = each(problem, &mut Census::default(), |formats, instance: Arc<Instance>| {
        let machine = problem.formats[formats].plain();
        let (terms, one) = (problem.terms(), instance.plan.dp);
        let footprint = residency(&Plain, &instance, Phase::Decode, machine, terms, one);
        Held { footprint, formats, plan: instance.plan.label() }
    });
    [HeldPart::Weights, HeldPart::WithoutCache, HeldPart::Request].into_iter().find_map(|part| {
        let least = plans.iter().min_by(|a, b| a.over(part).total_cmp(&b.over(part)))?;
        (least.over(part) > 0.0).then(|| Shortage {
            part,
            needed: least.bytes(part),
            usable: least.footprint.usable.value(),
            plan: Some(least.plan.clone()),
            weight_format: problem.formats[least.formats].weights.clone(),
        })
    })
}

/// The weights in the smallest format, where all devices together do not hold them.
fn all_weights(problem: &Problem) -> Option<Shortage> {
    let devices = problem.cluster.devices() as f64;
    let all = problem.formats.iter().zip(weights(problem)).map(|(formats, (needed, usable))| Shortage {
        part: HeldPart::AllWeights,
        needed,
        usable: usable * devices,
        plan: None,
        weight_format: formats.weights.clone(),
    });
    let least = all.min_by(|a, b| (a.needed - a.usable).total_cmp(&(b.needed - b.usable)))?;
    (least.needed > least.usable).then_some(least)
}
