//! Interface to a floating-point solver. Its result is not trusted; it is checked elsewhere.

use crate::quantity::tolerance::INTEGRAL;
use good_lp::solvers::microlp::microlp;
use good_lp::{Expression, ProblemVariables, SolverModel, Variable, variable};
use microlp::{Error, SolveOptions, SolveOutcome};

use super::{MipColumn, MipModel, MipValues, SHARE, Sense, VariableKind};

#[derive(Clone, Debug, PartialEq)]
pub enum SolverClaim {
    /// A point, with a lower bound where known.
    Point {
        values: MipValues,
        /// Lower bound on the cost, in units of the program.
        bound: Option<f64>,
        /// The solver reports the point as optimal.
        optimal: bool,
        nodes: u64,
    },
    Infeasible,
    /// Stopped before a point was found.
    Stopped {
        /// Lower bound on the cost.
        bound: Option<f64>,
        nodes: u64,
    },
}

/// Solves with at most `nodes` nodes. A node limit is deterministic, a time limit is not.
pub fn claim(program: &MipModel, nodes: u64) -> Result<SolverClaim, String> {
    match solved(program, nodes, false) {
        Err(Error::Infeasible) => Ok(SolverClaim::Infeasible),
        Err(fault) => Err(fault.to_string()),
        Ok(SolveOutcome::Interrupted(stopped)) => {
            let stats = stopped.stats();
            Ok(SolverClaim::Stopped { bound: stats.best_bound, nodes: stats.nodes_solved })
        }
        Ok(outcome @ SolveOutcome::Solution(_)) => {
            let (optimal, stats) = (outcome.is_optimal(), outcome.stats());
            let solution =
                outcome.into_solution().map_err(|_| "the solver returned no solution".to_string())?;
            let values = solution.iter().map(|(variable, value)| whole(program, variable.idx(), value));
            let values = values.collect();
            Ok(SolverClaim::Point { values, bound: stats.best_bound, optimal, nodes: stats.nodes_solved })
        }
    }
}

/// The optimum of the LP relaxation with integer columns rounded up, and its lower bound. Where more of a column is
/// never worse, such as devices that carry a load, the point satisfies every row.
pub fn rounded_up(program: &MipModel) -> Option<(MipValues, f64)> {
    let outcome = solved(program, 1, true).ok()?;
    let solution = outcome.into_solution().ok()?;
    let numbers: Vec<(usize, f64)> =
        solution.iter().map(|(variable, value)| (variable.idx(), value)).collect();
    let cost = |(at, value): &(usize, f64)| program.columns[*at].cost as f64 * value;
    let least = numbers.iter().map(cost).sum();
    let up = |(at, value): &(usize, f64)| match program.columns[*at].kind {
        VariableKind::Whole => whole(program, *at, (value - INTEGRAL).ceil()),
        VariableKind::Share => whole(program, *at, *value),
    };
    Some((numbers.iter().map(up).collect(), least))
}

/// The solver result; integer columns are continuous if `relaxed`.
fn solved(program: &MipModel, nodes: u64, relaxed: bool) -> Result<SolveOutcome, Error> {
    let mut variables = ProblemVariables::new();
    let of = |column: &MipColumn| {
        let (least, most) = column.bounds;
        match column.kind {
            VariableKind::Whole if relaxed => variable().bounds(least as f64..=most as f64),
            VariableKind::Whole => variable().integer().bounds(least as f64..=most as f64),
            VariableKind::Share => variable().bounds(0.0..=1.0),
        }
    };
    let columns: Vec<Variable> = program.columns.iter().map(|column| variables.add(of(column))).collect();
    let sum = |terms: &mut dyn Iterator<Item = (usize, i64)>| -> Expression {
        terms.map(|(at, factor)| factor as f64 * columns[at]).sum()
    };
    let costs = program.columns.iter().enumerate().map(|(at, column)| (at, column.cost));
    let objective = sum(&mut costs.filter(|(_, cost)| *cost != 0));
    let mut model = variables.minimise(objective).using(microlp);
    for row in &program.rows {
        let left = sum(&mut row.terms.iter().copied());
        let bound = row.bound as f64;
        model.add_constraint(match row.sense {
            Sense::AtMost => left.leq(bound),
            Sense::AtLeast => left.geq(bound),
            Sense::Equal => left.eq(bound),
        });
    }
    // good_lp does not expose the node limit and the bound of an interrupted search.
    let mut options = SolveOptions::default();
    options.node_limit = Some(nodes);
    options.mip_gap = 0.0;
    model.as_inner().solve_with(options)
}

/// A solver value as a whole number of column units.
fn whole(program: &MipModel, column: usize, value: f64) -> i64 {
    let (least, most) = program.bounds(column);
    let parts = match program.columns[column].kind {
        VariableKind::Whole => value,
        // Clamp values slightly outside the bounds.
        VariableKind::Share => return ((value * SHARE as f64).round() as i64).clamp(least, most),
    };
    parts.round() as i64
}
