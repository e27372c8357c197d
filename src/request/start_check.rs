//! Checks of a server before it serves: every word of its command, and the context that the command states.

use super::start_faults::start_faults;
use super::start_memory::{StartInputs, StartNeeds, reserve_adapters, start_needs};
use crate::launch::back::{KnownLaunch, ReadLaunch, read_launch};
use crate::launch::edit::{repaired, with_setting};
use crate::launch::read::{Leftover, LeftoverReason};
use crate::launch::scope::divided_default;
use crate::launch::settings::SettingValue;
use crate::launch::settings_file::NamedFiles;
use crate::launch::shell::Process;
use crate::spec::cluster::Cluster;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::launch::LaunchDefault;
use crate::spec::offload::OffloadPolicy;
use crate::spec::option_effect::WordEffect;
use crate::spec::precision::ANY;
use crate::spec::rule::VersionRange;
use crate::spec::runtime::RequestsAtStart;
use crate::spec::scenario::Scenario;
use crate::spec::setting::Setting;
use crate::store::catalog::Catalog;

/// A launch that the runtime takes, as given or repaired.
pub struct CheckedStart<'a> {
    pub launch: ReadLaunch<'a>,
    /// The problem with what the commands state.
    pub stated: Scenario,
    /// The same with what the server decides by itself.
    pub scenario: Scenario,
    /// Tokens of the longest request.
    pub longest: Option<u64>,
    pub needs: StartNeeds,
    /// The runtime's reasons against the launch as given.
    pub faults: Vec<String>,
    /// Parts of the commands that are not priced.
    pub notes: Vec<String>,
}

/// The name of the model's own draft module.
const OWN_MODULE: &str = "mtp";
/// Repairs of a command one after another: a repaired option may have a value that the next one repairs.
const REPAIRS: usize = 4;

/// Whether the hardware of a command is given, which no command states.
///
/// # Errors
/// It is not.
pub fn hardware_is_given(given: &Scenario) -> Result<(), Error> {
    if given.hardware.is_some() {
        return Ok(());
    }
    let fix = "add --hardware, e.g. --hardware 8xh100";
    Err(Error::new("hardware", "a command without hardware", "the hardware that it runs on", fix))
}

/// Checks a launch by what its runtime checks before it loads the model.
///
/// # Errors
/// A word that decides the price is not understood, or a name in it is unknown.
pub fn start_check<'a>(
    catalog: &Catalog,
    known: &'a [KnownLaunch],
    as_given: &ReadLaunch<'a>,
    files: &NamedFiles,
    given: &Scenario,
) -> Result<CheckedStart<'a>, Error> {
    let version = given.runtime_version.as_deref();
    let mut notes = Vec::new();
    let oldest = VersionRange { from: Some(as_given.known.1.version.clone()), ..VersionRange::default() };
    let is_known = version.is_none_or(|version| oldest.holds(Some(version)) || !version.contains('.'));
    let mut faults = refused(as_given);
    if !is_known && !faults.is_empty() {
        let table = &oldest.from.as_deref().unwrap_or_default();
        notes.push(format!(
            "options were checked from version {table} on: those of older versions are not refused"
        ));
        faults.clear();
    }
    let mut launch = as_given.clone();
    for _ in 0..REPAIRS {
        if !is_known || refused(&launch).is_empty() {
            break;
        }
        let Some(processes) = repaired(&launch) else { break };
        launch = read_launch(known, &processes, files)?;
    }
    understood(&launch, given)?;
    let model = given.model.clone().or_else(|| named_model(&launch));
    let built = model.as_deref().map(|model| catalog.built(model)).transpose()?;
    let layers = built.as_ref().map(|(_, graph)| graph.layer_block.len() as u64);
    let placed = Scenario { model: model.clone(), ..given.clone() };
    let hardware = given.hardware.as_ref().map(|_| catalog.cluster_of(&placed)).transpose()?;
    let devices = hardware.as_ref().map(Cluster::devices);
    let read = launch.scenario(given.clone(), layers, devices)?;
    // The format of a quantized checkpoint stays: an option only repeats its method.
    let quantized =
        built.as_ref().is_some_and(|(model, _)| model.config.quantization.is_some() || model.named.is_some());
    let weight_format = if quantized { given.weight_format.clone() } else { read.weight_format.clone() };
    let mut stated = Scenario { weight_format, ..read };
    if let Some(draft) = stated.draft.clone().filter(|draft| draft != OWN_MODULE && given.draft.is_none())
        && catalog.built(&draft).is_err()
    {
        notes.push(format!("the draft {draft} is not in the catalogue: priced without speculative decoding"));
        (stated.draft, stated.draft_tokens) = (None, None);
    }
    // Overrides of the configuration lengthen the context.
    let changed = catalog.overridden(&Scenario { model: model.clone(), ..stated.clone() })?;
    let of_model = model.as_deref().and_then(|model| changed.built(model).ok()?.1.max_context);
    if let Some((fault, processes)) = beyond_model(&launch, of_model) {
        faults.push(fault);
        launch = read_launch(known, &processes, files)?;
        stated.max_model_len = of_model;
    }
    default_limits(catalog, &launch, &mut stated)?;
    let longest = longest_request(catalog, &launch, &stated, of_model)?;
    let needs = match (&built, &hardware) {
        (Some(built), Some(hardware)) => {
            let of = StartInputs::of(&launch, built, (&hardware.device, version), &stated);
            faults.extend(start_faults(&of, &built.0.config));
            reserve_adapters(catalog, &of, &mut stated)?;
            start_needs(catalog, &of, &stated)?
        }
        _ => StartNeeds::default(),
    };
    let cache = stated_cache(catalog, &launch)?;
    if let Some(tokens) = cache {
        notes.push(format!(
            "the KV cache is stated as {tokens} tokens: longer requests never run; fewer requests at a time are not \
             modelled"
        ));
    }
    let longest = longest.into_iter().chain(cache).min();
    let offload = stated.offload.or_else(|| (!may_offload(&launch, &stated)).then_some(OffloadPolicy::Never));
    let scenario = Scenario { max_model_len: longest, offload, ..stated.clone() };
    let longest = longest.or(of_model.filter(|_| needs.pages.is_some()));
    Ok(CheckedStart { launch, stated, scenario, longest, needs, faults, notes })
}

