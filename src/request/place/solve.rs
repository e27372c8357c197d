//! Solves `place`: the best placement, the longest context, the largest model. Writes no output.

use super::aim;
use super::launch::{PlacedSolution, launch_placed};
use crate::report::place::build::{
    baseline_comparisons, certificate, disaggregated_report, placement_report, single_member,
};
use crate::report::place::why::{reason, tried};
use crate::report::place::{PlacementInputs, PlacementResult, PlacementStatus as Proved};
use crate::search::placement::PlacementInfeasible;
use crate::search::placement::disaggregated::{MOST_MEMBERS, best_disaggregated};
use crate::search::placement::price::{MemberPrices, PlacementProblem};
use crate::search::placement::relax::relaxations;
use crate::search::placement::solve::{PlacementObjective, fits, solve};
use crate::search::run::Control;
use crate::search::shape::largest;
use crate::spec::error::Error;
use crate::spec::objective::MOST_TOKENS;
use crate::spec::placing::{PlacementScenario, PlacingGoal};
use crate::spec::rig::{Rig, RigLink, RigMember, RigTopology};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::hardware::Shorthand;
use crate::store::rig::ResolvedRig;

/// A placement problem with its rig.
pub(super) struct PlacementRequest<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) scenario: &'a PlacementScenario,
    rig: Rig,
}

/// Resolves `stated` and solves it until `control` stops the search; also returns the problem of each device.
///
/// # Errors
/// The problem is faulty.
pub fn answer_placement(
    catalog: &Catalog,
    stated: &PlacementScenario,
    control: &Control,
) -> Result<(PlacementResult, ResolvedRig), Error> {
    stated.check()?;
    let catalog = &*catalog.overridden_by_name(&stated.scenario())?;
    let sought = PlacementRequest { catalog, scenario: stated, rig: rig(catalog, stated)? };
    match stated.objective {
        PlacingGoal::MaxContext => sought.max_context(control),
        PlacingGoal::LargestModel => sought.largest_model(control),
        _ => sought.answered(sought.resolve(&stated.scenario())?, control),
    }
}

/// The problems of a rig, unsolved.
///
/// # Errors
/// The problem is faulty.
pub fn rig_problem(catalog: &Catalog, stated: &PlacementScenario) -> Result<ResolvedRig, Error> {
    stated.check()?;
    let catalog = &*catalog.overridden_by_name(&stated.scenario())?;
    let sought = PlacementRequest { catalog, scenario: stated, rig: rig(catalog, stated)? };
    sought.resolve(&stated.scenario())
}

