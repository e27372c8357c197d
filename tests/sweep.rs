//! Every model on every system: answered, or refused with a reason. A sample by default; all of it, and within
//! its time, where `MANTILE_SWEEP=all` says so.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::time::{Duration, Instant};

use mantile::search::outcome::Status;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::Kind;
use mantile::store::problem::Problem;

/// The whole catalogue may take so long.
const BUDGET: Duration = Duration::from_secs(60);
/// One pair of so many is looked at where nothing else is said.
const SAMPLE: usize = 23;

/// What became of a pair.
#[derive(Debug, Default)]
struct Tally {
    answered: usize,
    infeasible: usize,
    refused: usize,
}

#[test]
fn every_pair_is_answered_or_refused_with_a_reason() {
    let whole = std::env::var("MANTILE_SWEEP").is_ok_and(|what| what == "all");
    let catalog = Catalog::default();
    let (models, systems) = (catalog.shelf(Kind::Models), catalog.shelf(Kind::Systems));
    let pairs = models.keys().flat_map(|model| systems.keys().map(move |system| (model, system)));
    let start = Instant::now();
    let (mut tally, mut slowest) = (Tally::default(), (Duration::ZERO, String::new()));
    for (at, (model, system)) in pairs.enumerate() {
        if !whole && at % SAMPLE != 0 {
            continue;
        }
        let pair = format!("{model} on {system}");
        let since = Instant::now();
        let scenario =
            Scenario { model: Some(model.clone()), hardware: Some(system.clone()), ..Scenario::default() };
        let question = Problem::resolve(&catalog, &scenario).and_then(|problem| problem.question());
        match question {
            Err(fault) => {
                tally.refused += 1;
                let told = [&fault.key, &fault.found, &fault.expected, &fault.fix];
                assert!(told.iter().all(|text| !text.is_empty()), "{pair}: {fault}");
            }
            Ok(mut question) => {
                // The optimum alone is asked for: it takes the same formulas as a front, and less time.
                question.axes.clear();
                let outcome = run(&question, &UNWATCHED);
                match outcome.status {
                    Status::Infeasible => tally.infeasible += 1,
                    _ => {
                        tally.answered += 1;
                        let best =
                            outcome.best.as_ref().unwrap_or_else(|| panic!("{pair}: {:?}", outcome.status));
                        // Money and energy are unknown where nobody published a price or a power limit.
                        let known = question.stated.draw.is_some() && question.stated.bill.is_some();
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
    assert!(!whole || took < BUDGET, "{took:.1?} for the whole catalogue");
}
