//! From launch commands back to a plan: the runtime, the pools with their degrees, and the settings that a price rests
//! on.

use std::cmp::Reverse;

use crate::spec::degree::Degrees;
use crate::spec::offload::OffloadPart;
use serde_json::Value;

use super::layer_split::layers_by_shares;
use super::module_options::{RuntimeWords, of_runtime};
use super::read::{Leftover, ReadCommand, read};
use super::settings::{SettingValue, Settings};
use super::settings_file::NamedFiles;
use super::shell::Process;
use crate::spec::deployment::Deployment;
use crate::spec::error::Error;
use crate::spec::host_part::{HostPart, HostedTensors};
use crate::spec::launch::{Launch, OptionPlace};
use crate::spec::notation::{PlanText, PoolText};
use crate::spec::option_table::OptionTable;
use crate::spec::scenario::Scenario;
use crate::spec::setting::Setting;

pub type KnownLaunch = (Launch, OptionTable);

#[derive(Clone, Debug)]
pub struct ReadProcess {
    pub process: Process,
    /// Index of the first of its words that was read as an option; `None` where the words were changed before.
    pub arguments: Option<usize>,
    /// Its settings, and what was not read.
    pub read: ReadCommand,
}

/// A launch as read: one runtime, one or more processes.
#[derive(Clone, Debug)]
pub struct ReadLaunch<'a> {
    pub known: &'a KnownLaunch,
    pub processes: Vec<ReadProcess>,
}

/// The words after the program of a process, where it starts the runtime of `known`.
fn arguments<'a>((launch, table): &KnownLaunch, process: &'a Process) -> Option<&'a [String]> {
    let words = after_starter(launch, &process.words);
    if routes(launch, words) {
        return None;
    }
    let dynamo = launch.dynamo.iter().map(|dynamo| &dynamo.program);
    let mut programs: Vec<&Vec<String>> =
        [&table.program].into_iter().chain(&launch.other_programs).chain(dynamo).collect();
    // `trtllm-serve serve` before `trtllm-serve`.
    programs.sort_by_key(|program| Reverse(program.len()));
    let file_name = |word: &String| word.rsplit(['/', '\\']).next().unwrap_or(word).to_owned();
    let python = |word: &str| word.starts_with("python");
    for program in programs {
        let same = |(at, (word, known)): (usize, (&String, &String))| {
            let plain = if at == 0 { file_name(word) } else { word.clone() };
            plain == *known || at == 0 && file_name(known) == plain || python(&plain) && python(known)
        };
        if words.len() >= program.len() && words.iter().zip(program).enumerate().all(same) {
            return Some(&words[program.len()..]);
        }
    }
    let repository = |image: &str| image.rsplit_once(':').map_or(image, |(name, _)| name).to_owned();
    let ours = |image: &str| launch.images.iter().any(|known| repository(&known.image) == repository(image));
    if process.image.as_deref().is_some_and(ours) && words[0].starts_with('-') {
        return Some(words);
    }
    let runs =
        ["docker", "podman"].contains(&words[0].as_str()) && words.get(1).is_some_and(|word| word == "run");
    let at = words.iter().position(|word| ours(word)).filter(|_| runs)?;
    let rest = &words[at + 1..];
    let named = rest.len() >= table.program.len() && rest.iter().zip(&table.program).all(|(a, b)| a == b);
    Some(if named { &rest[table.program.len()..] } else { rest })
}

/// The words after those of a program that starts a rank on every device, with its number of ranks before them.
fn after_starter<'a>(launch: &Launch, words: &'a [String]) -> &'a [String] {
    let Some(ranks) = &launch.ranks else { return words };
    let starts = |starter: &[String]| words.first() == starter.first();
    let own = words.iter().position(|word| Some(word) == ranks.program.first());
    match own.filter(|_| starts(&ranks.command) || starts(&ranks.other)) {
        Some(at) => &words[at..],
        None => words,
    }
}

/// Whether the words start a router of the runtime, which may be a command of the same program.
fn routes(launch: &Launch, words: &[String]) -> bool {
    let routers = [&launch.router, &launch.disaggregated_router].into_iter().flatten();
    let mut programs = routers.map(|router| {
        let plain = |word: &&str| *word == "-m" || !word.starts_with(['-', '{']);
        router.command.split_whitespace().take_while(plain).map(str::to_owned).collect::<Vec<_>>()
    });
    programs.any(|program| words.starts_with(&program))
}

