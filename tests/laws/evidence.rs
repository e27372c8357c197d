//! Laws of the decision: which plan is the answer, by its odds and by the measurements of its kind.

use mantile::report::result::{OptimizeResult, ReportedDeployment};
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::search::point::place;
use mantile::search::run::{UNWATCHED, run};
use mantile::search::simpler::{ENOUGH_WINS, wins};
use mantile::spec::deployment::Deployment;
use mantile::spec::evidence::EvidenceRule;
use mantile::spec::nearness::Nearness;
use mantile::spec::objective::{Direction, Metric};
use mantile::spec::percentile::{Confidence, OddsLevel};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

use super::optimality::{DEVICES, drawn, spelled};
use crate::ask::{ask, on};
use crate::draw::cases;

fn answer(catalog: &Catalog, scenario: &Scenario, evidence: EvidenceRule) -> Option<OptimizeResult> {
    let scenario = Scenario { evidence: Some(evidence), ..scenario.clone() };
    optimize(catalog, &OptimizeRequest { scenario, ..OptimizeRequest::default() }, &UNCONTROLLED).ok()
}

fn rows(found: &ReportedDeployment) -> u64 {
    found.evidence.map_or(0, |evidence| evidence.rows)
}

/// The worse end of an interval, where the metric has one.
fn worse_end(found: &ReportedDeployment, metric: Metric, direction: Direction) -> Option<f64> {
    let ends = found.intervals.as_ref()?.get(metric)?;
    Some(if direction == Direction::Minimize { ends.p90 } else { ends.p10 })
}

/// No headline without evidence inside whose interval an evidenced plan lies; and without such a choice, the best of all.
#[test]
fn an_unmeasured_kind_is_the_answer_only_where_no_measured_one_is_near() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(37);
    let (cases, mut tried, mut preferred) = (cases(20), 0, 0);
    while tried < cases {
        let device = DEVICES[random.usize(0..DEVICES.len())];
        let hardware = format!("{}x{device}", random.u64(1..=8));
        let scenario = drawn(&mut random, &hardware);
        let scenario = Scenario { rate: None, percentile: None, ..scenario };
        let [measured, any] =
            [EvidenceRule::Measured, EvidenceRule::Any].map(|rule| answer(&catalog, &scenario, rule));
        let (Some(measured), Some(any)) = (measured, any) else { continue };
        tried += 1;
        let said = spelled(&scenario);
        let Some(best) = &any.best else {
            assert!(measured.best.is_none(), "{said}");
            continue;
        };
        let chosen = measured.optimum().unwrap_or_else(|| panic!("{said}: {} is feasible", best.notation));
        let Some(untried) = &measured.untried else {
            assert_eq!(chosen.notation, best.notation, "{said}");
            assert!(!measured.proof.space.measured_kinds_only, "{said}");
            continue;
        };
        preferred += 1;
        assert_eq!(untried.deployment.notation, best.notation, "{said}");
        assert!(rows(best) == 0 && rows(chosen) > 0, "{said}");
        assert!(measured.front.iter().chain(&measured.alternatives).all(|row| rows(row) > 0), "{said}");
        let aim = measured.question.optimize[0];
        let (value, end) = (chosen.figure(aim.metric), worse_end(best, aim.metric, aim.direction));
        if let (Some(value), Some(end)) = (value, end) {
            let slack = 1e-9 * end.abs();
            let inside = match aim.direction {
                Direction::Minimize => value <= end + slack,
                Direction::Maximize => value >= end - slack,
            };
            assert!(inside, "{said}: {value} is beyond {end}");
        }
    }
    assert!(preferred > 0, "no question had a plan of an unmeasured kind");
}

/// A simpler plan is the answer only where it wins nearly half of the draws, and is simpler in something and worse in
/// nothing.
#[test]
fn a_simpler_plan_is_the_answer_only_within_the_error_of_the_comparison() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(39);
    let (cases, mut tried, mut simpler) = (cases(12), 0, 0);
    while tried < cases {
        let hardware = format!("{}xh100", random.u64(2..=8));
        let model = ["gpt-oss-20b", "Qwen3-30B-A3B", "Llama-3.1-8B"][random.usize(0..3)];
        let scenario = drawn(&mut random, &hardware);
        let scenario = Scenario { rate: None, percentile: None, model: Some(model.into()), ..scenario };
        let Some(found) = answer(&catalog, &scenario, EvidenceRule::Measured) else { continue };
        let (Some(best), said) = (&found.best, spelled(&scenario)) else { continue };
        tried += 1;
        assert_eq!(found.simpler.is_some(), found.formulas_best.is_some(), "{said}");
        let Some((choice, optimum)) = found.simpler.zip(found.formulas_best.as_ref()) else { continue };
        simpler += 1;
        assert!((ENOUGH_WINS..0.5 + 0.05).contains(&choice.wins), "{said}: {}", choice.wins);
        let [own, other] = [best, optimum].map(complexity);
        assert!(own.0 <= other.0 && own.1 <= other.1 && own != other, "{said}: {own:?} {other:?}");
        assert!(rows(best) > 0 || rows(optimum) == 0, "{said}");
        let aim = found.question.optimize[0];
        assert!(!best.is_better(optimum, &[aim]), "{said}");
        assert!(found.alternatives.iter().any(|row| row.notation == optimum.notation), "{said}");
        let any = answer(&catalog, &scenario, EvidenceRule::Any).unwrap();
        assert!(any.simpler.is_none() && any.formulas_best.is_none(), "{said}");
    }
    assert!(simpler > 0, "no question had a simpler plan within the error");
}

