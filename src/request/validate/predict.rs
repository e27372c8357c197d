//! From measured rows to predictions: names resolved, deployments built once for all rows that share them.

use crate::spec::role::Role;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use rayon::prelude::*;
use serde::Deserialize;

use super::figures::{ServedRow, simulated_figures, started};
use super::home_machine::{ENOUGH, at_home};
use super::layout::{devices, draft, known_load};
use super::simulated::SimulatedRow;
use crate::calibrate::deployment::MeasuredDeployment;
use crate::cost::memory::Footprint;
use crate::graph::model::ModelGraph;
use crate::plan::legal::{check, has_experts};
use crate::plan::parallel::ParallelPlan;
use crate::quantity::datum::{Grade, Source};
use crate::quantity::num::Qty;
use crate::search::candidate::PoolPlan;
use crate::search::problem::Problem;
use crate::search::shape::usual_cut;
use crate::serving::instance::Instance;
use crate::serving::terms::Lengths;
use crate::spec::constant::CalibrationKey;
use crate::spec::error::Error;
use crate::spec::figure::Figure;
use crate::spec::host_part::HostPart;
use crate::spec::nearness::Interval;
use crate::spec::offload::Offload;
use crate::spec::run::OF_SYSTEM;
use crate::spec::runtime::StatedHold;
use crate::spec::scenario::Scenario;
use crate::spec::visible::visible;
use crate::store::catalog::{Catalog, LookupError};
use crate::store::kind::CatalogKind;
use crate::store::resolved_scenario::ResolvedScenario;
use crate::traffic::outcome::Distribution;
use crate::validate::figures::Figures;
use crate::validate::measured::{MeasuredDegrees, MeasuredRow};
use crate::validate::run_kind::RunKind;
use crate::validate::summary::{Prediction, ScoredRow};

/// Names in published tables, and those of the catalogue.
#[derive(Deserialize)]
struct PublishedNames {
    runtimes: BTreeMap<String, String>,
    /// Builds by others and layers around an engine, and the engine.
    layers: BTreeMap<String, String>,
    /// Engines whose name is followed by words on a backend or a build.
    engines: Vec<String>,
    /// Devices, in lower case.
    hardware: BTreeMap<String, String>,
    /// Wrappers of an engine and its backends; they count as versions of it.
    builds: Vec<String>,
    /// Weight formats, in lower case, and the format here with as many bits.
    formats: BTreeMap<String, String>,
    /// Checkpoints in lower case, and the model whose shapes they have.
    models: BTreeMap<String, String>,
    /// Suffixes of a converted checkpoint's name: the format is known separately, the architecture is the original
    /// model's.
    converted: Vec<String>,
}

static NAMES: LazyLock<PublishedNames> = LazyLock::new(|| {
    serde_json::from_str(include_str!("published_names.json")).expect("the names of the program are JSON")
});

fn known<'a>(table: &'a BTreeMap<String, String>, name: &'a str) -> &'a str {
    table.get(name).map_or(name, String::as_str)
}

/// A runtime's name without the backend in brackets, and without words on its build.
pub fn runtime(published: &str) -> String {
    let whole = published.trim().to_lowercase();
    let name = whole.split(" (").next().unwrap_or_default().trim();
    let stated = [whole.as_str(), name].into_iter().find_map(|name| NAMES.runtimes.get(name));
    let layered = || NAMES.layers.get(name).map_or_else(|| engine(name), |engine| Some(engine.as_str()));
    stated.cloned().unwrap_or_else(|| known(&NAMES.runtimes, layered().unwrap_or(name)).to_owned())
}

/// The engine that a name begins with.
fn engine(name: &str) -> Option<&str> {
    let (first, _) = name.split_once(' ')?;
    NAMES.engines.iter().any(|engine| engine == first).then_some(first)
}

/// Whether a runtime is published with a layer around it, or as a build of others: its rows are predicted as those of the
/// engine, and are no evidence of its plans.
pub fn has_layer(published: &str) -> bool {
    let name = published.split(" (").next().unwrap_or_default().trim().to_lowercase();
    !NAMES.runtimes.contains_key(&name) && (NAMES.layers.contains_key(&name) || engine(&name).is_some())
}

