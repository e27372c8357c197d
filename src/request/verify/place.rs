//! Verification of a saved placement: its stages, memory, times, certificate, neighbouring and random placements, and
//! the search itself.

mod disaggregated;
mod program;
mod stages;

use serde_json::{Value, json};

use super::{CheckResult, RandomSample, Rerun, SEARCH, differences, faults, no_problem, off, question, read};
use crate::quantity::tolerance::SUMMED;
use crate::report::place::build::placement_report;
use crate::report::place::{PlacementCertificate, PlacementReport, PlacementResult};
use crate::report::verify::Verified;
use crate::request::place::aim;
use crate::request::place::solve::{AnsweredPlacement, answer_placement, with_left_out};
use crate::search::outcome::Status;
use crate::search::placement::chain::Stage;
use crate::search::placement::evaluate::PlacementEvaluator;
use crate::search::placement::sample::{drawn, neighbours};
use crate::search::placement::solve::PlacementTime;
use crate::search::run::UNWATCHED;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::rig::ResolvedRig;
use stages::SavedStages;

/// The problems of a saved placement, and the result of a complete search.
pub struct PlaceRerun {
    pub fresh: PlacementResult,
    /// The problems, without host memory and with it.
    pub rigged: ResolvedRig,
    /// Those of the same devices with other runtimes.
    pub others: Vec<ResolvedRig>,
    pub aim: PlacementTime,
}

impl Rerun for PlaceRerun {
    fn check(&self, saved: &Value, sample: RandomSample) -> Result<Verified, Error> {
        Ok(Verified::of(self.checks(&read(saved)?, sample), sample.seed))
    }
}

/// A saved placement on the devices of one problem, evaluated again.
struct Reevaluated<'a, 'q> {
    /// Index of the set of problems.
    set: usize,
    stages: SavedStages<'a, 'q>,
    /// Objective and independent lower bound, in seconds.
    seconds: (f64, f64),
    faults: Vec<String>,
}

impl PlaceRerun {
    pub fn solve(catalog: &Catalog, saved: &PlacementResult) -> Result<PlaceRerun, Error> {
        let scenario = saved.scenario.as_ref().ok_or_else(no_problem)?;
        let AnsweredPlacement { result: fresh, rigged, others } =
            answer_placement(catalog, scenario, &UNWATCHED)?;
        Ok(PlaceRerun { fresh, rigged, others, aim: aim(scenario.objective) })
    }

    fn checks(&self, saved: &PlacementResult, sample: RandomSample) -> Vec<CheckResult> {
        let mut resolved = differences("question", &saved.question, &self.fresh.question);
        resolved.extend(differences("scenario", &saved.scenario, &self.fresh.scenario));
        let mut checks = vec![question(faults(resolved))];
        let sets = self.evaluators(&self.rigged);
        let found = match &saved.placement {
            Some(placement) => {
                let proof = (saved.certificate.as_ref(), Some(saved.status));
                rows((&self.rigged, &sets), (placement, ""), proof, &mut checks)
            }
            None => {
                checks.push(CheckResult::new(format!("stages: {STAGES}"), 0, vec![]));
                None
            }
        };
        if let Some(better) = &saved.theoretical {
            let same = |rigged: &&ResolvedRig| {
                rigged.runtimes.iter().map(|own| &own.id).eq(&better.runtimes)
                    && rigged.weights.format.id == better.weight_format
            };
            match self.rigs().find(same) {
                Some(rigged) => {
                    let (placed, proof) = (&better.placement, Some(&better.certificate));
                    let sets = self.evaluators(rigged);
                    rows((rigged, &sets), (placed, "theoretical "), (proof, None), &mut checks);
                }
                None => checks.push(CheckResult::new(
                    format!("theoretical stages: {STAGES}"),
                    better.placement.stages.len(),
                    vec![format!(
                        "no devices with {} in {}",
                        better.runtimes.join(", "),
                        better.weight_format
                    )],
                )),
            }
        }
        if let Some(halves) = &saved.disaggregated {
            checks.push(disaggregated::check(self.rigs(), halves));
        }
        if saved.status != Status::Unknown && (found.is_some() || saved.placement.is_none()) {
            checks.push(sampled(&sets, saved, found.as_ref(), sample));
            checks.extend(program::check(&sets, saved, self.aim));
        }
        checks.push(self.searched(saved));
        checks
    }

