//! A bound on every deployment of a model on a cluster, without laying any out. What a stopped search did not reach is
//! within it.
//!
//! It takes the work of a request on one device that holds the whole model. A share of an operator is never less than
//! its part of the work, a larger batch never makes a token cheaper than the limit of large batches, and every plan
//! waits for the same launches and for the host. Where the host computes too, the bound is that of the FLOPs at the
//! highest dense peaks.

use super::point::{Point, WIDTH, cost, place, point};
use super::problem::{Problem, Traffic};
use crate::cost::machine::{Chip, Machine};
use crate::cost::roofline::Cost;
use crate::graph::model::ModelGraph;
use crate::plan::parallel::{ParallelPlan, Phase};
use crate::plan::shard::{ShardedBlock, TaskStep};
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::quantity::tolerance::QUANTIZED;
use crate::quantity::unit::{SECOND, TOKEN};
use crate::serving::economy::watts;
use crate::serving::evaluate::{PoolMetrics, Slowest, judge};
use crate::serving::instance::Instance;
use crate::serving::iteration::decode_batch;
use crate::serving::metrics::{e2e, open_flow};
use crate::serving::speculative::accepted;
use crate::serving::step::{CostObserver, batch, step};
use crate::serving::terms::{Lengths, WorkloadInputs, WorkloadTerms};
use crate::spec::objective::{METRICS, Metric};

/// Share of the parameters that multiply activations, at least: norms and biases add to them.
const MULTIPLIED: f64 = 0.95;
/// Sequences of a batch whose next sequence costs what it does in the limit of large batches.
const MANY: f64 = (1u64 << 20) as f64;

/// The least work of a prompt, or of an output token.
struct LeastWork {
    /// Device-seconds in a large batch, and of these with busy arithmetic and busy memory.
    devices: f64,
    computing: f64,
    moving: f64,
    /// Seconds of a batch of one on any number of devices, and the device-seconds that they can share.
    alone: (f64, f64),
}

/// Work of a prompt and of an output token in one format pair.
struct RequestWork {
    prefill: LeastWork,
    decode: LeastWork,
}

impl RequestWork {
    /// Device-seconds of `prompts` prompts and `later` output tokens.
    fn sum(&self, of: fn(&LeastWork) -> f64, prompts: f64, later: f64) -> f64 {
        prompts * of(&self.prefill) + later * of(&self.decode)
    }
}

/// Seconds of a step in which no device works.
#[derive(Default)]
struct IdleSeconds(f64);

impl CostObserver<f64> for IdleSeconds {
    fn on_operator(&mut self, _: Phase, _: &ShardedBlock, _: &TaskStep, _: &Cost<Qty<f64>>) {}
    fn on_idle(&mut self, _: Phase, _: &'static str, times: u64, time: Qty<f64>) {
        self.0 += times as f64 * time.value();
    }
}

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

/// The work of a request at the highest dense peak.
fn by_flops(problem: &Problem, machine: &Machine<Qty<f64>>) -> RequestWork {
    let (layers, head) = flops_per_token(&problem.graph);
    let lengths = problem.workload.lengths;
    let of = |phase: Phase, flops: f64| {
        let devices = flops / peak(machine.of(phase));
        LeastWork { devices, computing: 0.0, moving: 0.0, alone: (0.0, devices) }
    };
    RequestWork {
        prefill: of(Phase::Prefill, (lengths.isl - lengths.prefix) as f64 * layers + head),
        decode: of(Phase::Decode, layers + head),
    }
}

/// The work of a request on a device that holds the whole model.
fn on_one_device(
    terms: &WorkloadTerms<Qty<f64>>,
    machine: &Machine<Qty<f64>>,
    whole: &Instance,
) -> RequestWork {
    let of = |phase: Phase, sequences: f64, idle: &mut IdleSeconds| {
        let load = match phase {
            Phase::Prefill => {
                let new = terms.isl - terms.prefix;
                batch(&Plain, whole, phase, Qty::from(sequences), new, terms.prefix)
            }
            Phase::Decode => decode_batch(&Plain, whole, terms, Qty::from(sequences)),
        };
        step(&Plain, whole, phase, &load, machine.of(phase), idle)
    };
    let yields = match (&whole.draft, terms.acceptance) {
        (Some(draft), Some(acceptance)) => accepted(acceptance, draft.tokens).value(),
        _ => 1.0,
    };
    let least = |phase: Phase, yields: f64| {
        let mut idle = IdleSeconds::default();
        let one = of(phase, 1.0, &mut idle);
        let [few, many] = [MANY, 2.0 * MANY].map(|number| of(phase, number, &mut IdleSeconds::default()));
        let next = |few: Qty<f64>, many: Qty<f64>| {
            ((many - few).value() / MANY - QUANTIZED * few.value() / MANY).max(0.0) / yields
        };
        LeastWork {
            devices: next(few.total, many.total),
            computing: next(few.compute_time, many.compute_time),
            moving: next(few.memory_time, many.memory_time),
            alone: (idle.0 / yields, (one.total.value() - idle.0) / yields),
        }
    };
    RequestWork { prefill: least(Phase::Prefill, 1.0), decode: least(Phase::Decode, yields) }
}

