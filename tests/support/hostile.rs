//! Doors through which text from outside comes in: each takes any text at all and must end, with an answer or a fault,
//! never a panic, and with no number that is not finite. The tests and the fuzz targets go through the same doors.

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::Parser;
use mantile::admission::RequestLimits;
use mantile::cli::Cli;
use mantile::cli::output::OutputArgs;
use mantile::cli::verify::Verify;
use mantile::graph::inspect::Inspection;
use mantile::graph::model::ModelGraph;
use mantile::launch::settings_file::NamedFiles;
use mantile::mcp::McpServer;
use mantile::quantity::unit::{humanize, parse};
use mantile::report::answer::estimate_result;
use mantile::report::format::Format;
use mantile::report::rows::csv;
use mantile::report::text;
use mantile::request::command::{GivenCommand, of_command};
use mantile::request::inspect::{InspectRequest, inspect};
use mantile::request::{UNCONTROLLED, build_candidate, entry as request_entry, inputs, permalink, validate};
use mantile::spec::cluster::{Cluster, System};
use mantile::spec::defaults::Defaults;
use mantile::spec::deployment::Deployment;
use mantile::spec::device::Device;
use mantile::spec::error::Error;
use mantile::spec::figure::{self, Bytes, Dollars, FlopRate, Ratio, Seconds, Watts};
use mantile::spec::fleet::{FleetFile, TracedRequest, buckets};
use mantile::spec::format::NumberFormat;
use mantile::spec::image::ImageSize;
use mantile::spec::link::Link;
use mantile::spec::model::ModelConfig;
use mantile::spec::model::file::ModelFile;
use mantile::spec::model::gguf::GgufHeader;
use mantile::spec::objective::{Metric, Objective, Workload};
use mantile::spec::ranges;
use mantile::spec::rig::Rig;
use mantile::spec::run::RunRecord;
use mantile::spec::runtime::Runtime;
use mantile::spec::scenario::Scenario;
use mantile::spec::text::from_json;
use mantile::store::catalog::{Catalog, is_path};
use mantile::store::hardware::Shorthand;
use mantile::store::kind::Entry;
use mantile::store::model::ResolvedModel;
use mantile::store::resolved_scenario::ResolvedScenario;
use mantile::store::rig::ResolvedRig;
use mantile::validate::imported::imported_runs;
use mantile::validate::run_cells::RunCells;
use serde_json::Value;

/// A door by its name.
pub type Door = (&'static str, fn(&str));

/// Every door.
pub const DOORS: [Door; 15] = [
    ("configuration", configuration),
    ("hardware", hardware),
    ("rig", rig),
    ("fleet", fleet),
    ("table", table),
    ("import", imported),
    ("answer", answer),
    ("units", units),
    ("flags", flags),
    ("gguf", gguf),
    ("inspect", inspected),
    ("launch", launched),
    ("emitted", emitted),
    ("message", message),
    ("permalink", linked),
];

/// The model that hardware is tried with: small, so that what takes long is the text's doing.
pub const MODEL: &str = "Qwen3-0.6B";

/// The catalogue, without anybody's own files.
pub fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(Catalog::default)
}

fn small() -> (ResolvedModel, ModelGraph) {
    static SMALL: OnceLock<(ResolvedModel, ModelGraph)> = OnceLock::new();
    SMALL.get_or_init(|| catalog().built(MODEL).unwrap()).clone()
}

/// Fails where a text tells a number that is none.
pub fn finite(text: &str) {
    let word = |word: &str| word.eq_ignore_ascii_case("nan") || word == "inf" || word == "∞";
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '∞'));
    assert!(!words.any(word), "a number that is not finite:\n{text}");
}

