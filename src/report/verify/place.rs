//! Verification of a saved placement against the formulas: its stages, memory, times, certificate,
//! neighbouring and random placements, and the search itself. Reads no files.

mod read;

use serde_json::Value;

use super::{CLOSE, CheckResult, Verified, figure, off, rows, unlike, value, whole};
use crate::report::place::{PlacementResult, PlacementStatus};
use crate::search::placement::chain::Stage;
use crate::search::placement::evaluate::PlacementEvaluator;
use crate::search::placement::price::PlacementProblem;
use crate::search::placement::sample::{drawn, neighbours};
use crate::search::placement::solve::PlacementObjective;
use read::{SavedPlacement, read};

/// Consistency of the certificate.
fn certificate(saved: &Value, (seconds, least): (f64, f64)) -> Vec<String> {
    let proof = &saved["certificate"];
    let (objective, bound) = (figure(proof, "objective_ms"), figure(proof, "lower_bound_ms"));
    let mut faults: Vec<String> =
        off("certificate.objective_ms", objective, 1e3 * seconds, CLOSE).into_iter().collect();
    if seconds < least * (1.0 - CLOSE) {
        faults.push(format!("saved {objective} ms, the bound without order and links is {} ms", 1e3 * least));
    }
    let above = |bound: f64| bound.is_nan() || bound > objective * (1.0 + CLOSE);
    for key in ["lower_bound_ms", "independent_bound_ms"] {
        if above(figure(proof, key)) {
            faults.push(format!("certificate.{key}: {} is above the objective {objective}", proof[key]));
        }
    }
    let gap = (1.0 - bound / objective).max(0.0);
    if (figure(proof, "gap") - gap).abs() > CLOSE || figure(proof, "gap").is_nan() {
        faults.push(format!("certificate.gap: saved {}, recomputed {gap}", proof["gap"]));
    }
    let proved = gap <= CLOSE;
    if proved != (saved["status"] == "optimal") {
        faults.push(format!("status: saved {}, the gap is {gap}", saved["status"]));
    }
    faults
}

/// Neighbouring and random placements that are better than `most` seconds.
fn beaten(
    all: &[PlacementEvaluator],
    beside: Option<&SavedPlacement>,
    most: f64,
    (count, seed): (u64, u64),
) -> (u64, Vec<String>) {
    let (mut looked, mut faults) = (0, Vec::new());
    let mut look = |scales: &PlacementEvaluator, stages: &[Stage]| {
        looked += 1;
        let Ok(seconds) = scales.seconds(stages, None) else { return };
        if seconds < most * (1.0 - CLOSE) {
            let names = |stage: &Stage| {
                let name = &scales.question().members[stage.member].name;
                format!("{name} {} to {}", stage.from, stage.to - 1)
            };
            let told = stages.iter().map(names).collect::<Vec<_>>().join(", ");
            faults.push(format!("{told}: {} ms, below the saved bound of {} ms", 1e3 * seconds, 1e3 * most));
        }
    };
    if let Some(read) = beside {
        let members = read.evaluator.question().members.len();
        neighbours(&read.stages, members).iter().for_each(|stages| look(read.evaluator, stages));
    }
    for scales in all {
        let problem = scales.question();
        let (layers, members) = (problem.graph.layer_block.len(), problem.members.len());
        let count = count.div_ceil(all.len() as u64);
        drawn(layers, members, count, seed).iter().for_each(|stages| look(scales, stages));
    }
    (looked, faults)
}

/// Compares the saved result with a new search; of a stopped one, only the bounds.
fn searched(saved: &Value, fresh: &PlacementResult) -> Vec<String> {
    let Some(proof) = fresh.certificate.as_ref().filter(|_| stopped(saved)) else {
        let unknown = saved["status"] == "unknown";
        return if unknown { vec![] } else { whole(saved, &value(fresh), &[]) };
    };
    let told = &saved["certificate"];
    let (objective, bound) = (figure(told, "objective_ms"), figure(told, "lower_bound_ms"));
    let hair = 1.0 + CLOSE;
    let mut faults = Vec::new();
    if bound > proof.objective_ms * hair {
        faults.push(format!(
            "a new search reaches {} ms, below the saved bound of {bound} ms",
            proof.objective_ms
        ));
    }
    if objective * hair < proof.lower_bound_ms {
        faults.push(format!("saved {objective} ms, below the proved bound of {} ms", proof.lower_bound_ms));
    }
    faults
}

