//! Solves `place`: the best placement, the longest context, the largest model. Writes no output.

use super::aim;
use super::launch::{PlacedSolution, launch_placed};
use super::search::{FoundPlacement, PlacementSearch};
use crate::report::place::build::{
    baseline_comparisons, certificate, disaggregated_report, placement_report, single_member,
};
use crate::report::place::why::{reason, tried};
use crate::report::place::{
    DisaggregatedReport, PlacementInputs, PlacementReport, PlacementResult, TheoreticalPlacement,
};
use crate::search::outcome::Status;
use crate::search::placement::PlacementInfeasible;
use crate::search::placement::disaggregated::{MOST_MEMBERS, best_disaggregated};
use crate::search::placement::price::{MemberPrices, PlacementProblem};
use crate::search::placement::relax::relaxations;
use crate::search::placement::solve::{PlacementTime, fits};
use crate::search::run::Control;
use crate::search::shape::largest;
use crate::spec::error::Error;
use crate::spec::objective::MOST_TOKENS;
use crate::spec::placing::{PlacementObjective, PlacementScenario};
use crate::spec::rig::{Rig, RigLink, RigMember, RigTopology};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::hardware::Shorthand;
use crate::store::rig::ResolvedRig;

pub struct AnsweredPlacement {
    pub result: PlacementResult,
    /// The problems of the devices with the runtimes of the answer.
    pub rigged: ResolvedRig,
    /// Those with other runtimes.
    pub others: Vec<ResolvedRig>,
}

impl AnsweredPlacement {
    fn new(
        result: PlacementResult,
        at: usize,
        mut rigs: Vec<ResolvedRig>,
    ) -> Result<AnsweredPlacement, Error> {
        if at >= rigs.len() {
            return Err(no_group());
        }
        Ok(AnsweredPlacement { result, rigged: rigs.remove(at), others: rigs })
    }
}

pub(super) struct PlacementRequest<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) scenario: &'a PlacementScenario,
    rig: Rig,
}

/// Resolves `stated` and solves it until `control` stops the search.
pub fn answer_placement(
    catalog: &Catalog,
    stated: &PlacementScenario,
    control: &Control,
) -> Result<AnsweredPlacement, Error> {
    stated.check()?;
    let catalog = &*catalog.overridden_by_name(&stated.scenario())?;
    let sought = PlacementRequest { catalog, scenario: stated, rig: rig(catalog, stated)? };
    match stated.objective {
        PlacementObjective::MaxContext => sought.max_context(control),
        PlacementObjective::LargestModel => sought.largest_model(control),
        _ => sought.answered(sought.resolve(&stated.scenario())?, control),
    }
}

/// The problems of a rig, unsolved, for each choice of runtimes.
pub fn rig_problems(catalog: &Catalog, stated: &PlacementScenario) -> Result<Vec<ResolvedRig>, Error> {
    stated.check()?;
    let catalog = &*catalog.overridden_by_name(&stated.scenario())?;
    let sought = PlacementRequest { catalog, scenario: stated, rig: rig(catalog, stated)? };
    sought.resolve(&stated.scenario())
}

/// The rig by name, or made of the given devices and links.
fn rig(catalog: &Catalog, stated: &PlacementScenario) -> Result<Rig, Error> {
    let joined = stated.hardware.as_deref().filter(|text| !catalog.names_rig(text));
    let devices = joined.and_then(|text| catalog.unlike(text)).unwrap_or_else(|| stated.device.clone());
    if devices.is_empty() {
        let fix = "name a rig (`mantile-opt catalog rigs`), or each --device and the --link between them";
        let text = stated
            .hardware
            .as_deref()
            .ok_or_else(|| Error::new("hardware", "nothing", "a rig or devices", fix))?;
        return catalog.rig(text);
    }
    let post = |text: &String| -> Result<RigMember, Error> {
        let short = Shorthand::parse(text)?;
        let count = short.nodes.saturating_mul(short.count);
        Ok(RigMember {
            name: None,
            device: short.device.to_owned(),
            count,
            joined: None,
            runtime: None,
            host: None,
        })
    };
    let wire = |link: &String| RigLink { link: link.clone(), between: None, bandwidth: None, latency: None };
    let members: Vec<RigMember> = devices.iter().map(post).collect::<Result<_, Error>>()?;
    let rig = Rig {
        id: "stated".into(),
        name: devices.join(" + "),
        members,
        topology: stated.topology.or((!stated.link.is_empty()).then_some(RigTopology::Mesh)),
        links: stated.link.iter().map(wire).collect(),
        ..Rig::default()
    };
    rig.check()?;
    Ok(rig)
}

