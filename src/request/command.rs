//! Launch commands and manifests as input: the plan that they start, and what would be better.

use super::UNCONTROLLED;
use super::check::Start;
use super::estimate::{EstimateRequest, estimate};
use super::optimize::{OptimizeRequest, optimize};
use super::start_check::{CheckedStart, hardware_is_given, start_check};
use crate::launch::back::{ReadLaunch, read_launch};
use crate::launch::edit::line;
use crate::launch::manifest::{is_manifest, processes};
use crate::launch::settings::SettingValue;
use crate::launch::settings_file::NamedFiles;
use crate::launch::shell::{CommandVariables, Process, commands};
use crate::report::launch::{CommandReport, FlagChange, LaunchReport, UnreadWord};
use crate::report::result::{EstimateResult, ReportedDeployment};
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::notation::PlanText;
use crate::spec::objective::Direction;
use crate::spec::scenario::Scenario;
use crate::spec::setting::Setting;
use crate::store::catalog::Catalog;

/// A launch command, a script or a manifest, with what it refers to.
#[derive(Clone, Copy, Debug)]
pub struct GivenCommand<'a> {
    pub text: &'a str,
    /// Files that it names: settings, and scripts that it runs.
    pub files: &'a NamedFiles,
    /// Values of variables that it leaves open.
    pub variables: &'a CommandVariables,
}

/// No variables.
static NO_VARIABLES: CommandVariables = CommandVariables::new();

impl<'a> GivenCommand<'a> {
    /// A text that leaves no variable open.
    pub fn of(text: &'a str, files: &'a NamedFiles) -> GivenCommand<'a> {
        GivenCommand { text, files, variables: &NO_VARIABLES }
    }

    /// The text with values of variables that it leaves open.
    pub fn with(self, variables: &'a CommandVariables) -> GivenCommand<'a> {
        GivenCommand { variables, ..self }
    }
}

/// The processes in a text, and its files.
pub(super) fn read_text(command: &GivenCommand) -> Result<(Vec<Process>, NamedFiles), Error> {
    let GivenCommand { text, files, variables } = *command;
    let (processes, own) = match is_manifest(text) {
        true => processes(text, files, variables)?,
        false => commands(text, files, variables),
    };
    Ok((processes, own.into_iter().chain(files.clone()).collect()))
}

/// The estimate of the deployment that a command or manifest starts; fields of `given` take precedence. Of a command that
/// the runtime refuses, that of the nearest that it takes.
///
/// # Errors
/// No command of a known runtime is in the text, a word that decides the price is not understood, the hardware is not
/// given, or the problem is faulty.
pub fn of_command(
    catalog: &Catalog,
    command: &GivenCommand,
    given: &Scenario,
) -> Result<EstimateResult, Error> {
    hardware_is_given(given)?;
    let known = catalog.launches_at(given.runtime_version.as_deref())?;
    let (processes, named) = read_text(command)?;
    let as_given = read_launch(&known, &processes, &named)?;
    let checked = start_check(catalog, &known, &as_given, &named, given)?;
    let CheckedStart { launch, stated, scenario, mut faults, notes: unpriced, .. } = checked;
    let result = estimate(catalog, &EstimateRequest::of(scenario.clone()), &UNCONTROLLED)?;
    let (best, changes) = better(catalog, &scenario, &stated, &result)?;
    let corrected = (!faults.is_empty()).then(|| command_lines(&launch));
    if result.candidate.metrics.is_none() {
        // A server that starts may still refuse the requests of the workload.
        let start = Start { catalog, known: &known, files: &named, given, control: &UNCONTROLLED };
        let short = start.short(&scenario)?.candidate;
        if short.metrics.is_none() {
            faults.extend(short.violations);
        }
    }
    let command = CommandReport {
        runtime: launch.known.0.id.clone(),
        runtime_version: launch.known.1.version.clone(),
        scenario: scenario.clone(),
        processes: launch.processes.iter().map(|one| one.process.place.clone()).collect(),
        will_not_start: faults,
        corrected,
        unread: unread(&as_given),
        notes: [notes(&launch, &scenario, &result), unpriced].concat(),
        best: best.map(Box::new),
        changes,
    };
    Ok(EstimateResult { command: Some(command), ..result })
}

