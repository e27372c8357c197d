//! Stated limits of the server that another value lifts: the longest request that a runtime reserves memory for, the
//! number of requests that it takes at a time, and whether a part of the model may be in host memory.

use super::InfeasibleProblem;
use crate::report::flag::Flag;
use crate::report::relax::ConflictReport;
use crate::search::relax::{Stopped, largest_below};
use crate::search::shape::MOST_REQUESTS_PER_RANK;
use crate::spec::offload::OffloadPolicy;

impl InfeasibleProblem<'_> {
    /// Adds each stated limit to the conflicts that another value of it alone resolves, with that value.
    /// Where not even one request fits (`bare`), the longest request is a conflict of its own.
    pub(super) fn stated_limits(&self, bare: bool, found: &mut ConflictReport) -> Result<(), Stopped> {
        let shorter = if bare { None } else { self.shorter_request()? };
        for flag in [shorter, self.more_sequences()?, self.offloading()?].into_iter().flatten() {
            let stated = self.now(std::slice::from_ref(&flag));
            for set in &mut found.conflicts {
                set.conditions.push(stated.clone());
            }
            found.remedies.extend(self.confirmed(Some(vec![flag]))?);
        }
        Ok(())
    }

    /// The longest of shorter longest requests.
    fn shorter_request(&self) -> Result<Option<Flag>, Stopped> {
        let Some((stated, problem)) = self.stated_longest() else { return Ok(None) };
        let lengths = problem.workload.lengths;
        let least = lengths.isl.saturating_add(lengths.osl);
        let most = largest_below(least, stated, |tokens| self.works(&[Flag::MaxModelLen(tokens)]))?;
        Ok(most.map(Flag::MaxModelLen))
    }

    /// The fewest of more requests at a time.
    fn more_sequences(&self) -> Result<Option<Flag>, Stopped> {
        let Some(stated) = self.scenario.max_num_seqs else { return Ok(None) };
        let most = self.resolved.workload.concurrency.unwrap_or(MOST_REQUESTS_PER_RANK).max(stated);
        // Fewer below the most that are tried is more.
        let saved = largest_below(0, most - stated, |less| self.works(&[Flag::MaxNumSeqs(most - less)]))?;
        Ok(saved.map(|less| Flag::MaxNumSeqs(most - less)))
    }

    fn offloading(&self) -> Result<Option<Flag>, Stopped> {
        let flag = Flag::Offload(OffloadPolicy::Auto);
        let lifted =
            self.scenario.offload == Some(OffloadPolicy::Never) && self.works(std::slice::from_ref(&flag))?;
        Ok(lifted.then_some(flag))
    }
}