fn no_group() -> Error {
    let fix = "name another --runtime, which shares layers between such devices";
    Error::new("members", "a group too small for the model", "a group that fits the model", fix)
}

/// Of rigs that differ in their runtimes, those that software starts, if any.
fn started(rigs: Vec<ResolvedRig>) -> Vec<ResolvedRig> {
    let any = rigs.iter().any(|rigged| rigged.has_one_runtime() && fits_any(rigged));
    rigs.into_iter().filter(|rigged| !any || rigged.has_one_runtime()).collect()
}

/// Whether the model fits, with host memory or without.
fn fits_any(rigged: &ResolvedRig) -> bool {
    rigged.problems.iter().chain(&rigged.offloaded).any(fits)
}

impl PlacementRequest<'_> {
    fn resolve(&self, scenario: &Scenario) -> Result<Vec<ResolvedRig>, Error> {
        ResolvedRig::resolve_each(self.catalog, scenario, self.rig.clone(), self.scenario.in_flight())
    }

    fn answered(&self, rigs: Vec<ResolvedRig>, control: &Control) -> Result<AnsweredPlacement, Error> {
        let (answer, at) = self.answer(&rigs, control)?;
        AnsweredPlacement::new(answer, at, rigs)
    }

    /// The best placement on `rigs`, which differ in their runtimes, until `control` stops the search; and the index of
    /// its rig.
    fn answer(&self, rigs: &[ResolvedRig], control: &Control) -> Result<(PlacementResult, usize), Error> {
        let aim = aim(self.scenario.objective);
        let search = PlacementSearch { catalog: self.catalog, aim, control };
        let usable = |rigged: &ResolvedRig| !rigged.problems.is_empty();
        let first = rigs.iter().position(usable).ok_or_else(no_group)?;
        let found = search.best(rigs)?;
        let at = found.as_ref().map_or(first, |found| found.chosen.rig);
        let rigged = &rigs[at];
        let problem = rigged.problems.first().ok_or_else(no_group)?;
        let mut answer = PlacementResult {
            status: Status::Infeasible,
            stopped_by: None,
            scenario: Some(self.scenario.clone()),
            question: self.inputs(rigged, problem),
            max_context: None,
            placement: None,
            intervals: None,
            evidence: None,
            certificate: None,
            theoretical: None,
            compared: vec![],
            disaggregated: None,
            alone: vec![],
            infeasible: None,
            launch: None,
            notes: rigged.infeasible.iter().map(|why| why.to_string()).collect(),
        };
        answer.notes.extend(rigged.assumed.iter().map(|assumed| assumed.note.clone()));
        match found {
            Err(why) => {
                let question = rigged.offloaded.first().unwrap_or(problem);
                let questions =
                    if rigged.offloaded.is_empty() { &rigged.problems } else { &rigged.offloaded };
                let mut reason = reason(question, &why);
                if matches!(why, PlacementInfeasible::Stopped { .. }) {
                    answer.status = Status::Unknown;
                }
                // Conflicting constraints can be relaxed; other rejections include their requirement.
                if !reason.conflict.is_empty() {
                    reason.tried = tried(question, self.formats(rigged), &relaxations(questions));
                }
                answer.infeasible = Some(reason);
            }
            Ok(found) => {
                let FoundPlacement { problem, solved, .. } = &found.chosen;
                let placed = reported(rigged, &found.chosen);
                answer.status = if solved.is_optimal() { Status::Optimal } else { Status::Feasible };
                answer.certificate = Some(certificate(solved, aim));
                answer.compared = baseline_comparisons(problem, solved);
                let solution = PlacedSolution { problem, solved, report: &placed };
                answer.launch = Some(launch_placed(self.catalog, self.scenario, rigged, &solution)?);
                answer.placement = Some(placed);
                answer.theoretical = found.theoretical.map(|found| theoretical(rigs, found, aim));
            }
        }
        if aim == PlacementTime::Request {
            add_disaggregated(rigs, &mut answer);
        }
        Ok((answer.with_evidence(&rigged.records), at))
    }

    fn inputs(&self, rigged: &ResolvedRig, problem: &PlacementProblem) -> PlacementInputs {
        PlacementInputs {
            model: rigged.model.name.clone(),
            rig: rigged.rig.name.clone(),
            objective: self.scenario.objective.name().into(),
            isl: problem.lengths.isl,
            osl: problem.lengths.osl,
            prefix: problem.lengths.prefix,
            concurrency: problem.concurrency,
            runtimes: rigged.runtimes.iter().map(|runtime| runtime.id.clone()).collect(),
            weight_format: rigged.weights.format.id.clone(),
            weight_format_why: rigged.weights.why.clone(),
            kv_format: rigged.kv.format.id.clone(),
            defaults: self.defaults(rigged, problem),
        }
    }

    /// Inputs that the request leaves open, as flags.
    fn defaults(&self, rigged: &ResolvedRig, problem: &PlacementProblem) -> Vec<String> {
        let scenario = self.scenario;
        let named = self.rig.members.iter().any(|member| member.runtime.is_some());
        let runtime = rigged.runtimes.first().filter(|_| rigged.has_one_runtime() && !named);
        let runtime = runtime.filter(|_| scenario.runtime.is_none() && rigged.left_out().is_empty());
        let lengths = scenario.isl.is_none() && scenario.osl.is_none();
        [
            runtime.map(|runtime| format!("--runtime {}", runtime.id)),
            scenario.weight_format.is_none().then(|| format!("--weight-format {}", rigged.weights.format.id)),
            lengths.then(|| format!("--isl {} --osl {}", problem.lengths.isl, problem.lengths.osl)),
            scenario.concurrency.is_none().then(|| format!("--concurrency {}", problem.concurrency)),
        ]
        .into_iter()
        .flatten()
        .chain(rigged.assumed.iter().flat_map(|assumed| assumed.flags.clone()))
        .collect()
    }

    /// The longest prompt whose KV cache fits, and the best placement for it.
    fn max_context(&self, control: &Control) -> Result<AnsweredPlacement, Error> {
        let longest: Vec<(u64, u64, ResolvedRig)> =
            started(self.resolve(&self.scenario.scenario())?).into_iter().map(longest).collect();
        let Some((low, limit)) = longest.iter().map(|(low, limit, _)| (*low, *limit)).max() else {
            return Err(no_group());
        };
        let rigs: Vec<ResolvedRig> =
            longest.into_iter().filter(|one| one.0 == low).map(|(.., rigged)| rigged).collect();
        let (mut answer, at) = self.answer(&rigs, control)?;
        if answer.placement.is_some() {
            let all = low + answer.question.osl;
            answer.max_context = Some(all);
            if all >= limit {
                answer.notes.push(format!("{limit} tokens is the context limit of the model"));
            }
        }
        AnsweredPlacement::new(answer, at, rigs)
    }

    /// The largest model that fits, by parameters, in the given weight format or its own.
    fn largest_model(&self, control: &Control) -> Result<AnsweredPlacement, Error> {
        let mut smallest = None;
        for name in self.catalog.models_by_size()? {
            let scenario = Scenario { model: Some(name), ..self.scenario.scenario() };
            // A model that runs here in no format is not a candidate.
            let Ok(rigs) = self.resolve(&scenario) else { continue };
            let rigs = started(rigs);
            if rigs.iter().any(fits_any) {
                return self.answered(rigs, control);
            }
            smallest = Some(rigs);
        }
        match smallest {
            Some(rigs) => self.answered(rigs, control),
            None => {
                let fix = "name a --weight-format or --runtime that all devices support";
                let found = "no model of the catalogue that runs on every device";
                Err(Error::new("model", found, "one that does", fix))
            }
        }
    }
}

