//! Analysis of an infeasible program: irreducible groups of conflicting rows, and the smallest change of a single row
//! that makes it feasible, each found by solving again.

use super::solve::{SolveBudget, solve};
use super::{MipModel, Sense};
use crate::search::conflict::irreducible;
use crate::search::outcome::Status;

/// A row whose relaxed bound makes the program feasible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRelaxation {
    pub row: String,
    pub group: String,
    /// Its current bound.
    pub stated: i64,
    /// The nearest bound that makes the program feasible, with all other rows unchanged.
    pub needed: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InfeasibleReasons {
    /// Conflicting groups; dropping any one of them makes the others feasible.
    pub conflict: Vec<String>,
    /// The conflict is proved irreducible: every solve was decided.
    pub irreducible: bool,
    /// The smallest single changes that help, each solved again.
    pub relaxations: Vec<RowRelaxation>,
}

const FURTHEST: i64 = 1 << 30;

pub fn reasons(program: &MipModel, effort: &SolveBudget) -> InfeasibleReasons {
    let groups = program.groups();
    let named = |keep: &[usize]| -> Vec<String> { keep.iter().map(|at| groups[*at].clone()).collect() };
    let found =
        irreducible(groups.len(), |without| match solve(&program.only(&named(without)), effort).status {
            Status::Infeasible => Some(true),
            Status::Unknown => None,
            Status::Optimal | Status::Feasible => Some(false),
        });
    let keep = named(&found.kept);
    let rows = (0..program.rows.len()).filter(|at| keep.contains(&program.rows[*at].group));
    let relaxations = rows.filter_map(|at| relax(program, at, effort)).collect();
    InfeasibleReasons { conflict: keep, irreducible: found.irreducible, relaxations }
}

/// The smallest relaxation of one row that makes the program feasible.
fn relax(program: &MipModel, at: usize, effort: &SolveBudget) -> Option<RowRelaxation> {
    let row = &program.rows[at];
    let mut elastic = program.clone();
    elastic.columns.iter_mut().for_each(|column| column.cost = 0);
    let way = match row.sense {
        Sense::AtMost => -1,
        Sense::AtLeast => 1,
        // A relaxation in both directions is not a single change.
        Sense::Equal => return None,
    };
    let moved = elastic.whole("moved", (0, FURTHEST), 1);
    elastic.rows[at].terms.push((moved, way));
    let values = solve(&elastic, effort).values?;
    let needed = row.bound - way * values[moved];
    let mut again = program.clone();
    again.rows[at].bound = needed;
    let helps = matches!(solve(&again, effort).status, Status::Optimal | Status::Feasible);
    helps.then(|| RowRelaxation {
        row: row.name.clone(),
        group: row.group.clone(),
        stated: row.bound,
        needed,
    })
}
