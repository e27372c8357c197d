//! The launch of a deployment: commands, and files that run them.

use serde_json::{Map, Value};

use crate::launch::back::STREAMED;
use crate::launch::command::{LaunchCommand, WrittenOption};
use crate::launch::context::{CommandText, nested};
use crate::launch::deployment::{Deployed, LaunchedRuntime, PoolLaunch, Surroundings};
use crate::launch::files::{Case, files};
use crate::launch::published_flags::{PublishedServer, ServerKind};
use crate::launch::settings::LaunchModel;
use crate::launch::slots::{MOST_LISTED, lists_replicas};
use crate::report::launch::{LaunchFlag, LaunchReport, LaunchWorker, PublishedFlags};
use crate::report::next_run::NextRun;
use crate::report::number::digits;
use crate::report::result::{Quantiles, ReportedDeployment};
use crate::search::candidate::{Candidate, PoolPlan};
use crate::search::problem::{Problem, Traffic};
use crate::spec::error::Error;
use crate::spec::launch::Launch;
use crate::spec::option_effect::OptionEffects;
use crate::spec::option_table::OptionTable;
use crate::spec::overrides::{OverriddenFile, Override};
use crate::spec::precision::FormatOption;
use crate::spec::role::Role;
use crate::spec::runtime::Runtime;
use crate::spec::scenario::Scenario;
use crate::spec::setting::Setting;
use crate::spec::visible::visible;
use crate::store::catalog::Catalog;
use crate::store::hub::is_repository;
use crate::store::model::ResolvedModel;
use crate::store::resolved_scenario::ResolvedScenario;

/// The launch of a candidate that runs, which is reported as `reported`.
pub fn launch(
    catalog: &Catalog,
    (resolved, problem): (&ResolvedScenario, &Problem),
    (candidate, reported): (&Candidate, &ReportedDeployment),
    scenario: &Scenario,
) -> Result<LaunchReport, Error> {
    let runtime = &resolved.runtime;
    let Some((launch, table)) = catalog.launch_of(&runtime.id)? else { return Ok(unlisted(runtime)) };
    let formats = &problem.formats[candidate.formats];
    // Clients call workers of several checkpoints by one name.
    let served_name = formats.prefill_weights.as_ref().map(|_| resolved.model.name.clone());
    let (overrides, others) = context_overrides(scenario.set.as_deref(), &resolved.model);
    let model = |pool: &PoolPlan| {
        let mut known = resolved.weight_formats.iter().chain(&resolved.prefill_weights);
        let choice = known.find(|choice| choice.format.id == formats.weights_of(pool.role))?;
        let served_name = served_name.clone();
        let overrides = overrides.as_ref().map(Value::to_string);
        Some(LaunchModel {
            served_name,
            overrides,
            ..launch_model(&resolved.model, choice, runtime, &launch)
        })
    };
    let models: Option<Vec<LaunchModel>> = candidate.pools.iter().map(model).collect();
    let Some(models) = models else { return Ok(unlisted(runtime)) };
    let lender = lender_of(catalog, &launch)?;
    let remote = lender.as_ref().map(|(one, table)| (one, table));
    let deployed =
        Deployed::new(LaunchedRuntime { own: (&launch, &table), remote }, problem, candidate, &models);
    let case = case((resolved, problem), (candidate, reported), (scenario, &deployed));
    let answering = models.last();
    let model_id = served_name.or(answering.and_then(|model| model.id.clone()));
    let case = Case { model_id, ..case };
    let mut report = launch_report(&runtime.id, &deployed, Some(&case))?;
    if report.runs() {
        let choice = resolved
            .weight_formats
            .iter()
            .find(|choice| choice.format.id == formats.weights_of(Role::Decode));
        report.published =
            choice.and_then(|choice| published(&report, (resolved, problem), choice, &launch.effects));
    }
    if report.runs() && deployed.remote.is_none() && report.workers.iter().all(|worker| worker.hosts == 1) {
        let own = resolved.correction(&reported.weight_format).and_then(|own| own.time.as_ref());
        let question = measured_question(scenario, resolved);
        report.next_run = NextRun::of(reported, own.map_or(0, |own| own.rows), question);
    }
    if models.iter().any(|model| model.refused.is_some()) {
        report.workers.clear();
    }
    if others {
        let note = "--set changes the prediction, not the model or the machine that is launched";
        report.notes.push(note.to_owned());
    }
    Ok(report)
}

