//! `check`: whether the server of a launch command starts, by what its runtime checks before it serves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestControl;
use super::command::{GivenCommand, command_lines, read_text, unread};
use super::estimate::{EstimateRequest, estimate};
use super::priced_plan::PricedPlan;
use super::start_check::{CheckedStart, hardware_is_given, start_check};
use super::start_memory::CountedCache;
use crate::launch::back::{KnownLaunch, ReadLaunch, read_launch};
use crate::launch::edit::with_setting;
use crate::launch::failure::{FailureReason, FoundFailure, failure_in};
use crate::launch::settings::SettingValue;
use crate::launch::settings_file::NamedFiles;
use crate::launch::shell::{CommandVariables, Process};
use crate::report::result::EstimateResult;
use crate::report::start::{StartCorrection, StartReport};
use crate::spec::error::Error;
use crate::spec::notation::PlanText;
use crate::spec::option_effect::WordEffect;
use crate::spec::scenario::Scenario;
use crate::spec::setting::Setting;
use crate::store::catalog::Catalog;

/// A request of `check`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CheckRequest {
    /// A launch command, a script or a manifest.
    pub command: String,
    /// Settings files that the command names, by name without folders: their text.
    #[serde(skip_serializing_if = "NamedFiles::is_empty")]
    pub command_files: NamedFiles,
    /// Values of variables of the shell that the command leaves open, by name.
    #[serde(skip_serializing_if = "CommandVariables::is_empty")]
    pub command_variables: CommandVariables,
    /// The log of a server that failed, or the symptom in words, in which its reason is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The hardware; other fields take precedence over the command.
    pub scenario: Scenario,
}

/// Tokens of the prompt and of the answer of a server that starts: what it reserves does not depend on them.
const SHORT: u64 = 16;
/// Corrections that are shown.
const SHOWN: usize = 3;
/// Steps of a corrected context, in tokens.
const CONTEXT_STEP: u64 = 256;
/// The share of the device memory of a server that states none.
const USUAL_SHARE: f64 = 0.9;
/// A smaller share leaves more to activations and graphs.
const SHARE_STEP: f64 = 0.05;
/// Sequences and tokens of a step of a server with small activations and graphs: the defaults of small devices.
const FEW_SEQUENCES: u64 = 256;
const FEW_TOKENS: u64 = 2048;
/// The largest share of the device memory that a correction sets; the rest is the driver's.
const LARGEST_SHARE: f64 = 0.97;

/// Checks the start of a launch command.
///
/// # Errors
/// No command of a known runtime is in the text, a word that decides the price is not understood, or the hardware is not
/// given.
pub fn check(
    catalog: &Catalog,
    request: &CheckRequest,
    control: &RequestControl,
) -> Result<StartReport, Error> {
    let given = &request.scenario;
    hardware_is_given(given)?;
    let text = GivenCommand::of(&request.command, &request.command_files).with(&request.command_variables);
    let (processes, files) = read_text(&text)?;
    let known = launches_of(catalog, given.runtime_version.as_deref(), &processes, &files)?;
    let as_given = read_launch(&known, &processes, &files)?;
    let start = Start { catalog, known: &known, files: &files, given, control };
    let checked = start_check(catalog, &known, &as_given, &files, given)?;
    let StartVerdict { result, scenario, counted, mut reasons } = start.verdict(&checked)?;
    let failure = request.log.as_deref().and_then(|log| failure_in(log, Some(&as_given.known.0.id)));
    if let Some(failure) = &failure {
        reasons.insert(0, format!("{}: {}", failure.reason.words(), failure.line));
    } else if request.log.is_some() {
        let fix =
            "pass the whole log, from the start of the server to its end, or the symptom in a few words";
        return Err(Error::new("log", "no failure that is known", "the log of a server that failed", fix));
    }
    let fits = result.candidate.metrics.is_some() && counted.as_ref().is_none_or(|one| one.faults.is_empty());
    let largest_context = start.largest_context(&scenario, &result, counted.as_ref());
    let corrections = match (&failure, reasons.is_empty()) {
        (None, true) => vec![],
        (Some(failure), _) => start.corrections_of(&checked, failure),
        (None, false) => start.corrections(&checked, fits),
    };
    let priced = fits.then(|| start.priced(&scenario)).transpose()?;
    let notation: Option<PlanText> = result.candidate.notation.parse().ok();
    let ranks = notation.and_then(|plan| plan.pools.last()?.degrees.dp).unwrap_or(1);
    let counted_tokens = counted.as_ref().filter(|_| fits).map(|one| one.tokens.saturating_mul(ranks));
    let (runtime, version) = (&as_given.known.0.id, &as_given.known.1.version);
    Ok(StartReport {
        starts: reasons.is_empty(),
        failure,
        reasons,
        corrections,
        plan: result.candidate.plan.label.clone(),
        runtime: runtime.clone(),
        runtime_version: version.clone(),
        memory: result.candidate.memory.clone(),
        kv_tokens: counted_tokens.or(priced.as_ref().map(|plan| plan.kv_tokens)),
        context: checked.longest.or(largest_context).filter(|_| fits),
        largest_context,
        most_requests: priced.as_ref().and_then(|plan| plan.most_requests),
        scenario,
        unread: unread(&as_given),
        notes: [as_given.processes.iter().flat_map(|one| one.process.notes.clone()).collect(), checked.notes]
            .concat(),
    })
}

