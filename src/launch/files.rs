//! The files of a launch, from templates.

use minijinja::value::Serde;
use minijinja::{Value as TemplateValue, context};
use serde::Serialize;
use serde_json::{Map, Value};

use super::command::{Word, WrittenOption};
use super::context::{CommandText, MODEL_FOLDER, SETTINGS_FOLDER, WorkerText, nested, workers};
use super::deployment::{Deployed, Surroundings};
use super::engine::Engine;
use super::program_check::ProgramCheck;
use super::router::{Routers, resource_name};
use super::slots::{TRANSFER_PORTS, lists_replicas};
use crate::report::launch::LaunchFile;
use crate::spec::error::Error;
use crate::spec::launch::Benchmark;
use crate::spec::writer::Language;

/// Requests of a benchmark, as rounds of all concurrent ones: the first and the last round are not steady.
const ROUNDS: u64 = 10;
/// Duration of a benchmark at a rate, in seconds.
const MEASURED_SECONDS: f64 = 300.0;
/// Minimum number of requests of a benchmark: a tenth of them is still more than one.
const FEWEST_REQUESTS: u64 = 20;
/// Maximum number of requests before a benchmark begins, which fill caches and compile kernels.
const MOST_WARMUPS: u64 = 32;

/// Kubernetes resource of a device of an RDMA fabric, as many as accelerators: `custom` limits of
/// <https://github.com/ai-dynamo/dynamo>, recipes/deepseek-r1/vllm/disagg/deploy_hopper_16gpu.yaml. Device plugins name
/// it otherwise on some clusters.
const RDMA_RESOURCE: &str = "rdma/ib";
/// Shared memory of a pod in GiB per device: `sharedMemory` of 80 GiB for 8 devices there.
const SHARED_MEMORY_GIB: u64 = 10;

/// Whether pods send KV caches to others, or one replica is in several.
fn over_network(workers: &[WorkerText]) -> bool {
    workers.iter().any(|worker| worker.hosts > 1 || worker.role == "prefill")
}

#[derive(Clone, Debug, Serialize)]
pub struct Case {
    pub model: String,
    /// Its id of a hub, if it has one.
    pub model_id: Option<String>,
    pub hardware: String,
    /// The flags that pose the problem.
    pub flags: String,
    pub plan: String,
    pub runtime: String,
    /// The file that a user must provide where the model is one of their own.
    pub model_hint: String,
    pub one_file: bool,
    pub isl: u64,
    pub osl: u64,
    /// Cached prompt tokens.
    pub prefix: u64,
    /// Requests per second, if the traffic is a rate.
    pub rate: Option<f64>,
    /// Concurrency of the deployment.
    pub concurrency: u64,
    /// The predictions, a line each.
    pub predicted: Vec<String>,
    /// Layers on the device, where a part of the model is in host memory.
    pub ngl: Option<String>,
    /// First layers whose experts are in host memory.
    pub ncmoe: Option<u64>,
    /// The devices of a placement, and how their runtime takes them in an order; empty where all are identical.
    pub device_order: String,
    /// Servers on further hosts in their order.
    pub remote_order: String,
}