/// Whether the process serves no requests itself: it is one of the further hosts of a server.
fn follows(settings: &Settings) -> bool {
    settings.is_on(Setting::Follower) || settings.count(Setting::HostRank).is_some_and(|rank| rank > 0)
}

/// Where only commands of further hosts are given, the first of them has the degrees of the server.
fn first_of_followers(found: &mut Vec<(&KnownLaunch, ReadProcess)>) {
    let Some(at) = found.iter().position(|(_, one)| one.read.settings.get(Setting::Model).is_some()) else {
        return;
    };
    found.truncate(at + 1);
    let (_, one) = &mut found[at];
    one.read.settings.set(Setting::Follower, SettingValue::On(false));
    one.read.settings.set(Setting::HostRank, SettingValue::Count(0));
    let note = "the command of a further host of a server: read as that of the server";
    one.process.notes.push(note.to_owned());
}

/// Reads processes: those that start a known runtime. `files` are those that their commands name.
pub fn read_launch<'a>(
    known: &'a [KnownLaunch],
    processes: &[Process],
    files: &NamedFiles,
) -> Result<ReadLaunch<'a>, Error> {
    let mut found: Vec<(&KnownLaunch, ReadProcess)> = Vec::new();
    for process in processes.iter().filter(|process| !process.words.is_empty()) {
        let fits = |one: &&KnownLaunch| arguments(one, process).is_some();
        let Some(one) = known.iter().find(fits) else { continue };
        let given = arguments(one, process).unwrap_or_default();
        let RuntimeWords { words, role, file_overrides } = of_runtime(&one.0, &process.words, given);
        let arguments = (words.len() == given.len()).then(|| process.words.len() - given.len());
        let overriding = file_overrides.then(|| Launch { file_overrides, ..one.0.clone() });
        let launch = overriding.as_ref().unwrap_or(&one.0);
        let mut read = read((launch, &one.1), &process.environment, &words, files);
        if let Some(role) = role {
            read.settings.set(Setting::Role, SettingValue::Word(role));
        }
        found.push((one, ReadProcess { process: process.clone(), arguments, read }));
    }
    let has_model = |one: &(&KnownLaunch, ReadProcess)| one.1.read.settings.get(Setting::Model).is_some();
    let leads = |one: &(&KnownLaunch, ReadProcess)| !follows(&one.1.read.settings);
    if !found.iter().any(|one| has_model(one) && leads(one)) {
        first_of_followers(&mut found);
    }
    let serves = |one: &(&KnownLaunch, ReadProcess)| has_model(one) && leads(one);
    let programs = || {
        let names: Vec<String> =
            known.iter().map(|(_, table)| format!("`{} …`", table.program.join(" "))).collect();
        names.join(", ")
    };
    let fault = |found: &str| {
        let fix = "pass the whole command, a script, or a manifest whose containers have commands";
        Error::new("command", found, format!("a launch command: {}", programs()), fix)
    };
    let Some(first) = found.iter().find(|one| serves(one)).map(|(known, _)| *known) else {
        return Err(fault(if found.is_empty() {
            "no command of a known runtime"
        } else {
            "a command without a model"
        }));
    };
    // Processes without a model, e.g. those that lend devices, belong to a server.
    if found.iter().any(|one| serves(one) && one.0.0.id != first.0.id) {
        return Err(fault("commands of several runtimes"));
    }
    let processes = found.into_iter().filter(serves).map(|(_, process)| process).collect();
    Ok(ReadLaunch { known: first, processes })
}

#[derive(Clone, Debug)]
struct ReadPool {
    role: String,
    degrees: Degrees,
    replicas: u64,
}

