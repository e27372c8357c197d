//! Every model on every system: one deployment of each pair that fits, and whole searches of some. A sample by
//! default; every pair, and within its time, where `MANTILE_SWEEP=all` says so.

use std::time::{Duration, Instant};

use mantile::quantity::read::Plain;
use mantile::report::answer::forbidden;
use mantile::request::build_candidate::candidate;
use mantile::search::candidate::Candidate;
use mantile::search::outcome::Status;
use mantile::search::problem::Problem;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use mantile::store::resolved_scenario::ResolvedScenario;
use rayon::prelude::*;

/// The whole catalogue may take so long.
const BUDGET: Duration = Duration::from_secs(60);
/// One pair of so many is looked at where nothing else is said.
const SAMPLE: usize = 401;

/// What became of a pair.
#[derive(Debug, Default)]
struct Tally {
    answered: usize,
    infeasible: usize,
    refused: usize,
}

/// One deployment of a model: as much tensor parallelism as its shape allows, at the largest load that fits.
/// Nothing where it does not fit, or nothing of that shape may be.
fn smoke(problem: &Problem, devices: u64) -> Option<Candidate> {
    let widths = (0..7).rev().map(|power| 1 << power).filter(|width| *width <= devices);
    widths.into_iter().find_map(|width| {
        let plan = format!("1 x tp{width}").parse().unwrap();
        let candidate = candidate(problem, &plan).unwrap();
        if !forbidden(problem, &candidate).is_empty() {
            return None;
        }
        let memory = candidate.evaluate(&Plain, problem, &mut ()).memory;
        (memory.total.value() <= memory.usable.value()).then_some(candidate)
    })
}

/// Every pair once through every formula, with one deployment that fits.
#[test]
fn every_pair_that_fits_runs() {
    let catalog = Catalog::default();
    let (models, systems) = (catalog.entries(CatalogKind::Models), catalog.entries(CatalogKind::Systems));
    let start = Instant::now();
    let pairs: Vec<_> = models
        .keys()
        .flat_map(|model| systems.keys().map(move |system| (model, system)))
        .step_by(if whole() { 1 } else { SAMPLE })
        .collect();
    let runs = |(model, system): &(&String, &String)| {
        let scenario = Scenario {
            model: Some((*model).clone()),
            hardware: Some((*system).clone()),
            ..Scenario::default()
        };
        let Ok(resolved) = ResolvedScenario::resolve(&catalog, &scenario) else { return false };
        let problem = resolved.problem().unwrap_or_else(|fault| panic!("{model} on {system}: {fault}"));
        let Some(candidate) = smoke(&problem, resolved.cluster.devices()) else { return false };
        let seconds = candidate.evaluate(&Plain, &problem, &mut ()).metrics.tpot.value();
        assert!(seconds.is_finite() && seconds > 0.0, "{model} on {system}: a step of {seconds} s");
        true
    };
    let ran = pairs.par_iter().filter(|pair| runs(pair)).count();
    let pairs = pairs.len();
    let took = start.elapsed();
    eprintln!("{ran} of {pairs} pairs fit and ran, in {took:.1?}");
    assert!(2 * ran > pairs, "{ran} of {pairs}");
    assert!(took < BUDGET, "{took:.1?} for {pairs} pairs");
}

/// A system, and the next where that holds too little.
const LARGER: [&str; 2] = ["8xb200", "gb300-nvl72"];

#[test]
fn every_model_is_answered_on_a_system_that_holds_it() {
    let catalog = Catalog::default();
    let start = Instant::now();
    let models = catalog.entries(CatalogKind::Models);
    for model in models.keys() {
        // Short enough for the oldest models.
        let requested = Scenario {
            model: Some(model.clone()),
            isl: Some(256),
            osl: Some(64),
            concurrency: Some(4),
            ..Scenario::default()
        };
        let answered = LARGER.iter().any(|system| {
            let on = |weight_format: Option<String>| {
                let hardware = Some((*system).to_owned());
                let scenario = Scenario { hardware, weight_format, ..requested.clone() };
                ResolvedScenario::resolve(&catalog, &scenario).and_then(|resolved| resolved.problem())
            };
            // Checkpoints of several formats have to be asked for in one.
            let mut problem = match on(None) {
                Err(fault) if fault.key == "weight-format" => on(Some("fp8-block".into())),
                problem => problem,
            }
            .unwrap_or_else(|fault| panic!("{model} on {system}: {fault}"));
            problem.axes.clear();
            let outcome = run(&problem, &UNWATCHED);
            let finite = outcome.best.is_some_and(|best| best.point.iter().all(|value| value.is_finite()));
            assert!(finite || outcome.status == Status::Infeasible, "{model} on {system}");
            finite
        });
        assert!(answered, "{model} fits nowhere");
    }
    eprintln!("{} models answered in {:.1?}", models.len(), start.elapsed());
}

fn whole() -> bool {
    std::env::var("MANTILE_SWEEP").is_ok_and(|what| what == "all")
}

#[test]
fn every_pair_is_answered_or_refused_with_a_reason() {
    let catalog = Catalog::default();
    let (models, systems) = (catalog.entries(CatalogKind::Models), catalog.entries(CatalogKind::Systems));
    let pairs = models.keys().flat_map(|model| systems.keys().map(move |system| (model, system)));
    let start = Instant::now();
    let (mut tally, mut slowest) = (Tally::default(), (Duration::ZERO, String::new()));
    for (at, (model, system)) in pairs.enumerate() {
        // Searches of whole halls take seconds each: every so many is enough.
        if at % SAMPLE != 0 {
            continue;
        }
        let pair = format!("{model} on {system}");
        let since = Instant::now();
        let scenario =
            Scenario { model: Some(model.clone()), hardware: Some(system.clone()), ..Scenario::default() };
        let problem = ResolvedScenario::resolve(&catalog, &scenario).and_then(|resolved| resolved.problem());
        match problem {
            Err(fault) => {
                tally.refused += 1;
                let shown = [&fault.key, &fault.found, &fault.expected, &fault.fix];
                assert!(shown.iter().all(|text| !text.is_empty()), "{pair}: {fault}");
            }
            Ok(mut problem) => {
                // The optimum alone is asked for: it takes the same formulas as a front, and less time.
                problem.axes.clear();
                let outcome = run(&problem, &UNWATCHED);
                match outcome.status {
                    Status::Infeasible => tally.infeasible += 1,
                    _ => {
                        tally.answered += 1;
                        let best =
                            outcome.best.as_ref().unwrap_or_else(|| panic!("{pair}: {:?}", outcome.status));
                        // Money and energy are unknown where nobody published a price or a power limit.
                        let known = problem.workload.power_draw.is_some() && problem.workload.bill.is_some();
                        let unknown = best.point.iter().filter(|value| value.is_nan()).count();
                        assert!(
                            unknown == 0 || !known && unknown < best.point.len() / 2,
                            "{pair}: {:?}",
                            best.point
                        );
                    }
                }
            }
        }
        slowest = slowest.max((since.elapsed(), pair));
    }
    let took = start.elapsed();
    eprintln!("{tally:?} in {took:.1?}; slowest: {} in {:.1?}", slowest.1, slowest.0);
    assert!(tally.answered > tally.refused, "{tally:?}");
}
