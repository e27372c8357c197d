//! Weight formats of the phases: each acts in the pools of its phase, and nowhere else.

use mantile::report::result::{EstimateResult, ReportedDeployment};
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::search::outcome::Status;
use mantile::spec::deployment::Deployment;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use proptest::prelude::*;

use super::TINY;
use crate::ask::on;
use crate::cases::each;

const FORMATS: [&str; 2] = ["bf16", "fp8"];

/// Formats of prefill and decode, by index.
fn phases() -> impl Strategy<Value = [usize; 2]> {
    [0..FORMATS.len(), 0..FORMATS.len()]
}

fn lengths() -> impl Strategy<Value = (u64, u64)> {
    (16u64..1400, 2u64..600)
}

/// A question in one format, or in one for each phase.
fn question([prefill, decode]: [usize; 2], (isl, osl): (u64, u64)) -> Scenario {
    let format = |at: usize| Some(FORMATS[at].to_owned());
    let none = || Some("none".to_owned());
    let base = Scenario {
        isl: Some(isl),
        osl: Some(osl),
        ttft: none(),
        tpot: none(),
        objective: Some("throughput".into()),
        ..on(TINY, "4xh100")
    };
    if prefill == decode {
        return Scenario { weight_format: format(decode), ..base };
    }
    Scenario { prefill_weight_format: format(prefill), decode_weight_format: format(decode), ..base }
}

fn estimated(scenario: Scenario, plan: &str) -> EstimateResult {
    let deployment = Some(Deployment { plan: Some(plan.into()), ..Deployment::default() });
    let request =
        EstimateRequest { scenario: Scenario { deployment, ..scenario }, ..EstimateRequest::default() };
    estimate(&Catalog::default(), &request, &UNCONTROLLED).unwrap_or_else(|fault| panic!("{plan}: {fault}"))
}

fn latencies(of: &ReportedDeployment) -> [f64; 2] {
    let metrics = of.metrics.as_ref().unwrap_or_else(|| panic!("{:?}", of.violations));
    [metrics.ttft_ms, metrics.tpot_ms]
}

#[test]
fn each_phase_has_the_times_of_its_own_format() {
    each(
        12,
        (phases(), lengths(), 0u32..2, 0u32..2, 1u64..200),
        |(formats, lengths, front, back, requests)| {
            let [front, back] = [front, back].map(|power| 1 << power);
            let plan = format!("prefill 1 x tp{front}, decode 1 x tp{back} @{requests}");
            let found = estimated(question(formats, lengths), &plan).candidate;
            let alone = |at: usize| latencies(&estimated(question([at; 2], lengths), &plan).candidate);
            let [prefill, decode] = formats.map(alone);
            prop_assert_eq!(latencies(&found), [prefill[0], decode[1]], "{} {:?}", plan, formats);
            // The plan in one line has both formats, and is read back from a question that names neither.
            let Scenario { isl, osl, ttft, tpot, .. } = question(formats, lengths);
            let bare = Scenario { isl, osl, ttft, tpot, ..on(TINY, "4xh100") };
            prop_assert_eq!(latencies(&estimated(bare, &found.notation).candidate), latencies(&found));
            Ok(())
        },
    );
}

#[test]
fn replicas_with_one_copy_of_the_weights_have_one_format() {
    for formats in [[0, 1], [1, 0]] {
        let found = estimated(question(formats, (512, 64)), "2 x tp1 @8").candidate;
        let named = found.violations.iter().any(|reason| FORMATS.iter().all(|name| reason.contains(name)));
        assert!(found.metrics.is_none() && named, "{:?}", found.violations);
    }
}

#[test]
fn the_optimum_of_two_formats_is_disaggregated_and_no_better_than_the_fastest_phases() {
    each(4, (phases(), lengths()), |(formats, lengths)| {
        let best = |formats: [usize; 2]| {
            let request =
                OptimizeRequest { scenario: question(formats, lengths), ..OptimizeRequest::default() };
            let found = optimize(&Catalog::default(), &request, &UNCONTROLLED).unwrap();
            assert_eq!(found.status, Status::Optimal, "{formats:?} {lengths:?}");
            found.best.unwrap()
        };
        let found = best(formats);
        if formats[0] != formats[1] {
            prop_assert!(found.notation.starts_with("prefill "), "{}", found.notation);
            prop_assert_eq!(found.prefill_weight_format.as_deref(), Some(FORMATS[formats[0]]));
        }
        let either = formats.map(|at| best([at; 2]).metrics.unwrap().output_tok_s);
        let output = found.metrics.unwrap().output_tok_s;
        // The format that is fast in both phases serves at least as much.
        prop_assert!(output <= either[0].max(either[1]) * (1.0 + 1e-9), "{} of {:?}", output, either);
        Ok(())
    });
}
