//! The settings of one worker: exactly what its price rests on.

use super::layer_split::shares_of_layers;
use crate::spec::degree::Degree;
use crate::spec::offload::{Offload, OffloadPart};
use crate::spec::role::Role;
use std::fmt;

use crate::graph::model::ModelGraph;
use crate::plan::parallel::Phase;
use crate::plan::rules::classes;
use crate::quantity::read::Plain;
use crate::search::candidate::{Candidate, PoolPlan};
use crate::search::problem::{Formats, Problem};
use crate::serving::admission::residency;
use crate::serving::instance::Instance;
use crate::serving::terms::Lengths;
use crate::spec::host_part::{HostPart, HostedTensors};
use crate::spec::rule::ModelClass;
use crate::spec::setting::Setting;

/// Steps of the context in tokens: what fits is rounded down to them, as llama.cpp rounds the context of a slot
/// (<https://github.com/ggml-org/llama.cpp>, src/llama-context.cpp).
const CONTEXT_STEP: u64 = 256;
/// Tokens that a chat template, special tokens and a benchmark's own tokenizer add to a request, at most: the scripts of
/// <https://github.com/SemiAnalysisAI/InferenceX> start servers with ISL + OSL + 20 to ISL + OSL + 256.
const TEMPLATE_TOKENS: u64 = 256;
/// A runtime rounds its share to thousandths.
const THOUSANDTHS: f64 = 1e3;
/// Bytes of a GiB.
const GIB: f64 = (1u64 << 30) as f64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The model's path.
    Model,
    Host,
    Port,
    HostRank,
    FirstHost,
    /// First attention data-parallel rank of this host.
    FirstDpRank,
    /// Address of this host.
    Address,
    /// Port for transfers of KV caches.
    TransferPort,
    /// Devices in an order.
    Devices,
    /// Servers that lend devices of further hosts.
    RpcServers,
    /// The file that lists the hosts of a group.
    HostFile,
}

impl Variable {
    pub fn name(self) -> &'static str {
        match self {
            Variable::Model => "MODEL",
            Variable::Host => "HOST",
            Variable::Port => "PORT",
            Variable::HostRank => "HOST_RANK",
            Variable::FirstHost => "FIRST_HOST",
            Variable::FirstDpRank => "FIRST_DP_RANK",
            Variable::Address => "ADDRESS",
            Variable::TransferPort => "TRANSFER_PORT",
            Variable::Devices => "DEVICES",
            Variable::RpcServers => "RPC_SERVERS",
            Variable::HostFile => "HOSTFILE",
        }
    }
}

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
    /// One number for each stage.
    Counts(Vec<u64>),
    /// The share of each device.
    Shares(Vec<f64>),
    Variable(Variable),
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
            SettingValue::Shares(shares) => {
                let shares: Vec<String> = shares.iter().map(f64::to_string).collect();
                f.write_str(&shares.join(","))
            }
            SettingValue::Variable(variable) => f.write_str(variable.name()),
        }
    }
}

/// The settings of a worker. A degree of 1, and a switch that is off by itself, are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(Vec<(Setting, SettingValue)>);

impl Settings {
    pub fn get(&self, setting: Setting) -> Option<&SettingValue> {
        self.0.iter().find(|(known, _)| *known == setting).map(|(_, value)| value)
    }

    pub fn count(&self, setting: Setting) -> Option<u64> {
        match self.get(setting) {
            Some(SettingValue::Count(count)) => Some(*count),
            _ => None,
        }
    }

