//! The best plans of a search, each with its requests simulated one by one.

use super::RequestControl;
use super::optimize::at;
use super::simulate::{REQUESTS_SENT, SimulateRequest, SimulatedTraffic, simulate};
use crate::report::checked::{CheckedPlan, SimulatedCheck};
use crate::report::result::ReportedDeployment;
use crate::report::simulate::{ServedFigures, SimulateReport};
use crate::spec::percentile::Percentile;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;

/// Plans that are simulated: the best and its first runners-up.
const MOST_PLANS: usize = 5;

/// Whether a search simulates its best plans without being requested to: where limits are on a tail of requests that come
/// as they like.
pub(super) fn is_due(scenario: &Scenario) -> bool {
    scenario.rate.is_some() && percentile(scenario) != Percentile::P50
}

/// Simulates `plans`, the best first, under the load of `scenario`, until the search is to stop.
pub(super) fn checked<'a>(
    catalog: &Catalog,
    scenario: &Scenario,
    plans: impl Iterator<Item = &'a ReportedDeployment>,
    control: &RequestControl,
) -> SimulatedCheck {
    let percentile = percentile(scenario);
    let mut seed = 0;
    let one = |plan: &ReportedDeployment| {
        let traffic = SimulatedTraffic { requests: Some(REQUESTS_SENT), ..SimulatedTraffic::default() };
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
                seed = report.traffic.seed;
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
    let plans: Vec<CheckedPlan> = plans.take(MOST_PLANS).map(one).collect();
    let differences = plans.iter().filter_map(CheckedPlan::difference);
    SimulatedCheck {
        requests: REQUESTS_SENT,
        seed,
        percentile,
        largest_difference: differences.reduce(f64::max),
        first_within_slos: plans.iter().position(|plan| plan.meets_slos == Some(true)).map(|at| at as u64),
        plans,
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