/// The launch of the program that lends the devices of further hosts, where the runtime has one.
pub(super) fn lender_of(catalog: &Catalog, launch: &Launch) -> Result<Option<(Launch, OptionTable)>, Error> {
    let Some(id) = &launch.remote else { return Ok(None) };
    let lender: Launch = catalog.load(id)?;
    let table = catalog.load(&lender.table)?;
    Ok(Some((lender, table)))
}

/// The part of a question that a measurement has: without SLOs, objective and rate.
fn measured_question(scenario: &Scenario, resolved: &ResolvedScenario) -> Scenario {
    let of = scenario.clone();
    Scenario {
        model: of.model.or(Some(resolved.model.name.clone())),
        hardware: of.hardware.or(Some(resolved.cluster.id.clone())),
        host: of.host,
        host_memory: of.host_memory,
        p2p: of.p2p,
        network: of.network,
        runtime: Some(resolved.runtime.id.clone()),
        runtime_version: of.runtime_version,
        draft: of.draft,
        draft_tokens: of.draft_tokens,
        acceptance: of.acceptance,
        isl: Some(resolved.lengths().isl),
        osl: Some(resolved.lengths().osl),
        ..Scenario::default()
    }
}

/// The options of the nearest measured server beyond those of `report`.
fn published(
    report: &LaunchReport,
    (resolved, problem): (&ResolvedScenario, &Problem),
    choice: &FormatOption,
    effects: &OptionEffects,
) -> Option<PublishedFlags> {
    let device = &problem.cluster.device.id;
    let nearest = PublishedServer::nearest(&ServerKind {
        runtime: &report.runtime,
        device,
        model: &resolved.model.name,
        model_type: &problem.graph.model_type,
        weight_bits: 8.0 * choice.format.bits_per_element.value,
    })?;
    let has = |option: &str| {
        report.workers.iter().any(|worker| {
            let is_of = |flag: &LaunchFlag| flag.words.split([' ', '=']).next() == Some(option);
            let path = format!("/{}", option.replace('.', "/"));
            worker.options.iter().any(is_of)
                || worker.environment.contains_key(option)
                || Value::Object(worker.yaml.clone()).pointer(&path).is_some()
        })
    };
    let flags: Vec<LaunchFlag> =
        nearest.beyond(has, effects).into_iter().map(|(words, why)| LaunchFlag { words, why }).collect();
    let (model, source) = (nearest.model.clone(), nearest.source(device));
    (!flags.is_empty()).then_some(PublishedFlags { model, flags, source })
}

/// Keys of a configuration that decide how long a request may be: a server takes them from its command.
const OF_CONTEXT: [&str; 3] = ["rope_parameters", "rope_scaling", "max_position_embeddings"];

/// The keys of the configuration on its context that `set` replaces, with their whole values, as an object; and whether it
/// replaces others. A runtime replaces a key as a whole.
pub(super) fn context_overrides(set: Option<&[String]>, model: &ResolvedModel) -> (Option<Value>, bool) {
    let (mut keys, mut others) = (Value::Object(Map::new()), false);
    for text in set.unwrap_or_default() {
        let read: Option<Override> =
            text.parse().ok().filter(|one: &Override| one.file == OverriddenFile::Model);
        let found = read.and_then(|one| {
            let at = one.keys.iter().position(|key| OF_CONTEXT.contains(&key.as_str()))?;
            let path = one.keys.get(..=at)?.to_vec();
            let value = model.config.value(&path)?.clone();
            Some((path, value))
        });
        let Some((path, value)) = found else {
            // The command states the weights in host memory.
            others |= !text.starts_with(STREAMED);
            continue;
        };
        let mut inside = &mut keys;
        for key in &path {
            inside = &mut inside[key.as_str()];
        }
        *inside = value;
    }
    let any = keys.as_object().is_some_and(|keys| !keys.is_empty());
    (any.then_some(keys), others)
}