/// The commands of a launch, each once.
pub(super) fn command_lines(launch: &ReadLaunch) -> String {
    let mut lines: Vec<String> = launch.processes.iter().map(|one| line(&one.process)).collect();
    lines.dedup();
    lines.join("\n")
}

pub(super) fn unread(launch: &ReadLaunch) -> Vec<UnreadWord> {
    let (runtime, version) = (&launch.known.0.id, &launch.known.1.version);
    let named = format!("{runtime} {version}");
    let word = |(place, left): (&str, &crate::launch::read::Leftover)| UnreadWord {
        place: place.to_owned(),
        position: left.place,
        word: left.word.clone(),
        reason: left.why.words(&named),
        effect: left.why.effect(),
    };
    launch.leftovers().map(word).collect()
}

fn notes(launch: &ReadLaunch, scenario: &Scenario, result: &EstimateResult) -> Vec<String> {
    let mut notes = Vec::new();
    let question = &result.question;
    for one in &launch.processes {
        notes.extend(one.process.notes.iter().cloned());
        let settings = &one.read.settings;
        let off = settings.get(Setting::PrefixCache) == Some(&SettingValue::On(false));
        if off && question.prefix > 0 {
            notes.push(
                "its prefix cache is off, but the traffic has cached prompt tokens: --prefix 0 prices it"
                    .into(),
            );
        }
        let pool = result.candidate.plan.decode.devices / result.candidate.plan.decode.replicas.max(1);
        let hosts = one.process.hosts.unwrap_or(1);
        if let Some(devices) =
            one.process.devices.filter(|devices| devices * hosts != pool && launch.processes.len() == 1)
        {
            notes.push(format!(
                "{} has {} devices, its command uses {pool}",
                one.process.place,
                devices * hosts
            ));
        }
    }
    if scenario.runtime.as_deref() != Some(launch.known.0.id.as_str()) {
        notes.push(format!("priced with --runtime {}", question.runtime));
    }
    notes.dedup();
    notes
}

/// The best plan for the same problem, and the single changes towards it that help. What `stated` leaves open is free.
fn better(
    catalog: &Catalog,
    scenario: &Scenario,
    stated: &Scenario,
    result: &EstimateResult,
) -> Result<(Option<ReportedDeployment>, Vec<FlagChange>), Error> {
    // A length that refuses the requests of the workload has no plan at all.
    let serves = |tokens: &u64| *tokens >= result.question.isl + result.question.osl;
    let kept = Scenario {
        deployment: None,
        max_model_len: stated.max_model_len.filter(serves),
        offload: stated.offload,
        ..scenario.clone()
    };
    let Some(best) = best_plan(catalog, kept, result) else { return Ok((None, vec![])) };
    let Some(aim) = result.question.optimize.first().copied() else { return Ok((Some(best), vec![])) };
    let value = |deployment: &ReportedDeployment| deployment.figure(aim.metric);
    let Some(now) = value(&result.candidate) else { return Ok((Some(best), vec![])) };
    let variants = [
        Scenario { weight_format: Some(best.weight_format.clone()), ..scenario.clone() },
        Scenario { kv_format: Some(best.kv_format.clone()), ..scenario.clone() },
        Scenario { deployment: degrees_only(&best.notation), ..scenario.clone() },
        Scenario { max_num_batched_tokens: None, ..scenario.clone() },
        Scenario { max_num_seqs: None, ..scenario.clone() },
        Scenario { gpu_memory_utilization: None, ..scenario.clone() },
    ];
    let mut changes = Vec::new();
    for variant in variants.into_iter().filter(|variant| variant != scenario) {
        let request = EstimateRequest::of(variant);
        let Ok(changed) = estimate(catalog, &request, &UNCONTROLLED) else { continue };
        let Some(then) = value(&changed.candidate) else { continue };
        let gains = if aim.direction == Direction::Maximize { then > now } else { then < now };
        let flags = changed_flags(result.launch.as_ref(), changed.launch.as_ref());
        if gains && !flags.is_empty() && changed.candidate.violations.is_empty() {
            changes.push(FlagChange { flags, metric: aim.metric.entry().name.to_owned(), now, then });
        }
    }
    changes.sort_by(|a, b| (b.then - b.now).abs().total_cmp(&(a.then - a.now).abs()));
    Ok((Some(best), changes))
}

