//! A shorter longest request of the server, where its KV cache or the model does not hold the stated one.

use super::InfeasibleProblem;
use crate::plan::infeasible::Infeasible;
use crate::report::flag::Flag;
use crate::report::relax::{ConflictReport, ConflictSet};
use crate::report::table::grouped;
use crate::search::problem::Problem;
use crate::search::relax::{Stopped, conflicts, largest_below};

impl InfeasibleProblem<'_> {
    /// The stated longest request, with a problem that has its workload.
    pub(super) fn stated_longest(&self) -> Option<(u64, &Problem)> {
        Some((self.scenario.max_model_len?, self.problems.first()?))
    }

    /// Reports the stated longest request as the conflict, with the one that fits; false where none is stated, or where
    /// requests of the workload alone do not fit either.
    pub(super) fn longest_request(&self, found: &mut ConflictReport) -> Result<bool, Stopped> {
        let Some((stated, problem)) = self.stated_longest() else { return Ok(false) };
        let lengths = problem.workload.lengths;
        let least = lengths.isl.saturating_add(lengths.osl);
        let holds = |tokens: u64| {
            let mut problems = self.with_flags(&[Flag::MaxModelLen(tokens)])?;
            problems.retain(|problem| problem.context_fits().is_ok());
            Ok(!problems.is_empty() && !conflicts(&problems, self.control)?.bare)
        };
        let flag = format!("--max-model-len {stated}");
        if stated < least {
            let conditions = vec![format!("--isl {}", lengths.isl), format!("--osl {}", lengths.osl), flag];
            let why = Infeasible::BeyondMaxModelLen { tokens: least, limit: stated }.to_string();
            found.conflicts.push(ConflictSet { conditions, why: Some(why) });
            let longer = if holds(least)? { self.completed(vec![Flag::MaxModelLen(least)])? } else { None };
            found.remedies.extend(self.confirmed(longer)?);
            return Ok(true);
        }
        let Some(most) = largest_below(least, stated, holds)? else { return Ok(false) };
        let why = match problem.context_fits() {
            Err(refused) => refused.to_string(),
            Ok(()) => format!(
                "max-model-len is {} tokens, but the KV cache of every plan holds at most {}",
                grouped(stated),
                grouped(most)
            ),
        };
        found.conflicts.push(ConflictSet { conditions: vec![flag], why: Some(why) });
        let flags = self.completed(vec![Flag::MaxModelLen(most)])?;
        found.remedies.extend(self.confirmed(flags)?);
        Ok(true)
    }
}