/// A model's configuration, alone, as a catalogue file, and as what lies beside one.
pub fn configuration(text: &str) {
    if let Ok(config) = ModelConfig::parse(text)
        && let Ok(graph) = ModelGraph::build(&config)
    {
        let inspection = Inspection::of(&graph);
        finite(&serde_json::to_string(&inspection.parameters).unwrap());
    }
    let _ = from_json::<ModelFile>(text, "a model");
    let _ = ModelConfig::parse_with_quant(r#"{"model_type": "llama"}"#, Some(text));
}

fn entry<T: Entry>(text: &str) -> Option<T> {
    from_json::<T>(text, "an entry").ok().filter(|entry| entry.check().is_ok())
}

/// A file of the hardware, of an objective or of a workload. What is accepted is deployed on.
pub fn hardware(text: &str) {
    let _ = (entry::<NumberFormat>(text), entry::<Objective>(text), entry::<Workload>(text));
    let _ =
        (entry::<Link>(text), from_json::<Scenario>(text, "a scenario").map(|requested| requested.check()));
    let _ = from_json::<Defaults>(text, "defaults").map(|defaults| ranges::defaults(&defaults));
    if let Some(runtime) = entry::<Runtime>(text)
        && let Ok(resolved) = problem(catalog().hardware("1xh100").unwrap(), &Scenario::default())
    {
        deployed(&ResolvedScenario { runtime: runtime.into(), ..resolved });
    }
    if let Some(device) = entry::<Device>(text)
        && let Ok(cluster) = Cluster::build(&alone(&device), device.clone(), 1, 1)
        && let Ok(resolved) = problem(cluster, &Scenario::default())
    {
        deployed(&resolved);
    }
    if let Some(system) = entry::<System>(text)
        && let Ok(device) = catalog().device("h100")
        && let Ok(cluster) = Cluster::build(&system, device, system.nodes, system.devices_per_node)
        && let Ok(resolved) = problem(cluster, &Scenario::default())
    {
        deployed(&resolved);
    }
}

fn alone(device: &Device) -> System {
    let text = r#"{"id": "s", "name": "s", "device": "d", "devices_per_node": 1, "nodes": 1, "tiers": []}"#;
    System { device: device.id.clone(), ..from_json(text, "a system").unwrap() }
}

fn problem(cluster: Cluster, requested: &Scenario) -> Result<ResolvedScenario, Error> {
    ResolvedScenario::placed(catalog(), requested, small(), cluster)
}

/// One deployment, told in every way.
fn deployed(resolved: &ResolvedScenario) {
    let Ok(problem) = resolved.problem() else { return };
    let Ok(plan) = resolved.deployment.clone().unwrap_or_default().text() else { return };
    let Ok(candidate) = build_candidate::candidate(&problem, &plan) else { return };
    let estimated = estimate_result(&problem, inputs::report_inputs(resolved, &problem), &candidate);
    finite(&text::estimate(&estimated));
    finite(&csv(std::slice::from_ref(&estimated.candidate), &estimated.question));
}

/// A rig, resolved with the small model.
pub fn rig(text: &str) {
    let Some(rig) = entry::<Rig>(text) else { return };
    let requested = Scenario { model: Some(MODEL.into()), ..Scenario::default() };
    let _ = ResolvedRig::resolve(catalog(), &requested, rig, 1);
}

/// A fleet's file, or its trace.
pub fn fleet(text: &str) {
    if let Ok(file) = from_json::<FleetFile>(text, "a fleet")
        && file.check().is_ok()
    {
        // Each is resolved by itself: what a fleet of them takes to search is no matter of the text.
        for offer in file.offers.iter().take(4).filter(|offer| !is_path(&offer.hardware)) {
            let _ = catalog().hardware(&offer.hardware);
        }
    }
    let mut reader = ::csv::ReaderBuilder::new().trim(::csv::Trim::All).from_reader(text.as_bytes());
    let trace: Result<Vec<TracedRequest>, _> = reader.deserialize().collect();
    if let Ok(found) = trace.map_err(|_| ()).and_then(|trace| buckets(&trace).map_err(|_| ())) {
        assert!(found.iter().all(|bucket| bucket.rate.is_finite() && bucket.rate > 0.0), "{found:?}");
    }
}

/// A table of measurements; its first rows are predicted.
pub fn table(text: &str) {
    let Ok(mut rows) = validate::table::rows(text) else { return };
    rows.truncate(2);
    rows.retain(|row| !is_path(&row.model) && !is_path(&row.hardware) && !row.model.contains(':'));
    for held in validate::predict::predict(catalog(), rows) {
        if let Ok(made) = held.predicted {
            assert!(made.ttft_ms.is_finite() && made.tpot_ms.is_finite(), "{:?}", held.measured);
        }
    }
}

/// A benchmark file of another tool: its runs are records that are read back, and rows.
pub fn imported(text: &str) {
    if let Ok(found) = imported_runs(text, "file") {
        for one in found.runs {
            let line = serde_json::to_string(&one.run).unwrap();
            assert_eq!(from_json::<RunRecord>(&line, "a run").as_ref(), Ok(&one.run));
            let _ = RunCells::of(&one.run).record().runs();
        }
    }
    table(text);
}

/// Keys of an answer that hold what was asked; of a fleet also the whole problem.
pub fn input_keys(answer: &Value) -> &'static [&'static str] {
    let fleet = answer.get("routes").is_some();
    if fleet { &["scenario", "question"] } else { &["scenario", "sought"] }
}

