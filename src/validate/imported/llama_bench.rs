//! `llama-bench`: JSON, JSON Lines, CSV, and the Markdown table of a terminal.
//!
//! Keys: `test::get_fields`, `markdown_printer` and the other printers of `tools/llama-bench/llama-bench.cpp` of
//! ggml-org/llama.cpp (0104b15), and the examples of its README. A test computes a prompt (`pp`) or an answer (`tg`) of
//! one request; a pair of them with the same settings is a run with the speed of its prompt and that of its answer. A
//! test of both (`pp512+tg128`) has the time of a whole request.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::documents::FileContent;
use super::fields::FileFields;
use super::{first_has, objects};
use crate::spec::error::Error;
use crate::spec::run::{BenchMetrics, RunRecord};

/// Keys of every test.
const OF_A_TEST: [&str; 4] = ["build_commit", "n_prompt", "n_gen", "avg_ts"];
/// Keys that belong to a test: tests with the same of all others belong together.
const OWN: [&str; 10] = [
    "n_prompt",
    "n_gen",
    "test_time",
    "avg_ns",
    "stddev_ns",
    "avg_ts",
    "stddev_ts",
    "samples_ns",
    "samples_ts",
    "test",
];
/// The header of the Markdown table.
const HEADER: [&str; 3] = ["model", "test", "t/s"];

pub(super) fn recognises(content: &FileContent<'_>) -> bool {
    first_has(content, &OF_A_TEST) || content.has_columns(&OF_A_TEST) || !markdown(content.text()).is_empty()
}

/// Whether the prompt and the answer of a run were timed separately: it has the speed of each, and no time of a request.
pub fn is_timed_separately(run: &RunRecord) -> bool {
    let BenchMetrics { prefill_toks_sec, ttft_ms_p50, ttft_ms_mean, latency_ms_p50, latency_ms_mean, .. } =
        run.metrics;
    let timed = [ttft_ms_p50, ttft_ms_mean, latency_ms_p50, latency_ms_mean].iter().any(Option::is_some);
    let alone = run.concurrency == Some(1) && run.runtime_id == RUNTIME;
    alone && !timed && (prefill_toks_sec.is_some() || run.metrics.tpot_ms_mean.is_some())
}

/// Whether a run is of a program that has one machine to itself, whose devices need no degrees.
pub(super) fn is_single_machine(run: &RunRecord) -> bool {
    run.runtime_id == RUNTIME && run.concurrency == Some(1)
}

/// A layer count that means all layers.
const ALL_LAYERS: u64 = 99;

/// The part of a run's model that the host computes, as flags: `-ngl 20`, `--n-cpu-moe 30`. `None` where all is on the
/// devices.
pub fn host_part(run: &RunRecord) -> Option<String> {
    let setting = |name: &str| run.resolved_settings.get(name).and_then(Value::as_u64);
    let experts = setting("n_cpu_moe").filter(|layers| *layers > 0);
    let layers = setting("n_gpu_layers").filter(|layers| *layers < ALL_LAYERS);
    let experts = experts.map(|layers| format!("--n-cpu-moe {layers}"));
    experts.or(layers.map(|layers| format!("-ngl {layers}")))
}

const RUNTIME: &str = "llama.cpp";

pub(super) fn read(content: &FileContent<'_>) -> Result<Vec<RunRecord>, Error> {
    let shown = markdown(content.text());
    let tests: Vec<FileFields<'_>> = match content {
        FileContent::Json(_) => objects(content).collect(),
        FileContent::Csv(rows) => {
            rows.iter().enumerate().map(|(at, row)| FileFields::numbered(row, at)).collect()
        }
        FileContent::Text(_) => {
            shown.iter().enumerate().map(|(at, row)| FileFields::numbered(row, at)).collect()
        }
    };
    let mut kinds: Vec<(Value, Vec<Test>)> = Vec::new();
    let mut places = BTreeMap::<String, usize>::new();
    for fields in &tests {
        let (settings, test) = (settings(fields), Test::of(fields)?);
        let place = *places.entry(settings.to_string()).or_insert_with(|| {
            kinds.push((settings, vec![]));
            kinds.len() - 1
        });
        kinds[place].1.push(test);
    }
    let mut runs = Vec::new();
    for (settings, tests) in &kinds {
        runs.extend(paired(&common(&FileFields::of(settings))?, tests));
    }
    Ok(runs)
}

