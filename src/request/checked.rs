//! The best plans of a search, each with its requests simulated one by one.

use super::RequestControl;
use super::optimize::at;
use super::simulate::{SimulateRequest, SimulatedTraffic, simulate};
use crate::report::checked::{CheckedPlan, SimulatedCheck, TRUSTED};
use crate::report::result::ReportedDeployment;
use crate::report::simulate::{ServedFigures, SimulateReport};
use crate::spec::objective::{Direction, Metric, ObjectiveTerm};
use crate::spec::percentile::Percentile;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// Plans that are simulated: the best and its first runners-up, and further ones until one of them meets the SLOs.
const FIRST_PLANS: usize = 5;

/// Whether a search simulates its best plans without being requested to: where limits are on a tail of requests that come
/// as they like.
pub(super) fn is_due(scenario: &Scenario) -> bool {
    scenario.rate.is_some() && percentile(scenario) != Percentile::P50
}

/// Simulates `plans`, the best by `aim` first, under the load of `scenario` and `traffic`, until the search is to stop.
pub(super) fn checked<'a>(
    catalog: &Catalog,
    (scenario, traffic): (&Scenario, &SimulatedTraffic),
    aim: Option<&ObjectiveTerm>,
    plans: impl Iterator<Item = &'a ReportedDeployment>,
    control: &RequestControl,
) -> SimulatedCheck {
    let percentile = percentile(scenario);
    let (mut seed, mut requests) = (0, 0);
    let mut one = |plan: &ReportedDeployment| {
        let traffic = traffic.of_check();
        let request = SimulateRequest { scenario: at(scenario, plan), traffic, ..SimulateRequest::default() };
        let found = simulate(catalog, &request, control);
        let notation = plan.notation.clone();
        match found {
            // Its run ended early: its figures are of few requests.
            Ok(_) if (control.search.stop)() => {
                let reason = Some("the search was stopped".to_owned());
                CheckedPlan { notation, reason, ..CheckedPlan::default() }
            }
            Ok(report) => {
                (seed, requests) = (report.traffic.seed, report.traffic.requests);
                let meets = report.goodput.is_none_or(|within| within >= percentile.part());
                CheckedPlan {
                    notation,
                    simulated: figures(&report, percentile),
                    formulas: report.closed_form,
                    within_slos: report.goodput,
                    meets_slos: Some(meets),
                    reason: None,
                }
            }
            Err(fault) => CheckedPlan { notation, reason: Some(fault.found), ..CheckedPlan::default() },
        }
    };
    let mut simulated: Vec<CheckedPlan> = vec![];
    for plan in plans {
        let met = simulated.iter().any(|plan| plan.meets_slos == Some(true));
        if simulated.len() >= FIRST_PLANS && met {
            break;
        }
        simulated.push(one(plan));
    }
    let plans = simulated;
    let largest_difference = plans.iter().filter_map(CheckedPlan::difference).reduce(f64::max);
    // A rate is the throughput of every plan that carries it.
    let throughput = scenario.rate.is_none();
    let aim = aim.filter(|_| largest_difference.is_some_and(|most| most > TRUSTED));
    let shown = shown(&plans, aim, throughput) as u64;
    SimulatedCheck { requests, seed, percentile, largest_difference, shown, plans }
}

/// The first of `plans` that meets the SLOs, or another that does and is better by `aim` where the simulation knows its
/// metric; if none does, the one with the largest share of its requests within them.
fn shown(plans: &[CheckedPlan], aim: Option<&ObjectiveTerm>, throughput: bool) -> usize {
    let within = |at: &usize| plans[*at].meets_slos == Some(true);
    let better = |best: usize, other: usize| {
        let values = aim.and_then(|aim| {
            let value = |at: usize| simulated_value(plans[at].simulated.as_ref()?, aim.metric, throughput);
            let (known, new) = value(best).zip(value(other))?;
            Some(if aim.direction == Direction::Minimize { new < known } else { new > known })
        });
        if values == Some(true) { other } else { best }
    };
    let nearer = |best: usize, other: usize| {
        if plans[other].within_slos > plans[best].within_slos { other } else { best }
    };
    let met = (0..plans.len()).filter(within).reduce(better);
    met.or_else(|| (0..plans.len()).reduce(nearer)).unwrap_or(0)
}

/// A metric of the search as far as a simulation has it.
fn simulated_value(figures: &ServedFigures, metric: Metric, throughput: bool) -> Option<f64> {
    match metric {
        Metric::Ttft => Some(figures.ttft_ms),
        Metric::Tpot => Some(figures.tpot_ms),
        Metric::E2e => Some(figures.e2e_ms),
        Metric::OutputTokS => throughput.then_some(figures.output_tok_s),
        _ => None,
    }
}

/// The percentile of the SLOs.
fn percentile(scenario: &Scenario) -> Percentile {
    scenario.percentile.unwrap_or_default()
}

/// Latencies at a percentile, and throughput.
fn figures(report: &SimulateReport, percentile: Percentile) -> Option<ServedFigures> {
    let at = |metric: &str| report.latencies.iter().find(|row| row.metric == metric)?.at(percentile);
    Some(ServedFigures {
        ttft_ms: at("ttft")?,
        // Of a single token there is none.
        tpot_ms: at("tpot").unwrap_or(0.0),
        e2e_ms: at("e2e")?,
        output_tok_s: report.output_tok_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(meets: bool, ttft_ms: f64) -> CheckedPlan {
        let simulated = ServedFigures { ttft_ms, tpot_ms: 20.0, e2e_ms: 900.0, output_tok_s: 50.0 };
        let within_slos = Some(10.0 / ttft_ms);
        CheckedPlan {
            simulated: Some(simulated),
            meets_slos: Some(meets),
            within_slos,
            ..CheckedPlan::default()
        }
    }

    #[test]
    fn the_first_within_the_slos_is_shown_unless_the_simulation_knows_a_better_one() {
        let plans = [plan(false, 50.0), plan(true, 80.0), plan(true, 70.0)];
        let aim = |metric| ObjectiveTerm { metric, direction: Direction::Minimize };
        assert_eq!(shown(&plans, None, false), 1);
        assert_eq!(shown(&plans, Some(&aim(Metric::Ttft)), false), 2);
        assert_eq!(shown(&plans, Some(&aim(Metric::Tpot)), false), 1);
        assert_eq!(shown(&plans, Some(&aim(Metric::UsdPerMtok)), false), 1);
        assert_eq!(shown(&plans[..1], Some(&aim(Metric::Ttft)), false), 0);
        assert_eq!(shown(&[plan(false, 50.0), plan(false, 20.0), plan(false, 30.0)], None, false), 1);
        assert_eq!(shown(&[], None, false), 0);
    }
}
