//! Prefill and decode on different devices, evaluated again.

use super::super::{CheckResult, off};
use crate::quantity::tolerance::SUMMED;
use crate::report::place::DisaggregatedReport;
use crate::search::placement::chain::Stage;
use crate::search::placement::disaggregated::evaluate_disaggregated;
use crate::search::placement::price::{MemberPrices, PlacementProblem};
use crate::store::rig::ResolvedRig;

/// Re-estimates a saved row on the devices with its runtimes.
pub(super) fn check<'a>(
    rigs: impl Iterator<Item = &'a ResolvedRig>,
    saved: &DisaggregatedReport,
) -> CheckResult {
    let mut nearest: Option<Vec<String>> = None;
    for rigged in rigs {
        let own = rigged.runtimes.iter().map(|runtime| &runtime.id);
        if !own.eq(&saved.runtimes) || rigged.weights.format.id != saved.weight_format {
            continue;
        }
        for problem in rigged.problems.iter().chain(&rigged.offloaded) {
            let Some(faults) = differences(problem, saved) else { continue };
            if nearest.as_ref().is_none_or(|known| faults.len() < known.len()) {
                nearest = Some(faults);
            }
        }
    }
    let unread = || vec!["disaggregated: its devices hold no such layers".to_owned()];
    let what = "disaggregated: prefill, transfer, decode and request, from the formulas";
    CheckResult::new(what, 1, nearest.unwrap_or_else(unread))
}

/// Stages of saved shares; `None` where a device is unknown.
fn stages(problem: &PlacementProblem, shares: &[(String, usize)]) -> Option<Vec<Stage>> {
    let mut from = 0;
    let mut stages: Vec<Stage> = Vec::new();
    for (name, layers) in shares {
        let free = |at: usize| stages.iter().all(|stage| stage.member != at);
        let member = (0..problem.members.len()).find(|at| problem.members[*at].name == *name && free(*at))?;
        stages.push(Stage { member, from, to: from + layers });
        from += layers;
    }
    (from == problem.graph.layer_block.len() && stages.iter().all(|stage| stage.from < stage.to))
        .then_some(stages)
}

/// Every number that differs; `None` where the devices of `problem` cannot hold these layers.
fn differences(problem: &PlacementProblem, saved: &DisaggregatedReport) -> Option<Vec<String>> {
    let (prefill, decode) = (stages(problem, &saved.prefill)?, stages(problem, &saved.decode)?);
    if prefill.iter().any(|one| decode.iter().any(|other| one.member == other.member)) {
        return None;
    }
    let found = evaluate_disaggregated(&MemberPrices::new(problem), prefill, decode)?;
    let numbers = [
        ("prefill_ms", saved.prefill_ms, 1e3 * found.prefill),
        ("exposed_ms", saved.exposed_ms, 1e3 * (found.arrival - found.prefill)),
        ("token_ms", saved.token_ms, 1e3 * found.token),
        ("request_ms", saved.request_ms, 1e3 * found.request),
    ];
    let name = |key: &str| format!("disaggregated.{key}");
    let mut faults: Vec<String> =
        numbers.iter().filter_map(|(key, saved, again)| off(&name(key), *saved, *again, SUMMED)).collect();
    if saved.lower_bound_ms > saved.request_ms * (1.0 + SUMMED) {
        let (bound, reached) = (saved.lower_bound_ms, saved.request_ms);
        faults.push(format!("disaggregated.lower_bound_ms: {bound} is above its request of {reached} ms"));
    }
    Some(faults)
}
