//! Solves a program and verifies the result: every row is checked, the objective is recomputed, and the built-in
//! search is the fallback.

use super::backend::{SolverClaim, claim, rounded_up};
use super::exhaustive::search;
use super::{MipModel, MipValues, SHARE, VariableKind};
use crate::search::outcome::Status;

/// Node limits. Limits on nodes, not on time, keep results deterministic.
#[derive(Clone, Copy, Debug)]
pub struct SolveBudget {
    /// Nodes of the solver.
    pub nodes: u64,
    /// Nodes of the built-in search, where the solver fails.
    pub own_nodes: u64,
}

impl Default for SolveBudget {
    fn default() -> SolveBudget {
        SolveBudget { nodes: 50_000, own_nodes: 2_000_000 }
    }
}

/// Source of the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Prover {
    /// The branch-and-bound tree of the solver; its point was checked.
    Solver,
    /// The built-in search, exact over integers.
    OwnSearch,
    /// Lagrangian prices on scarce resources.
    Prices,
    /// The sum of the minimum cost of every column.
    Trivial,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CertifiedSolution {
    pub status: Status,
    pub values: Option<MipValues>,
    /// Its cost, recomputed from the point.
    pub objective: Option<f64>,
    /// Lower bound on the cost.
    pub bound: Option<f64>,
    pub prover: Prover,
    /// Nodes of the solver or search that gave the result.
    pub nodes: u64,
    /// Number of rows checked, all satisfied.
    pub rows_checked: u64,
    /// Errors of the solver, if any.
    pub doubts: Vec<String>,
}

/// A solver: returns its claim about a program within a node limit.
pub type Solver<'a> = &'a dyn Fn(&MipModel, u64) -> Result<SolverClaim, String>;

/// Maximum work of the built-in search in terms: a node of a large program takes longer.
const WORK: u64 = 4_000_000;
/// Maximum work of the solver in tableau entries.
const TABLEAU: u64 = 400_000_000;

impl SolveBudget {
    /// The budget reduced to the size of the program.
    fn within(&self, program: &MipModel) -> SolveBudget {
        let (rows, columns) = (program.rows.len() as u64, program.columns.len() as u64);
        SolveBudget {
            nodes: self.nodes.min((TABLEAU / (rows * columns).max(1)).max(1)),
            own_nodes: self.own_nodes.min((WORK / program.terms().max(1)).max(1)),
        }
    }
}

/// Nodes of the built-in search used to confirm infeasibility.
const DOUBT: u64 = 2_000;

pub fn solve(program: &MipModel, effort: &SolveBudget) -> CertifiedSolution {
    solve_with(program, effort, &claim)
}

/// Solves `program` with a solver that may be incorrect.
pub fn solve_with(program: &MipModel, effort: &SolveBudget, solver: Solver) -> CertifiedSolution {
    let mut doubts = Vec::new();
    if let Some(at) = (0..program.columns.len()).find(|at| program.bounds(*at).0 > program.bounds(*at).1) {
        doubts.push(format!("the domain of {} is empty", program.columns[at].name));
        return nothing(Prover::OwnSearch, 0, doubts);
    }
    if program.hopeless() {
        return nothing(Prover::OwnSearch, 0, doubts);
    }
    let effort = &effort.within(program);
    let said = match program.even() {
        Ok(()) => solver(program, effort.nodes),
        Err(spread) => Err(spread.to_string()),
    };
    match said {
        Ok(SolverClaim::Point { values, bound, optimal, nodes }) => match program.check(&values) {
            Ok(rows) => {
                let solved = point(program, values, (bound, optimal), (nodes, rows));
                if let Some(solved) = solved {
                    return solved;
                }
                doubts.push("the solver's bound is above its own point".to_string());
            }
            Err(broken) => doubts.push(format!("the solver's point: {broken}")),
        },
        Ok(SolverClaim::Infeasible) => {
            let doubted = search(program, DOUBT.min(effort.own_nodes));
            if doubted.best.is_none() {
                let prover = if doubted.complete { Prover::OwnSearch } else { Prover::Solver };
                return nothing(prover, doubted.nodes, doubts);
            }
            doubts.push("the solver reported a feasible program as infeasible".to_string());
        }
        Ok(SolverClaim::Stopped { bound, nodes }) => {
            let found = own(program, effort, doubts.clone());
            if found.status == Status::Unknown {
                return CertifiedSolution { bound, ..found };
            }
            doubts.push(format!("the solver stopped after {nodes} nodes without a point"));
            return CertifiedSolution { doubts, ..found };
        }
        Err(fault) => doubts.push(fault),
    }
    own(program, effort, doubts)
}