fn reported(rigged: &ResolvedRig, found: &FoundPlacement) -> PlacementReport {
    with_left_out(rigged, placement_report(found.problem, &found.solved))
}

/// A placement with the devices that its runtimes do not drive as unused.
pub fn with_left_out(rigged: &ResolvedRig, mut placed: PlacementReport) -> PlacementReport {
    let used = |name: &String| {
        let of = |member: &String| member == name || member.starts_with(&format!("{name}/"));
        placed.stages.iter().any(|stage| of(&stage.member) || stage.copies.iter().any(of))
    };
    let known = |name: &String| {
        let own = |group: &String| group == name || group.starts_with(&format!("{name}/"));
        placed.unused.iter().any(own)
    };
    let others: Vec<String> =
        rigged.names.iter().filter(|name| !used(name) && !known(name)).cloned().collect();
    placed.unused.extend(others);
    placed
}

/// The report of a placement that no software starts.
fn theoretical(rigs: &[ResolvedRig], found: FoundPlacement, aim: PlacementTime) -> TheoreticalPlacement {
    let rigged = &rigs[found.rig];
    TheoreticalPlacement {
        runtimes: rigged.runtimes.iter().map(|runtime| runtime.id.clone()).collect(),
        weight_format: rigged.weights.format.id.clone(),
        placement: reported(rigged, &found),
        certificate: certificate(&found.solved, aim),
        why: found.refused,
    }
}