/// The best plan with the runtime's own settings and any format; where it is worse than what `result` starts, that with
/// every setting and format of the command, which is never worse.
fn best_plan(catalog: &Catalog, kept: Scenario, result: &EstimateResult) -> Option<ReportedDeployment> {
    let given =
        Some(&result.candidate).filter(|given| given.metrics.is_some() && given.violations.is_empty());
    let aim = result.question.optimize.first();
    let worse = |found: &ReportedDeployment| {
        let pair = aim.and_then(|aim| Some((*aim, found.figure(aim.metric)?, given?.figure(aim.metric)?)));
        pair.is_some_and(|(aim, found, given)| match aim.direction {
            Direction::Maximize => found < given,
            Direction::Minimize => found > given,
        })
    };
    let search = |scenario: Scenario| {
        let points = Some(0.into());
        let request = OptimizeRequest { scenario, max_front_points: points, ..OptimizeRequest::default() };
        optimize(catalog, &request, &UNCONTROLLED).ok()?.best.filter(|found| !worse(found))
    };
    let unset = Scenario {
        weight_format: None,
        kv_format: None,
        max_num_batched_tokens: None,
        max_num_seqs: None,
        gpu_memory_utilization: None,
        ..kept.clone()
    };
    search(unset).or_else(|| given.and_then(|_| search(kept))).or_else(|| given.cloned())
}

/// A plan without its formats and without the concurrency of its pools, which follows from the traffic.
fn degrees_only(notation: &str) -> Option<Deployment> {
    let plan = PlanText { weights: None, kv: None, ..notation.parse().ok()? };
    Some(Deployment { plan: Some(plan.without_loads().to_string()), ..Deployment::default() })
}

/// The options that one launch has and the other has not.
fn changed_flags(now: Option<&LaunchReport>, then: Option<&LaunchReport>) -> String {
    let (Some(now), Some(then)) = (now, then) else { return String::new() };
    let words = |launch: &LaunchReport| -> Vec<String> {
        let each = launch.workers.iter().map(|worker| {
            let count = if worker.replicas > 1 { format!("{} x ", worker.replicas) } else { String::new() };
            let options = worker.options.iter().map(|option| option.words.clone());
            let environment = worker.environment.iter().map(|(name, value)| format!("{name}={value}"));
            let yaml = worker.yaml.iter().map(|(key, value)| format!("{key}: {value}"));
            let all: Vec<String> = options.chain(environment).chain(yaml).collect();
            (format!("{count}{}", worker.name), all)
        });
        each.flat_map(|(name, options)| {
            let role = if name == "server" { None } else { Some(name) };
            role.into_iter().chain(options).collect::<Vec<_>>()
        })
        .collect()
    };
    let before = words(now);
    let added: Vec<String> = words(then).into_iter().filter(|word| !before.contains(word)).collect();
    let flag = |word: &String| word.split([' ', '=', ':']).next().unwrap_or(word).to_owned();
    let after = words(then);
    let dropped = before.iter().filter(|word| !after.iter().any(|other| flag(other) == flag(word)));
    let dropped = dropped.map(|word| format!("without {}", flag(word)));
    added.iter().cloned().chain(dropped).collect::<Vec<_>>().join(" ")
}