/// The words that the runtime refuses, with its reasons.
fn refused(launch: &ReadLaunch) -> Vec<String> {
    let runtime = format!("{} {}", launch.known.0.id, launch.known.1.version);
    let refused = launch.leftovers().filter(|(_, left)| left.why.effect() == WordEffect::Refused);
    refused.map(|(place, left)| format!("{}: {}", placed(place, left), left.why.words(&runtime))).collect()
}

fn placed(place: &str, left: &Leftover) -> String {
    match left.words {
        0 => format!("`{}` ({place})", left.word),
        _ => format!("`{}` ({place}, word {})", left.word, left.place),
    }
}

/// Whether every word that decides the price is understood, or replaced by a field of `given`.
fn understood(launch: &ReadLaunch, given: &Scenario) -> Result<(), Error> {
    let open = launch.leftovers().filter(|(_, left)| match &left.why {
        LeftoverReason::NotUnderstood { setting, .. } | LeftoverReason::Unset { setting, .. } => {
            setting.is_priced() && !replaced(*setting, given)
        }
        LeftoverReason::NoFile => true,
        _ => false,
    });
    let open: Vec<(&str, &Leftover)> = open.collect();
    let mut unset: Vec<&str> = Vec::new();
    for (_, left) in &open {
        if let LeftoverReason::Unset { variables, .. } = &left.why {
            unset.extend(variables.iter().map(String::as_str));
        }
    }
    let of_model = launch.processes.iter().flat_map(|one| &one.read.model_variables);
    unset.extend(of_model.filter(|_| given.model.is_none()).map(String::as_str));
    unset.sort_unstable();
    unset.dedup();
    if !unset.is_empty() {
        let values: Vec<String> = unset.iter().map(|name| format!("--var {name}=…")).collect();
        let found = format!("nothing sets {}", unset.join(", "));
        let expected = "a value for every variable that decides the price";
        return Err(Error::new("command", found, expected, format!("add {}", values.join(" "))));
    }
    let Some((place, left)) = open.first() else { return Ok(()) };
    let runtime = format!("{} {}", launch.known.0.id, launch.known.1.version);
    let found = format!("{}: {}", placed(place, left), left.why.words(&runtime));
    let fix = "state it with the flags of this program, e.g. --kv-format, --plan or --draft";
    Err(Error::new("command", found, "words that decide the price and are understood", fix))
}

/// Whether a field of the question is used instead of a setting of the command.
fn replaced(setting: Setting, given: &Scenario) -> bool {
    let deployed = given.deployment.as_ref().is_some_and(|one| *one != Deployment::default());
    match setting {
        Setting::Model => given.model.is_some(),
        Setting::WeightFormat => given.weight_format.is_some(),
        Setting::KvFormat => given.kv_format.is_some(),
        Setting::MaxSequences => given.max_num_seqs.is_some(),
        Setting::TokenBudget => given.max_num_batched_tokens.is_some(),
        Setting::MemoryShare => given.gpu_memory_utilization.is_some(),
        Setting::Context | Setting::TotalContext => given.max_model_len.is_some(),
        Setting::DraftMethod | Setting::DraftModel => given.draft.is_some(),
        Setting::DraftTokens => given.draft_tokens.is_some(),
        Setting::ModelOverrides => given.set.is_some(),
        Setting::YamlFile | Setting::PrefixCache => false,
        _ => deployed,
    }
}

