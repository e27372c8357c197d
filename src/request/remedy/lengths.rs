//! Shorter requests, where a request exceeds the model or the memory.

use super::InfeasibleProblem;
use crate::plan::infeasible::Infeasible;
use crate::plan::parallel::ParallelPlan;
use crate::report::flag::Flag;
use crate::report::relax::{ConflictReport, ConflictSet};
use crate::report::shortage::shortage_words;
use crate::report::table::grouped;
use crate::search::relax::{Stopped, answered, conflicts, largest_below};
use crate::search::shortage::{HeldPart, shortage};
use crate::spec::role::Role;
use crate::spec::writer::shell_word;

impl InfeasibleProblem<'_> {
    /// Reports the lengths as the conflict, with the lengths that fit.
    pub(super) fn lengths(&self, found: &mut ConflictReport) -> Result<(), Stopped> {
        let workload = &self.resolved.workload;
        let (isl, osl) = (workload.isl, workload.osl);
        let Some(problem) = self.problems.first() else { return Ok(()) };
        let tokens = problem.workload.lengths.isl + osl;
        let images = tokens - osl - isl;
        let mut stated = vec![format!("--isl {isl}"), format!("--osl {osl}")];
        if images > 0 {
            stated.push(format!("--images {}", workload.images));
        }
        let request = format!("ISL + OSL of {} tokens", grouped(tokens));
        let held = |flags: &[Flag]| {
            let mut problems = self.with_flags(flags)?;
            problems.retain(|problem| problem.context_fits().is_ok());
            Ok(!problems.is_empty() && !conflicts(&problems, self.control)?.bare)
        };
        let refused = problem.context_fits().err();
        let beyond = match refused {
            Some(Infeasible::ContextTooLong { limit, .. }) if tokens > limit => {
                let why = format!("{request}; the model supports at most {}", grouped(limit));
                found.conflicts.push(ConflictSet { conditions: stated.clone(), why: Some(why) });
                true
            }
            // The longest request of the server is too long, not those of the workload.
            Some(refused) => {
                let longest = self.scenario.max_model_len.map(|most| format!("--max-model-len {most}"));
                let conditions = longest.into_iter().collect();
                found.conflicts.push(ConflictSet { conditions, why: Some(refused.to_string()) });
                false
            }
            None => false,
        };
        // Other conditions do not bound the length: first the longest that fits, then the longest that meets all of
        // them.
        let longest = self.longest(isl, Flag::Isl, |flags| held(flags))?;
        if !beyond {
            found.conflicts.push(match longest {
                Some(most) => {
                    let holds = grouped(most + images + osl);
                    let why = format!("{request}; device memory holds at most {holds}");
                    ConflictSet { conditions: stated, why: Some(why) }
                }
                None => self.no_prompt(stated)?,
            });
        }
        if let Some(longest) = longest {
            let all = |flags: &[Flag]| answered(&self.with_flags(flags)?, self.control);
            let kept = self.longest(longest + 1, Flag::Isl, all)?;
            let flags = kept.map(|kept| self.prompt(Flag::Isl(kept)));
            found.remedies.extend(self.confirmed(flags)?);
            if kept != Some(longest) {
                let flags = self.completed(self.prompt(Flag::Isl(longest)))?;
                found.remedies.extend(self.confirmed(flags)?);
            }
        }
        if let Some(most) = self.longest(osl, Flag::Osl, held)? {
            let flags = self.completed(self.prompt(Flag::Osl(most)))?;
            found.remedies.extend(self.confirmed(flags)?);
        }
        Ok(())
    }

    /// The conflict where not even a prompt of one token fits: the first condition on memory that fails.
    fn no_prompt(&self, lengths: Vec<String>) -> Result<ConflictSet, Stopped> {
        let shortest = self.with_flags(&self.prompt(Flag::Isl(1)))?;
        let found = shortest.first().and_then(|problem| Some((shortage(problem)?, problem)));
        let Some((short, problem)) = found else {
            return Ok(self.no_legal_plan(lengths));
        };
        let mut conditions = vec![format!("--hardware {}", shell_word(&self.resolved.cluster.id))];
        match short.part {
            HeldPart::Request => conditions.extend(lengths),
            HeldPart::AllWeights | HeldPart::Weights | HeldPart::WithoutCache => {
                let stated = self.scenario.weight_format.as_ref();
                conditions.extend(stated.map(|id| format!("--weight-format {}", shell_word(id))));
            }
        }
        Ok(ConflictSet { conditions, why: Some(shortage_words(&short, problem)) })
    }

    /// The conflict where no plan is legal: a rule of the runtime that forbids every plan on these devices, if there is one.
    fn no_legal_plan(&self, lengths: Vec<String>) -> ConflictSet {
        let (resolved, one) = (&self.resolved, [(Role::Aggregated, ParallelPlan::SINGLE)]);
        let rules = resolved.rules();
        let reasons = resolved.kv_formats.iter().map(|kv| rules.check(&kv.format.id, &one).err());
        match reasons.collect::<Option<Vec<_>>>().and_then(|reasons| reasons.into_iter().next()) {
            Some(reason) => {
                let hardware = format!("--hardware {}", shell_word(&resolved.cluster.id));
                let conditions = vec![hardware, format!("--runtime {}", shell_word(&resolved.runtime.id))];
                ConflictSet { conditions, why: Some(reason.to_string()) }
            }
            None => {
                let why = "no plan is legal on these devices".to_owned();
                ConflictSet { conditions: lengths, why: Some(why) }
            }
        }
    }

    /// The longest length below `beyond` for which `holds`.
    fn longest(
        &self,
        beyond: u64,
        flag: impl Fn(u64) -> Flag,
        holds: impl Fn(&[Flag]) -> Result<bool, Stopped>,
    ) -> Result<Option<u64>, Stopped> {
        largest_below(1, beyond, |tokens| holds(&self.prompt(flag(tokens))))
    }

    /// A length, with a shorter cached prefix where the prompt gets shorter than the prefix, and with a stated longest
    /// request that is no longer than needed.
    fn prompt(&self, length: Flag) -> Vec<Flag> {
        let mut flags = Vec::new();
        if let Some((stated, problem)) = self.stated_longest() {
            let now = problem.workload.lengths;
            let images = now.isl - self.resolved.workload.isl;
            let needed = match length {
                Flag::Isl(tokens) => tokens + images + now.osl,
                Flag::Osl(tokens) => now.isl + tokens,
                _ => stated,
            };
            flags.extend((needed < stated).then_some(Flag::MaxModelLen(needed)));
        }
        if let Flag::Isl(tokens) = length
            && self.resolved.workload.prefix >= tokens
        {
            flags.push(Flag::Prefix(tokens.saturating_sub(1)));
        }
        flags.push(length);
        flags
    }
}
