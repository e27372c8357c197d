//! The best instance configurations of a search in each role.

use crate::spec::offload::OffloadPolicy;
use std::collections::BTreeSet;

use super::aggregated::{self, LoadEnd};
use super::decode_options::{DecodeOptions, Depth};
use super::family::StrategyFamily;
use super::outcome::Census;
use super::prefill_options::PrefillOptions;
use super::problem::{Problem, Traffic};
use super::shape::PreparedShape;
use super::shapes::Shapes;
use crate::plan::infeasible::{Infeasible, Refused, refuse};

pub struct ShapeResults<'q> {
    pub aggregated: aggregated::Incumbents,
    pub decode: DecodeOptions,
    pub prefill: PrefillOptions<'q>,
    pub shapes: Shapes,
    /// Numbers of the configurations that no more memory would let serve more.
    pub filled: BTreeSet<usize>,
    /// Stages that a stopped search did not finish, with the number of instances that it examined.
    pub unexplored: Vec<(usize, usize)>,
    refused: Refused,
}

/// Whether workers of different configurations may share given traffic: then every configuration is needed.
pub fn mixes_given_traffic(problem: &Problem) -> bool {
    let plain = !matches!(problem.family, StrategyFamily::Split | StrategyFamily::Offload);
    problem.custom_router && problem.traffic != Traffic::Free && plain
}

impl<'q> ShapeResults<'q> {
    pub fn new(problem: &Problem) -> ShapeResults<'q> {
        ShapeResults {
            aggregated: aggregated::Incumbents::new(problem),
            decode: DecodeOptions::new(problem),
            prefill: PrefillOptions::default(),
            shapes: Shapes::new(mixes_given_traffic(problem)),
            filled: BTreeSet::new(),
            unexplored: vec![],
            refused: Refused::new(),
        }
    }

    /// Examines the configuration with this number. What cannot improve on `known` is left out.
    pub fn explore(&mut self, (number, prepared): (usize, PreparedShape<'q>), known: &ShapeResults<'q>) {
        let problem = prepared.problem;
        self.shapes.insert(number, prepared.shape.clone());
        if problem.family != StrategyFamily::Split {
            let end = aggregated::explore(&prepared, number, &known.aggregated, &mut self.aggregated);
            if end == LoadEnd::Other && problem.offload != OffloadPolicy::Never {
                self.filled.insert(number);
            }
        }
        if problem.split {
            let leader = known.aggregated.leader.as_ref();
            self.decode.explore(&prepared, number, (Some(&known.decode), leader), Depth::Loads);
            self.prefill.explore(prepared, number, Some(&known.prefill));
        }
    }

    /// Bounds the workers of a configuration without a search of its loads.
    pub fn outline(&mut self, number: usize, prepared: PreparedShape<'q>) {
        self.shapes.insert(number, prepared.shape.clone());
        if prepared.problem.split {
            self.decode.explore(&prepared, number, (None, None), Depth::Outline);
            self.prefill.explore(prepared, number, None);
        }
    }

    /// Whether no further configuration is needed: one was found where any will do.
    pub fn suffice(&self, problem: &Problem) -> bool {
        problem.any && !self.aggregated.best.is_empty()
    }

    /// Counts a configuration that holds nothing.
    pub fn refuse(&mut self, reason: &Infeasible) {
        refuse(&mut self.refused, reason);
    }

    pub fn merged(mut self, problem: &Problem, other: ShapeResults<'q>) -> ShapeResults<'q> {
        self.decode.merge(other.decode);
        self.prefill.merge(other.prefill);
        self.unexplored.extend(other.unexplored);
        self.aggregated = self.aggregated.merged(problem, other.aggregated);
        self.shapes.merge(other.shapes);
        self.filled.extend(other.filled);
        for (kind, one) in other.refused {
            self.refused.entry(kind).or_default().add(one);
        }
        self
    }

    /// Drops configurations that nothing refers to.
    pub fn drop_beaten(&mut self) {
        let (aggregated, decode, prefill) = (&self.aggregated, &self.decode, &self.prefill);
        self.shapes.drop_beaten(|| {
            let workers = decode.shapes().chain(prefill.iter().map(|option| option.index));
            aggregated.shapes().chain(workers).collect::<BTreeSet<usize>>()
        });
    }

    /// Adds the counts of configurations to those of the search.
    pub fn count(&mut self, census: &mut Census) {
        census.shapes = self.shapes.total;
        census.add_refused(std::mem::take(&mut self.refused));
    }
}