/// The launches in a version. One between two option tables has the options of either: the table that refuses fewer words
/// of the command is taken.
fn launches_of(
    catalog: &Catalog,
    version: Option<&str>,
    processes: &[Process],
    files: &NamedFiles,
) -> Result<Vec<KnownLaunch>, Error> {
    let refused = |known: &[KnownLaunch]| -> Result<usize, Error> {
        let launch = read_launch(known, processes, files)?;
        let words = launch.leftovers().filter(|(_, left)| left.why.effect() == WordEffect::Refused);
        Ok(words.count())
    };
    let known = catalog.launches_at(version)?;
    let Some(version) = version.filter(|_| refused(&known).is_ok_and(|words| words > 0)) else {
        return Ok(known);
    };
    let after = catalog.launches_after(version)?;
    Ok(if refused(&after)? < refused(&known)? { after } else { known })
}

/// The inputs of every check of a start.
pub(super) struct Start<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) known: &'a [KnownLaunch],
    pub(super) files: &'a NamedFiles,
    pub(super) given: &'a Scenario,
    pub(super) control: &'a RequestControl<'a>,
}

/// The findings of a check.
struct StartVerdict {
    result: EstimateResult,
    /// The problem with all that the server sets aside.
    scenario: Scenario,
    /// Its cache, where the runtime counts it in blocks of several kinds.
    counted: Option<CountedCache>,
    reasons: Vec<String>,
}

/// Attention ranks of all replicas.
fn attention_ranks(result: &EstimateResult) -> Option<u64> {
    let plan: PlanText = result.candidate.notation.parse().ok()?;
    let ranks = |pool: &crate::spec::notation::PoolText| {
        pool.degrees.replicas.unwrap_or(1) * pool.degrees.dp.unwrap_or(1)
    };
    Some(plan.pools.iter().map(ranks).sum())
}

impl<'a> Start<'a> {
    /// The problem with one short request.
    fn shortened(&self, scenario: &Scenario) -> Scenario {
        Scenario {
            isl: Some(SHORT),
            osl: Some(SHORT),
            prefix: None,
            images: None,
            ttft: Some("none".to_owned()),
            tpot: Some("none".to_owned()),
            e2e: Some("none".to_owned()),
            ..scenario.clone()
        }
    }

    pub(super) fn short(&self, scenario: &Scenario) -> Result<EstimateResult, Error> {
        estimate(self.catalog, &EstimateRequest::of(self.shortened(scenario)), self.control)
    }