fn whole_model(problem: &Problem) -> Instance {
    let layers = vec![problem.graph.layer_block.len() as u32];
    Instance::new(&problem.graph, ParallelPlan::SINGLE, layers, problem.tiers())
}

/// Device-seconds that a request of these lengths takes at least on `machine`, whatever its plan and its scheduler: those
/// of the busier of arithmetic and memory.
pub fn least_device_seconds(problem: &Problem, lengths: Lengths, machine: &Machine<Qty<f64>>) -> f64 {
    let terms = WorkloadInputs::of(lengths).read(&Plain);
    let work = on_one_device(&terms, machine, &whole_model(problem));
    let later = lengths.osl as f64 - 1.0;
    work.sum(|one| one.computing, 1.0, later).max(work.sum(|one| one.moving, 1.0, later))
}

/// No deployment of the problem is better in any metric; the longest context is unknown.
pub fn physical_bound(problem: &Problem) -> Point {
    let whole = whole_model(problem);
    let bounds = problem.formats.iter().map(|formats| {
        let machine = formats.plain();
        let work = match machine.host {
            Some(_) => by_flops(problem, machine),
            None => on_one_device(problem.terms(), machine, &whole),
        };
        bound(problem, machine, &work)
    });
    let best = |mut best: Point, other: Point| {
        for entry in METRICS.iter().filter(|entry| place(entry.metric) < WIDTH) {
            let at = place(entry.metric);
            let [known, new] = [&best, &other].map(|of| cost(of, entry.metric, entry.direction));
            if new < known {
                best[at] = other[at];
            }
        }
        best
    };
    bounds.reduce(best).expect("a format pair at least")
}

/// Time of arithmetic in the kernels of a step of decoding requests, per time in those of a prompt; at most 1.
fn faster(machine: &Machine<Qty<f64>>) -> f64 {
    let prompt = machine.chip.gemm_compute.min(machine.chip.moe_compute);
    machine.decode_compute.map_or(1.0, |of_decode| (prompt / of_decode).value().min(1.0))
}

fn bound(problem: &Problem, machine: &Machine<Qty<f64>>, work: &RequestWork) -> Point {
    let RequestWork { prefill, decode } = work;
    let seconds = |value: f64| Qty::literal(value * SECOND);
    let all = problem.cluster.devices() as f64;
    let alone = |(waits, shared): (f64, f64)| seconds(waits + shared / all);
    let (ttft, tpot) = (alone(prefill.alone), alone(decode.alone));
    let terms = problem.terms();
    let whole = e2e(ttft, tpot, terms.osl);
    let later = problem.workload.lengths.osl as f64 - 1.0;
    // A prefill may delay decode by only a part of its time.
    let delays = machine.chip.prefill_interference.value().min(1.0);
    let joined = machine.formula_policy().is_some_and(|policy| policy.like.joins_prompts());
    let computing =
        work.sum(|one| one.computing, if joined { delays * faster(machine) } else { delays }, later);
    let moving = work.sum(|one| one.moving, delays, later);
    let each = match joined {
        // In a step of both, the arithmetic of one may take place while the memory works for the other.
        true => computing.max(moving).max(later * decode.devices),
        false => work.sum(|one| one.devices, delays, later),
    };
    let most = all / each;
    let rate = match problem.traffic {
        Traffic::Free => most,
        Traffic::InFlight(_) => {
            problem.traffic.in_flight().map_or(most, |requests| most.min(requests / whole.value()))
        }
        Traffic::Rate(rate) => rate,
    };
    let idle = problem.idle(1).watts;
    let power = terms.power_draw.as_ref().map(|draw| {
        // The busy time of a request in its device-seconds.
        let busy = |time: f64| Qty::from(if each > 0.0 { time / each } else { 0.0 });
        watts(Qty::from(rate * each), busy(computing), busy(moving), draw)
    });
    let share = PoolMetrics {
        ttft,
        tpot,
        e2e: whole,
        life: whole,
        slowest: Slowest { ttft, tpot, e2e: whole },
        output: open_flow(Qty::from(rate) / seconds(1.0), terms.osl),
        devices: Qty::from(rate * each),
        power,
        context: Qty::literal(f64::NAN * TOKEN),
    };
    let mut bound = point(&judge(&Plain, terms, &share));
    bound[place(Metric::Devices)] = 1.0;
    if !idle.is_nan() {
        bound[place(Metric::Watts)] = idle;
    }
    bound
}
