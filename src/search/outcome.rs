//! What a search comes back with.

use std::collections::BTreeMap;

use super::candidate::Candidate;
use super::mixed::MixResult;
use super::point::{Point, point};
use super::question::Problem;
use crate::plan::infeasible::Infeasible;
use crate::quantity::read::Plain;

/// How far the answer is proved, in the words of CP-SAT and MathOptInterface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing in the space is better.
    Optimal,
    /// The search was stopped: this is the best so far.
    Feasible,
    /// There is none, and the census says why.
    Infeasible,
    /// The search was stopped before anything was found.
    Unknown,
}

/// A candidate with its metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluatedCandidate {
    /// The candidate.
    pub candidate: Candidate,
    /// Its metrics.
    pub point: Point,
}

impl EvaluatedCandidate {
    /// A deployment with its metrics; none where a pool of it misses a limit.
    pub fn within_limits(question: &Problem, candidate: Candidate) -> Option<EvaluatedCandidate> {
        let evaluation = candidate.evaluate(&Plain, question, &mut ());
        let point = point(&evaluation.metrics);
        question
            .missed_in_pools(&evaluation)
            .next()
            .is_none()
            .then_some(EvaluatedCandidate { candidate, point })
    }
}

/// What became of every candidate.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Census {
    /// Shapes: plans in formats that are legal and hold the model.
    pub shapes: u64,
    /// Candidates: shapes at every concurrency that fits, and pairs of pools.
    pub candidates: u64,
    /// Evaluated one by one.
    pub evaluated: u64,
    /// Not evaluated because a bound shows that they cannot matter, by bound.
    pub pruned: BTreeMap<String, u64>,
    /// Refused, by reason, with an example.
    pub illegal: BTreeMap<String, RejectionCount>,
}

/// A reason, how often it held, and one case of it.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct RejectionCount {
    /// How many.
    pub count: u64,
    /// One of them.
    pub example: String,
}

impl Census {
    /// Counts `count` pruned by `bound`.
    pub fn prune(&mut self, bound: &str, count: u64) {
        if count > 0 {
            *self.pruned.entry(bound.to_string()).or_default() += count;
        }
    }

    /// Counts `count` candidates that `bound` prunes unseen.
    pub fn discard(&mut self, bound: &str, count: u64) {
        self.candidates += count;
        self.prune(bound, count);
    }

    /// Counts refusals.
    pub fn refuse(&mut self, kind: &str, count: u64, example: &str) {
        let refusal = self.illegal.entry(kind.to_string()).or_default();
        refusal.count += count;
        // The first by spelling: which part of the search came first does not matter.
        if refusal.example.is_empty() || example < refusal.example.as_str() {
            refusal.example = example.to_string();
        }
    }

    /// Adds another census to this one.
    pub fn add(&mut self, other: Census) {
        self.shapes += other.shapes;
        self.candidates += other.candidates;
        self.evaluated += other.evaluated;
        other.pruned.iter().for_each(|(bound, count)| self.prune(bound, *count));
        other.illegal.iter().for_each(|(kind, r)| self.refuse(kind, r.count, &r.example));
    }
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How far it is proved.
    pub status: Status,
    /// The optimum.
    pub best: Option<EvaluatedCandidate>,
    /// Nothing is better in the first aim, looked at or not: in base units; none where there is nothing, or nobody can
    /// tell.
    pub bound: Option<f64>,
    /// The best of other strategies and shapes, best first.
    pub alternatives: Vec<EvaluatedCandidate>,
    /// The Pareto front, in the order of its axes.
    pub front: Vec<EvaluatedCandidate>,
    /// What became of every candidate.
    pub census: Census,
    /// When infeasible: what came nearest, and what it misses.
    pub nearest: Option<(EvaluatedCandidate, Infeasible)>,
    /// What came of mixing shapes of prompt and answer pools, where that can help.
    pub ratio: Option<MixResult>,
}