/// A device's id.
pub(super) fn device(published: &str) -> String {
    NAMES.hardware.get(&published.to_lowercase()).cloned().unwrap_or_else(|| published.to_owned())
}

/// The version of a row, or a substitute.
fn version(row: &MeasuredRow) -> String {
    let published = row.runtime.to_lowercase();
    NAMES.builds.iter().find(|build| published.contains(*build)).unwrap_or(&row.version).clone()
}

/// The name of the original model of a converted checkpoint, for any publisher.
pub(super) fn base(model: &str) -> Option<&str> {
    let name = model.rsplit('/').next().unwrap_or(model);
    // The copy has as many bytes as the name: the suffix is found in one and removed from the other.
    let small = name.to_ascii_lowercase();
    if let Some(shapes) = NAMES.models.get(&small) {
        return Some(shapes);
    }
    let end =
        NAMES.converted.iter().find_map(|end| small.strip_suffix(end.as_str())).map_or(name.len(), str::len);
    (end < model.len()).then(|| &name[..end])
}

/// A weight format's id, or that of the format with as many bits.
pub fn format(published: &str) -> String {
    let name = published.split(" (").next().unwrap_or_default().trim().to_lowercase();
    if let Some(stated) = NAMES.formats.get(&name) {
        return stated.clone();
    }
    let name = name.trim_start_matches("ud-").trim_start_matches("mlx-");
    known(&NAMES.formats, name).to_owned()
}

/// The shared part of rows: the problem except lengths and load.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ScenarioKey {
    model: String,
    hardware: String,
    devices: u64,
    runtime: String,
    version: String,
    weight_format: String,
    kv_format: String,
    equal_lengths: bool,
    max_num_batched_tokens: Option<u64>,
    max_num_seqs: Option<u64>,
    /// Bits of the number.
    gpu_memory_utilization: Option<u64>,
    /// Draft tokens of a step, and the bits of the share of them that is accepted.
    draft: Option<(u64, u64)>,
    /// Steps for which its server holds prompts back, and the bits of the part of a step at which it no longer does.
    held: Option<(u32, u64)>,
    /// Whether a part of the model is on the host, and the host, where it is stated.
    host: Option<Option<String>>,
}

impl ScenarioKey {
    fn of(row: &MeasuredRow) -> ScenarioKey {
        let traffic = row.traffic.as_ref();
        ScenarioKey {
            model: row.model.clone(),
            hardware: device(&row.hardware),
            devices: devices(row),
            runtime: runtime(&row.runtime),
            version: version(row),
            weight_format: format(&row.weight_format),
            kv_format: format(&row.kv_format),
            equal_lengths: row.equal_lengths,
            max_num_batched_tokens: match traffic {
                Some(traffic) => traffic.max_num_batched_tokens,
                None => row.flags.step_tokens,
            },
            held: row.flags.held.map(|held| (held.steps, held.tokens_ratio.to_bits())),
            host: row.host_part.map(|_| row.host.clone()),
            max_num_seqs: traffic.and_then(|traffic| traffic.max_num_seqs),
            gpu_memory_utilization: traffic
                .and_then(|traffic| traffic.gpu_memory_utilization)
                .or(row.memory_share)
                .map(f64::to_bits),
            draft: draft(row).ok().flatten().map(|draft| (u64::from(draft.tokens), draft.share().to_bits())),
        }
    }

    /// The question of a deployment of this kind.
    fn scenario(&self, model: &str, runtime: &str, hardware: String) -> Scenario {
        let stated = |text: &String| (!text.is_empty()).then(|| text.clone());
        Scenario {
            model: Some(model.to_owned()),
            hardware: Some(hardware),
            runtime: Some(runtime.to_owned()),
            runtime_version: stated(&self.version),
            weight_format: stated(&self.weight_format),
            kv_format: stated(&self.kv_format),
            max_num_batched_tokens: self.max_num_batched_tokens,
            max_num_seqs: self.max_num_seqs,
            gpu_memory_utilization: self.gpu_memory_utilization.map(f64::from_bits),
            draft: self.draft.map(|_| "mtp".to_owned()),
            draft_tokens: self.draft.map(|(tokens, _)| tokens),
            acceptance: self.draft.map(|(_, acceptance)| f64::from_bits(acceptance)),
            host: self.host.clone().flatten().filter(|host| host != OF_SYSTEM),
            // It ran, so the memory of its host was enough.
            host_memory: self.host.as_ref().map(|_| ENOUGH.to_owned()),
            concurrency: Some(1),
            ..Scenario::default()
        }
    }
}

