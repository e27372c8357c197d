//! Benchmark files of other tools as runs. The tool is recognised by the content of its file, never by the file's name.
//!
//! Each importer reads keys that the tool's own writer has; `docs/imports.md` lists them with their sources. A figure
//! that a file does not state is absent, and what a prediction needs of it is listed next to the run.

mod aiperf;
mod documents;
mod fields;
mod guidellm;
mod inferencex;
pub(super) mod llama_bench;
mod llm_d;
mod mlperf;
mod samples;
mod serving;
mod simulators;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::spec::error::Error;
use crate::spec::limits::{ISL, OSL, ROWS};
use crate::spec::run::{RunOutcome, RunRecord};
use documents::{FileContent, content};
use fields::FileFields;

/// A tool whose files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BenchTool {
    VllmBench,
    SglangBench,
    AiPerf,
    GuideLlm,
    LlmD,
    LlamaBench,
    MlPerf,
    InferenceX,
    Blis,
    LlmServingSim,
}

impl BenchTool {
    pub const ALL: [BenchTool; 10] = [
        BenchTool::VllmBench,
        BenchTool::SglangBench,
        BenchTool::AiPerf,
        BenchTool::GuideLlm,
        BenchTool::LlmD,
        BenchTool::LlamaBench,
        BenchTool::MlPerf,
        BenchTool::InferenceX,
        BenchTool::Blis,
        BenchTool::LlmServingSim,
    ];

    /// Its name, as its users know it.
    pub fn name(self) -> &'static str {
        match self {
            BenchTool::VllmBench => "vllm bench serve",
            BenchTool::SglangBench => "SGLang bench_serving",
            BenchTool::AiPerf => "AIPerf or GenAI-Perf",
            BenchTool::GuideLlm => "GuideLLM",
            BenchTool::LlmD => "llm-d-benchmark",
            BenchTool::LlamaBench => "llama-bench",
            BenchTool::MlPerf => "MLPerf LoadGen",
            // Rows with the other name of this project state means, and lengths that are yet to be scaled.
            BenchTool::InferenceX => "process_result.py of SemiAnalysisAI",
            BenchTool::Blis => "BLIS",
            BenchTool::LlmServingSim => "LLMServingSim",
        }
    }
}

/// A fact that a prediction needs and a file may not state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnstatedFact {
    Model,
    Hardware,
    Degrees,
    Runtime,
    PromptLength,
    OutputLength,
    Load,
}

impl UnstatedFact {
    /// Its name in faults, and the flag that gives it.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            UnstatedFact::Model => ("model", "--model NAME"),
            UnstatedFact::Hardware => ("hardware", "--hardware [COUNTx]DEVICE"),
            UnstatedFact::Degrees => ("degrees", "--tp N"),
            UnstatedFact::Runtime => ("runtime", "--runtime NAME"),
            UnstatedFact::PromptLength => ("isl", "--isl TOKENS"),
            UnstatedFact::OutputLength => ("osl", "--osl TOKENS"),
            UnstatedFact::Load => ("concurrency", "--concurrency N"),
        }
    }
}

/// A run of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedRun {
    pub run: RunRecord,
    /// Facts that the file does not state.
    pub unstated: Vec<UnstatedFact>,
}

impl ImportedRun {
    /// A run with the facts that it does not state.
    pub fn of(run: RunRecord) -> ImportedRun {
        let unstated = unstated(&run);
        ImportedRun { run, unstated }
    }

    /// The run, where it states all that a prediction needs.
    ///
    /// # Errors
    /// Names the facts that are missing and the flags that give them.
    pub fn complete(&self) -> Result<&RunRecord, Error> {
        if self.unstated.is_empty() {
            return Ok(&self.run);
        }
        let (names, flags): (Vec<_>, Vec<_>) = self.unstated.iter().map(|fact| fact.words()).unzip();
        let tool = self.run.source.as_deref().unwrap_or("the benchmark");
        let found = format!("not stated in this file of {tool}");
        let expected = format!("{} of the run", names.join(", "));
        Err(Error::new(names[0], found, expected, format!("add {}", flags.join(", "))))
    }
}

/// The runs of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedFile {
    pub tool: BenchTool,
    pub runs: Vec<ImportedRun>,
}

