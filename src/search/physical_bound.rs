//! A bound on every deployment of a model on a cluster, without laying any out: the matrix multiplications of a request
//! take their FLOPs at the highest dense peak of the devices. What a stopped search did not reach is within it.

use super::point::{Point, place, point};
use super::problem::{Problem, Traffic};
use crate::cost::machine::{Chip, Machine};
use crate::graph::model::ModelGraph;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::quantity::unit::{SECOND, TOKEN, WATT};
use crate::serving::evaluate::{PoolMetrics, Slowest, judge};
use crate::serving::metrics::{e2e, open_flow};
use crate::spec::objective::Metric;

/// Share of the parameters that multiply activations, at least: norms and biases add to them.
const MULTIPLIED: f64 = 0.95;

/// FLOPs per token of the layers, and of the LM head: two per active parameter.
fn flops_per_token(graph: &ModelGraph) -> (f64, f64) {
    let layer = |block: &usize| -> u64 {
        graph.blocks[*block].graph.node_weights().map(|node| node.active_parameters()).sum()
    };
    let layers: u64 = graph.layer_block.iter().map(layer).sum();
    let head = if graph.generates { graph.vocab.value * graph.hidden.value } else { 0 };
    (2.0 * MULTIPLIED * layers as f64, 2.0 * MULTIPLIED * head as f64)
}

/// FLOP/s of a device at the highest dense peak, with those of its host where that computes too.
fn peak(machine: &Machine<Qty<f64>>) -> f64 {
    let of = |chip: &Chip<Qty<f64>>| chip.weight_peak.max(chip.native_peak).max(chip.attention_peak).value();
    of(&machine.chip) + machine.host.as_ref().map_or(0.0, |host| of(&host.processor.chip))
}

/// No deployment of the problem is better in any metric; the longest context is unknown.
pub fn physical_bound(problem: &Problem) -> Point {
    let (layers, head) = flops_per_token(&problem.graph);
    let lengths = problem.workload.lengths;
    let peak = problem.formats.iter().map(|formats| peak(formats.plain())).fold(0.0, f64::max);
    let all = problem.cluster.devices() as f64;
    let (prompt, output) = ((lengths.isl - lengths.prefix) as f64, lengths.osl as f64);
    let prefill = prompt * layers + head;
    let decode = layers + head;
    let request = prefill + (output - 1.0) * decode;
    let (ttft, tpot) = (prefill / (all * peak), decode / (all * peak));
    let alone = ttft + (output - 1.0) * tpot;
    let most = all * peak / request;
    let rate = match problem.traffic {
        Traffic::Free => most,
        Traffic::InFlight(requests) => most.min(requests as f64 / alone),
        Traffic::Rate(rate) => rate,
    };
    let devices = rate * request / peak;
    let seconds = |value: f64| Qty::literal(value * SECOND);
    let terms = problem.terms();
    let whole = e2e(seconds(ttft), seconds(tpot), terms.osl);
    let watts = problem.idle(1).watts;
    let share = PoolMetrics {
        ttft: seconds(ttft),
        tpot: seconds(tpot),
        e2e: whole,
        slowest: Slowest { ttft: seconds(ttft), tpot: seconds(tpot), e2e: whole },
        output: open_flow(Qty::from(rate) / seconds(1.0), terms.osl),
        devices: Qty::from(devices),
        power: terms.power_draw.as_ref().map(|_| Qty::literal(devices * watts * WATT)),
        context: Qty::literal(f64::NAN * TOKEN),
    };
    let mut bound = point(&judge(&Plain, terms, &share));
    bound[place(Metric::Devices)] = 1.0;
    if !watts.is_nan() {
        bound[place(Metric::Watts)] = watts;
    }
    bound
}