/// The runtime's reason against a stated context beyond the model's, and the processes with the model's.
fn beyond_model(launch: &ReadLaunch, of_model: Option<u64>) -> Option<(String, Vec<Process>)> {
    let (reason, most) = (launch.known.0.context_beyond_model.as_ref()?, of_model?);
    let first = launch.processes.first()?;
    let stated = first.read.settings.count(Setting::Context).filter(|stated| *stated > most)?;
    let fault = format!("a context of {stated} tokens, the model has {most} positions: {reason}");
    let value = SettingValue::Count(most);
    let changed = |one| with_setting(launch.known, one, Setting::Context, &value);
    Some((fault, launch.processes.iter().map(changed).collect::<Option<_>>()?))
}

/// Sets the limits of the scheduler that the commands do not state: a cap is not left out of the load.
fn default_limits(catalog: &Catalog, launch: &ReadLaunch, stated: &mut Scenario) -> Result<(), Error> {
    let (Some(runtime), Some(hardware)) = (stated.runtime.as_deref(), stated.hardware.as_deref()) else {
        return Ok(());
    };
    if runtime == ANY {
        return Ok(());
    }
    let (runtime, _) = catalog.runtime_by_id(runtime)?;
    let device = catalog.hardware(hardware)?.device;
    let usual = runtime.taken(&device).max_sequences.map(|figure| figure.value as u64);
    let newest = |setting: Setting| {
        let has = device.memory.capacity.as_ref().map_or(0.0, |capacity| capacity.value);
        let on = |one: &&LaunchDefault| one.setting == setting && has >= one.from.value;
        launch.known.0.defaults.iter().find(on).map(|one| one.value)
    };
    stated.max_num_seqs = stated.max_num_seqs.or(newest(Setting::MaxSequences)).or(usual);
    let tokens = runtime.taken(&device).max_batched_tokens.value as u64;
    let divided =
        divided_default(&launch.known.0, Setting::TokenBudget, tokens, &launch.processes[0].read.settings);
    stated.max_num_batched_tokens =
        stated.max_num_batched_tokens.or(divided).or(newest(Setting::TokenBudget));
    Ok(())
}

/// Tokens of the KV cache that the commands state, whatever the memory holds.
fn stated_cache(catalog: &Catalog, launch: &ReadLaunch) -> Result<Option<u64>, Error> {
    let settings = &launch.processes[0].read.settings;
    let (runtime, _) = catalog.runtime_by_id(&launch.known.0.id)?;
    let block = runtime.block_tokens.value as u64;
    let blocks = settings.count(Setting::KvBlocks).map(|blocks| blocks.saturating_mul(block));
    Ok(settings.count(Setting::KvTokens).or(blocks))
}

/// Whether a part of the model is in host memory: the command says so, or its runtime decides that.
fn may_offload(launch: &ReadLaunch, stated: &Scenario) -> bool {
    let states = |deployment: &Deployment| deployment.offload_part.is_some() || deployment.plan.is_some();
    launch.leaves_host_part() || stated.deployment.as_ref().is_some_and(states)
}

/// The longest request that the command's server takes: as stated, or the model's where the runtime takes that and
/// checks it. Slots are no longer than the model's.
fn longest_request(
    catalog: &Catalog,
    launch: &ReadLaunch,
    scenario: &Scenario,
    of_model: Option<u64>,
) -> Result<Option<u64>, Error> {
    let named = scenario.runtime.as_deref().unwrap_or(&launch.known.0.id);
    if named == ANY {
        return Ok(scenario.max_model_len);
    }
    let (runtime, _) = catalog.runtime_by_id(named)?;
    let at_start = runtime.memory.at_start.as_ref().map(|held| held.requests);
    Ok(match (scenario.max_model_len, at_start) {
        (None, Some(RequestsAtStart::One)) if launch.leaves_longest_request() => of_model,
        (Some(stated), Some(RequestsAtStart::EverySlot)) => {
            Some(of_model.map_or(stated, |most| stated.min(most)))
        }
        (stated, _) => stated,
    })
}

fn named_model(launch: &ReadLaunch) -> Option<String> {
    launch.processes.first()?.read.settings.word(Setting::Model).map(str::to_owned)
}
