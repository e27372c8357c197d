//! The result of a search.

use std::collections::BTreeMap;

use super::candidate::Candidate;
use super::mixed::MixResult;
use super::point::{Point, point};
use super::problem::Problem;
use crate::plan::infeasible::{Infeasible, Refused, RejectionCount, refuse};
use crate::quantity::read::Plain;

/// Solution status, in the terms of CP-SAT and MathOptInterface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No candidate in the search space is better.
    Optimal,
    /// The search was stopped: this is the best result so far.
    #[serde(alias = "time_limit", alias = "interrupted")]
    Feasible,
    /// No feasible candidate exists; the census gives the reasons.
    Infeasible,
    /// The search was stopped before it found a candidate.
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EvaluatedCandidate {
    pub candidate: Candidate,
    pub point: Point,
}

impl EvaluatedCandidate {
    /// A deployment with its metrics, by the common evaluation function.
    pub fn measured(problem: &Problem, candidate: Candidate) -> EvaluatedCandidate {
        EvaluatedCandidate { point: candidate.measure(problem, &candidate.instances(problem)), candidate }
    }

    /// The same; `None` where one of its pools misses an SLO.
    pub fn within_limits(problem: &Problem, candidate: Candidate) -> Option<EvaluatedCandidate> {
        let evaluation = candidate.evaluate(&Plain, problem, &mut ());
        let (point, margin) = (point(&evaluation.metrics), candidate.margin(problem));
        problem
            .missed_in_pools(&evaluation, margin)
            .next()
            .is_none()
            .then_some(EvaluatedCandidate { candidate, point })
    }
}

/// Counts of all candidates by outcome.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Census {
    /// Instance configurations: legal plans in formats that hold the model.
    pub shapes: u64,
    /// Candidates: instance configurations at every concurrency that fits, and pairs of pools.
    pub candidates: u64,
    /// Number evaluated.
    pub evaluated: u64,
    /// Number pruned by each bound.
    pub pruned: BTreeMap<String, u64>,
    /// Rejections by reason, with an example.
    pub illegal: Refused,
}

impl Census {
    pub fn prune(&mut self, bound: &str, count: u64) {
        if count > 0 {
            *self.pruned.entry(bound.to_string()).or_default() += count;
        }
    }

    /// Counts `count` candidates that `bound` prunes without enumerating them.
    pub fn discard(&mut self, bound: &str, count: u64) {
        self.candidates += count;
        self.prune(bound, count);
    }

    /// Counts rejections whose reason is a text.
    pub fn refuse(&mut self, kind: &str, count: u64, example: &str) {
        let example = example.to_owned();
        self.illegal.entry(kind.to_owned()).or_default().add(RejectionCount { count, example, short: None });
    }

    pub fn reject(&mut self, reason: &Infeasible) {
        refuse(&mut self.illegal, reason);
    }

    pub fn add_refused(&mut self, refused: Refused) {
        refused.into_iter().for_each(|(kind, one)| self.illegal.entry(kind).or_default().add(one));
    }

    pub fn add(&mut self, other: Census) {
        self.shapes += other.shapes;
        self.candidates += other.candidates;
        self.evaluated += other.evaluated;
        other.pruned.iter().for_each(|(bound, count)| self.prune(bound, *count));
        self.add_refused(other.illegal);
    }
}

impl Outcome {
    pub(super) fn nothing(status: Status, bound: Option<f64>, census: Census) -> Outcome {
        Outcome {
            status,
            best: None,
            bound,
            alternatives: vec![],
            front: vec![],
            census,
            nearest: None,
            ratio: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub status: Status,
    pub best: Option<EvaluatedCandidate>,
    /// Bound on the first objective term over all candidates, evaluated or not, in base units; `None` where there is
    /// no candidate or no known bound.
    pub bound: Option<f64>,
    /// The best candidates of other strategies and configurations, best first.
    pub alternatives: Vec<EvaluatedCandidate>,
    /// The Pareto front, in the order of its axes.
    pub front: Vec<EvaluatedCandidate>,
    pub census: Census,
    /// If infeasible: the nearest candidate, and the constraint that it misses.
    pub nearest: Option<(EvaluatedCandidate, Infeasible)>,
    /// The result of mixing prefill and decode configurations, where mixing can help.
    pub ratio: Option<MixResult>,
}