/// A published run over two hosts is inside the interval of its plan, which no fit covers.
#[test]
fn a_run_with_layers_over_hosts_is_inside_its_interval() {
    let plan = |text: &str| Deployment { plan: Some(text.into()), ..Deployment::default() };
    // https://github.com/tenstorrent/tt-inference-server/pull/356: SGLang, TPOT of a request alone.
    let measured_ms = 23.3;
    let scenario = Scenario {
        model: Some("DeepSeek-R1-0528".into()),
        hardware: Some("16xh100-sxm".into()),
        runtime: Some("sglang".into()),
        isl: Some(2048),
        osl: Some(128),
        deployment: Some(plan("1 x tp16 @1")),
        ..Scenario::default()
    };
    let found = estimate(&Catalog::default(), &EstimateRequest::of(scenario), &UNCONTROLLED).unwrap();
    let known = found.candidate.intervals.unwrap();
    let ends = known.get(Metric::Tpot).unwrap();
    assert_eq!(known.near, Nearness::Hosts);
    assert!(ends.p10 < measured_ms && measured_ms < ends.p90, "{ends:?}");
}

/// Pools, and the most degrees above 1 of a worker.
fn complexity(found: &ReportedDeployment) -> (usize, u32) {
    let plan = &found.plan;
    let workers = if plan.mode == "aggregated" { 1 } else { 2 } + plan.others.len();
    let pools = [&plan.prefill, &plan.decode].into_iter().chain(&plan.others);
    (workers, pools.map(|pool| pool.plan.used_degrees()).max().unwrap_or(0))
}

/// The odds of the answer are those that were required, and higher ones never give a better plan.
#[test]
fn required_odds_are_met_and_cost_something() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(38);
    let (cases, mut tried) = (cases(8), 0);
    while tried < cases {
        let device = DEVICES[random.usize(0..DEVICES.len())];
        let hardware = format!("{}x{device}", random.u64(1..=8));
        let scenario = drawn(&mut random, &hardware);
        let mut best: Option<f64> = None;
        let said = spelled(&scenario);
        for level in [0.9, 0.75, 0.6] {
            let odds = OddsLevel::of(level).unwrap();
            let scenario = Scenario { risk: Some(Confidence::Odds(odds)), ..scenario.clone() };
            let Some(found) = answer(&catalog, &scenario, EvidenceRule::Any) else { continue };
            let aim = found.question.optimize[0];
            let Some(chosen) = &found.best else {
                assert_eq!(best, None, "{said}: odds of {level} are easier to meet than higher ones");
                continue;
            };
            tried += 1;
            let met = chosen.slo_odds.map_or(1.0, |odds| odds.all);
            assert!(met >= level - 1e-9, "{said}: {met} at {level}");
            let value = chosen.figure(aim.metric).map(|value| match aim.direction {
                Direction::Minimize => -value,
                Direction::Maximize => value,
            });
            if let Some((value, known)) = value.zip(best) {
                assert!(value >= known - 1e-9 * known.abs(), "{said}: {value} at {level}, {known} above");
            }
            best = value.or(best);
        }
    }
}

/// Equal plans win half of the draws each, and a better one more.
#[test]
fn a_plan_wins_more_draws_the_better_it_is() {
    let problem = ask(&on("Llama-3.1-8B", "2xh100")).unwrap();
    let best = run(&problem, &UNWATCHED).best.unwrap();
    let times = |factor: f64| {
        let mut other = best.clone();
        for metric in [Metric::OutputTokS, Metric::OutputTokSPerDevice] {
            other.point[place(metric)] *= factor;
        }
        wins(&problem, &other, &best).unwrap()
    };
    assert!((times(1.0) - 0.5).abs() < 0.03);
    let shares = [0.5, 0.9, 0.97, 1.0, 1.03, 1.1, 2.0].map(times);
    assert!(shares.windows(2).all(|pair| pair[0] < pair[1]), "{shares:?}");
    assert!(shares[0] < 0.02 && shares[6] > 0.98, "{shares:?}");
}