/// The longest prompt that fits, the context limit of the model, and the rig with problems of that length.
fn longest(rigged: ResolvedRig) -> (u64, u64, ResolvedRig) {
    let offload = !rigged.problems.iter().any(fits) && rigged.offloaded.iter().any(fits);
    let questions = if offload { &rigged.offloaded } else { &rigged.problems };
    let with = |problem: &PlacementProblem, isl: u64| {
        let prefix = problem.lengths.prefix.min(isl.saturating_sub(1));
        let lengths = crate::serving::terms::Lengths { isl, prefix, ..problem.lengths };
        PlacementProblem { lengths, ..problem.clone() }
    };
    let osl = questions.first().map_or(1, |problem| problem.lengths.osl);
    let limit = questions.first().and_then(|problem| problem.graph.max_context).unwrap_or(MOST_TOKENS);
    let holds = |isl: u64| questions.iter().any(|problem| fits(&with(problem, isl)));
    let low = largest(limit.saturating_sub(osl).max(1), holds);
    let problems = questions.iter().map(|problem| with(problem, low.max(1))).collect();
    (low, limit, ResolvedRig { problems, offloaded: vec![], ..rigged })
}

/// Adds the best prefill and decode on different devices, and the time of each device alone with its runtimes.
fn add_disaggregated(rigs: &[ResolvedRig], answer: &mut PlacementResult) {
    let together = answer.placement.as_ref().map_or(f64::NAN, |placed| placed.request_ms);
    let mut best: Option<(DisaggregatedReport, &ResolvedRig)> = None;
    for rigged in rigs {
        let questions = if rigged.problems.iter().any(fits) || rigged.offloaded.is_empty() {
            &rigged.problems
        } else {
            &rigged.offloaded
        };
        for problem in questions {
            if problem.members.len() > MOST_MEMBERS {
                let note = format!(
                    "disaggregated prefill and decode are evaluated for up to {MOST_MEMBERS} devices"
                );
                answer.notes.push(note);
                return;
            }
            let Some(found) = best_disaggregated(&MemberPrices::new(problem)) else { continue };
            let report = disaggregated_report(problem, &found, together);
            if best.as_ref().is_none_or(|(least, _)| report.request_ms < least.request_ms) {
                best = Some((report, rigged));
            }
        }
    }
    let of = best.as_ref().map(|(_, rigged)| *rigged).or(rigs.first());
    let alone = of.and_then(|rigged| rigged.problems.first().or(rigged.offloaded.first()));
    answer.alone = alone.map(single_member).unwrap_or_default();
    answer.disaggregated = best.map(|(report, rigged)| DisaggregatedReport {
        runtimes: rigged.runtimes.iter().map(|runtime| runtime.id.clone()).collect(),
        weight_format: rigged.weights.format.id.clone(),
        ..report
    });
}