/// The runtime of a row, as far as rows of its kind share it.
#[derive(Clone, Debug)]
struct RanOn {
    /// Id of the runtime that ran.
    id: String,
    calibration_key: CalibrationKey,
    /// Whether later prompts use the cached tokens of earlier ones.
    caches_prefixes: bool,
}

/// A prepared row, with the problem that contains its machine.
pub struct PreparedRow {
    /// Id of the runtime that ran: a vendor's own version of vLLM for a table's vLLM.
    pub runtime: String,
    /// The problem of all rows of its kind.
    pub problem: Arc<Problem>,
    /// Inputs of the runtime's fit.
    pub calibration_key: CalibrationKey,
    pub deployment: MeasuredDeployment,
    /// Its simulation, where it has a traffic.
    pub simulated: Option<SimulatedRow>,
}

impl PreparedRow {
    /// The interval of its prediction, at `requests` per attention rank.
    pub fn interval(&self, requests: u64) -> Option<&Interval> {
        let class = self.problem.class_of(&self.deployment.pools, self.deployment.offload);
        self.problem.formats[0].interval(class, requests)
    }

    /// Memory of a device of its first pool.
    pub fn footprint(&self) -> Footprint<Qty<f64>> {
        self.deployment.evaluate(self.problem.formats[0].plain(), &mut ()).memory
    }
}

/// Which fit of the runtime's profile applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileFit {
    /// The fit in the profile, and the factors of one's own measurements.
    Shipped,
    /// The fit in the profile alone.
    Uncorrected,
    /// None: the constants from kernel microbenchmarks only.
    KernelsOnly,
}

/// Prepares every row, or gives the reason against it.
pub fn ready(catalog: &Catalog, rows: &[MeasuredRow], fit: ProfileFit) -> Vec<Result<PreparedRow, String>> {
    let mut kinds = HashMap::<ScenarioKey, Vec<usize>>::new();
    for (at, row) in rows.iter().enumerate() {
        kinds.entry(ScenarioKey::of(row)).or_default().push(at);
    }
    let mut found: Vec<_> = kinds
        .into_par_iter()
        .flat_map_iter(|(key, rows_of_kind)| {
            let problem = problem_of(catalog, &key, fit).map(|(problem, ran)| (Arc::new(problem), ran));
            let mut plan_cache = HashMap::new();
            let of = |at: usize| {
                check_kind(&rows[at], fit)?;
                let (problem, ran) = problem.clone().map_err(|error| reason(&error))?;
                let deployment = build_deployment(&problem, &rows[at], &mut plan_cache)?;
                let simulated = rows[at].traffic.as_ref().map(|traffic| {
                    SimulatedRow::new(&problem, ran.caches_prefixes, &deployment, (&rows[at], traffic))
                });
                let RanOn { id: runtime, calibration_key, .. } = ran;
                let simulated = match simulated {
                    Some(Err(_)) if rows[at].is_of_own_clients() => None,
                    other => other.transpose()?,
                };
                Ok(PreparedRow { runtime, problem, calibration_key, deployment, simulated })
            };
            rows_of_kind.iter().copied().map(of).zip(rows_of_kind.clone()).collect::<Vec<_>>()
        })
        .collect();
    found.sort_by_key(|(_, at)| *at);
    found.into_iter().map(|(ready, _)| ready).collect()
}