/// The report of a runtime without a launch.
pub(super) fn unlisted(runtime: &Runtime) -> LaunchReport {
    let what = format!("launch files of {}: its options are not in the catalogue", runtime.name);
    LaunchReport { runtime: runtime.id.clone(), unsupported: vec![what], ..LaunchReport::default() }
}

/// The launch of processes, with the files of a case that can run.
pub(super) fn launch_report(
    runtime: &str,
    deployed: &Deployed,
    case: Option<&Case>,
) -> Result<LaunchReport, Error> {
    let unsupported = deployed.missing();
    let workers = deployed.workers.iter().map(|worker| reported_worker(deployed, worker)).collect();
    let files = match case.filter(|_| unsupported.is_empty()) {
        Some(case) => files(deployed, case)?,
        None => vec![],
    };
    let router = files.iter().find(|file| file.path == "router.sh");
    let router = router.and_then(|file| file.text.lines().last());
    Ok(LaunchReport {
        cost: None,
        runtime: runtime.to_owned(),
        infeasible: vec![],
        runtime_version: deployed.table.version.clone(),
        image: deployed.image.map(|image| image.image.clone()),
        workers,
        router: router.map(|line| line.trim_start_matches("exec ").to_owned()),
        unsupported,
        notes: notes(runtime, deployed),
        published: None,
        next_run: None,
        files,
    })
}

/// The model in the weight format of `choice`, as a launch names it: a published checkpoint, the model's own, or a path of
/// the user.
pub(super) fn launch_model(
    model: &ResolvedModel,
    choice: &FormatOption,
    runtime: &Runtime,
    launch: &Launch,
) -> LaunchModel {
    let config = &model.config;
    let own = model.repository.as_ref().unwrap_or(&model.name);
    let hub = || is_repository(own).then(|| own.clone());
    // A file of the user is in the format that its hint names.
    let file = launch.model_file.is_some();
    let refused = (!file && !choice.loads(config, runtime)).then(|| {
        let (weights, runtime, model) = (&choice.format.id, &runtime.name, visible(&model.name));
        let lacks = "no checkpoint in it is published";
        format!("{weights} weights of {model}: {lacks}, and {runtime} does not convert them when it starts")
    });
    LaunchModel {
        id: choice.checkpoint.clone().or_else(hub).filter(|_| !file),
        served_name: None,
        made_at_start: !file && choice.made_at_start(config, runtime),
        refused,
        overrides: None,
        has_code: model.has_code,
        states_kv: config.quantization.as_ref().is_some_and(|known| known.kv_format.is_some()),
    }
}

fn reported_worker(deployed: &Deployed, worker: &PoolLaunch) -> LaunchWorker {
    let command: LaunchCommand = deployed.leader(worker, Surroundings::Bare);
    let text = CommandText::new(&command, "", None);
    let option = |one: &WrittenOption| LaunchFlag { words: one.shell(), why: one.why.clone() };
    LaunchWorker {
        name: worker.name.clone(),
        replicas: worker.replicas,
        devices: worker.devices,
        hosts: worker.hosts,
        command: text.line(),
        options: text.options.iter().map(option).collect(),
        environment: text.environment.iter().map(|one| (one.name.clone(), one.word.shell())).collect(),
        yaml: nested(&command.yaml),
    }
}