    pub fn word(&self, setting: Setting) -> Option<&str> {
        match self.get(setting) {
            Some(SettingValue::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub fn is_on(&self, setting: Setting) -> bool {
        self.get(setting) == Some(&SettingValue::On(true))
    }

    /// Sets a value; a later one replaces an earlier one.
    pub fn set(&mut self, setting: Setting, value: SettingValue) {
        match self.0.iter_mut().find(|(known, _)| *known == setting) {
            Some(known) => known.1 = value,
            None => self.0.push((setting, value)),
        }
    }

    pub fn remove(&mut self, setting: Setting) {
        self.0.retain(|(known, _)| *known != setting);
    }

    /// Sets a degree, unless it is 1.
    pub(super) fn degree(&mut self, setting: Setting, degree: u64) {
        if degree > 1 {
            self.set(setting, SettingValue::Count(degree));
        }
    }

    /// Sets what the requests of a server need, whose longest has `context` tokens.
    pub(super) fn hold(&mut self, lengths: Lengths, context: u64, sequences: u64) {
        self.set(Setting::Context, SettingValue::Count(context));
        self.set(Setting::TotalContext, SettingValue::Count(context.saturating_mul(sequences)));
        if lengths.prefix > 0 {
            self.set(Setting::PrefixCache, SettingValue::On(true));
        }
        self.set(Setting::ChunkedPrefill, SettingValue::On(true));
    }

    /// Sets the formats, where the checkpoint of `model` does not have them by itself.
    pub(super) fn formats(&mut self, weights: &str, kv: &str, model: &LaunchModel) {
        let id = model.id.clone().map_or(SettingValue::Variable(Variable::Model), SettingValue::Word);
        self.set(Setting::Model, id);
        if let Some(name) = &model.served_name {
            self.set(Setting::ServedName, SettingValue::Word(name.clone()));
        }
        if model.has_code {
            self.set(Setting::RemoteCode, SettingValue::On(true));
        }
        if let Some(overrides) = &model.overrides {
            self.set(Setting::ModelOverrides, SettingValue::Word(overrides.clone()));
        }
        if model.made_at_start {
            self.set(Setting::WeightFormat, SettingValue::Word(weights.to_owned()));
        }
        if model.states_kv || !["bf16", "fp16"].contains(&kv) {
            self.set(Setting::KvFormat, SettingValue::Word(kv.to_owned()));
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Setting, SettingValue)> {
        self.0.iter()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct LaunchModel {
    /// Id of a hub; `None` where the user has a path of its own.
    pub id: Option<String>,
    /// The name under which clients call it, where it is not that id.
    pub served_name: Option<String>,
    /// Whether the runtime makes the weight format of the checkpoint's 16-bit weights when it starts.
    pub made_at_start: bool,
    /// Why nothing that the launch loads has the weight format, if so.
    pub refused: Option<String>,
    /// Keys of its configuration that decide the context and differ from the checkpoint's, as a JSON object.
    pub overrides: Option<String>,
    /// Whether its repository has code that the runtime needs.
    pub has_code: bool,
    /// Whether the checkpoint has scales of a KV format, which then applies by itself.
    pub states_kv: bool,
}

/// Tokens of a request of these lengths with what a chat template adds.
pub(super) fn with_template(lengths: Lengths) -> u64 {
    (lengths.isl.saturating_add(lengths.osl).saturating_add(TEMPLATE_TOKENS)).next_multiple_of(CONTEXT_STEP)
}

/// The context that the servers of a candidate start with: the longest that fits at its load, and at least the requests
/// of the workload with their template, where one of them fits alone; never beyond the context of the model. A stated one
/// is kept.
pub fn served_context(problem: &Problem, candidate: &Candidate) -> u64 {
    if let Some(stated) = problem.max_model_len() {
        return stated;
    }
    let longest = |candidate: &Candidate| {
        let metrics = candidate.evaluate(&crate::quantity::read::Plain, problem, &mut ()).metrics;
        metrics.max_context.value().max(0.0) as u64
    };
    let lengths = problem.workload.lengths;
    let at_load = longest(candidate);
    // A runtime that reserves whole requests has no room beyond them.
    let reserved = problem.formats[candidate.formats].plain().chip.answer_reserved.value() >= 1.0;
    let alone = || {
        let mut alone = candidate.clone();
        alone.pools.iter_mut().for_each(|pool| pool.concurrency = pool.plan.dp);
        longest(&alone)
    };
    let wanted = with_template(lengths);
    let one = if reserved || at_load >= wanted { at_load } else { alone() };
    let most = problem.graph.max_context.unwrap_or(u64::MAX);
    let rounded = if at_load >= most { most } else { at_load / CONTEXT_STEP * CONTEXT_STEP };
    rounded.max(wanted.min(one)).max(lengths.isl.saturating_add(lengths.osl)).min(most)
}

/// The settings of a worker of `pool`, whose longest request has `context` tokens.
pub fn settings(
    problem: &Problem,
    candidate: &Candidate,
    (pool, context): (&PoolPlan, u64),
    model: &LaunchModel,
) -> Settings {
    use SettingValue::{Count, On, Real, Word};
    let formats = &problem.formats[candidate.formats];
    let (machine, lengths) = (formats.plain(), problem.workload.lengths);
    let mut settings = Settings::default();
    settings.formats(formats.weights_of(pool.role), &formats.kv, model);
    degrees(&mut settings, problem, pool);
    let sequences = pool.concurrency.div_ceil(pool.plan.dp).max(1);
    let fixed = machine.max_sequences.map(|most| most.value() as u64);
    let prepared = fixed.map_or(sequences, |most| sequences.max(most));
    // A prefill worker also holds the requests whose caches it sends, as many as its memory allows: where no number is
    // fixed, that of the runtime suffices. In SGLang a request keeps its row until its cache is sent
    // (process_disagg_prefill_inflight_queue, disaggregation/prefill.py), of 2,048 to 4,096 without an option
    // (resolve_max_num_reqs, mem_cache/kv_cache_configurator.py).
    if pool.role != Role::Prefill || fixed.is_some() {
        settings.set(Setting::MaxSequences, Count(prepared));
        if pool.plan.pp > 1 {
            settings.set(Setting::MicroBatch, Count(prepared.div_ceil(pool.plan.pp)));
        }
    }
    settings.set(Setting::TokenBudget, Count(machine.chip.max_batched_tokens.value() as u64));
    settings.set(Setting::MemoryShare, Real(memory_share(problem, formats, pool)));
    settings.hold(lengths, context, prepared);
    if pool.role != Role::Aggregated {
        let role = if pool.role == Role::Prefill { "prefill" } else { "decode" };
        settings.set(Setting::Role, Word(role.to_owned()));
        settings.set(Setting::KvTransfer, Word("nixl".to_owned()));
        settings.set(Setting::TransferAddress, SettingValue::Variable(Variable::Address));
        settings.set(Setting::TransferPort, SettingValue::Variable(Variable::TransferPort));
        settings.set(Setting::TransferTokens, Count(context));
        settings.set(Setting::OverlapOff, On(pool.role == Role::Prefill));
    }
    drafted(&mut settings, problem);
    offloaded(&mut settings, problem, candidate, pool);
    settings
}

/// The share of a device that the pool is priced with.
fn memory_share(problem: &Problem, formats: &Formats, pool: &PoolPlan) -> f64 {
    let phase = if pool.role == Role::Prefill { Phase::Prefill } else { Phase::Decode };
    let machine = formats.plain().of(phase);
    // A plan that a rule forbids has no stages.
    if machine.by_shape.is_none() || pool.stages.is_empty() {
        return machine.chip.utilization.value();
    }
    let instance = Instance::new(&problem.graph, pool.plan, pool.stages.clone(), problem.tiers());
    let held = residency(&Plain, &instance, phase, formats.plain(), problem.terms(), pool.concurrency);
    (held.usable.value() / machine.chip.capacity.value() * THOUSANDTHS).round() / THOUSANDTHS
}

fn degrees(settings: &mut Settings, problem: &Problem, pool: &PoolPlan) {
    let plan = &pool.plan;
    for degree in Degree::stated().filter(|degree| *degree != Degree::MoeTp) {
        if let (Some(setting), Some(number)) = (Setting::of(degree), plan.used(degree)) {
            settings.set(setting, SettingValue::Count(number));
        }
    }
    settings.degree(Setting::Ranks, plan.tp * plan.dp);
    settings.degree(Setting::StageRanks, plan.tp * plan.dp * plan.cp);
    if plan.dp > 1 {
        settings.set(Setting::AttentionDp, SettingValue::On(true));
    }
    if plan.ep > 1 {
        settings.set(Setting::ExpertParallel, SettingValue::On(true));
        settings.degree(Setting::MoeTp, plan.degree(Degree::MoeTp));
    }
    if plan.cp > 1 {
        settings.set(Setting::PrefillCp, SettingValue::On(true));
        settings.set(Setting::PrefillCpWay, SettingValue::Word(attention(&problem.graph).to_owned()));
    }
    if plan.sp {
        settings.set(Setting::Sp, SettingValue::On(true));
    }
    let layers: Vec<u64> = pool.stages.iter().map(|layers| u64::from(*layers)).collect();
    if plan.pp > 1 {
        settings.set(Setting::Pipeline, SettingValue::On(true));
        settings.set(Setting::StageLayers, SettingValue::Counts(layers.clone()));
        settings.set(Setting::TensorSplit, SettingValue::Shares(shares_of_layers(&layers)));
    }
    if plan.tp > 1 {
        settings.set(Setting::TensorSplit, SettingValue::Shares(vec![1.0; plan.tp as usize]));
    }
    // Without a mode the layers are spread over every card that the process sees.
    if plan.devices() > 1 || problem.cluster.devices_per_node > 1 {
        let mode = match (plan.devices() > 1, plan.tp > 1) {
            (false, _) => "none",
            (true, true) => "tensor",
            (true, false) => "layer",
        };
        settings.set(Setting::SplitMode, SettingValue::Word(mode.to_owned()));
    }
}

/// The attention of a model by the way in which prompts are divided over context-parallel ranks.
fn attention(graph: &ModelGraph) -> &'static str {
    let classes = classes(graph);
    let is = |class| classes.contains(&class);
    match (is(ModelClass::SparseMla), is(ModelClass::Mla)) {
        (true, _) => "sparse",
        (false, true) => "latent",
        (false, false) => "heads",
    }
}

fn drafted(settings: &mut Settings, problem: &Problem) {
    use SettingValue::{Count, Word};
    let Some(draft) = &problem.graph.draft else { return };
    let (setting, name) = match draft.name.as_str() {
        "mtp" => (Setting::DraftMethod, "mtp"),
        other => (Setting::DraftModel, other),
    };
    settings.set(setting, Word(name.to_owned()));
    settings.set(Setting::DraftTokens, Count(draft.tokens));
    settings.set(Setting::DraftBranches, Count(1));
    settings.set(Setting::CheckedTokens, Count(draft.tokens + 1));
}

fn offloaded(settings: &mut Settings, problem: &Problem, candidate: &Candidate, pool: &PoolPlan) {
    use SettingValue::{Count, Real, Word};
    let layers: u64 = pool.stages.iter().map(|layers| u64::from(*layers)).sum();
    let on_device = |settings: &mut Settings, value: SettingValue| settings.set(Setting::GpuLayers, value);
    let all = || Word("all".to_owned());
    match candidate.offload {
        Offload::Nothing => on_device(settings, all()),
        Offload::Host(HostPart { tensors: HostedTensors::Layers, layers: hosted }) => {
            let hosted = u64::from(hosted) * pool.stages.len() as u64;
            // The output counts as a layer of the devices.
            on_device(settings, Word((layers.saturating_sub(hosted) + 1).to_string()));
        }
        Offload::Host(HostPart { tensors: HostedTensors::Experts, layers: hosted }) => {
            on_device(settings, all());
            if pool.stages.len() == 1 {
                settings.set(Setting::HostExperts, Count(u64::from(hosted)));
            } else {
                settings.set(Setting::HostExpertLayers, Word(first_of_each(&pool.stages, hosted)));
            }
        }
        // A plan that a rule forbids has no stages, and so no bytes in host memory.
        Offload::Streamed(_) if pool.stages.is_empty() => {}
        Offload::Streamed(part) => {
            let evaluated = candidate.evaluate(&crate::quantity::read::Plain, problem, &mut ());
            let bytes = evaluated.spilled.map_or(0.0, |spilled| spilled.value());
            settings.set(Setting::OffloadedGib, Real((bytes / GIB * WRITTEN_STEPS).ceil() / WRITTEN_STEPS));
            let named = match part {
                OffloadPart::Experts => Some("experts"),
                OffloadPart::Kv => Some("kv"),
                OffloadPart::Layers => None,
            };
            named.into_iter().for_each(|name| settings.set(Setting::OffloadedPart, Word(name.to_owned())));
        }
    }
}

/// Parts of a GiB to which weights in host memory are rounded up in a command.
const WRITTEN_STEPS: f64 = 100.0;

/// The first `count` layers of each stage, as alternatives of a regular expression.
fn first_of_each(stages: &[u32], count: u32) -> String {
    let mut first = 0;
    let mut layers = Vec::new();
    for stage in stages {
        layers.extend((first..first + count.min(*stage)).map(|layer| layer.to_string()));
        first += stage;
    }
    layers.join("|")
}