/// The settings that tests of one run have in common.
fn settings(fields: &FileFields<'_>) -> Value {
    let all = fields.value.as_object().into_iter().flatten();
    let shared = all.filter(|(key, _)| !OWN.contains(&key.as_str()));
    Value::Object(shared.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// A test: tokens of its prompt and of its answer, and the tokens of both per second.
#[derive(Clone, Copy, Debug)]
struct Test {
    prompt: u64,
    answer: u64,
    tokens_s: f64,
}

impl Test {
    fn of(fields: &FileFields<'_>) -> Result<Test, Error> {
        let [prompt, answer] =
            ["n_prompt", "n_gen"].map(|key| Ok::<_, Error>(fields.count(key)?.unwrap_or(0)));
        let tokens_s = fields.measured("avg_ts")?;
        let tokens_s = tokens_s.ok_or_else(|| fields.fault("avg_ts", &Value::Null, "tokens per second"))?;
        Ok(Test { prompt: prompt?, answer: answer?, tokens_s })
    }
}

/// The runs of tests with the same settings.
fn paired(common: &RunRecord, tests: &[Test]) -> Vec<RunRecord> {
    let of = |prompt: bool, answer: bool| {
        tests.iter().filter(move |test| (test.prompt > 0, test.answer > 0) == (prompt, answer)).copied()
    };
    let (prompts, answers): (Vec<Test>, Vec<Test>) = (of(true, false).collect(), of(false, true).collect());
    let number = prompts.len().max(answers.len());
    let pairs = (0..number).map(|at| {
        let mut run = common.clone();
        let cached = run.context_tokens;
        if let Some(prompt) = prompts.get(at) {
            run.context_tokens = cached.saturating_add(prompt.prompt);
            run.metrics.prefill_toks_sec = Some(prompt.tokens_s);
        }
        if let Some(answer) = answers.get(at) {
            run.output_tokens = answer.answer;
            run.metrics.tpot_ms_mean = Some(1e3 / answer.tokens_s);
            run.metrics.decode_toks_sec = Some(answer.tokens_s);
        }
        let share = cached as f64 / run.context_tokens.max(1) as f64;
        run.metrics.cached_share = (cached > 0).then_some(share);
        run
    });
    let whole = of(true, true).map(|test| {
        let mut run = common.clone();
        run.context_tokens = common.context_tokens.saturating_add(test.prompt);
        run.output_tokens = test.answer;
        run.metrics.latency_ms_mean =
            Some(1e3 * (test.prompt.saturating_add(test.answer)) as f64 / test.tokens_s);
        run
    });
    pairs.chain(whole).collect()
}

/// The run without its figures, by the settings of its tests. Its prompt is that of the cache, to which a test adds.
fn common(fields: &FileFields<'_>) -> Result<RunRecord, Error> {
    let named = fields.text("model_filename")?.map(file_name);
    let (model, of_file) = named.map(|name| (name.0.to_owned(), name.1.to_owned())).unwrap_or_default();
    let described = fields.text_of(&["model_type", "model"])?.and_then(described_format);
    let mut run = RunRecord {
        model_id: model,
        runtime_id: RUNTIME.to_owned(),
        runtime_version: fields.find("build_number").and_then(build),
        hardware_id: fields.text("gpu_info")?.map(|names| first_device(names).to_owned()),
        quant: Some(of_file).filter(|format| !format.is_empty()).or(described),
        concurrency: Some(1),
        context_tokens: fields.count("n_depth")?.unwrap_or(0),
        ..RunRecord::default()
    };
    let [keys, values] = ["type_k", "type_v"].map(|key| fields.text(key));
    let (keys, values) = (keys?, values?);
    run.kv_format = keys.filter(|_| keys == values).map(cache_format);
    run.devices = fields.text("gpu_info")?.map(|names| names.split(", ").count() as u64);
    if let Some(cpu) = fields.text("cpu_info")? {
        run.env.insert("cpu".to_owned(), json!(cpu));
        // Without a card the processor computes.
        run.hardware_id.get_or_insert_with(|| cpu.to_owned());
    }
    for (key, of) in [("n_gpu_layers", "n_gpu_layers"), ("ngl", "n_gpu_layers"), ("n_cpu_moe", "n_cpu_moe")] {
        // -1 is all layers, as by default.
        let stated =
            fields.find(key).and_then(|value| value.to_string().trim_matches('"').parse::<u64>().ok());
        if let Some(layers) = stated {
            run.resolved_settings.insert(of.to_owned(), json!(layers));
        }
    }
    Ok(run)
}

/// A build number, as a version: `b5163`.
fn build(value: &Value) -> Option<String> {
    let number = value.to_string().trim_matches('"').parse::<u64>().ok()?;
    Some(format!("b{number}"))
}

/// The first of equal devices. Names of unlike ones remain whole: no catalogue has such a device.
fn first_device(names: &str) -> &str {
    let first = names.split(", ").next().unwrap_or(names);
    if names.split(", ").all(|name| name == first) { first } else { names }
}

/// Model and weight format of a file: `Qwen2.5-7B-Instruct-Q4_K_M.gguf`. A file in parts counts without their number.
fn file_name(path: &str) -> (&str, &str) {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let name = name.strip_suffix(".gguf").unwrap_or(name);
    let whole = name.split_once("-00001-of-").map_or(name, |(whole, _)| whole);
    let split = whole.rsplit_once('-').or_else(|| whole.rsplit_once('.')).filter(|(_, end)| is_format(end));
    let (model, format) = split.unwrap_or((whole, ""));
    // Formats of one publisher have letters of their own before: `UD-Q4_K_XL`.
    (model.strip_suffix("-UD").unwrap_or(model), format)
}

/// Beginnings of the names of weight formats.
const FORMATS: [&str; 6] = ["q", "iq", "tq", "mxfp", "bf", "f"];

fn is_format(word: &str) -> bool {
    let small = word.to_lowercase();
    let numbered = |start: &&str| {
        small.strip_prefix(*start).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    FORMATS.iter().any(numbered)
}

/// The weight format in the description of a model: `qwen2 7B Q4_K - Medium` has `Q4_K_M`.
fn described_format(description: &str) -> Option<String> {
    let format = description.split_whitespace().find(|word| is_format(word))?;
    let size = description.rsplit_once(" - ").and_then(|(_, size)| size.chars().next());
    Some(match size.filter(|letter| ['S', 'M', 'L'].contains(letter) && format.ends_with("_K")) {
        Some(letter) => format!("{format}_{letter}"),
        None => format.to_owned(),
    })
}

/// The format of keys and values, as the catalogue names it: `f16` is `fp16`, `q8_0` is `gguf-q8_0`.
fn cache_format(name: &str) -> String {
    match name {
        "f16" => "fp16".to_owned(),
        other if other.starts_with(['q', 'i']) => format!("gguf-{other}"),
        other => other.to_owned(),
    }
}

/// The rows of Markdown tables in a text, with the keys of JSON: `pp512 @ d4096` has a prompt of 512 at a depth of 4,096.
fn markdown(text: &str) -> Vec<Value> {
    let cells = |line: &str| -> Option<Vec<String>> {
        let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
    };
    let mut header: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    let build = text.lines().find_map(|line| line.trim().strip_prefix("build: "));
    let build = build.and_then(|line| line.rsplit_once('(')?.1.strip_suffix(')').map(str::to_owned));
    for line in text.lines() {
        let Some(cells) = cells(line) else { continue };
        if HEADER.iter().all(|name| cells.iter().any(|cell| cell == name)) {
            header = cells;
        } else if cells.len() == header.len() && !cells.iter().all(|cell| cell.contains("---")) {
            let mut row: Map<String, Value> =
                header.iter().cloned().zip(cells.into_iter().map(Value::String)).collect();
            if let Some(number) = &build {
                row.insert("build_number".to_owned(), json!(number));
            }
            rows.extend(tested(row));
        }
    }
    rows
}

/// A row of the Markdown table with its test as numbers; `None` where it has none.
fn tested(mut row: Map<String, Value>) -> Option<Value> {
    let test = row.get("test")?.as_str()?.to_owned();
    let speed = row.remove("t/s")?;
    let speed = speed.as_str()?.split('±').next()?.trim().to_owned();
    let (work, depth) = test.split_once('@').unwrap_or((&test, ""));
    let number = |text: &str, start: &str| text.trim().strip_prefix(start).map(|rest| rest.trim().to_owned());
    for part in work.split('+') {
        let (key, tokens) = number(part, "pp")
            .map(|tokens| ("n_prompt", tokens))
            .or_else(|| number(part, "tg").map(|tokens| ("n_gen", tokens)))?;
        row.insert(key.to_owned(), Value::String(tokens));
    }
    if let Some(tokens) = number(depth, "d") {
        row.insert("n_depth".to_owned(), Value::String(tokens));
    }
    row.insert("avg_ts".to_owned(), Value::String(speed));
    Some(Value::Object(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_descriptions_name_the_format() {
        for (path, model, format) in [
            ("models/Qwen2.5-7B-Instruct-Q4_K_M.gguf", "Qwen2.5-7B-Instruct", "Q4_K_M"),
            ("C:\\m\\gpt-oss-120b-mxfp4-00001-of-00003.gguf", "gpt-oss-120b", "mxfp4"),
            ("Qwen3-30B-A3B-UD-Q4_K_XL.gguf", "Qwen3-30B-A3B", "Q4_K_XL"),
            ("x/model.gguf", "model", ""),
        ] {
            assert_eq!(file_name(path), (model, format));
        }
        assert_eq!(described_format("qwen2 7B Q4_K - Medium").as_deref(), Some("Q4_K_M"));
        assert_eq!(described_format("llama 7B mostly Q4_0").as_deref(), Some("Q4_0"));
        assert_eq!(described_format("llama 7B"), None);
        assert_eq!((cache_format("f16"), cache_format("q8_0")), ("fp16".to_owned(), "gguf-q8_0".to_owned()));
    }

    #[test]
    fn a_row_of_the_table_is_a_test() {
        let text = "x\n| model | ngl | test | t/s |\n| --- | --: | ---: | ---: |\n\
                    | qwen2 7B Q4_K - Medium | 99 | pp512 @ d4096 | 6425.91 ± 18.88 |\n\nbuild: 8cf427ff (5163)\n";
        let rows = markdown(text);
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((&row["n_prompt"], &row["n_depth"]), (&json!("512"), &json!("4096")));
        assert_eq!((&row["avg_ts"], &row["build_number"]), (&json!("6425.91"), &json!("5163")));
    }
}