/// The reason against a row that has no prediction, or that no fit and no count takes.
fn check_kind(row: &MeasuredRow, fit: ProfileFit) -> Result<(), String> {
    if row.model.is_empty() {
        return Err("model: not stated".to_owned());
    }
    if let Some(why) = &row.refused {
        return Err(why.clone());
    }
    if let Some(why) = row.unknown_cache.as_ref().filter(|_| fit != ProfileFit::KernelsOnly) {
        return Err(why.clone());
    }
    match row.kind {
        RunKind::Served => Ok(()),
        RunKind::Home(_) => Err("hardware: a machine at home, whose plan the search finds".to_owned()),
        _ if fit == ProfileFit::KernelsOnly => {
            Err("concurrency: missing, and rate too, so the load is unknown".to_owned())
        }
        _ => Ok(()),
    }
}

pub fn reason(error: &Error) -> String {
    visible(&format!("{}: {}", error.key, error.found)).into_owned()
}

/// Source of a launch flag that a row does not state.
const BY_RECIPE: &str = "launch flags of the publisher's recipe";

/// Devices per node, likeliest first.
const NODES: [u64; 4] = [8, 4, 2, 1];

/// Runtimes of the catalogue that are named after `runtime`: `vllm-gaudi` of `vllm`.
fn versions(catalog: &Catalog, runtime: &str) -> impl Iterator<Item = String> {
    let start = format!("{runtime}-");
    catalog.entries(CatalogKind::Runtimes).into_keys().filter(move |id| id.starts_with(&start))
}

fn problem_of(catalog: &Catalog, key: &ScenarioKey, fit: ProfileFit) -> Result<(Problem, RanOn), Error> {
    let ScenarioKey { model, hardware, devices, runtime, .. } = key;
    let ask = |model: &str, runtime: &str, hardware: String| {
        ResolvedScenario::resolve(catalog, &key.scenario(model, runtime, hardware))
    };
    // A device by its count; a machine that has exactly this number: a system, `local`, a file.
    // More devices than a node: nodes of eight or of the node size, the last one perhaps partial.
    let whole = catalog.hardware(hardware).is_ok_and(|machine| machine.devices() == *devices);
    let counted = if whole { hardware.clone() } else { format!("{devices}x{hardware}") };
    let resolve = |model: &str, runtime: &str| {
        ask(model, runtime, counted.clone()).or_else(|fault| match fault.key.as_str() {
            "devices_per_node" => NODES
                .into_iter()
                .map(|n| ask(model, runtime, format!("{}x{n}x{hardware}", devices.div_ceil(n))))
                .find(|found| !matches!(found, Err(other) if other.key == fault.key))
                .unwrap_or(Err(fault)),
            _ => Err(fault),
        })
    };
    // A table names vLLM where a vendor's own version of it ran.
    let ran = |model: &str| {
        resolve(model, runtime).or_else(|fault| match fault.key.as_str() {
            "runtime" => versions(catalog, runtime).find_map(|own| resolve(model, &own).ok()).ok_or(fault),
            _ => Err(fault),
        })
    };
    // A published name may end in words on its format and runtime, and in no others: the whole of it counts.
    let named = |(start, rest): (&str, &str)| match ran(start) {
        Err(fault) if fault.key == "model" => None,
        _ if !rest.split_whitespace().all(|word| is_of_the_run(catalog, word)) => {
            let expected = format!("`{start}`, or `{start}` and the words of a weight format or a runtime");
            Some(Err(Error::new("model", format!("`{model}`"), expected, "correct the name of the row")))
        }
        found => Some(found),
    };
    let found = starts(model).find_map(named).unwrap_or_else(|| ran(model));
    let mut resolved = found.or_else(|fault| match base(model) {
        Some(base) if fault.key == "model" => ran(base).map_err(|other| nearer(fault, other)),
        _ => Err(fault),
    })?;
    if fit == ProfileFit::KernelsOnly {
        Arc::make_mut(&mut resolved.runtime).serving_fit = None;
    }
    if fit != ProfileFit::Shipped && !resolved.runtime.corrections.is_empty() {
        Arc::make_mut(&mut resolved.runtime).corrections.clear();
    }
    resolved.workload.equal_lengths = key.equal_lengths;
    if let Some((steps, ratio)) = key.held {
        let of = |value: f64| Figure::new(value, Source { grade: Grade::Stated, text: BY_RECIPE.into() });
        Arc::make_mut(&mut resolved.runtime).scheduler.held =
            Some(StatedHold { steps: of(f64::from(steps)), tokens_ratio: of(f64::from_bits(ratio)) });
    }
    let ran_on = RanOn {
        id: resolved.runtime.id.clone(),
        calibration_key: resolved.calibration_key(),
        caches_prefixes: resolved.runtime.memory.shared_prefixes.is_some(),
    };
    Ok((resolved.problem()?, ran_on))
}