    fn priced(&self, scenario: &Scenario) -> Result<PricedPlan, Error> {
        PricedPlan::new(self.catalog, &EstimateRequest::of(self.shortened(scenario)), self.control)
    }

    /// Whether a launch starts: its memory, and the runtime's reasons against it.
    fn verdict(&self, checked: &CheckedStart) -> Result<StartVerdict, Error> {
        let needs = &checked.needs;
        let mut scenario = needs.applied(&checked.scenario);
        let mut result = self.short(&scenario)?;
        let profiled = result.candidate.memory.as_ref().and_then(|memory| needs.profiled(&scenario, memory));
        if let Some(profiled) = profiled {
            scenario = profiled;
            result = self.short(&scenario)?;
        }
        let counted =
            result.candidate.memory.as_ref().and_then(|memory| needs.counted(memory, checked.longest));
        let mut reasons = checked.faults.clone();
        match &counted {
            _ if result.candidate.metrics.is_none() => {
                reasons.extend(result.candidate.violations.iter().cloned());
            }
            Some(counted) => reasons.extend(counted.faults.iter().cloned()),
            None => {}
        }
        reasons.extend(result.candidate.memory.as_ref().and_then(|memory| needs.load_fault(memory)));
        if let (Some(attention), Some(memory)) = (&needs.attention, &result.candidate.memory)
            && result.candidate.metrics.is_some()
        {
            reasons.extend(
                attention
                    .fault(memory.capacity_bytes - memory.usable_bytes, self.priced(&scenario)?.kv_tokens),
            );
        }
        Ok(StartVerdict { result, scenario, counted, reasons })
    }

    /// The longest request that the memory holds with one on each attention rank; `None` where not even a short one fits.
    fn largest_context(
        &self,
        scenario: &Scenario,
        result: &EstimateResult,
        counted: Option<&CountedCache>,
    ) -> Option<u64> {
        if let Some(counted) = counted {
            return counted.longest;
        }
        let requests = attention_ranks(result)?;
        let alone = Scenario { max_model_len: None, concurrency: Some(requests), ..scenario.clone() };
        let metrics = self.short(&alone).ok()?.candidate.metrics?;
        Some(metrics.max_context_tokens as u64)
    }

    /// The smallest changes with which the server starts; `mended`: the repair of refused words is enough.
    fn corrections(&self, checked: &CheckedStart<'a>, mended: bool) -> Vec<StartCorrection> {
        let launch = &checked.launch;
        if mended {
            let change = "the refused words repaired".to_owned();
            return vec![StartCorrection { change, command: command_lines(launch) }];
        }
        let mut found: Vec<StartCorrection> = Vec::new();
        let singles = self.edits(checked);
        for (setting, value) in &singles {
            if let Some(edited) = self.edited(launch, *setting, value) {
                found.extend(self.started(&edited, vec![(*setting, value.clone())]));
            }
        }
        // A change that is not enough alone may be with the context that it leaves.
        let alone = !found.is_empty();
        for (setting, value) in singles.iter().filter(|_| !alone) {
            let Some(edited) = self.edited(launch, *setting, value) else { continue };
            let Ok(checked) = start_check(self.catalog, self.known, &edited, self.files, self.given) else {
                continue;
            };
            let Some(context) = self.edits(&checked).into_iter().find(|one| one.0 == Setting::Context) else {
                continue;
            };
            if let Some(both) = self.edited(&edited, context.0, &context.1) {
                found.extend(self.started(&both, vec![(*setting, value.clone()), context]));
            }
        }
        found.truncate(SHOWN);
        found
    }