    /// The devices with each choice of runtimes.
    fn rigs(&self) -> impl Iterator<Item = &ResolvedRig> {
        std::iter::once(&self.rigged).chain(&self.others)
    }

    /// Its problems, without host memory and with it.
    fn evaluators<'q>(&self, rigged: &'q ResolvedRig) -> [Vec<PlacementEvaluator<'q>>; 2] {
        [&rigged.problems, &rigged.offloaded]
            .map(|set| set.iter().map(|one| PlacementEvaluator::new(one, self.aim)).collect())
    }

    /// Compares the saved result with a new search; of a stopped one, only the bounds.
    fn searched(&self, saved: &PlacementResult) -> CheckResult {
        let stopped = saved.status == Status::Feasible;
        let what = if stopped {
            "search: a complete search contradicts neither the objective nor the bound"
        } else {
            SEARCH
        };
        let faults = match (&saved.certificate, &self.fresh.certificate) {
            (Some(saved), Some(fresh)) if stopped => contradicted(saved, fresh),
            _ if saved.status == Status::Unknown => vec![],
            _ => faults(differences("", saved, &self.fresh)),
        };
        CheckResult::new(what, 1, faults)
    }
}

/// The check of stages.
const STAGES: &str = "known devices, each once, every layer once in order";

/// Checks the rows of a placement, which `kind` names; returns it evaluated again, where its stages can be read.
fn rows<'a, 'q>(
    (rigged, sets): (&ResolvedRig, &'a [Vec<PlacementEvaluator<'q>>; 2]),
    (placement, kind): (&PlacementReport, &str),
    (proof, status): (Option<&PlacementCertificate>, Option<Status>),
    checks: &mut Vec<CheckResult>,
) -> Option<Reevaluated<'a, 'q>> {
    let count = placement.stages.len();
    let mut add = |what: String, count: usize, faults: Vec<String>| {
        checks.push(CheckResult::new(format!("{kind}{what}"), count, faults));
    };
    let found = match reevaluated(rigged, sets, placement) {
        Ok(found) => found,
        Err(faults) => {
            add(format!("stages: {STAGES}"), count, faults);
            return None;
        }
    };
    add(format!("stages: {STAGES}"), count, vec![]);
    let stages = &found.stages;
    add("memory: of every stage and host, from the formulas".into(), count, stages.memory(placement));
    add("times: of every stage, from the formulas".into(), count, stages.times(placement));
    add("objective: the placement re-evaluated".into(), count, found.faults.clone());
    let agree = certificate(proof, status, found.seconds);
    add("certificate: objective, bounds and gap agree".into(), 1, agree);
    Some(found)
}

/// Contradictions of a complete search to the certificate of a stopped one.
fn contradicted(saved: &PlacementCertificate, fresh: &PlacementCertificate) -> Vec<String> {
    let (objective, bound) = (saved.objective_ms, saved.lower_bound_ms);
    let (reached, proved) = (fresh.objective_ms, fresh.lower_bound_ms);
    let mut faults = Vec::new();
    if bound > reached * (1.0 + SUMMED) {
        faults.push(format!("a new search reaches {reached} ms, below the saved bound of {bound} ms"));
    }
    if objective * (1.0 + SUMMED) < proved {
        faults.push(format!("saved {objective} ms, below the proved bound of {proved} ms"));
    }
    faults
}

/// The placement evaluated again. The result does not name its tensor parallelism: the problem with the fewest
/// differences is used.
fn reevaluated<'a, 'q>(
    rigged: &ResolvedRig,
    sets: &'a [Vec<PlacementEvaluator<'q>>],
    placement: &PlacementReport,
) -> Result<Reevaluated<'a, 'q>, Vec<String>> {
    let fewer =
        |faults: &[String], known: Option<&[String]>| known.is_none_or(|known| faults.len() < known.len());
    let mut found: Option<Reevaluated> = None;
    let mut unread: Option<Vec<String>> = None;
    let all = sets.iter().enumerate().flat_map(|(set, all)| all.iter().map(move |one| (set, one)));
    for (set, evaluator) in all {
        match SavedStages::read(evaluator, placement) {
            Err(faults) if fewer(&faults, unread.as_deref()) => unread = Some(faults),
            Err(_) => {}
            Ok(stages) => {
                let (seconds, faults) = again(rigged, &stages, placement);
                if fewer(&faults, found.as_ref().map(|found| found.faults.as_slice())) {
                    found = Some(Reevaluated { set, stages, seconds, faults });
                }
            }
        }
    }
    found.ok_or_else(|| unread.unwrap_or_default())
}