/// A saved answer. It is verified where it asks what an answer of [`answers`] asked; else its question is resolved.
pub fn answer(text: &str) {
    let Ok(saved) = from_json::<Value>(text, "an answer") else { return };
    let known =
        answers().iter().any(|answer| input_keys(answer).iter().all(|key| answer[*key] == saved[*key]));
    if !known {
        let Ok(requested) = serde_json::from_value::<Scenario>(saved["scenario"].clone()) else { return };
        let names = [
            &requested.model,
            &requested.hardware,
            &requested.objective,
            &requested.workload,
            &requested.runtime,
            &requested.draft,
        ];
        let from_afar = |name: &&Option<String>| name.as_ref().is_some_and(|n| is_path(n) || n.contains(':'));
        if !names.iter().any(from_afar) {
            let _ = ResolvedScenario::resolve(catalog(), &requested).and_then(|resolved| resolved.problem());
        }
        return;
    }
    let path = scratch().join("saved.json");
    std::fs::write(&path, text).unwrap();
    let output = OutputArgs {
        format: Some(Format::Table),
        out: Some(scratch().join("checks.txt")),
        ..OutputArgs::default()
    };
    // What is saved is told as it is saved, whatever word stands where a number should.
    let _ = Verify { file: path, sample: 5, seed: 1, output }.run(catalog());
}

/// A folder of this thread's own, on disk for as long as the process runs.
fn scratch() -> PathBuf {
    let own = format!("mantile-hostile-{}-{:?}", std::process::id(), std::thread::current().id());
    let folder = std::env::temp_dir().join(own);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Sound answers of the commands that save them, small ones.
pub fn answers() -> &'static [Value] {
    static ANSWERS: OnceLock<Vec<Value>> = OnceLock::new();
    ANSWERS.get_or_init(|| {
        let path = scratch().join("answer.json");
        let requested: [&[&str]; 2] = [
            &["--model", MODEL, "--hardware", "1xrtx-4090", "--pareto", "tpot"],
            &[
                "place", "--model", MODEL, "--device", "rtx-4090", "--device", "rtx-3090", "--link",
                "pcie4x16",
            ],
        ];
        requested
            .into_iter()
            .map(|flags| {
                let out = ["--format", "json", "--out", path.to_str().unwrap()];
                let line = [&["mantile-opt"], flags, &out].concat();
                let cli = Cli::try_parse_from(line).unwrap();
                match cli.command {
                    Some(mantile::cli::subcommand::Command::Place(place)) => place.run(catalog()).map(|_| ()),
                    _ => cli.optimize.run(catalog()).map(|_| ()),
                }
                .unwrap();
                serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
            })
            .collect()
    })
}

/// Text of a flag: a number with its unit, an amount, a shorthand, a name.
pub fn units(text: &str) {
    if let Ok((value, unit)) = parse(text) {
        assert!(value.is_finite(), "{text}");
        finite(&humanize(value, unit));
    }
    let read = [
        figure::read::<Bytes>(text),
        figure::read::<FlopRate>(text),
        figure::read::<Seconds>(text),
        figure::read::<Watts>(text),
        figure::read::<Dollars>(text),
        figure::read::<Ratio>(text),
    ];
    assert!(read.iter().flatten().all(|value| value.is_finite() && *value >= 0.0), "{text}");
    let _ = (text.parse::<ImageSize>(), Metric::parse(text), Shorthand::parse(text));
    if let Ok(limits) =
        (Scenario { ttft: Some(text.into()), ..Scenario::default() }).limits(Default::default())
    {
        assert!(limits.ttft.is_none_or(|time| time > 0.0 && time.is_finite()), "{text}");
    }
    let line = format!("mantile-opt --concurrency={text} --rate={text} --image-size={text} --ttft={text}");
    let _ = Cli::try_parse_from(line.split(' '));
    // A count is what makes a shorthand of it; anything else is a name, which takes a look through the catalogue.
    if text.starts_with(|c: char| c.is_ascii_digit()) && !is_path(text) {
        let _ = catalog().hardware(text);
    }
}

