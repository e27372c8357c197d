//! The files of a launch, from templates.

use minijinja::value::Serde;
use minijinja::{Environment, Value as TemplateValue, context};
use serde::Serialize;

use super::context::{CommandText, MODEL_FOLDER, SlotText, WorkerText, workers};
use super::deployment::Deployed;
use super::slots::TRANSFER_PORTS;
use crate::report::launch::LaunchFile;
use crate::spec::error::Error;
use crate::spec::launch::{Benchmark, Router};

/// The templates, by the names under which they include each other.
const TEMPLATES: [(&str, &str); 12] = [
    ("script", include_str!("templates/script.sh")),
    ("start", include_str!("templates/start.sh")),
    ("router", include_str!("templates/router.sh")),
    ("compose", include_str!("templates/compose.yaml")),
    ("pod", include_str!("templates/pod.yaml")),
    ("kubernetes", include_str!("templates/kubernetes.yaml")),
    ("dynamo", include_str!("templates/dynamo.yaml")),
    ("llm-d", include_str!("templates/llm-d.yaml")),
    ("inference-pool", include_str!("templates/inference-pool.yaml")),
    ("slurm", include_str!("templates/slurm.sh")),
    ("benchmark", include_str!("templates/benchmark.sh")),
    ("readme", include_str!("templates/readme.md")),
];

/// The problem that a launch answers.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The model's name.
    pub model: String,
    /// Its id of a hub, if it has one.
    pub model_id: Option<String>,
    /// The hardware's name.
    pub hardware: String,
    /// The flags that pose the problem.
    pub flags: String,
    /// The plan in one line.
    pub plan: String,
    /// The name of the runtime.
    pub runtime: String,
    /// The file that a user must provide where the model is one of their own.
    pub model_hint: String,
    /// Whether the model is one file.
    pub one_file: bool,
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
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
}

/// A router in its forms.
#[derive(Clone, Debug, Serialize)]
struct RouterText {
    package: String,
    port: u64,
    image: Option<String>,
    command: String,
    container: String,
    files: Vec<RouterFile>,
}

/// A file of a router, for processes on hosts and for containers.
#[derive(Clone, Debug, Serialize)]
struct RouterFile {
    name: String,
    text: String,
    container: String,
}

/// A fault of a template that the program or the catalogue brought.
fn fault(of: &str, error: &minijinja::Error) -> Error {
    Error::new("launch", format!("the template of {of}: {error:#}"), "a template that renders", "report this")
}