/// Objective and independent bound of a placement in seconds, and every field that differs.
fn again(
    rigged: &ResolvedRig,
    stages: &SavedStages,
    placement: &PlacementReport,
) -> ((f64, f64), Vec<String>) {
    match stages.solved() {
        Ok(solved) => {
            let fresh = with_left_out(rigged, placement_report(stages.evaluator.question(), &solved));
            let found = differences("placement", placement, &fresh);
            ((solved.seconds, solved.cheap_bound), faults(found))
        }
        Err(fault) => ((f64::NAN, 0.0), vec![fault]),
    }
}

fn certificate(
    proof: Option<&PlacementCertificate>,
    status: Option<Status>,
    (seconds, least): (f64, f64),
) -> Vec<String> {
    let Some(proof) = proof else { return vec!["certificate: none is saved".to_string()] };
    let objective = proof.objective_ms;
    let mut faults: Vec<String> =
        off("certificate.objective_ms", objective, 1e3 * seconds, SUMMED).into_iter().collect();
    if seconds < least * (1.0 - SUMMED) {
        faults.push(format!("saved {objective} ms, the bound without order and links is {} ms", 1e3 * least));
    }
    let bounds =
        [("lower_bound_ms", proof.lower_bound_ms), ("independent_bound_ms", proof.independent_bound_ms)];
    for (key, bound) in bounds {
        if bound > objective * (1.0 + SUMMED) {
            faults.push(format!("certificate.{key}: {bound} is above the objective {objective}"));
        }
    }
    let gap = (1.0 - proof.lower_bound_ms / objective).max(0.0);
    if (proof.gap - gap).abs() > SUMMED {
        faults.push(format!("certificate.gap: saved {}, recomputed {gap}", proof.gap));
    }
    if let Some(status) = status.filter(|status| (gap <= SUMMED) != (*status == Status::Optimal)) {
        faults.push(format!("status: saved {}, the gap is {gap}", json!(status)));
    }
    faults
}

/// Neighbouring and random placements: none is below the saved bound; if none is saved, none fits.
fn sampled(
    sets: &[Vec<PlacementEvaluator>],
    saved: &PlacementResult,
    found: Option<&Reevaluated>,
    sample: RandomSample,
) -> CheckResult {
    // Random placements are not only those that software starts.
    let all = saved.theoretical.as_ref().map(|found| &found.certificate).or(saved.certificate.as_ref());
    let proof = all.filter(|_| found.is_some());
    let most = proof.map_or(f64::INFINITY, |proof| 1e-3 * proof.lower_bound_ms);
    let (mut looked, mut faults) = (0, Vec::new());
    let mut look = |evaluator: &PlacementEvaluator, stages: &[Stage]| {
        looked += 1;
        let Ok(seconds) = evaluator.seconds(stages, None) else { return };
        if seconds < most * (1.0 - SUMMED) {
            let name = |stage: &Stage| {
                let name = &evaluator.question().members[stage.member].name;
                format!("{name} {} to {}", stage.from, stage.to - 1)
            };
            let names = stages.iter().map(name).collect::<Vec<_>>().join(", ");
            faults.push(format!("{names}: {} ms, below the saved bound of {} ms", 1e3 * seconds, 1e3 * most));
        }
    };
    if let Some(Reevaluated { stages, .. }) = found {
        let members = stages.evaluator.question().members.len();
        neighbours(&stages.stages, members).iter().for_each(|other| look(stages.evaluator, other));
    }
    let of = |at: &usize| found.is_none_or(|found| found.set == *at);
    for set in (0..sets.len()).filter(of).map(|at| &sets[at]) {
        for evaluator in set {
            let problem = evaluator.question();
            let (layers, members) = (problem.graph.layer_block.len(), problem.members.len());
            let count = sample.count.div_ceil(set.len() as u64);
            drawn(layers, members, count, sample.seed).iter().for_each(|stages| look(evaluator, stages));
        }
    }
    let what = match found {
        Some(_) => "sample: no neighbouring and no random placement is below its bound",
        None => "sample: no random placement fits",
    };
    CheckResult::new(what, looked, faults)
}