    /// Changes with which the server starts by our own check, the ones first that meet the failure of its log.
    fn corrections_of(&self, checked: &CheckedStart<'a>, failure: &FoundFailure) -> Vec<StartCorrection> {
        use SettingValue::{Count, Real};
        let scenario = &checked.scenario;
        let share = scenario.gpu_memory_utilization.unwrap_or(USUAL_SHARE);
        let longest = failure.numbers.get("largest").map(|tokens| {
            let tokens = *tokens as u64;
            if tokens > CONTEXT_STEP { tokens / CONTEXT_STEP * CONTEXT_STEP } else { tokens }
        });
        let mut edits: Vec<(Setting, SettingValue)> =
            longest.map(|tokens| (Setting::Context, Count(tokens))).into_iter().collect();
        if failure.reason == FailureReason::OomProfile {
            edits.push((Setting::MemoryShare, Real(((share - SHARE_STEP) * 100.0).round() / 100.0)));
            edits.push((Setting::MaxSequences, Count(FEW_SEQUENCES)));
            edits.push((Setting::TokenBudget, Count(FEW_TOKENS)));
        }
        edits.extend(self.edits(checked).into_iter().filter(|(setting, _)| match failure.reason {
            FailureReason::OomProfile => *setting != Setting::MemoryShare,
            _ => longest.is_none() || *setting != Setting::Context,
        }));
        let found = edits.into_iter().filter_map(|(setting, value)| {
            let edited = self.edited(&checked.launch, setting, &value)?;
            self.started(&edited, vec![(setting, value)])
        });
        found.take(SHOWN).collect()
    }

    /// Changes that may help, the smallest first.
    fn edits(&self, checked: &CheckedStart) -> Vec<(Setting, SettingValue)> {
        use SettingValue::{Count, On, Real, Word};
        let (scenario, launch) = (&checked.scenario, &checked.launch);
        let mut edits = Vec::new();
        if checked.needs.attention.is_some() {
            edits.push((Setting::MaxSequences, Count(FEW_SEQUENCES)));
        }
        let fits = self
            .verdict(checked)
            .ok()
            .and_then(|found| self.largest_context(&found.scenario, &found.result, found.counted.as_ref()));
        let context = fits.map(|tokens| tokens / CONTEXT_STEP * CONTEXT_STEP).filter(|tokens| *tokens > 0);
        if let Some(tokens) = context.filter(|tokens| checked.longest.is_none_or(|now| *tokens < now)) {
            edits.push((Setting::Context, Count(tokens)));
            edits.push((Setting::TotalContext, Count(tokens)));
        }
        if scenario.gpu_memory_utilization.is_none_or(|share| share < LARGEST_SHARE) {
            edits.push((Setting::MemoryShare, Real(LARGEST_SHARE)));
        }
        if scenario.kv_format.is_none() {
            edits.push((Setting::KvFormat, Word("fp8".to_owned())));
        }
        edits.push((Setting::ExpertParallel, On(true)));
        let settings = &launch.processes[0].read.settings;
        for setting in [Setting::Tp, Setting::Ranks, Setting::StageRanks, Setting::Ep] {
            let now = settings.count(setting).unwrap_or(1);
            edits.extend([2, 4, 8].map(|times| (setting, Count(now * times))));
            edits.extend((now > 1 && now % 2 == 0).then_some((setting, Count(now / 2))));
        }
        edits
    }

    fn edited(
        &self,
        launch: &ReadLaunch<'a>,
        setting: Setting,
        value: &SettingValue,
    ) -> Option<ReadLaunch<'a>> {
        let changed = |one| with_setting(launch.known, one, setting, value);
        let processes: Vec<Process> = launch.processes.iter().map(changed).collect::<Option<_>>()?;
        read_launch(self.known, &processes, self.files).ok()
    }

    /// The correction, where the launch starts with it.
    fn started(
        &self,
        launch: &ReadLaunch<'a>,
        edits: Vec<(Setting, SettingValue)>,
    ) -> Option<StartCorrection> {
        let checked = start_check(self.catalog, self.known, launch, self.files, self.given).ok()?;
        let starts = self.verdict(&checked).ok()?.reasons.is_empty();
        let words = edits.iter().map(|(setting, value)| format!("{} {value}", setting.words()));
        let change = words.collect::<Vec<_>>().join(", ");
        starts.then(|| StartCorrection { change, command: command_lines(launch) })
    }
}