/// A checked point with the bound of the solver; `None` where the two contradict.
fn point(
    program: &MipModel,
    values: MipValues,
    (bound, optimal): (Option<f64>, bool),
    (nodes, rows_checked): (u64, u64),
) -> Option<CertifiedSolution> {
    let objective = program.objective(&values) as f64 / SHARE as f64;
    let close = 1e-6 * objective.abs().max(1.0);
    // Integer costs of integer columns: the optimum is an integer, so the bound can be rounded up.
    let whole = program.columns.iter().all(|c| c.cost == 0 || c.kind != VariableKind::Share);
    let bound = bound.map(|bound| if whole { (bound - close).ceil() } else { bound });
    if bound.is_some_and(|bound| bound > objective + close) {
        return None;
    }
    let proved = optimal && bound.is_some_and(|bound| objective - bound <= close);
    Some(CertifiedSolution {
        status: if proved { Status::Optimal } else { Status::Feasible },
        objective: Some(objective),
        bound: bound.map(|bound| bound.min(objective)),
        values: Some(values),
        prover: Prover::Solver,
        nodes,
        rows_checked,
        doubts: vec![],
    })
}

/// Infeasible, by `prover`.
pub fn nothing(prover: Prover, nodes: u64, doubts: Vec<String>) -> CertifiedSolution {
    CertifiedSolution {
        status: Status::Infeasible,
        values: None,
        objective: None,
        bound: None,
        prover,
        nodes,
        rows_checked: 0,
        doubts,
    }
}

/// The built-in search as a fallback; if it is incomplete, the rounded LP relaxation.
fn own(program: &MipModel, effort: &SolveBudget, doubts: Vec<String>) -> CertifiedSolution {
    let found = search(program, effort.own_nodes);
    let fit = !found.complete && program.even().is_ok();
    let relaxed = if fit { rounded_up(program) } else { None };
    let rounded = relaxed.as_ref().filter(|(values, _)| program.check(values).is_ok());
    let points = found.best.into_iter().chain(rounded.map(|(values, _)| values.clone()));
    let Some(values) = points.min_by_key(|values| program.objective(values)) else {
        let status = if found.complete { Status::Infeasible } else { Status::Unknown };
        return CertifiedSolution { status, ..nothing(Prover::OwnSearch, found.nodes, doubts) };
    };
    let rows_checked = program.rows.len() as u64;
    let objective = program.objective(&values) as f64 / SHARE as f64;
    let least = |at: usize| {
        let (low, high) = program.bounds(at);
        let part = if program.columns[at].kind == VariableKind::Share { SHARE as f64 } else { 1.0 };
        let cost = program.columns[at].cost as f64;
        (cost * low as f64 / part).min(cost * high as f64 / part)
    };
    let trivial: f64 = (0..program.columns.len()).map(least).sum();
    let (status, bound, prover) = match relaxed {
        _ if found.complete => (Status::Optimal, objective, Prover::OwnSearch),
        Some((_, least)) if least > trivial => (Status::Feasible, least.min(objective), Prover::Solver),
        _ => (Status::Feasible, trivial, Prover::Trivial),
    };
    let (values, objective, bound) = (Some(values), Some(objective), Some(bound));
    CertifiedSolution { status, values, objective, bound, prover, nodes: found.nodes, rows_checked, doubts }
}