/// Reads the runs of one file in the shape of its tool.
type RunReader = fn(&FileContent<'_>) -> Result<Vec<RunRecord>, Error>;

/// How a file of a tool is recognised, and its reader.
struct Importer {
    tool: BenchTool,
    recognises: fn(&FileContent<'_>) -> bool,
    read: RunReader,
}

/// The importers, those with the rarest keys first: several tools share keys.
const IMPORTERS: [Importer; 10] = [
    Importer { tool: BenchTool::LlmD, recognises: llm_d::recognises, read: llm_d::read },
    Importer { tool: BenchTool::GuideLlm, recognises: guidellm::recognises, read: guidellm::read },
    Importer { tool: BenchTool::InferenceX, recognises: inferencex::recognises, read: inferencex::read },
    Importer { tool: BenchTool::LlamaBench, recognises: llama_bench::recognises, read: llama_bench::read },
    Importer { tool: BenchTool::AiPerf, recognises: aiperf::recognises, read: aiperf::read },
    Importer { tool: BenchTool::Blis, recognises: simulators::is_blis, read: simulators::read_blis },
    Importer {
        tool: BenchTool::LlmServingSim,
        recognises: simulators::is_llmservingsim,
        read: simulators::read_llmservingsim,
    },
    Importer { tool: BenchTool::SglangBench, recognises: serving::is_sglang, read: serving::read_sglang },
    Importer { tool: BenchTool::VllmBench, recognises: serving::is_vllm, read: serving::read_vllm },
    Importer { tool: BenchTool::MlPerf, recognises: mlperf::recognises, read: mlperf::read },
];

/// The runs of a benchmark file; `name` is that of the file in faults.
///
/// # Errors
/// No tool writes such files, or a value in it is faulty: the fault names the key.
pub fn imported_runs(text: &str, name: &str) -> Result<ImportedFile, Error> {
    read_file(text).map_err(|fault| fault.in_file(name))
}

/// Whether a tool writes such files.
pub fn is_imported(text: &str) -> bool {
    content(text).is_ok_and(|content| importer(&content).is_some())
}

fn importer(content: &FileContent<'_>) -> Option<&'static Importer> {
    IMPORTERS.iter().find(|importer| (importer.recognises)(content))
}

fn read_file(text: &str) -> Result<ImportedFile, Error> {
    let content = content(text)?;
    let Importer { tool, read, .. } = importer(&content).ok_or_else(|| not_understood(&content))?;
    let runs = read(&content)?;
    ROWS.check_whole("runs", runs.len() as u64)?;
    let finished = runs.into_iter().map(|run| finished(*tool, run));
    Ok(ImportedFile { tool: *tool, runs: finished.collect::<Result<_, Error>>()? })
}

/// The fault of a file that no tool writes: what its beginning has.
fn not_understood(content: &FileContent<'_>) -> Error {
    let names: Vec<&str> = BenchTool::ALL.into_iter().map(BenchTool::name).collect();
    let expected = format!("a table of measurements, runs of `bench`, or a file of {}", names.join(", "));
    let fix = "give the file that the tool saved, as docs/imports.md lists them";
    Error::new("", content.beginning(), expected, fix)
}

/// A run with its source, and with an id that is the same whenever the file is read again.
fn finished(tool: BenchTool, mut run: RunRecord) -> Result<ImportedRun, Error> {
    for (key, limit, tokens) in
        [("isl", &ISL, run.context_tokens), ("osl", &OSL, run.output_tokens)].into_iter()
    {
        if tokens > 0 {
            limit.check_whole(key, tokens)?;
        }
    }
    if run.requests.as_ref().is_some_and(|requests| requests.answered == 0) {
        run.outcome = RunOutcome::Unanswered;
    }
    run.source.get_or_insert_with(|| tool.name().to_owned());
    run.run_id = String::new();
    // The record has all that the file states of the run, whatever the spaces between it.
    let stated = serde_json::to_string(&run).unwrap_or_default();
    run.run_id =
        Sha256::digest(stated.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Ok(ImportedRun::of(run))
}

fn unstated(run: &RunRecord) -> Vec<UnstatedFact> {
    let degrees = &run.parallelism;
    let some_degree = [degrees.tensor_parallel, degrees.pipeline_parallel, degrees.data_parallel]
        .iter()
        .any(Option::is_some);
    let placed =
        some_degree || run.plan.is_some() || run.devices == Some(1) || llama_bench::is_single_machine(run);
    let alone = llama_bench::is_timed_separately(run);
    [
        (UnstatedFact::Model, run.model_id.is_empty()),
        (UnstatedFact::Hardware, run.hardware_id.is_none()),
        (UnstatedFact::Degrees, !placed),
        (UnstatedFact::Runtime, run.runtime_id.is_empty()),
        (UnstatedFact::PromptLength, run.context_tokens == 0 && !alone),
        (UnstatedFact::OutputLength, run.output_tokens == 0 && !alone),
        (UnstatedFact::Load, run.concurrency.is_none() && run.rate_per_s.is_none()),
    ]
    .into_iter()
    .filter_map(|(fact, missing)| missing.then_some(fact))
    .collect()
}

/// Runtimes by the words that tools have for the server that they send to.
const BACKENDS: [(&str, &str); 8] = [
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("sgl", "sglang"),
    ("trt", "trtllm"),
    ("tensorrt", "trtllm"),
    ("llama.cpp", "llama.cpp"),
    ("llamacpp", "llama.cpp"),
    ("lmdeploy", "lmdeploy"),
];

/// The runtime of a backend: `sglang-oai-chat` is SGLang. An interface such as `openai` is that of many.
fn runtime_of(backend: &str) -> String {
    let small = backend.to_lowercase();
    let bare = small.strip_prefix("dynamo-").unwrap_or(&small);
    let known = BACKENDS.iter().find(|(start, _)| bare.starts_with(start));
    known.map(|(_, id)| (*id).to_owned()).unwrap_or_default()
}

/// The name of a model without folders: a run has no path.
fn model_of(stated: &str) -> String {
    let path = stated.trim().trim_end_matches('/');
    let is_id = path.matches('/').count() == 1 && !path.starts_with(['/', '.', '~']);
    if is_id { path } else { path.rsplit(['/', '\\']).next().unwrap_or(path) }.to_owned()
}

/// The objects of a file in JSON.
fn objects<'a>(content: &'a FileContent<'_>) -> impl Iterator<Item = FileFields<'a>> {
    let values: &[Value] = match content {
        FileContent::Json(values) => values,
        _ => &[],
    };
    let many = values.len() > 1;
    values.iter().enumerate().map(move |(number, value)| match many {
        true => FileFields::numbered(value, number),
        false => FileFields::of(value),
    })
}

/// Whether the first object of a file in JSON has all of these keys.
fn first_has(content: &FileContent<'_>, keys: &[&str]) -> bool {
    objects(content).next().is_some_and(|first| keys.iter().all(|key| first.has(key)))
}