/// Of the faults of a name and of the model that it is made of, the one that is not about an unknown model.
pub(super) fn nearer(named: Error, base: Error) -> Error {
    if base.key == "model" { named } else { base }
}

/// A name, then the name without its last word, and so on; each with the words that it leaves out.
fn starts(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends = name.match_indices(' ').map(|(at, _)| at);
    let ends: Vec<usize> = ends.chain([name.len()]).collect();
    ends.into_iter().rev().map(|end| (name[..end].trim_end(), name[end..].trim()))
}

/// Whether a word names a weight format, or several of one family, or a runtime: what the row says elsewhere too.
fn is_of_the_run(catalog: &Catalog, word: &str) -> bool {
    let bare = word.trim_matches(['(', ')', '[', ']', ',']).to_lowercase();
    // llama.cpp names a file by the format of its experts.
    let of_experts = bare.strip_suffix("_moe").unwrap_or(&bare);
    let known = |kind, name: &str| !matches!(catalog.find(kind, name), Err(LookupError::Unknown(_)));
    !bare.is_empty()
        && (known(CatalogKind::Formats, &format(of_experts)) || known(CatalogKind::Runtimes, &runtime(&bare)))
}

fn plan(graph: &ModelGraph, degrees: &MeasuredDegrees) -> Result<ParallelPlan, String> {
    let MeasuredDegrees { tp, pp, dp, ep, .. } = *degrees;
    let (ep, whole) = if has_experts(graph) { (ep, tp * dp) } else { (1, tp) };
    if !whole.is_multiple_of(ep) {
        return Err(format!("degrees: ep {ep} does not divide tp x dp = {whole}"));
    }
    let plan = ParallelPlan { tp, pp, dp, ..ParallelPlan::SINGLE };
    Ok(if has_experts(graph) { plan.with_experts(ep) } else { plan.without_experts() })
}

type PlanCache = HashMap<(ParallelPlan, Option<HostPart>), Result<(Vec<u32>, Arc<Instance>), String>>;

fn build_deployment(
    problem: &Problem,
    row: &MeasuredRow,
    plan_cache: &mut PlanCache,
) -> Result<MeasuredDeployment, String> {
    let requests = known_load(row)?;
    let has_host = problem.formats[0].plain().host.is_some() && row.host.as_deref() != Some(OF_SYSTEM);
    if let Some(part) = row.host_part.filter(|_| !has_host) {
        return Err(format!(
            "plan: `host {part}`, on the host of a system that the run does not name: give it, e.g. --hardware local"
        ));
    }
    let mut pools = Vec::new();
    let mut instances = Vec::new();
    for (number, degrees) in row.pools.iter().enumerate() {
        let plan = plan(&problem.graph, degrees)?;
        let (stages, instance) = plan_cache
            .entry((plan, row.host_part))
            .or_insert_with_key(|key| build_instance(problem, *key))
            .clone()?;
        let alone = row.pools.len() == 1;
        let replicas = degrees.workers.unwrap_or(1).max(1);
        let role = [Role::Prefill, Role::Decode][number];
        let concurrency = requests.div_ceil(replicas);
        pools.push(PoolPlan {
            role: if alone { Role::Aggregated } else { role },
            plan,
            stages,
            replicas,
            concurrency,
        });
        instances.push(instance);
    }
    let lengths = Lengths { isl: row.isl.saturating_add(row.depth), osl: row.osl, prefix: row.depth };
    Ok(MeasuredDeployment {
        pools,
        instances,
        offload: row.host_part.map_or(Offload::Nothing, Offload::Host),
        lengths,
        concurrency: requests,
        timed_separately: row.timed_separately,
        from_start: row.from_start,
    })
}

