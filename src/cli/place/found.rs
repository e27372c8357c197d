//! What `place` answers: the best placement, the longest context, the largest model. Writes nothing.

use super::Place;
use crate::cli::Fault;
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
use crate::spec::rig::Rig;
use crate::spec::scenario::Scenario;
use crate::store::catalog::Catalog;
use crate::store::launch::commands;
use crate::store::rig::Rigged;

impl Place {
    /// The best placement, as far as `control` lets it be sought.
    ///
    /// # Errors
    /// The question is faulty.
    pub(super) fn answer(
        &self,
        catalog: &Catalog,
        rigged: &Rigged,
        control: &Control,
    ) -> Result<Answer, Error> {
        let aim = self.objective.aim();
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
                    reason.tried = tried(asked, self.formats(catalog, rigged), &relaxations(questions));
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
            objective: self.objective.name().into(),
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
    pub(super) fn longest(&self, catalog: &Catalog, rig: &Rig, control: &Control) -> Result<Answer, Fault> {
        let rigged = self.resolve(catalog, rig, &self.scenario())?;
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
        let mut answer = self.answer(catalog, &rigged, control)?;
        if answer.placement.is_some() {
            answer.max_context = Some(low + osl);
            if low + osl >= limit {
                answer.notes.push(format!("{limit} tokens are what the model was made for"));
            }
        }
        Ok(answer)
    }

    /// The model with the most parameters that fits, in the format that is asked for or its own.
    pub(super) fn largest(&self, catalog: &Catalog, rig: &Rig, control: &Control) -> Result<Answer, Fault> {
        let mut smallest = None;
        for name in catalog.models_by_size()? {
            let scenario = Scenario { model: Some(name), ..self.scenario() };
            // What does not run here in any format is no candidate.
            let Ok(rigged) = self.resolve(catalog, rig, &scenario) else { continue };
            if rigged.questions.iter().chain(&rigged.offloaded).any(fits) {
                return Ok(self.answer(catalog, &rigged, control)?);
            }
            smallest = Some(rigged);
        }
        match smallest {
            Some(rigged) => Ok(self.answer(catalog, &rigged, control)?),
            None => {
                let fix = "name a --weight-format or --runtime that they have in common";
                let found = "no model of the catalogue that runs on every member";
                Err(Error::new("model", found, "one that does", fix).into())
            }
        }
    }
}
