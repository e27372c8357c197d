//! Why a programme has no point: groups of rows none of which can be left out, and what changing one of them by the
//! least amount would do, each tried by solving again.

use super::solve::{SolveBudget, solve};
use super::{MipModel, Sense};
use crate::search::conflict::irreducible;
use crate::search::outcome::Status;

/// A row whose bound, moved so far, makes the programme feasible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRelaxation {
    /// The row.
    pub row: String,
    /// Its group.
    pub group: String,
    /// Its bound as stated.
    pub stated: i64,
    /// The bound nearest to that for which there is a point, all other rows kept.
    pub needed: i64,
}

/// Why there is no point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InfeasibleReasons {
    /// Groups that cannot all be kept; leaving out any one of them, the others can.
    pub conflict: Vec<String>,
    /// The conflict is proved irreducible: every solve was decided.
    pub irreducible: bool,
    /// The least single changes that help, each solved again.
    pub relaxations: Vec<RowRelaxation>,
}

/// How far a bound may be moved.
const FURTHEST: i64 = 1 << 30;

/// The reasons against an infeasible programme.
pub fn reasons(programme: &MipModel, effort: &SolveBudget) -> InfeasibleReasons {
    let groups = programme.groups();
    let named = |keep: &[usize]| -> Vec<String> { keep.iter().map(|at| groups[*at].clone()).collect() };
    let found =
        irreducible(groups.len(), |without| match solve(&programme.only(&named(without)), effort).status {
            Status::Infeasible => Some(true),
            Status::Unknown => None,
            Status::Optimal | Status::Feasible => Some(false),
        });
    let keep = named(&found.kept);
    let rows = (0..programme.rows.len()).filter(|at| keep.contains(&programme.rows[*at].group));
    let relaxations = rows.filter_map(|at| relax(programme, at, effort)).collect();
    InfeasibleReasons { conflict: keep, irreducible: found.irreducible, relaxations }
}

/// The least move of one row's bound that leaves a point.
fn relax(programme: &MipModel, at: usize, effort: &SolveBudget) -> Option<RowRelaxation> {
    let row = &programme.rows[at];
    let mut elastic = programme.clone();
    elastic.columns.iter_mut().for_each(|column| column.cost = 0);
    let way = match row.sense {
        Sense::AtMost => -1,
        Sense::AtLeast => 1,
        // Both ways at once is not one change.
        Sense::Equal => return None,
    };
    let moved = elastic.whole("moved", (0, FURTHEST), 1);
    elastic.rows[at].terms.push((moved, way));
    let values = solve(&elastic, effort).values?;
    let needed = row.bound - way * values[moved];
    let mut again = programme.clone();
    again.rows[at].bound = needed;
    let helps = matches!(solve(&again, effort).status, Status::Optimal | Status::Feasible);
    helps.then(|| RowRelaxation {
        row: row.name.clone(),
        group: row.group.clone(),
        stated: row.bound,
        needed,
    })
}
