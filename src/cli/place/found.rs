//! What `place` answers: the best placement, the longest context, the largest model. Writes nothing.

use super::aim;
use crate::report::place::told::{alone, apart_report, certificate, compared, placed};
use crate::report::place::why::{reason, tried};
use crate::report::place::{Answer, Asked, Verdict as Proved};
use crate::search::placement::Refusal;
use crate::search::placement::apart::{MOST_MEMBERS, apart};
use crate::search::placement::price::{Prices, Question};
use crate::search::placement::relax::relaxations;
use crate::search::placement::solve::{Aim, fits, solve};
use crate::search::run::Control;
use crate::search::shape::largest;
use crate::spec::error::Error;
use crate::spec::objective::MOST_TOKENS;
use crate::spec::placing::{Objective, Placing};
use crate::spec::rig::{Post, Rig, Shape, Wire};
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::hardware::Shorthand;
use crate::store::launch::commands;
use crate::store::rig::Rigged;

/// A placement that is asked for, with its rig.
pub(super) struct Sought<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) stated: &'a Placing,
    rig: Rig,
}

/// Resolves `stated` and answers it as far as `control` lets it be sought; with what its members were asked.
///
/// # Errors
/// The question is faulty.
pub fn found(catalog: &Catalog, stated: &Placing, control: &Control) -> Result<(Answer, Rigged), Error> {
    stated.check()?;
    let sought = Sought { catalog, stated, rig: rig(catalog, stated)? };
    match stated.objective {
        Objective::MaxContext => sought.longest(control),
        Objective::LargestModel => sought.largest(control),
        _ => sought.answered(sought.resolve(&stated.scenario())?, control),
    }
}

/// The rig that is named, or made of the devices and links that are.
fn rig(catalog: &Catalog, stated: &Placing) -> Result<Rig, Error> {
    if stated.device.is_empty() {
        let fix = "name a rig (`mantile-opt catalog rigs`), or each --device and the --link between them";
        let text = stated
            .hardware
            .as_deref()
            .ok_or_else(|| Error::new("hardware", "nothing", "a rig, or devices", fix))?;
        return catalog.rig(text);
    }
    let post = |text: &String| -> Result<Post, Error> {
        let short = Shorthand::parse(text)?;
        let count = short.nodes.saturating_mul(short.count);
        Ok(Post {
            name: None,
            device: short.device.to_owned(),
            count,
            joined: None,
            runtime: None,
            host: None,
        })
    };
    let wire = |link: &String| Wire { link: link.clone(), between: None, bandwidth: None, latency: None };
    let members: Vec<Post> = stated.device.iter().map(post).collect::<Result<_, Error>>()?;
    let rig = Rig {
        id: "stated".into(),
        name: stated.device.join(" + "),
        members,
        topology: (!stated.link.is_empty()).then(|| stated.topology.unwrap_or(Shape::Mesh)),
        links: stated.link.iter().map(wire).collect(),
        ..Rig::default()
    };
    rig.check()?;
    Ok(rig)
}