/// Words of a command line, one a line: they are read as flags of some command.
pub fn flags(text: &str) {
    let words = ["mantile-opt"].into_iter().chain(text.lines()).map(std::ffi::OsString::from);
    let _ = mantile::cli::parsed(&words.collect::<Vec<_>>());
}

/// The header of a GGUF file, one byte a character.
pub fn gguf(text: &str) {
    let bytes: Vec<u8> = text.chars().map(|c| c as u32 as u8).collect();
    if let Ok(header) = GgufHeader::read(bytes.as_slice()) {
        let _ = header.tensors.iter().map(|tensor| tensor.elements()).collect::<Vec<_>>();
        let path = scratch().join("model.gguf");
        std::fs::write(&path, &bytes).unwrap();
        let _ = catalog().built(path.to_str().unwrap());
    }
}

/// A plan in one line, as `inspect` shows it.
pub fn inspected(text: &str) {
    let request = InspectRequest {
        model: MODEL.into(),
        hardware: Some("4xl40s".into()),
        deployment: Some(Deployment { plan: Some(text.into()), ..Deployment::default() }),
        ..InspectRequest::default()
    };
    let _ = inspect(catalog(), &request, &UNCONTROLLED);
}

/// Names in the files of a launch: lines are its weight format, its runtime and files that come with it.
pub fn emitted(text: &str) {
    let mut lines = text.lines();
    let (format, runtime) = (lines.next(), lines.next());
    let files: serde_json::Map<String, Value> =
        lines.take(4).map(|line| (line.to_owned(), Value::from(line))).collect();
    let body = serde_json::json!({
        "scenario": {
            "model": MODEL, "hardware": "2xl40s", "deployment": {"plan": "1 x tp1 @1"},
            "weight_format": format, "runtime": runtime,
        },
        "files": files,
    });
    if let Ok(launch) = (request_entry("deploy").unwrap().answer)(catalog(), &body, &UNCONTROLLED) {
        finite(&launch.to_string());
    }
}

/// A line from a client of the Model Context Protocol. The server answers the next one.
pub fn message(text: &str) {
    const BEGIN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    const BEGUN: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    const LAST: &str = r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#;
    let time = Some(std::time::Duration::ZERO);
    let limits = RequestLimits { message_bytes: 1 << 20, running: 1, waiting: 0, time };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // What a request takes is the matter of other doors.
    let line = text.replace(['\n', '\r'], " ").replace("tools/call", "tools/list");
    let sent = format!("{BEGIN}\n{BEGUN}\n{line}\n{LAST}\n");
    let answered = runtime.block_on(async {
        let (mut near, far) = tokio::io::duplex(1 << 20);
        let server = McpServer::new(catalog().clone(), limits).unwrap();
        let served = tokio::spawn(server.serve_over(tokio::io::split(far)));
        tokio::io::AsyncWriteExt::write_all(&mut near, sent.as_bytes()).await.unwrap();
        let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(near));
        let mut found = false;
        while !found && let Ok(Some(line)) = lines.next_line().await {
            found = line.contains(r#""id":"last""#);
        }
        served.abort();
        found
    });
    assert!(answered, "no answer after {line}");
}

/// The link of a question in JSON.
pub fn link_of(question: &str) -> String {
    permalink::encode(&from_json(question, "a question").unwrap()).unwrap()
}

/// A link, and the question that one holds.
pub fn linked(text: &str) {
    let _ = permalink::decode(text);
    if let Ok(question) = from_json::<permalink::LinkedQuestion>(text, "a question")
        && let Ok(link) = permalink::encode(&question)
    {
        assert_eq!(permalink::decode(&link).unwrap(), question);
    }
}

/// A launch command, a script that `--emit` wrote, or a manifest. What is read is estimated.
pub fn launched(text: &str) {
    let given =
        Scenario { model: Some(MODEL.into()), hardware: Some("2xl40s".into()), ..Scenario::default() };
    if let Ok(read) = of_command(catalog(), &GivenCommand::of(text, &NamedFiles::new()), &given) {
        finite(&mantile::report::text::estimate(&read));
    }
}