pub fn files(deployed: &Deployed, case: &Case) -> Result<Vec<LaunchFile>, Error> {
    let engine = Engine::new()?;
    let model_path =
        if case.one_file { format!("{MODEL_FOLDER}/model.gguf") } else { MODEL_FOLDER.to_owned() };
    let (workers, hosts) = workers(deployed, &model_path);
    let lists_all = lists_replicas(deployed);
    let routers = Routers { engine: &engine, deployed, workers: &workers, model: &case.model };
    let router = if lists_all { routers.text()? } else { None };
    // Behind a router that knows each worker, Kubernetes has a service for each.
    // Ranks that one command starts on several hosts are no pods of their own.
    let ranked = workers.iter().any(|worker| worker.start_ranks.is_some());
    let kubernetes = (lists_all || workers.len() == 1) && !ranked;
    let image = deployed.image;
    let hub = case.model_id.is_some() && workers.iter().all(|worker| worker.hosts == 1);
    let llm_d = deployed.launch.llm_d_sidecar.is_some() && hub;
    let long = case.rate.map_or(case.concurrency * ROUNDS, |rate| (rate * MEASURED_SECONDS).ceil() as u64);
    let base = context! {
        writer => format!("Written by mantile-opt {} for {} {}.", env!("CARGO_PKG_VERSION"), case.runtime, deployed.table.version),
        problem => format!("mantile-opt {}", case.flags),
        served_model => case.model_id.as_ref().unwrap_or(&case.model),
        name => resource_name(&case.model),
        title => format!("{} on {}", case.model, case.hardware),
        runtime_id => &deployed.launch.id,
        runtime_version => &deployed.table.version,
        vendor => image.map(|image| image.vendors.join(" ")),
        image => image.map(|image| image.image.clone()),
        resource => image.map(|image| image.resource.clone()),
        visible => image.and_then(|image| image.visible_devices.clone()),
        rdma => image.filter(|_| over_network(&workers)).map(|_| RDMA_RESOURCE),
        shared_memory => SHARED_MEMORY_GIB,
        health => &deployed.launch.health,
        port => deployed.launch.port,
        one_host => deployed.is_on_one_host(),
        devices_on_host => deployed.devices_per_host,
        hosts => hosts,
        lists_all => lists_all,
        kubernetes => kubernetes,
        llm_d => llm_d,
        sidecar => &deployed.launch.llm_d_sidecar,
        devices_used => deployed.devices(),
        transfer_ports => TRANSFER_PORTS,
        transfers => deployed.launch.transfer_port.is_some(),
        model_path => model_path,
        model_folder => MODEL_FOLDER,
        settings_folder => SETTINGS_FOLDER,
        requests => long.max(FEWEST_REQUESTS),
        warmups => case.concurrency.min(MOST_WARMUPS),
        dynamo => deployed.launch.dynamo.as_ref().filter(|dynamo| dynamo.image.is_some()).map(|dynamo| context! {
            framework => &dynamo.framework, image => &dynamo.image,
        }),
        dynamo_workers => Serde(dynamo_workers(deployed, &workers)),
        scaling => Serde(deployed.scaling()),
        in_flight => case.concurrency.div_ceil(workers[0].replicas),
        workers => Serde(&workers),
        router => Serde(&router),
        remote => deployed.remote.is_some(),
        instances => deployed.instances,
        host_file => deployed.launch.starter.as_ref().map(|starter| starter.file.clone()),
        reads_back => workers.iter().all(|worker| !worker.script.variables.iter().any(|name| name == "HOSTFILE")) && deployed.launch.request.is_none(),
        request => Serde(request(deployed)),
        ..Serde(case)
    };
    let render = |name: &str, more: TemplateValue| engine.file(name, context! { ..more, ..base.clone() });
    let benchmarks: Vec<&Benchmark> = deployed
        .launch
        .benchmarks
        .iter()
        .filter(|one| !one.loads_model || case.device_order.is_empty())
        .collect();
    let names: Vec<String> = benchmarks.iter().map(|one| one.name.clone()).collect();
    let mut files = Vec::new();
    let mut add = |path: &str, text: String| files.push(LaunchFile { path: path.to_owned(), text });
    add("README.md", render("markdown/readme", context! { benchmarks => names })?);
    for worker in &workers {
        add(&format!("{}.sh", worker.name), render("shell/script", context! { worker => Serde(worker) })?);
        if let Some(yaml) = &worker.script.yaml {
            add(&format!("{}.yaml", worker.name), yaml.clone());
        }
    }
    if let Some(router) = &router {
        add("router.sh", render("shell/router", context! {})?);
        router.script.files.iter().for_each(|file| add(&file.name, file.text.clone()));
    }
    if let Some(request) = &deployed.launch.request {
        let script = engine.text("the request", Language::Shell, &request.script, &base)?;
        add("place.sh", render("shell/request", context! { script => Serde(script) })?);
    }
    if deployed.is_on_one_host() {
        add("start.sh", render("shell/start", context! {})?);
    }
    if deployed.launch.images.is_empty() {
        // Such a runtime runs on a desktop, not in containers.
    } else if image.is_some() {
        if deployed.is_on_one_host() {
            add("compose.yaml", render("compose/compose", context! {})?);
        }
        if kubernetes {
            add("kubernetes.yaml", render("kubernetes/kubernetes", context! {})?);
            if deployed.scaling().is_some() {
                add("autoscaling.yaml", render("kubernetes/autoscaling", context! {})?);
            }
        }
        let graph = deployed.launch.dynamo.as_ref().is_some_and(|dynamo| dynamo.image.is_some());
        if graph && image.is_some_and(|image| image.resource == "nvidia.com/gpu") {
            add("dynamo.yaml", render("kubernetes/dynamo", context! {})?);
        }
        if llm_d {
            add("llm-d-values.yaml", render("kubernetes/llm-d", context! {})?);
            add("inference-pool.yaml", render("kubernetes/inference-pool", context! {})?);
        }
        if lists_all {
            add("slurm.sh", render("shell/slurm", context! {})?);
        }
    }
    for benchmark in benchmarks {
        let command = routers.command(benchmark, &base)?;
        let install = format!("install {}, see {}", benchmark.name, benchmark.source);
        let needs = ProgramCheck::of(benchmark.command.split_whitespace(), &install);
        let name = benchmark.name.split([' ', '.']).next().unwrap_or("benchmark").to_owned();
        let text = render(
            "shell/benchmark",
            context! { benchmark => &benchmark.name, needs => Serde(needs), command => Serde(command) },
        )?;
        add(&format!("benchmark-{name}.sh"), text);
    }
    Ok(files)
}

/// The keys of the request that places the model, where there is one.
fn request(deployed: &Deployed) -> Option<Map<String, Value>> {
    let first = deployed.workers.first().filter(|_| deployed.launch.request.is_some())?;
    Some(nested(&deployed.leader(first, Surroundings::Script).request))
}

/// The options of each worker with the flags of Dynamo's own module.
fn dynamo_workers(deployed: &Deployed, workers: &[WorkerText]) -> Vec<CommandText> {
    let Some(dynamo) = &deployed.launch.dynamo else { return vec![] };
    let adapted = |worker: &WorkerText| {
        let mut command = worker.container.clone();
        command.program_words.clone_from(&dynamo.program);
        command.options.retain_mut(|option| {
            let first = option.words.first().map(Word::shell).unwrap_or_default();
            let key = if first.starts_with('-') { first } else { "positional".to_owned() };
            match dynamo.flags.get(&key) {
                Some(named) if named.is_empty() => return false,
                Some(named) if key == "positional" => option.words.insert(0, Word::Text(named.clone())),
                Some(named) => {
                    let words = named.split(' ').map(|word| Word::Text(word.to_owned()));
                    option.words.splice(..1, words);
                }
                None => {}
            }
            true
        });
        if let Some(flag) = dynamo.flags.get("role").filter(|_| worker.role != "aggregated") {
            let words = [flag, &worker.role].map(|text| Word::Text(text.clone())).into();
            command.options.push(WrittenOption { words, why: "role of this worker".to_owned() });
        }
        // The operator sets addresses and ports itself.
        command.environment.retain(|one| matches!(one.word, Word::Text(_)));
        command
    };
    workers.iter().map(adapted).collect()
}
