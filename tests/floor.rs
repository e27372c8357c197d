//! Nothing is faster than light: operations at the dense peak, bytes at full bandwidth, an exchange's own
//! bytes at link rate.

use mantile::cost::roofline::Cost;
use mantile::graph::tensor::TensorRole;
use mantile::plan::parallel::{LayerType, Phase};
use mantile::plan::shard::{ShardedBlock, Task, TaskStep};
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::search::candidate::PoolPlan;
use mantile::serving::instance::Instance;
use mantile::serving::step::{CostObserver, batch, is_fused, step};
use mantile::spec::role::Role;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::ask;
use crate::cases;
#[path = "floor/exchange.rs"]
mod exchange;

use cases::{Case, each_case};

/// Rounding of sums.
const MARGIN: f64 = 1e-12;

/// What a step was seen to be made of.
struct Light<'a> {
    case: &'a Case,
    /// Layers' time at the speed of light, but for exchanges that something else may hide.
    least: f64,
    faults: Vec<String>,
}

impl CostObserver<f64> for Light<'_> {
    fn on_operator(&mut self, phase: Phase, block: &ShardedBlock, step: &TaskStep, cost: &Cost<Qty<f64>>) {
        // Vector units have a peak of their own, or none that is stated: the kernel that they work in has the time.
        if is_fused(&step.task) {
            return;
        }
        let chip = &self.case.problem.formats[self.case.candidate.formats].machine.chip;
        let peaks = [chip.weight_peak.value, chip.native_peak.value, chip.attention_peak.value];
        let peak = peaks.into_iter().fold(0.0, f64::max);
        let [flops, bytes, time, floor] =
            [cost.flops, cost.bytes, cost.time, cost.roofline_time].map(Qty::value);
        let least = (flops / peak).max(bytes / chip.bandwidth.value);
        if time < floor || floor < least * (1.0 - MARGIN) {
            let name = format!("{}/{}/{}", phase.name(), block.name, step.name);
            self.faults.push(format!("{name}: {time} s, floor {floor} s, light {least} s"));
        }
        let hidden = matches!(&step.task, Task::Communicate(exchange) if exchange.overlaps);
        if !hidden {
            self.least += floor * block.layers.value as f64;
        }
    }

    fn on_idle(&mut self, _: Phase, _: &'static str, times: u64, time: Qty<f64>) {
        self.least += time.value() * times as f64;
    }
}

fn of_steps(case: &Case) -> Result<(), TestCaseError> {
    let problem = &case.problem;
    let machine = problem.formats[case.candidate.formats].plain();
    for (pool, instance) in case.candidate.pools.iter().zip(case.candidate.instances(problem)) {
        for phase in [Phase::Prefill, Phase::Decode] {
            let (new, past) = match phase {
                Phase::Prefill => (problem.terms().isl - problem.terms().prefix, problem.terms().prefix),
                Phase::Decode => (Qty(1.0), problem.terms().isl),
            };
            let sequences = Qty(if phase == Phase::Prefill { 1.0 } else { pool.concurrency as f64 });
            let load = batch(&Plain, &instance, phase, sequences, new, past);
            let mut light = Light { case, least: 0.0, faults: vec![] };
            let time = step(&Plain, &instance, phase, &load, machine, &mut light);
            prop_assert!(light.faults.is_empty(), "{:#?}", light.faults);
            let total = time.total.value();
            prop_assert!(
                total >= light.least * (1.0 - MARGIN),
                "{:?}: {} under {}",
                phase,
                total,
                light.least
            );
            prop_assert!(time.slowest.value() <= total * (1.0 + MARGIN));
            let stages = pool.plan.pp as f64;
            prop_assert!(
                time.slowest.value() * stages >= total * (1.0 - MARGIN),
                "the slowest stage is slowest"
            );
        }
    }
    Ok(())
}

#[test]
fn no_operator_or_step_is_faster_than_light() {
    each_case(40, of_steps);
}

/// Bytes of every weight that each step must read, whatever is routed where, and operations per token,
/// of one device over all stages.
fn must(case: &Case, instance: &Instance) -> (f64, f64) {
    let machine = question_machine(case);
    let model = &instance.decode;
    let (mut bytes, mut flops) = (0.0, 0.0);
    for block in model.blocks.iter() {
        let layers = block.layers.value as f64;
        for role in [TensorRole::Attention, TensorRole::Mlp, TensorRole::SharedExpert] {
            let elements = block.weights[role as usize] as f64 * layers;
            bytes += elements * machine.chip.weight_bytes(machine.quantised[role as usize]).value();
            // Narrower feed-forward layers divide the tokens of a group of attention among their copies.
            let copies = match role {
                TensorRole::Mlp | TensorRole::SharedExpert => {
                    instance.plan.tp / instance.plan.tp_of(LayerType::FeedForward)
                }
                _ => 1,
            };
            flops += 2.0 * elements / copies.max(1) as f64;
        }
    }
    (bytes, flops)
}

fn question_machine(case: &Case) -> &mantile::cost::machine::Machine<Qty<f64>> {
    case.problem.formats[case.candidate.formats].plain()
}

/// Straight from the weights: a token takes at least a read of them, a prompt at least their operations.
fn of_metrics(case: &Case) -> Result<(), TestCaseError> {
    let problem = &case.problem;
    let evaluation = case.candidate.evaluate(&Plain, problem, &mut ());
    let metrics = &evaluation.metrics;
    let chip = &question_machine(case).chip;
    let peaks = [chip.weight_peak, chip.native_peak].map(Qty::value);
    let peak = peaks[0].max(peaks[1]);
    let terms = problem.terms();
    let tokens = (terms.isl - terms.prefix).value();
    let instances = case.candidate.instances(problem);
    let answering = |pool: &PoolPlan| pool.role != Role::Prefill;
    for (pool, instance) in case.candidate.pools.iter().zip(&instances) {
        let (bytes, flops) = must(case, instance);
        if answering(pool) {
            let least = bytes / chip.bandwidth.value();
            let tpot = evaluation.slowest.tpot.value();
            prop_assert!(tpot >= least, "tpot {tpot} under {least}");
        }
        if pool.role != Role::Decode {
            // Latent attention's own matrix is among them, and decode has it absorbed: prompts do as much.
            let least = flops * tokens / pool.plan.cp as f64 / peak;
            let ttft = evaluation.slowest.ttft.value();
            prop_assert!(ttft >= least, "ttft {ttft} under {least}");
        }
    }
    let (ttft, tpot, e2e) = (metrics.ttft.value(), metrics.tpot.value(), metrics.e2e.value());
    prop_assert!(e2e >= ttft && e2e >= (terms.osl.value() - 1.0) * tpot);
    Ok(())
}

#[test]
fn no_metric_is_faster_than_light() {
    each_case(40, of_metrics);
}