fn case(
    (resolved, problem): (&ResolvedScenario, &Problem),
    (candidate, reported): (&Candidate, &ReportedDeployment),
    (scenario, deployed): (&Scenario, &Deployed),
) -> Case {
    let lengths = problem.workload.lengths;
    let settings = deployed.workers.first().map(PoolLaunch::settings);
    let hosted = settings.filter(|settings| settings.count(Setting::HostExperts).is_some());
    let [device_order, remote_order] = deployed.lending_orders();
    Case {
        model: resolved.model.name.clone(),
        model_id: None,
        hardware: resolved.cluster.name.clone(),
        flags: scenario.flags(),
        plan: reported.notation.clone(),
        runtime: resolved.runtime.name.clone(),
        model_hint: model_hint(
            deployed.launch,
            &resolved.model.name,
            &problem.formats[candidate.formats].weights,
        ),
        one_file: deployed.launch.model_file.as_ref().is_some_and(|hint| hint.one_file),
        isl: lengths.isl,
        osl: lengths.osl,
        prefix: lengths.prefix,
        rate: match problem.traffic {
            Traffic::Rate(rate) => Some(rate),
            Traffic::Free | Traffic::InFlight(_) => None,
        },
        concurrency: reported.concurrency.ceil().max(1.0) as u64,
        predicted: predicted(reported),
        ngl: settings.and_then(|settings| settings.word(Setting::GpuLayers)).map(str::to_owned),
        ncmoe: hosted.and_then(|settings| settings.count(Setting::HostExperts)),
        device_order,
        remote_order,
    }
}

/// The file that a user provides, in words.
pub(super) fn model_hint(launch: &Launch, model: &str, format: &str) -> String {
    launch.model_file.as_ref().map_or("path of the model".to_owned(), |file| {
        file.hint.replace("{model}", model).replace("{format}", format)
    })
}

/// The predictions that a benchmark can confirm.
fn predicted(reported: &ReportedDeployment) -> Vec<String> {
    let Some(metrics) = &reported.metrics else { return vec![] };
    let intervals = reported.intervals.as_ref();
    let line = |name: &str, value: f64, unit: &str, interval: Option<Quantiles>| {
        let around = interval.map_or(String::new(), |interval| {
            format!(" (p10 {} to p90 {})", digits(interval.p10), digits(interval.p90))
        });
        format!("{name} {}{unit}{around}", digits(value))
    };
    vec![
        line("TTFT", metrics.ttft_ms, " ms", intervals.map(|known| known.ttft_ms)),
        line("TPOT", metrics.tpot_ms, " ms", intervals.map(|known| known.tpot_ms)),
        line("Output", metrics.output_tok_s, " tok/s", intervals.map(|known| known.output_tok_s)),
    ]
}

fn notes(runtime: &str, deployed: &Deployed) -> Vec<String> {
    let (mut notes, launch) = (Vec::new(), deployed.launch);
    if runtime != launch.id {
        let of = &launch.id;
        notes.push(format!(
            "the options are those of {of} {}: {runtime} may lack some",
            deployed.table.version
        ));
    }
    if deployed.workers.iter().any(|worker| worker.hosts > 1) {
        let note = match &launch.ranks {
            Some(ranks) => {
                format!("replicas run on several hosts: {} starts a rank on each device", ranks.command[0])
            }
            None => "replicas run on several hosts: the scripts need HOST_RANK and FIRST_HOST".to_owned(),
        };
        notes.push(note);
    }
    if !lists_replicas(deployed) {
        let operators = "without the files that list them; an operator or a router discovers them";
        notes.push(format!("more than {MOST_LISTED} workers, {operators}"));
    }
    if deployed.remote.is_some() {
        notes.push("the rpc processes on further hosts start first: RPC_SERVERS lists them".to_owned());
    }
    if launch.request.is_some() {
        notes.push("place.sh places the model by a request, when the nodes run".to_owned());
    }
    notes
}