/// Renders the files.
///
/// # Errors
/// A template of the catalogue does not render.
pub fn files(deployed: &Deployed, case: &Case) -> Result<Vec<LaunchFile>, Error> {
    let mut environment = Environment::new();
    environment.add_filter("yaml", |value: TemplateValue| {
        serde_json::to_string(&value)
            .map_err(|error| minijinja::Error::new(minijinja::ErrorKind::BadSerialization, error.to_string()))
    });
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).map_err(|error| fault(name, &error))?;
    }
    let model_path =
        if case.one_file { format!("{MODEL_FOLDER}/model.gguf") } else { MODEL_FOLDER.to_owned() };
    let workers = workers(deployed, &model_path);
    let routers = Routers { environment: &environment, deployed, workers: &workers };
    let router = routers.text()?;
    let image = deployed.image;
    let hosts = workers.iter().flat_map(|worker| &worker.slots).flat_map(|slot| &slot.slot.hosts);
    let hosts = hosts.copied().max().unwrap_or(0) + 1;
    let requests = case.rate.map_or(case.concurrency * 10, |rate| (rate * 300.0).ceil() as u64).max(20);
    let base = context! {
        written_by => env!("CARGO_PKG_VERSION"),
        name => resource_name(&case.model),
        title => format!("{} on {}", case.model, case.hardware),
        runtime_id => &deployed.launch.id,
        runtime_version => &deployed.table.version,
        vendor => image.map(|image| image.vendors.join(" ")),
        image => image.map(|image| image.image.clone()),
        resource => image.map(|image| image.resource.clone()),
        visible => image.and_then(|image| image.visible_devices.clone()),
        health => &deployed.launch.health,
        port => deployed.launch.port,
        one_host => deployed.is_on_one_host(),
        devices_on_host => deployed.devices_per_host,
        hosts => hosts,
        sidecar => &deployed.launch.llm_d_sidecar,
        devices_used => deployed.devices(),
        transfer_ports => TRANSFER_PORTS,
        model_path => model_path,
        model_folder => MODEL_FOLDER,
        requests => requests,
        warmups => (case.concurrency / 4).clamp(1, 32),
        dynamo => deployed.launch.dynamo.as_ref().map(|dynamo| context! {
            framework => &dynamo.framework, image => &dynamo.image,
        }),
        dynamo_workers => Serde(dynamo_workers(deployed, &workers)),
        workers => Serde(&workers),
        router => Serde(&router),
        ..Serde(case)
    };
    let render = |name: &str, more: TemplateValue| {
        let template = environment.get_template(name).map_err(|error| fault(name, &error))?;
        let text = template.render(context! { ..more, ..base.clone() });
        text.map(|text| text + "\n").map_err(|error| fault(name, &error))
    };
    let mut files = Vec::new();
    let mut add = |path: &str, text: String| files.push(LaunchFile { path: path.to_owned(), text });
    add("README.md", render("readme", context! { benchmarks => benchmark_names(deployed) })?);
    for worker in &workers {
        add(&format!("{}.sh", worker.name), render("script", context! { worker => Serde(worker) })?);
        if let Some(yaml) = &worker.script.yaml {
            add(&format!("{}.yaml", worker.name), yaml.clone());
        }
    }
    if let Some(router) = &router {
        add("router.sh", render("router", context! {})?);
        router.files.iter().for_each(|file| add(&file.name, file.text.clone()));
    }
    if deployed.is_on_one_host() {
        add("start.sh", render("start", context! {})?);
    }
    if deployed.launch.images.is_empty() {
        // Such a runtime runs on a desktop, not in containers.
    } else if image.is_some() {
        if deployed.is_on_one_host() {
            add("compose.yaml", render("compose", context! {})?);
        }
        add("kubernetes.yaml", render("kubernetes", context! {})?);
        if deployed.launch.dynamo.is_some() && image.is_some_and(|image| image.resource == "nvidia.com/gpu") {
            add("dynamo.yaml", render("dynamo", context! {})?);
        }
        let hub = case.model_id.is_some() && workers.iter().all(|worker| worker.hosts == 1);
        if deployed.launch.llm_d_sidecar.is_some() && hub {
            add("llm-d-values.yaml", render("llm-d", context! {})?);
            add("inference-pool.yaml", render("inference-pool", context! {})?);
        }
        add("slurm.sh", render("slurm", context! {})?);
    }
    for benchmark in &deployed.launch.benchmarks {
        let command = routers.command(benchmark, &base)?;
        let name = benchmark.name.split([' ', '.']).next().unwrap_or("benchmark").to_owned();
        let text = render("benchmark", context! { benchmark => &benchmark.name, command => command })?;
        add(&format!("benchmark-{name}.sh"), text);
    }
    Ok(files)
}

fn benchmark_names(deployed: &Deployed) -> Vec<String> {
    deployed.launch.benchmarks.iter().map(|benchmark| benchmark.name.clone()).collect()
}

/// A name for resources: small letters, digits and dashes.
fn resource_name(model: &str) -> String {
    let short = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    let plain = short.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let name: String = plain.take(40).collect();
    let name = name.trim_matches('-').to_owned();
    if name.starts_with(|c: char| c.is_ascii_lowercase()) { name } else { format!("m-{name}") }
}

/// The options of each worker with the flags of Dynamo's own module.
fn dynamo_workers(deployed: &Deployed, workers: &[WorkerText]) -> Vec<CommandText> {
    let Some(dynamo) = &deployed.launch.dynamo else { return vec![] };
    let adapted = |worker: &WorkerText| {
        let mut command = worker.container.clone();
        command.program_words.clone_from(&dynamo.program);
        command.options.retain_mut(|option| {
            let flag = option.words.first().cloned().unwrap_or_default();
            let key = if flag.starts_with('-') { flag } else { "positional".to_owned() };
            match dynamo.flags.get(&key).map(String::as_str) {
                Some("") => return false,
                Some(named) if key == "positional" => option.words.insert(0, named.to_owned()),
                Some(named) => option.words[0] = named.to_owned(),
                None => {}
            }
            true
        });
        if let Some(flag) = dynamo.flags.get("role").filter(|_| worker.role != "aggregated") {
            let words = vec![flag.clone(), worker.role.clone()];
            let why = "role of this worker".to_owned();
            command.options.push(super::context::OptionText { shell: words.join(" "), words, why });
        }
        // The operator sets addresses and ports itself.
        command.environment.retain(|one| !one.words.contains("$("));
        command
    };
    workers.iter().map(adapted).collect()
}