impl ReadLaunch<'_> {
    /// The settings of the first process, which all share but for degrees and roles.
    fn first(&self) -> &Settings {
        &self.processes[0].read.settings
    }

    /// The settings of the first process that generates: a prefill worker holds as many requests as it sends.
    fn answering(&self) -> &Settings {
        let prefills = |one: &&ReadProcess| one.read.settings.word(Setting::Role) == Some("prefill");
        let other = self.processes.iter().find(|one| !prefills(one));
        &other.unwrap_or(&self.processes[0]).read.settings
    }

    pub fn leftovers(&self) -> impl Iterator<Item = (&str, &Leftover)> {
        self.processes
            .iter()
            .flat_map(|one| one.read.leftovers.iter().map(move |left| (one.process.place.as_str(), left)))
    }

    /// The scenario with what the commands set; fields of `given` take precedence.
    pub fn scenario(
        &self,
        given: Scenario,
        layers: Option<u64>,
        devices: Option<u64>,
    ) -> Result<Scenario, Error> {
        let settings = self.first();
        // A value that leaves a setting to the checkpoint sets nothing.
        let open = |setting: Setting, word: &str| {
            let of = self.known.0.settings.iter().filter(|option| option.setting == setting);
            of.into_iter().any(|option| option.open.iter().any(|open| open == word))
        };
        let word = |setting| settings.word(setting).filter(|word| !open(setting, word)).map(str::to_owned);
        let real = |setting| match settings.get(setting) {
            Some(SettingValue::Real(value)) => Some(*value),
            Some(SettingValue::Count(count)) => Some(*count as f64),
            _ => None,
        };
        // A method with a draft model of its own uses that, unless it is the checkpoint's own module.
        let own_module =
            |draft: &String| Some(draft) == word(Setting::Model).as_ref() || draft.ends_with("NextN");
        let draft_model = word(Setting::DraftModel).filter(|draft| !own_module(draft));
        let draft = draft_model.or(word(Setting::DraftMethod));
        let read = Scenario {
            model: word(Setting::Model),
            runtime: Some(self.known.0.id.clone()),
            weight_format: word(Setting::WeightFormat).or(word(Setting::Dtype)),
            kv_format: word(Setting::KvFormat),
            max_num_batched_tokens: settings.count(Setting::TokenBudget),
            max_num_seqs: self.answering().count(Setting::MaxSequences),
            max_model_len: self.longest_request(&given),
            set: self.overrides()?,
            gpu_memory_utilization: real(Setting::MemoryShare),
            draft_tokens: settings.count(Setting::DraftTokens).filter(|_| draft.is_some()),
            draft,
            ..Scenario::default()
        };
        let deployment = given.deployment.clone().unwrap_or_default().or(self.deployment(layers, devices)?);
        Ok(Scenario { deployment: Some(deployment), ..given.or(read) })
    }

    /// The values that the commands replace, as `--set` takes them: those of the model's configuration, and the size of the
    /// weights in host memory.
    fn overrides(&self) -> Result<Option<Vec<String>>, Error> {
        let mut set = self.model_overrides()?;
        set.extend(streamed_gib(self.first()).map(|gib| format!("{STREAMED}={gib} GiB")));
        Ok((!set.is_empty()).then_some(set))
    }

    fn model_overrides(&self) -> Result<Vec<String>, Error> {
        let Some(text) = self.first().word(Setting::ModelOverrides) else { return Ok(vec![]) };
        let Ok(Value::Object(keys)) = serde_json::from_str(text) else {
            let fix = "write the keys of config.json with their values";
            let found = "overrides of the model that are no object";
            return Err(Error::new("command", found, "a JSON object", fix));
        };
        Ok(keys.iter().map(|(key, value)| format!("model.{key}={value}")).collect())
    }

    /// Tokens of the longest request that the commands state. Slots share a total.
    fn longest_request(&self, given: &Scenario) -> Option<u64> {
        let settings = self.first();
        let slots = settings.count(Setting::MaxSequences).or(given.concurrency).unwrap_or(1).max(1);
        let of_slots = settings.count(Setting::TotalContext).map(|total| total / slots);
        settings.count(Setting::Context).or(of_slots)
    }

    /// The runtime's default of a number that a flag carries; none where it has none.
    pub fn default_of(&self, setting: Setting) -> Option<u64> {
        let (launch, table) = self.known;
        launch.settings.iter().filter(|option| option.setting == setting).find_map(|option| {
            let OptionPlace::Flag(flag) = &option.place else { return None };
            table.find(flag)?.0.value.default.as_ref()?.as_u64()
        })
    }

    /// Whether the commands say nothing of the longest request, not even that the server chooses it.
    pub fn leaves_longest_request(&self) -> bool {
        let stated = |setting: &Setting| self.first().get(*setting).is_some();
        ![Setting::Context, Setting::TotalContext].iter().any(stated)
    }

    /// Whether the runtime decides by itself which layers lie in host memory: it has an option for them, and the command
    /// leaves it open.
    pub fn leaves_host_part(&self) -> bool {
        let has = self.known.0.settings.iter().any(|option| option.setting == Setting::GpuLayers);
        has && self.first().word(Setting::GpuLayers).is_none_or(|layers| layers == "auto")
    }

    /// The degrees with the stages that the runtime divides `layers` into by itself, where no option sets them.
    fn staged(&self, degrees: Degrees, layers: Option<u64>) -> Degrees {
        let usual = || {
            let usual = self.known.0.stages.as_ref()?.rule.layers(layers?, degrees.pp?)?;
            Some(usual.into_iter().map(|layers| layers as u32).collect())
        };
        Degrees { stages: degrees.stages.clone().or_else(usual), ..degrees }
    }

    /// The plan of the commands; `layers` are those of the model, `devices` those of the hardware.
    fn deployment(&self, layers: Option<u64>, devices: Option<u64>) -> Result<Deployment, Error> {
        let spreads = self.known.0.settings.iter().any(|option| option.setting == Setting::SplitMode);
        let at = AroundCommand { layers, devices, spreads };
        let mut pools: Vec<ReadPool> = Vec::new();
        for one in &self.processes {
            let settings = &one.read.settings;
            // The command states it, or the format around the command.
            let known = |role: &&str| ["prefill", "decode"].contains(role);
            let own = settings.word(Setting::Role).filter(known);
            let stated = own.or(one.process.role.as_deref());
            let role = stated.unwrap_or("aggregated").to_owned();
            let degrees = self.staged(degrees(settings, at), layers);
            let copies = settings.count(Setting::Copies).filter(|_| !settings.is_on(Setting::AttentionDp));
            let replicas = one.process.replicas.unwrap_or(1) * copies.unwrap_or(1);
            match pools.iter_mut().find(|pool| pool.role == role) {
                Some(pool) if pool.degrees == degrees => pool.replicas += replicas,
                Some(pool) => {
                    let found = format!("{} workers with different degrees", pool.role);
                    let fix = "pass the commands of like workers";
                    return Err(Error::new("command", found, "like workers in each pool", fix));
                }
                None => pools.push(ReadPool { role, degrees, replicas }),
            }
        }
        let of = |role: &str| {
            let pool = pools.iter().find(|pool| pool.role == role)?;
            Some(Degrees { replicas: Some(pool.replicas), ..pool.degrees.clone() })
        };
        let plan = host_part(self.first(), at).map(|host| {
            let pool = PoolText { degrees: of("aggregated").unwrap_or_default(), ..PoolText::default() };
            PlanText { pools: vec![pool], host: Some(host), ..PlanText::default() }.to_string()
        });
        let both = of("aggregated").filter(|_| plan.is_none()).unwrap_or_default();
        Ok(Deployment {
            both,
            prefill: of("prefill").unwrap_or_default(),
            decode: of("decode").unwrap_or_default(),
            plan,
            offload_part: streamed_part(self.first()),
        })
    }
}