/// Whether the saved result is from a search that was stopped early.
fn stopped(saved: &Value) -> bool {
    let all = [PlacementStatus::Feasible, PlacementStatus::TimeLimit, PlacementStatus::Interrupted];
    all.iter().any(|status| value(status) == saved["status"])
}

/// Checks a saved answer; `questions` are those that it may be of, without host memory and with it, and `fresh` is
/// what a search of its own comes to.
pub fn verify(
    questions: &[&[PlacementProblem]],
    aim: PlacementObjective,
    (saved, fresh): (&Value, &PlacementResult),
    (count, seed): (u64, u64),
) -> Verified {
    let again = value(fresh);
    let mut checks = vec![CheckResult::new(
        "question: resolves to the same inputs, with defaults",
        1,
        unlike(&["question", "scenario"], saved, &again),
    )];
    let weighed: Vec<Vec<PlacementEvaluator>> = questions
        .iter()
        .map(|some| some.iter().map(|one| PlacementEvaluator::new(one, aim)).collect())
        .collect();
    let placement = &saved["placement"];
    let told = rows(placement, "stages").len();
    let there = !placement.is_null();
    // The result does not name its tensor parallelism: the problem with the fewest differences is used.
    let mut found: Option<(usize, SavedPlacement, Vec<String>)> = None;
    let mut unread: Option<Vec<String>> = None;
    for (set, scales) in
        weighed.iter().enumerate().flat_map(|(set, all)| all.iter().map(move |one| (set, one)))
    {
        if !there {
            break;
        }
        match read(scales, placement) {
            Err(faults) => {
                if unread.as_ref().is_none_or(|known| faults.len() < known.len()) {
                    unread = Some(faults);
                }
            }
            Ok(read) => {
                let faults = read.again(placement);
                if found.as_ref().is_none_or(|(_, _, known)| faults.len() < known.len()) {
                    found = Some((set, read, faults));
                }
            }
        }
    }
    let faults = if found.is_some() { vec![] } else { unread.unwrap_or_default() };
    checks.push(CheckResult::new(
        "stages: known devices, each once, every layer once in order",
        told,
        faults,
    ));
    let mut most = f64::INFINITY;
    if let Some((_, read, faults)) = &found {
        checks.push(CheckResult::new(
            "memory: of every stage and host, from the formulas",
            told,
            read.memory(placement),
        ));
        checks.push(CheckResult::new(
            "times: of every stage, from the formulas",
            told,
            read.times(placement),
        ));
        checks.push(CheckResult::new("objective: the placement re-evaluated", told, faults.clone()));
        let told = read.evaluator.to_solved(&read.stages, read.host_shares.clone(), read.replicated.as_ref());
        let (seconds, least) = told.map_or((f64::NAN, 0.0), |told| (told.seconds, told.cheap_bound));
        checks.push(CheckResult::new(
            "certificate: objective, bounds and gap agree",
            1,
            certificate(saved, (seconds, least)),
        ));
        most = 1e-3 * figure(&saved["certificate"], "lower_bound_ms");
    }
    // If the result claims infeasibility, no random placement may fit.
    let set = found.as_ref().map(|(set, ..)| *set);
    let all: Vec<&Vec<PlacementEvaluator>> = weighed
        .iter()
        .enumerate()
        .filter(|(at, _)| set.is_none_or(|set| set == *at))
        .map(|(_, all)| all)
        .collect();
    let beside = found.as_ref().map(|(_, read, _)| read);
    if saved["status"] != "unknown" && (found.is_some() || !there) {
        let (mut looked, mut faults) = (0, Vec::new());
        for (at, scales) in all.iter().enumerate() {
            let (some, better) = beaten(scales, beside.filter(|_| at == 0), most, (count, seed));
            looked += some;
            faults.extend(better);
        }
        let what = if there {
            "sample: no neighbouring and no random placement is below its bound"
        } else {
            "sample: no random placement fits"
        };
        checks.push(CheckResult::new(what, looked as usize, faults));
    }
    let what = if stopped(saved) {
        "search: a complete search contradicts neither the objective nor the bound"
    } else {
        "search: a new search gives the same result in every field"
    };
    checks.push(CheckResult::new(what, 1, searched(saved, fresh)));
    Verified::of(checks, seed)
}