/// Renders the templates of the catalogue.
struct Routers<'a> {
    environment: &'a Environment<'a>,
    deployed: &'a Deployed<'a>,
    workers: &'a [WorkerText],
}

impl Routers<'_> {
    fn render(&self, of: &str, template: &str, context: &TemplateValue) -> Result<String, Error> {
        self.environment.render_str(template, context).map_err(|error| fault(of, &error))
    }

    fn command(&self, benchmark: &Benchmark, context: &TemplateValue) -> Result<String, Error> {
        self.render(&benchmark.name, &benchmark.command, context)
    }

    /// The router, where more than one process answers.
    fn text(&self) -> Result<Option<RouterText>, Error> {
        let launch = self.deployed.launch;
        let disaggregated = self.workers.iter().any(|worker| worker.role == "prefill");
        let processes: u64 = self.workers.iter().map(|worker| worker.replicas).sum();
        let router = if disaggregated { &launch.disaggregated_router } else { &launch.router };
        let Some(router) = router.as_ref().filter(|_| processes > 1) else { return Ok(None) };
        let port = u64::from(launch.port);
        let here = |slot: &SlotText| match self.deployed.is_on_one_host() {
            true => format!("127.0.0.1:{}", slot.slot.port),
            false => format!("${{HOST_{}}}:{}", slot.slot.hosts[0], slot.slot.port),
        };
        let inside = |slot: &SlotText| format!("{}-{}:{}", slot.slot.worker, slot.slot.replica, launch.port);
        let host = self.context(("\"$HOST\"", "0.0.0.0"), ("\"$PORT\"", port), &here);
        let container = self.context(("0.0.0.0", "0.0.0.0"), (&port.to_string(), port), &inside);
        let install = router.install.as_ref().map_or(String::new(), |install| format!("{install} && "));
        let command = self.render(&router.package, &router.command, &container)?;
        let moved =
            command.replace("\"$PWD/", "\"/etc/mantile/").replace("-c disagg", "-c /etc/mantile/disagg");
        Ok(Some(RouterText {
            package: router.package.clone(),
            port,
            image: router.image.clone().or_else(|| self.deployed.image.map(|image| image.image.clone())),
            command: self.render(&router.package, &router.command, &host)?,
            container: format!("{install}exec {moved}"),
            files: self.router_files(router, (&host, &container))?,
        }))
    }

    fn router_files(
        &self,
        router: &Router,
        (host, container): (&TemplateValue, &TemplateValue),
    ) -> Result<Vec<RouterFile>, Error> {
        let rendered = router.files.iter().map(|(name, template)| {
            Ok(RouterFile {
                name: name.clone(),
                text: self.render(name, template, host)?,
                container: self.render(name, template, container)?,
            })
        });
        rendered.collect()
    }

    fn context(
        &self,
        (host, host_plain): (&str, &str),
        (port, port_number): (&str, u64),
        address: &dyn Fn(&SlotText) -> String,
    ) -> TemplateValue {
        let addresses = |role: &str| -> Vec<String> {
            let pools = self.workers.iter().filter(|worker| role.is_empty() || worker.role == role);
            pools.flat_map(|worker| &worker.slots).map(address).collect()
        };
        let urls = |role: &str| -> Vec<String> {
            addresses(role).iter().map(|address| format!("\"http://{address}\"")).collect()
        };
        let prefill = self.workers.iter().filter(|worker| worker.role == "prefill");
        let transfer: Vec<u64> =
            prefill.flat_map(|worker| &worker.slots).map(|slot| slot.slot.transfer_port).collect();
        context! {
            host => host, host_plain => host_plain, port => port, port_number => port_number,
            addresses => addresses(""), servers => urls(""),
            prefill => urls("prefill"), decode => urls("decode"),
            prefill_addresses => addresses("prefill"), decode_addresses => addresses("decode"),
            transfer_ports => transfer,
        }
    }
}