fn build_instance(
    problem: &Problem,
    (plan, part): (ParallelPlan, Option<HostPart>),
) -> Result<(Vec<u32>, Arc<Instance>), String> {
    // A measured deployment did run: only one that cannot be sharded at all is rejected.
    let limits = crate::plan::legal::LegalLimits {
        devices: u64::MAX,
        domain: u64::MAX,
        block: u64::MAX,
        scales: None,
        runtime: None,
    };
    check(&problem.graph, &plan, &limits).map_err(|why| format!("plan: {why}"))?;
    let stages = usual_cut(&problem.graph, plan.pp);
    let instance = Instance::new(&problem.graph, plan, stages.clone(), problem.tiers());
    let instance = match part {
        Some(part) => instance.hosting(&problem.graph, part),
        None => instance,
    };
    Ok((stages, Arc::new(instance)))
}

/// Predicted latencies of a row, in milliseconds.
struct PredictedLatencies {
    ttft: f64,
    tpot: f64,
    /// End-to-end time and the 99th percentile of TTFT, of a simulation.
    simulated: Option<[f64; 2]>,
    hit_rate: Option<f64>,
    /// Requests per second that the servers answer at most, where the rate of the row is above it.
    capacity: Option<f64>,
    more: Figures,
    /// Concurrency per attention rank.
    requests: u64,
}

impl PredictedLatencies {
    fn of(measured: &MeasuredRow, ready: &PreparedRow) -> Result<PredictedLatencies, String> {
        let Some(simulated) = &ready.simulated else {
            let served = ServedRow::of(measured, ready)?;
            return Ok(PredictedLatencies {
                ttft: served.ttft_ms,
                tpot: served.tpot_ms,
                simulated: None,
                hit_rate: None,
                capacity: None,
                more: served.figures(measured),
                requests: served.requests_per_rank,
            });
        };
        let (found, totals) = simulated.latencies()?;
        let ms = |values: &Distribution| {
            let figure = if measured.outcome.means { values.mean() } else { values.percentile(0.5) };
            1e3 * figure.unwrap_or(f64::NAN)
        };
        let p99 = 1e3 * found.ttft.percentile(0.99).unwrap_or(f64::NAN);
        let in_flight = totals.request_seconds / totals.end_s.max(f64::MIN_POSITIVE);
        let schedulers = simulated.pool.replicas * simulated.pool.ranks;
        let capacity = simulated.exceeded_capacity(&totals);
        // Below its capacity a server answers what is sent, so that its throughput says nothing about a prediction.
        let per_s = match measured.is_of_own_clients() {
            true => Some(totals.answered as f64 / totals.end_s.max(f64::MIN_POSITIVE)),
            false => capacity,
        };
        let output_tok_s = per_s.map(|per_s| per_s * measured.osl as f64);
        Ok(PredictedLatencies {
            ttft: ms(&found.ttft),
            tpot: ms(&found.tpot),
            simulated: Some([ms(&found.e2e), p99]),
            hit_rate: found.hit_rate(),
            capacity,
            more: simulated_figures(measured, &found, output_tok_s),
            requests: (in_flight / schedulers as f64).ceil().max(1.0) as u64,
        })
    }
}

