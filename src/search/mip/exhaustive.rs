//! Exact depth-first search over integers with bound propagation, for small programs and as a fallback for solver
//! errors.
//!
//! Shares are tried only in eighths: with shares, the result is feasible but not proved optimal.

use super::{MipModel, MipValues, SHARE, Sense, VariableKind};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExhaustiveResult {
    pub best: Option<MipValues>,
    /// The search is complete: the best point is optimal, or the program is infeasible.
    pub complete: bool,
    pub nodes: u64,
}

/// Units in which a share is tried.
const EIGHTHS: i64 = 8;

struct ExhaustiveSearch<'a> {
    program: &'a MipModel,
    /// Step of every column, in its own units.
    step: Vec<i64>,
    best: Option<(i128, MipValues)>,
    nodes: u64,
    most: u64,
}

/// Searches at most `most` nodes.
pub fn search(program: &MipModel, most: u64) -> ExhaustiveResult {
    let step = program.columns.iter().map(|column| match column.kind {
        VariableKind::Whole => 1,
        VariableKind::Share => SHARE as i64 / EIGHTHS,
    });
    let exact = program.columns.iter().all(|column| column.kind != VariableKind::Share);
    let bounds: Vec<(i64, i64)> = (0..program.columns.len()).map(|at| program.bounds(at)).collect();
    let mut search = ExhaustiveSearch { program, step: step.collect(), best: None, nodes: 0, most };
    search.visit(bounds);
    let complete = exact && search.nodes <= most;
    ExhaustiveResult { best: search.best.map(|(_, values)| values), complete, nodes: search.nodes.min(most) }
}

impl ExhaustiveSearch<'_> {
    /// Tightens column bounds by the rows. Returns whether the domain is nonempty.
    fn narrow(&self, bounds: &mut [(i64, i64)]) -> bool {
        loop {
            let mut changed = false;
            for row in &self.program.rows {
                let right = i128::from(row.bound) * SHARE;
                let slack = self.program.rounding(row);
                let ranges: Vec<(i128, i128)> = row
                    .terms
                    .iter()
                    .map(|(at, factor)| self.program.range(*at, *factor, bounds[*at]))
                    .collect();
                let (least, most) =
                    ranges.iter().fold((0, 0), |sum, range| (sum.0 + range.0, sum.1 + range.1));
                let upper = (row.sense != Sense::AtLeast).then_some(right + slack);
                let lower = (row.sense != Sense::AtMost).then_some(right - slack);
                if upper.is_some_and(|upper| least > upper) || lower.is_some_and(|lower| most < lower) {
                    return false;
                }
                for ((at, factor), range) in row.terms.iter().zip(&ranges) {
                    if *factor == 0 {
                        continue;
                    }
                    let term_most = upper.map(|upper| upper - (least - range.0));
                    let term_least = lower.map(|lower| lower - (most - range.1));
                    let (low, high) = self.within(*at, *factor, bounds[*at], (term_least, term_most));
                    if low > high {
                        return false;
                    }
                    if (low, high) != bounds[*at] {
                        bounds[*at] = (low, high);
                        changed = true;
                    }
                }
                if changed {
                    // The sums above are out of date.
                    break;
                }
            }
            if !changed {
                return true;
            }
        }
    }

    /// The values of a column, on its steps, for which factor times it lies between two bounds.
    fn within(
        &self,
        at: usize,
        factor: i64,
        (low, high): (i64, i64),
        (least, most): (Option<i128>, Option<i128>),
    ) -> (i64, i64) {
        let factor = i128::from(factor) * self.program.weight(at);
        let (floor, ceil) =
            (|a: i128| a.div_euclid(factor.abs()), |a: i128| -((-a).div_euclid(factor.abs())));
        let (under, over) = if factor > 0 {
            (least.map(ceil), most.map(floor))
        } else {
            (most.map(|most| ceil(-most)), least.map(|least| floor(-least)))
        };
        let step = i128::from(self.step[at]);
        let low = under.map_or(i128::from(low), |under| i128::from(low).max(under));
        let high = over.map_or(i128::from(high), |over| i128::from(high).min(over));
        let (low, high) = (-((-low).div_euclid(step)) * step, high.div_euclid(step) * step);
        let clamp = |value: i128| value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        (clamp(low), clamp(high))
    }

    fn visit(&mut self, mut bounds: Vec<(i64, i64)>) {
        self.nodes += 1;
        if self.nodes > self.most || !self.narrow(&mut bounds) {
            return;
        }
        let cost = |at: usize| self.program.range(at, self.program.columns[at].cost, bounds[at]).0;
        let least: i128 = (0..bounds.len()).map(cost).sum();
        if self.best.as_ref().is_some_and(|(best, _)| least >= *best) {
            return;
        }
        let open = (0..bounds.len()).filter(|at| bounds[*at].0 < bounds[*at].1);
        // Branch on the column with the smallest domain.
        let Some(at) = open.min_by_key(|at| {
            (i128::from(bounds[*at].1) - i128::from(bounds[*at].0)) / i128::from(self.step[*at])
        }) else {
            let values: MipValues = bounds.iter().map(|(low, _)| *low).collect();
            if self.program.check(&values).is_ok() {
                self.best = Some((self.program.objective(&values), values));
            }
            return;
        };
        let (low, high) = bounds[at];
        let parts = (i128::from(high) - i128::from(low)) / i128::from(self.step[at]);
        let middle = low + (parts / 2) as i64 * self.step[at];
        let mut halves = [(low, middle), (middle + self.step[at], high)];
        // The cheaper half first, for a better bound.
        if self.program.columns[at].cost < 0 {
            halves.reverse();
        }
        for half in halves {
            let mut narrowed = bounds.clone();
            narrowed[at] = half;
            self.visit(narrowed);
        }
    }
}