/// The part that a process reads from host memory over its link, by the flags that say how much and of what.
fn streamed_part(settings: &Settings) -> Option<OffloadPart> {
    streamed_gib(settings).map(|_| match settings.word(Setting::OffloadedPart) {
        Some("experts") => OffloadPart::Experts,
        Some("kv") => OffloadPart::Kv,
        _ => OffloadPart::Layers,
    })
}

/// The path of the weights that a device keeps in host memory, for `--set`.
pub const STREAMED: &str = "runtime.memory.streamed";

/// Weights of each device that a process keeps in host memory.
fn streamed_gib(settings: &Settings) -> Option<f64> {
    match settings.get(Setting::OffloadedGib)? {
        SettingValue::Real(gib) => Some(*gib).filter(|gib| *gib > 0.0),
        SettingValue::Count(gib) => Some(*gib as f64).filter(|gib| *gib > 0.0),
        _ => None,
    }
}

/// Layers of each device of a server that spreads them by shares; empty where one device has all.
fn layers_of_devices(settings: &Settings, at: AroundCommand) -> Vec<u64> {
    let AroundCommand { layers: Some(layers), devices, spreads: true } = at else { return vec![] };
    if !matches!(settings.word(Setting::SplitMode), None | Some("layer")) {
        return vec![];
    }
    let named = settings.word(Setting::Devices).map(|names| names.split(',').count());
    let shares = match settings.get(Setting::TensorSplit) {
        Some(SettingValue::Shares(shares)) => shares.clone(),
        // In proportion to the free memory, and so evenly over like devices.
        _ => vec![1.0; named.unwrap_or(devices.unwrap_or(1) as usize)],
    };
    let stated = settings.word(Setting::GpuLayers).and_then(|layers| layers.parse::<u64>().ok());
    let mut counts = layers_by_shares(&shares, layers, stated.unwrap_or(layers + 1));
    counts.retain(|count| *count > 0);
    if counts.len() > 1 { counts } else { vec![] }
}

