//! A better machine is never slower.

use mantile::cost::machine::Machine;
use mantile::quantity::datum::Datum;
use mantile::quantity::num::Qty;
use mantile::quantity::read::Plain;
use mantile::search::problem::{Formats, Problem, Traffic};
use mantile::serving::evaluate::Evaluation;
use mantile::spec::format::NumberFormat;
use mantile::store::catalog::Catalog;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::cases::{Case, each_case};

/// What is made better, by which factor.
type Better = fn(&mut Machine<Datum>, f64);

const BETTER: [(&str, Better); 10] = [
    ("bandwidth", |m, by| m.chip.bandwidth.value *= by),
    ("peaks", |m, by| {
        m.chip.weight_peak.value *= by;
        m.chip.native_peak.value *= by;
        m.chip.attention_peak.value *= by;
    }),
    ("links", |m, by| m.links.iter_mut().for_each(|link| link.bandwidth.value *= by)),
    ("link latencies", |m, by| m.links.iter_mut().for_each(|link| link.latency.value /= by)),
    ("collective latency", |m, by| m.chip.collective_latency.value /= by),
    ("collective bandwidth", |m, by| m.chip.collective_bandwidth.value *= by),
    ("launches", |m, by| m.chip.launch_per_layer.value /= by),
    ("host", |m, by| m.chip.host_per_step.value /= by),
    ("weights", |m, by| {
        m.chip.quantised_bytes.value /= by;
        m.chip.native_bytes.value /= by;
    }),
    ("cache", |m, by| m.chip.kv_bytes.value /= by),
];

fn better(problem: &Problem, formats: usize, change: Better, by: f64) -> Problem {
    let catalog = Catalog::default();
    let known = &problem.formats[formats];
    let mut machine = known.machine.clone();
    change(&mut machine, by);
    let load = |id: &str| catalog.load::<NumberFormat>(id).unwrap();
    let mut problem = problem.clone();
    std::sync::Arc::make_mut(&mut problem.formats)[formats] =
        Formats::new(&load(&known.weights), &load(&known.kv), machine);
    problem
}

/// What never rises.
const TIMES: [(&str, fn(&Evaluation<Qty<f64>>) -> f64); 6] = [
    ("ttft", |e| e.slowest.ttft.value()),
    ("tpot", |e| e.slowest.tpot.value()),
    ("e2e", |e| e.slowest.e2e.value()),
    ("prefill", |e| e.prefill.total.value()),
    ("prefill stage", |e| e.prefill.slowest.value()),
    ("decode", |e| e.decode.total.value()),
];

fn never_slower(case: &Case) -> Result<(), TestCaseError> {
    let at = |problem: &Problem| case.candidate.evaluate(&Plain, problem, &mut ());
    let before = at(&case.problem);
    for (name, change) in BETTER {
        for by in [1.1, 3.0] {
            let now = at(&better(&case.problem, case.candidate.formats, change, by));
            // With so many in flight in two pools, what is quicker in one waits longer for the other.
            let crowded =
                case.candidate.is_disaggregated() && matches!(case.problem.traffic, Traffic::InFlight(_));
            // Among unlike pools a stated load moves to those that gain most.
            let alike = if case.candidate.is_disaggregated() { 2 } else { 1 };
            let moves = case.candidate.pools.len() > alike && !matches!(case.problem.traffic, Traffic::Free);
            for (what, pick) in TIMES {
                let latency = ["ttft", "tpot", "e2e"].contains(&what);
                if (crowded && what == "ttft") || (moves && latency) {
                    continue;
                }
                let (before, now) = (pick(&before), pick(&now));
                prop_assert!(now <= before, "{} x {}: {} rises from {} to {}", name, by, what, before, now);
            }
            let (before, now) = (before.metrics.output_tok_s.value(), now.metrics.output_tok_s.value());
            prop_assert!(
                moves || now >= before,
                "{} x {}: output falls from {} to {}",
                name,
                by,
                before,
                now
            );
        }
    }
    Ok(())
}

#[test]
fn a_better_machine_is_never_slower() {
    each_case(30, never_slower);
}