/// The prediction of a row, or the reason why there is none.
pub fn prediction(measured: &MeasuredRow, ready: &PreparedRow) -> Result<Prediction, String> {
    if measured.kind == RunKind::Started {
        return started(measured, ready);
    }
    let formats = &ready.problem.formats[0];
    let found = PredictedLatencies::of(measured, ready)?;
    let (ttft_ms, tpot_ms) = (found.ttft, found.tpot);
    let held = ready.footprint();
    let bytes = held.total.value();
    let [e2e, ttft_p99] = found.simulated.map_or([None, None], |both| both.map(Some));
    for (name, value) in [
        ("ttft", Some(ttft_ms)),
        ("tpot", Some(tpot_ms)),
        ("e2e", e2e),
        ("ttft p99", ttft_p99),
        ("memory", Some(bytes)),
    ] {
        if value.is_some_and(|value| !(value.is_finite() && value > 0.0)) {
            return Err(format!("{name}: no finite prediction at these lengths and loads"));
        }
    }
    let known = ready.interval(found.requests);
    // The intervals are of errors in closed loops.
    let interval = known.filter(|_| ready.simulated.is_none() || measured.is_of_own_clients());
    let around = |value: f64, [low, _, high]: [f64; 3]| (value * low, value * high);
    Ok(Prediction {
        ttft_ms,
        tpot_ms,
        e2e_ms: e2e,
        ttft_p99_ms: ttft_p99,
        hit_rate: found.hit_rate,
        capacity_per_s: found.capacity,
        more: found.more,
        near: known.map(|found| found.near),
        ttft_interval: interval.map(|found| around(ttft_ms, found.ttft)),
        tpot_interval: interval.map(|found| around(tpot_ms, found.tpot)),
        memory: measured
            .outcome
            .memory_bytes
            .map(|_| (bytes, formats.memory_interval(&held).map(|[low, _, high]| (low, high)))),
        fits: bytes <= held.usable.value(),
        devices: ready.deployment.devices(),
    })
}

pub fn predict(catalog: &Catalog, rows: Vec<MeasuredRow>) -> Vec<ScoredRow> {
    let ready = ready(catalog, &rows, ProfileFit::Shipped);
    let paired: Vec<_> = rows.into_iter().zip(ready).collect();
    paired
        .into_par_iter()
        .map(|(measured, ready)| {
            let predicted = match &measured.kind {
                RunKind::Home(run) => at_home(catalog, &measured, run),
                _ => ready.and_then(|ready| prediction(&measured, &ready)),
            };
            ScoredRow { measured, predicted }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converted_checkpoints_are_made_of_a_model() {
        assert_eq!(base("mlx-community/Qwen3-4B-Instruct-2507-5bit-g32"), Some("Qwen3-4B-Instruct-2507"));
        assert_eq!(base("Qwen/Qwen2-0.5B-Instruct-GPTQ-Int8"), Some("Qwen2-0.5B-Instruct"));
        assert_eq!(base("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"), Some("Llama-3.3-70B-Instruct"));
        assert_eq!(base("nvidia/DeepSeek-R1-NVFP4-v2"), Some("DeepSeek-R1"));
        assert_eq!(base("unsloth/Qwen3-14B"), Some("Qwen3-14B"));
        assert_eq!(base("Qwen3-14B"), None);
        assert_eq!(base("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"), Some("Qwen2.5-7B-Instruct"));
    }

    #[test]
    fn published_names_are_those_of_the_catalogue() {
        assert_eq!(runtime("llama.cpp (rocm-7_2_3)"), "llama.cpp");
        assert_eq!(runtime("MLC LLM"), "mlc-llm");
        assert_eq!(format("UD-Q4_K_XL"), "gguf-q4_k_m");
        assert_eq!(format("UQFF q8 (8-bit)"), "gguf-q8_0");
        assert_eq!(format("MLX-5bit g32"), "mlx-5bit");
        assert_eq!(format("MLX 4-bit"), "mlx-4bit");
        // Of other bits than any format here.
        assert_eq!(format("F32"), "f32");
        assert_eq!(runtime("llama.cpp Metal b10050"), "llama.cpp");
        assert_eq!(runtime("vLLM (tt-inference-server)"), "tt-vllm");
        assert_eq!((runtime("vLLM + llm-d").as_str(), has_layer("vLLM + llm-d")), ("vllm", true));
        assert_eq!((runtime("vLLM-ROCm").as_str(), has_layer("vLLM-ROCm")), ("vllm", true));
        assert!(!has_layer("llama.cpp (CUDA)") && !has_layer("TensorRT-LLM") && !has_layer("vllm"));
        assert_eq!(runtime("ax-engine (MLX)"), "ax-engine");
        assert_eq!(device("Apple M5 Max 128GB"), "apple-m5-max");
    }
}