impl Sought<'_> {
    fn resolve(&self, scenario: &Scenario) -> Result<Rigged, Error> {
        Rigged::resolve(self.catalog, scenario, self.rig.clone(), self.stated.in_flight())
    }

    fn answered(&self, rigged: Rigged, control: &Control) -> Result<(Answer, Rigged), Error> {
        Ok((self.answer(&rigged, control)?, rigged))
    }

    /// The best placement, as far as `control` lets it be sought.
    fn answer(&self, rigged: &Rigged, control: &Control) -> Result<Answer, Error> {
        let aim = aim(self.stated.objective);
        let first = rigged.questions.first().ok_or_else(|| {
            let fix = "name another --runtime, which shares layers between such devices";
            Error::new("members", "a group that cannot hold the model", "one that can", fix)
        })?;
        let mut questions = &rigged.questions;
        let mut solved = solve(questions, aim, control);
        let stopped = matches!(solved, Err(Refusal::Stopped { .. }));
        if solved.is_err() && !stopped && !rigged.offloaded.is_empty() {
            questions = &rigged.offloaded;
            solved = solve(questions, aim, control);
        }
        let mut answer = Answer {
            status: Proved::Infeasible,
            scenario: Some(self.stated.clone()),
            question: self.asked(rigged, first),
            max_context: None,
            placement: None,
            certificate: None,
            compared: vec![],
            apart: None,
            alone: vec![],
            infeasible: None,
            commands: vec![],
            notes: rigged.whole.iter().map(|why| why.to_string()).collect(),
        };
        match solved {
            Err(why) => {
                let asked = questions.first().unwrap_or(first);
                let mut reason = reason(asked, &why);
                if matches!(why, Refusal::Stopped { .. }) {
                    answer.status = Proved::Unknown;
                }
                // What conflicts can be relaxed; other refusals say what they need.
                if !reason.conflict.is_empty() {
                    reason.tried = tried(asked, self.formats(rigged), &relaxations(questions));
                }
                answer.infeasible = Some(reason);
            }
            Ok(solved) => {
                let question = &questions[solved.way];
                let placed = placed(question, &solved);
                answer.status = if solved.is_optimal() { Proved::Optimal } else { Proved::Feasible };
                answer.certificate = Some(certificate(&solved, aim));
                answer.compared = compared(question, &solved);
                answer.commands = commands(rigged, question, &solved, &placed);
                answer.placement = Some(placed);
            }
        }
        if aim == Aim::Request {
            answer.alone = alone(questions.first().unwrap_or(first));
            self.apart(questions, &mut answer);
        }
        Ok(answer)
    }

    /// What prefill and decode on different members would take.
    fn apart(&self, questions: &[Question], answer: &mut Answer) {
        let together = answer.placement.as_ref().map_or(f64::NAN, |placed| placed.request_ms);
        let mut best: Option<(f64, _)> = None;
        for question in questions {
            if question.offers.len() > MOST_MEMBERS {
                let note = format!("prefill and decode apart is looked at for up to {MOST_MEMBERS} members");
                answer.notes.push(note);
                return;
            }
            let Some(found) = apart(&Prices::new(question)) else { continue };
            if best.as_ref().is_none_or(|(least, _)| found.request < *least) {
                best = Some((found.request, apart_report(question, &found, together)));
            }
        }
        answer.apart = best.map(|(_, report)| report);
    }

    fn asked(&self, rigged: &Rigged, question: &Question) -> Asked {
        Asked {
            model: rigged.model.name.clone(),
            rig: rigged.rig.name.clone(),
            objective: self.stated.objective.name().into(),
            isl: question.lengths.isl,
            osl: question.lengths.osl,
            prefix: question.lengths.prefix,
            concurrency: question.concurrency,
            runtimes: rigged.runtimes.iter().map(|runtime| runtime.id.clone()).collect(),
            weight_format: rigged.weights.format.id.clone(),
            kv_format: rigged.kv.format.id.clone(),
        }
    }

    /// The longest prompt whose cache fits, and the best placement for it.
    fn longest(&self, control: &Control) -> Result<(Answer, Rigged), Error> {
        let rigged = self.resolve(&self.stated.scenario())?;
        let offload = !rigged.questions.iter().any(fits) && rigged.offloaded.iter().any(fits);
        let questions = if offload { &rigged.offloaded } else { &rigged.questions };
        let with = |question: &Question, isl: u64| {
            let lengths = crate::serving::terms::Lengths { isl, prefix: 0, ..question.lengths };
            Question { lengths, ..question.clone() }
        };
        let osl = questions.first().map_or(1, |question| question.lengths.osl);
        let limit = questions.first().and_then(|question| question.graph.max_context).unwrap_or(MOST_TOKENS);
        let holds = |isl: u64| questions.iter().any(|question| fits(&with(question, isl)));
        let low = largest(limit.saturating_sub(osl).max(1), holds);
        let at = |isl: u64| questions.iter().map(|question| with(question, isl)).collect::<Vec<_>>();
        let rigged = Rigged { questions: at(low.max(1)), offloaded: vec![], ..rigged };
        let mut answer = self.answer(&rigged, control)?;
        if answer.placement.is_some() {
            answer.max_context = Some(low + osl);
            if low + osl >= limit {
                answer.notes.push(format!("{limit} tokens are what the model was made for"));
            }
        }
        Ok((answer, rigged))
    }

    /// The model with the most parameters that fits, in the format that is asked for or its own.
    fn largest(&self, control: &Control) -> Result<(Answer, Rigged), Error> {
        let mut smallest = None;
        for name in self.catalog.models_by_size()? {
            let scenario = Scenario { model: Some(name), ..self.stated.scenario() };
            // What does not run here in any format is no candidate.
            let Ok(rigged) = self.resolve(&scenario) else { continue };
            if rigged.questions.iter().chain(&rigged.offloaded).any(fits) {
                return self.answered(rigged, control);
            }
            smallest = Some(rigged);
        }
        match smallest {
            Some(rigged) => self.answered(rigged, control),
            None => {
                let fix = "name a --weight-format or --runtime that they have in common";
                let found = "no model of the catalogue that runs on every member";
                Err(Error::new("model", found, "one that does", fix))
            }
        }
    }
}