/// Facts around a command, as far as its plan depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct AroundCommand {
    /// Layers of the model.
    pub layers: Option<u64>,
    /// Devices that the process sees.
    pub devices: Option<u64>,
    /// Whether the runtime spreads layers over all devices by itself.
    pub spreads: bool,
}

fn degrees(settings: &Settings, at: AroundCommand) -> Degrees {
    let count = |setting| settings.count(setting).filter(|degree| *degree > 1);
    let shares = match settings.get(Setting::TensorSplit) {
        Some(SettingValue::Shares(shares)) => shares.len(),
        _ => 0,
    };
    let tensor = settings.word(Setting::SplitMode) == Some("tensor");
    let spread = layers_of_devices(settings, at);
    let ranks = count(Setting::Ranks);
    let dp = match (count(Setting::Dp), ranks) {
        (Some(dp), _) => Some(dp),
        (None, _) if settings.is_on(Setting::AttentionDp) => count(Setting::Copies).or(ranks),
        (None, _) => None,
    };
    let in_stage = count(Setting::StageRanks).map(|ranks| ranks / count(Setting::Cp).unwrap_or(1));
    let tp = count(Setting::Tp)
        .or(in_stage.map(|ranks| ranks / dp.unwrap_or(1)))
        .or(ranks.map(|ranks| ranks / dp.unwrap_or(1)))
        .or((tensor && shares > 1).then_some(shares as u64))
        .or(at.devices.filter(|_| tensor && at.spreads && shares == 0))
        .filter(|tp| *tp > 1);
    let layered = (spread.len() > 1).then_some(spread.len() as u64);
    let (pp, cp) = (count(Setting::Pp).or(layered), count(Setting::Cp));
    let all = tp.unwrap_or(1) * cp.unwrap_or(1) * dp.unwrap_or(1);
    let ep = count(Setting::Ep)
        .or(settings.is_on(Setting::ExpertParallel).then_some(all).filter(|ep| *ep > 1))
        .or(settings.count(Setting::MoeTp).map(|inside| all / inside.max(1)).filter(|ep| *ep > 1));
    let stages = match settings.get(Setting::StageLayers) {
        Some(SettingValue::Counts(counts)) => Some(counts.clone()),
        // Layers in host memory are before those of the first device, and no part of a stage of their own.
        _ => layered.map(|_| spread).filter(|counts| at.layers == Some(counts.iter().sum())),
    };
    Degrees {
        tp,
        pp,
        dp,
        cp,
        dcp: count(Setting::Dcp),
        ep,
        stages: stages.map(|stages| stages.into_iter().map(|layers| layers as u32).collect()),
        ..Degrees::default()
    }
}

/// The part of the model that the commands put into host memory.
fn host_part(settings: &Settings, at: AroundCommand) -> Option<HostPart> {
    let stages = degrees(settings, at).pp.unwrap_or(1);
    let part = |tensors, layers: u64| HostPart { tensors, layers: u32::try_from(layers).unwrap_or(u32::MAX) };
    if let Some(experts) = settings.count(Setting::HostExperts).filter(|count| *count > 0) {
        return Some(part(HostedTensors::Experts, experts));
    }
    if let Some(listed) = settings.word(Setting::HostExpertLayers) {
        // A pattern may list layers beyond those of the model.
        let of_model = |layer: &&str| {
            let layer: Option<u64> = layer.parse().ok();
            at.layers.zip(layer).is_none_or(|(layers, layer)| layer < layers)
        };
        let count = listed.split('|').filter(of_model).count() as u64;
        return (count > 0).then(|| part(HostedTensors::Experts, count.div_ceil(stages)));
    }
    if settings.is_on(Setting::HostExperts) {
        return Some(part(HostedTensors::Experts, at.layers?.div_ceil(stages)));
    }
    // The output counts as a layer of the devices.
    let on_device: u64 = settings.word(Setting::GpuLayers)?.parse().ok()?;
    let hosted = (at.layers? + 1).saturating_sub(on_device).min(at.layers?);
    (hosted > 0).then(|| part(HostedTensors::Layers, hosted.div_ceil(stages)))
}