/// The rig by name, or made of the given devices and links.
fn rig(catalog: &Catalog, stated: &PlacementScenario) -> Result<Rig, Error> {
    if stated.device.is_empty() {
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
    let members: Vec<RigMember> = stated.device.iter().map(post).collect::<Result<_, Error>>()?;
    let rig = Rig {
        id: "stated".into(),
        name: stated.device.join(" + "),
        members,
        topology: (!stated.link.is_empty()).then(|| stated.topology.unwrap_or(RigTopology::Mesh)),
        links: stated.link.iter().map(wire).collect(),
        ..Rig::default()
    };
    rig.check()?;
    Ok(rig)
}

impl PlacementRequest<'_> {
    fn resolve(&self, scenario: &Scenario) -> Result<ResolvedRig, Error> {
        ResolvedRig::resolve(self.catalog, scenario, self.rig.clone(), self.scenario.in_flight())
    }

    fn answered(
        &self,
        rigged: ResolvedRig,
        control: &Control,
    ) -> Result<(PlacementResult, ResolvedRig), Error> {
        Ok((self.answer(&rigged, control)?, rigged))
    }

    /// The best placement, until `control` stops the search.
    fn answer(&self, rigged: &ResolvedRig, control: &Control) -> Result<PlacementResult, Error> {
        let aim = aim(self.scenario.objective);
        let first = rigged.problems.first().ok_or_else(|| {
            let fix = "name another --runtime, which shares layers between such devices";
            Error::new("members", "a group too small for the model", "a group that fits the model", fix)
        })?;
        let mut questions = &rigged.problems;
        let mut solved = solve(questions, aim, control);
        let stopped = matches!(solved, Err(PlacementInfeasible::Stopped { .. }));
        if solved.is_err() && !stopped && !rigged.offloaded.is_empty() {
            questions = &rigged.offloaded;
            solved = solve(questions, aim, control);
        }
        let mut answer = PlacementResult {
            status: Proved::Infeasible,
            scenario: Some(self.scenario.clone()),
            question: self.inputs(rigged, first),
            max_context: None,
            placement: None,
            certificate: None,
            compared: vec![],
            apart: None,
            alone: vec![],
            infeasible: None,
            launch: None,
            notes: rigged.infeasible.iter().map(|why| why.to_string()).collect(),
        };
        match solved {
            Err(why) => {
                let asked = questions.first().unwrap_or(first);
                let mut reason = reason(asked, &why);
                if matches!(why, PlacementInfeasible::Stopped { .. }) {
                    answer.status = Proved::Unknown;
                }
                // Conflicting constraints can be relaxed; other rejections include their requirement.
                if !reason.conflict.is_empty() {
                    reason.tried = tried(asked, self.formats(rigged), &relaxations(questions));
                }
                answer.infeasible = Some(reason);
            }
            Ok(solved) => {
                let problem = &questions[solved.way];
                let placed = placement_report(problem, &solved);
                answer.status = if solved.is_optimal() { Proved::Optimal } else { Proved::Feasible };
                answer.certificate = Some(certificate(&solved, aim));
                answer.compared = baseline_comparisons(problem, &solved);
                let solution = PlacedSolution { problem, solved: &solved, report: &placed };
                answer.launch = Some(launch_placed(self.catalog, self.scenario, rigged, &solution)?);
                answer.placement = Some(placed);
            }
        }
        if aim == PlacementObjective::Request {
            answer.alone = single_member(questions.first().unwrap_or(first));
            self.add_disaggregated(questions, &mut answer);
            let faster = answer.apart.as_ref().is_some_and(|apart| apart.gain > 1.0);
            if let Some(launch) = answer.launch.as_mut().filter(|_| faster) {
                launch.notes.push(
                    "no option of a runtime divides prefill and decode so: this is the aggregated placement"
                        .into(),
                );
            }
        }
        Ok(answer)
    }

    /// Memory and time of prefill and decode on different devices.
    fn add_disaggregated(&self, questions: &[PlacementProblem], answer: &mut PlacementResult) {
        let together = answer.placement.as_ref().map_or(f64::NAN, |placed| placed.request_ms);
        let mut best: Option<(f64, _)> = None;
        for problem in questions {
            if problem.members.len() > MOST_MEMBERS {
                let note = format!(
                    "disaggregated prefill and decode are evaluated for up to {MOST_MEMBERS} devices"
                );
                answer.notes.push(note);
                return;
            }
            let Some(found) = best_disaggregated(&MemberPrices::new(problem)) else { continue };
            if best.as_ref().is_none_or(|(least, _)| found.request < *least) {
                best = Some((found.request, disaggregated_report(problem, &found, together)));
            }
        }
        answer.apart = best.map(|(_, report)| report);
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
            kv_format: rigged.kv.format.id.clone(),
        }
    }

    /// The longest prompt whose KV cache fits, and the best placement for it.
    fn max_context(&self, control: &Control) -> Result<(PlacementResult, ResolvedRig), Error> {
        let rigged = self.resolve(&self.scenario.scenario())?;
        let offload = !rigged.problems.iter().any(fits) && rigged.offloaded.iter().any(fits);
        let questions = if offload { &rigged.offloaded } else { &rigged.problems };
        let with = |problem: &PlacementProblem, isl: u64| {
            let lengths = crate::serving::terms::Lengths { isl, prefix: 0, ..problem.lengths };
            PlacementProblem { lengths, ..problem.clone() }
        };
        let osl = questions.first().map_or(1, |problem| problem.lengths.osl);
        let limit = questions.first().and_then(|problem| problem.graph.max_context).unwrap_or(MOST_TOKENS);
        let holds = |isl: u64| questions.iter().any(|problem| fits(&with(problem, isl)));
        let low = largest(limit.saturating_sub(osl).max(1), holds);
        let at = |isl: u64| questions.iter().map(|problem| with(problem, isl)).collect::<Vec<_>>();
        let rigged = ResolvedRig { problems: at(low.max(1)), offloaded: vec![], ..rigged };
        let mut answer = self.answer(&rigged, control)?;
        if answer.placement.is_some() {
            answer.max_context = Some(low + osl);
            if low + osl >= limit {
                answer.notes.push(format!("{limit} tokens is the context limit of the model"));
            }
        }
        Ok((answer, rigged))
    }

    /// The largest model that fits, by parameters, in the given weight format or its own.
    fn largest_model(&self, control: &Control) -> Result<(PlacementResult, ResolvedRig), Error> {
        let mut smallest = None;
        for name in self.catalog.models_by_size()? {
            let scenario = Scenario { model: Some(name), ..self.scenario.scenario() };
            // A model that runs here in no format is not a candidate.
            let Ok(rigged) = self.resolve(&scenario) else { continue };
            if rigged.problems.iter().chain(&rigged.offloaded).any(fits) {
                return self.answered(rigged, control);
            }
            smallest = Some(rigged);
        }
        match smallest {
            Some(rigged) => self.answered(rigged, control),
            None => {
                let fix = "name a --weight-format or --runtime that all devices support";
                let found = "no model of the catalogue that runs on every device";
                Err(Error::new("model", found, "one that does", fix))
            }
        }
    }
}
