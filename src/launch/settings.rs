//! The settings of one worker: exactly what its price rests on.

use std::fmt;

use crate::search::candidate::{Candidate, PoolPlan, PoolRole};
use crate::search::problem::Problem;
use crate::search::shape::cuts;
use crate::spec::launch::Setting;

/// Tokens to which the longest request is rounded up.
const CONTEXT_STEP: u64 = 256;

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// A number of ranks, sequences or tokens.
    Count(u64),
    /// A fraction or an amount.
    Real(f64),
    /// A name or id.
    Word(String),
    /// On or off.
    On(bool),
    /// One number for each stage or device.
    Counts(Vec<u64>),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Count(count) => write!(f, "{count}"),
            SettingValue::Real(real) => write!(f, "{real}"),
            SettingValue::Word(word) => f.write_str(word),
            SettingValue::On(on) => write!(f, "{on}"),
            SettingValue::Counts(counts) => {
                let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
                f.write_str(&counts.join(","))
            }
        }
    }
}

/// The settings of a worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(Vec<(Setting, SettingValue)>);

impl Settings {
    /// The value of a setting.
    pub fn get(&self, setting: Setting) -> Option<&SettingValue> {
        self.0.iter().find(|(known, _)| *known == setting).map(|(_, value)| value)
    }

    /// The value of a setting that is a number.
    pub fn count(&self, setting: Setting) -> Option<u64> {
        match self.get(setting) {
            Some(SettingValue::Count(count)) => Some(*count),
            _ => None,
        }
    }

    /// Sets a value; a later one replaces an earlier one.
    pub fn set(&mut self, setting: Setting, value: SettingValue) {
        match self.0.iter_mut().find(|(known, _)| *known == setting) {
            Some(known) => known.1 = value,
            None => self.0.push((setting, value)),
        }
    }

    /// Every setting with its value.
    pub fn iter(&self) -> impl Iterator<Item = &(Setting, SettingValue)> {
        self.0.iter()
    }
}

/// The settings of a worker of `pool`, for a model with weights in the format `own`.
pub fn settings(
    problem: &Problem,
    candidate: &Candidate,
    pool: &PoolPlan,
    (model, own): (&str, &str),
) -> Settings {
    use SettingValue::{Count, Counts, On, Real, Word};
    let (plan, formats) = (&pool.plan, &problem.formats[candidate.formats]);
    let (machine, lengths) = (formats.plain(), problem.workload.lengths);
    let mut settings = Settings::default();
    settings.set(Setting::Model, Word(model.to_owned()));
    settings.set(Setting::Tp, Count(plan.tp));
    settings.set(Setting::Pp, Count(plan.pp));
    let usual = cuts(problem, *plan).first().is_none_or(|cut| *cut == pool.stages);
    if plan.pp > 1 && !usual {
        settings.set(Setting::StageLayers, Counts(pool.stages.iter().map(|&n| u64::from(n)).collect()));
    }
    settings.set(Setting::Dp, Count(plan.dp));
    settings.set(Setting::AttentionDp, On(plan.dp > 1));
    settings.set(Setting::Ranks, Count(plan.tp * plan.dp));
    settings.set(Setting::Ep, Count(plan.ep));
    settings.set(Setting::ExpertParallel, On(plan.ep > 1));
    settings.set(Setting::Cp, Count(plan.cp));
    settings.set(Setting::Dcp, Count(plan.dcp));
    if formats.weights != own {
        settings.set(Setting::WeightFormat, Word(formats.weights.clone()));
    }
    settings.set(Setting::KvFormat, Word(formats.kv.clone()));
    let sequences = pool.concurrency.div_ceil(plan.dp).max(1);
    let prepared = machine.max_sequences.map_or(sequences, |most| sequences.max(most.value() as u64));
    settings.set(Setting::MaxSequences, Count(prepared));
    settings.set(Setting::TokenBudget, Count(machine.chip.max_batched_tokens.value() as u64));
    settings.set(Setting::MemoryShare, Real(machine.chip.utilization.value()));
    let longest = (lengths.isl + lengths.osl).next_multiple_of(CONTEXT_STEP);
    let context = longest.min(problem.graph.max_context.unwrap_or(u64::MAX));
    settings.set(Setting::Context, Count(context));
    settings.set(Setting::TotalContext, Count(context * sequences));
    settings.set(Setting::PrefixCache, On(lengths.prefix > 0));
    if pool.role != PoolRole::Aggregated {
        let role = if pool.role == PoolRole::Prefill { "prefill" } else { "decode" };
        settings.set(Setting::Role, Word(role.to_owned()));
    }
    settings
}
