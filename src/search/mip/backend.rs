//! A programme handed to a solver in floating point. Knows nothing of whether its answer is right: that is checked
//! elsewhere.

use good_lp::solvers::microlp::microlp;
use good_lp::{Expression, ProblemVariables, SolverModel, Variable, variable};
use microlp::{Error, SolveOptions, SolveOutcome};

use super::{MipModel, MipValues, SHARE, Sense, VariableDomain};

/// What a solver says.
#[derive(Clone, Debug, PartialEq)]
pub enum SolverClaim {
    /// A point, with a bound that no point is below, where it has one.
    Point {
        /// The point.
        values: MipValues,
        /// No point costs less, in the programme's own units.
        bound: Option<f64>,
        /// It says that the point is the best.
        optimal: bool,
        /// Nodes of its tree.
        nodes: u64,
    },
    /// There is none.
    Infeasible,
    /// It stopped before it found one.
    Stopped {
        /// No point costs less.
        bound: Option<f64>,
        /// Nodes of its tree.
        nodes: u64,
    },
}

/// Solves with at most `nodes` nodes: a number, not a time, so that the same question has the same answer.
///
/// # Errors
/// What the solver says went wrong.
pub fn claim(programme: &MipModel, nodes: u64) -> Result<SolverClaim, String> {
    match solved(programme, nodes, false) {
        Err(Error::Infeasible) => Ok(SolverClaim::Infeasible),
        Err(fault) => Err(fault.to_string()),
        Ok(SolveOutcome::Interrupted(stopped)) => {
            let stats = stopped.stats();
            Ok(SolverClaim::Stopped { bound: stats.best_bound, nodes: stats.nodes_solved })
        }
        Ok(outcome @ SolveOutcome::Solution(_)) => {
            let (optimal, stats) = (outcome.is_optimal(), outcome.stats());
            let solution = outcome.into_solution().map_err(|_| "a solution that is none".to_string())?;
            let values = solution.iter().map(|(variable, value)| whole(programme, variable.idx(), value));
            let values = values.collect();
            Ok(SolverClaim::Point { values, bound: stats.best_bound, optimal, nodes: stats.nodes_solved })
        }
    }
}

/// The best point with whole numbers taken as any numbers, these then rounded up; and what no point costs less than.
/// Where more of a column is never worse, as of devices that carry a load, the point keeps every row.
pub fn rounded_up(programme: &MipModel) -> Option<(MipValues, f64)> {
    // A hair above a whole number is rounding of the solver's.
    const HAIR: f64 = 1e-7;
    let outcome = solved(programme, 1, true).ok()?;
    let solution = outcome.into_solution().ok()?;
    let numbers: Vec<(usize, f64)> =
        solution.iter().map(|(variable, value)| (variable.idx(), value)).collect();
    let cost = |(at, value): &(usize, f64)| programme.columns[*at].cost as f64 * value;
    let least = numbers.iter().map(cost).sum();
    let up = |(at, value): &(usize, f64)| match programme.columns[*at].domain {
        VariableDomain::Whole { .. } => whole(programme, *at, (value - HAIR).ceil()),
        VariableDomain::Share => whole(programme, *at, *value),
    };
    Some((numbers.iter().map(up).collect(), least))
}

/// What the solver makes of a programme, whole numbers being any numbers where it is to be `relaxed`.
fn solved(programme: &MipModel, nodes: u64, relaxed: bool) -> Result<SolveOutcome, Error> {
    let mut variables = ProblemVariables::new();
    let of = |domain: VariableDomain| match domain {
        VariableDomain::Whole { least, most } if relaxed => variable().bounds(least as f64..=most as f64),
        VariableDomain::Whole { least, most } => variable().integer().bounds(least as f64..=most as f64),
        VariableDomain::Share => variable().bounds(0.0..=1.0),
    };
    let columns: Vec<Variable> =
        programme.columns.iter().map(|column| variables.add(of(column.domain))).collect();
    let sum = |terms: &mut dyn Iterator<Item = (usize, i64)>| -> Expression {
        terms.map(|(at, factor)| factor as f64 * columns[at]).sum()
    };
    let costs = programme.columns.iter().enumerate().map(|(at, column)| (at, column.cost));
    let objective = sum(&mut costs.filter(|(_, cost)| *cost != 0));
    let mut model = variables.minimise(objective).using(microlp);
    for row in &programme.rows {
        let left = sum(&mut row.terms.iter().copied());
        let bound = row.bound as f64;
        model.add_constraint(match row.sense {
            Sense::AtMost => left.leq(bound),
            Sense::AtLeast => left.geq(bound),
            Sense::Equal => left.eq(bound),
        });
    }
    // The limit on nodes and the bound of an interrupted search are not to be had through good_lp.
    let mut options = SolveOptions::default();
    options.node_limit = Some(nodes);
    options.mip_gap = 0.0;
    model.as_inner().solve_with(options)
}

/// A solver's value as a whole number of the column's parts.
fn whole(programme: &MipModel, column: usize, value: f64) -> i64 {
    let (least, most) = programme.bounds(column);
    let parts = match programme.columns[column].domain {
        VariableDomain::Whole { .. } => value,
        // What lies a hair outside its bounds is on them.
        VariableDomain::Share => return ((value * SHARE as f64).round() as i64).clamp(least, most),
    };
    parts.round() as i64
}
