//! One row of a measurement table: deployment, load and results, with names as published.

use std::collections::BTreeMap;

use super::figures::{Figures, Latency, ReadFigures, RunFigure, RunSize, Statistic};
use super::home_run::READ_OF_HOME;
use super::measured_traffic::MeasuredTraffic;
use super::recipes::{PublishedRecipe, RecipeFlags, RecipeRow};
use super::replayed::{READ_OF_POINTS, READ_OF_SESSIONS, TableLayout};
use super::run_kind::RunKind;
use crate::spec::degree::Degree;
use crate::spec::error::Error;
use crate::spec::host_part::HostPart;
use crate::spec::limits::{
    CONCURRENCY, DEGREE, DEVICES, DRAFT_TOKENS, ISL, Limit, MEASURED, MEMORY_SHARE, MILLISECONDS, OSL,
};

/// Degrees of one pool; an empty cell is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredDegrees {
    /// Whether the table gives any of them.
    pub given: bool,
    /// Replicas or workers, where given.
    pub workers: Option<u64>,
    /// Attention TP degree.
    pub tp: u64,
    pub pp: u64,
    /// Attention DP degree.
    pub dp: u64,
    pub ep: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredMetrics {
    /// TTFT in milliseconds.
    pub ttft_ms: Option<f64>,
    /// TPOT (without the first token) in milliseconds.
    pub tpot_ms: Option<f64>,
    /// End-to-end time in milliseconds, of runs under a rate.
    pub e2e_ms: Option<f64>,
    /// 99th percentile of TTFT in milliseconds, of runs under a rate.
    pub ttft_p99_ms: Option<f64>,
    /// Whether TTFT, TPOT and end-to-end time are means over the requests; else medians.
    pub means: bool,
    /// Peak memory of the only device in bytes, KV cache included.
    pub memory_bytes: Option<f64>,
    /// Share of the prompt tokens that were in the cache of the devices.
    pub hit_rate: Option<f64>,
    /// Further figures.
    pub more: Figures,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredRow {
    pub id: String,
    /// Hugging Face id of the model.
    pub model: String,
    pub hardware: String,
    /// Total number of devices, where given.
    pub devices: Option<u64>,
    pub runtime: String,
    /// Runtime version, where given.
    pub version: String,
    pub weight_format: String,
    /// KV format, where given.
    pub kv_format: String,
    /// `agg`, `disagg`, or the mode of a single-stream run.
    pub mode: String,
    /// Pools: one, or prefill and decode.
    pub pools: Vec<MeasuredDegrees>,
    /// Whether all requests have the same lengths.
    pub equal_lengths: bool,
    /// Mean ISL in tokens.
    pub isl: u64,
    /// Mean OSL in tokens.
    pub osl: u64,
    /// Tokens in the KV cache before the run.
    pub depth: u64,
    /// Concurrency of the whole deployment, where given; 1 for a single stream.
    pub concurrency: Option<u64>,
    /// Its traffic, where it is simulated.
    pub traffic: Option<MeasuredTraffic>,
    pub speculative: Option<String>,
    /// Tokens that a step yields with it, its own included, where the row is simulated and states them.
    pub accepted: Option<f64>,
    /// The setting of a published point.
    pub arm: Option<String>,
    /// Columns, or the metric, with figures of the run that are not scored against a prediction.
    pub unscored: Vec<String>,
    /// Prefill and decode were timed separately: all prefill first, then all decode.
    pub timed_separately: bool,
    /// Requests of each client, where the TTFT is a mean over a run that starts with all clients at once.
    pub from_start: Option<u64>,
    /// Launch flags of its server, by the recipe of its publisher.
    pub flags: RecipeFlags,
    /// How its prediction is made.
    pub kind: RunKind,
    /// Why its deployment has no prediction, where the row states something that is not modelled.
    pub refused: Option<String>,
    /// The part of the model that the processors of its host compute.
    pub host_part: Option<HostPart>,
    /// That host, where it is stated: its memory, its processor or both.
    pub host: Option<String>,
    /// Why the prompt tokens that its cache had are not known; its deployment is.
    pub unknown_cache: Option<String>,
    /// Fraction of the memory of a device that its server uses, of a start-up that states it.
    pub memory_share: Option<f64>,
    /// Inputs that the row does not state, with the values that are taken for them.
    pub assumed: Vec<String>,
    /// The class of its machine, of runs at home.
    pub class: String,
    /// Publisher of the row.
    pub source: String,
    /// Why the row may be wrong; empty for trusted rows.
    pub warning: String,
    pub outcome: MeasuredMetrics,
}

impl MeasuredRow {
    /// Model, hardware, runtime and weight format: rows of one cell differ only in load and degrees.
    pub fn cell(&self) -> [&str; 4] {
        [&self.model, &self.hardware, &self.runtime, &self.weight_format]
    }

    /// Whether its throughput is that of its answers, without the time of its prompts.
    pub fn has_answers_alone(&self) -> bool {
        let whole = ["single-stream", "fixed-batch"];
        self.timed_separately && !whole.iter().any(|mode| self.mode.contains(mode))
    }

    /// Whether a fit may take it: a deployment under a known load, without a draft, that is no session or published point.
    pub fn is_for_fits(&self) -> bool {
        let plain = self.kind == RunKind::Served && self.speculative.is_none();
        plain && self.unknown_cache.is_none() && !self.is_replayed()
    }
}

/// Sources whose ISL and OSL are drawn from 80 to 100 % of the nominal length.
const DRAWN: [&str; 2] = ["InferenceX", "InferenceMAX"];
/// The source whose TTFT is a mean: than the medians of the same deployments (InferenceMAX) it is longer by a tenth of
/// the first wave.
const MEANS: &str = "InferenceX";
/// Requests of each client in the benchmarks of InferenceX: <https://github.com/SemiAnalysisAI/InferenceX>
/// (benchmarks/benchmark_lib.sh, num_prompts).
pub const REQUESTS_PER_CLIENT: u64 = 10;
/// Drawn lengths, least and most, as fractions of the nominal length.
pub const DRAWN_LENGTHS: [f64; 2] = [0.8, 1.0];
/// Mean of these lengths, as a fraction of the nominal length.
pub const MEAN_OF_DRAWN: f64 = (DRAWN_LENGTHS[0] + DRAWN_LENGTHS[1]) / 2.0;
/// Modes of a run per row in which prompts and answers are timed separately.
const ALONE: [&str; 3] = ["llama-bench", "single stream", "decode-only"];
/// Output tokens of a run where the table does not give them.
const TOKENS: u64 = 128;

/// Columns that define a run, and those that are scored.
const READ: &str = "id model model_as_published hardware devices runtime runtime_version version weight_format \
                    precision kv_format kv_precision mode isl osl concurrency speculative source doubt metric \
                    value workers ttft_ms ttft_p50_ms tpot_ms tpot_p50_ms vram_gb";
/// The same of runs under a rate.
const READ_UNDER_A_RATE: &str = "rate arrival arrival_variation num_prompts duration_s stage prefix_len distinct_prompts \
                                 max_num_batched_tokens max_num_seqs gpu_memory_utilization ttft_mean_ms ttft_p99_ms \
                                 tpot_mean_ms e2e_mean_ms e2e_ms e2e_p50_ms";
/// Columns of a run with a part of the model on the host, and of a plan that no row states.
pub(super) const HOST_PART: &str = "host_part";
pub(super) const HOST: &str = "host";
pub(super) const OTHER_PLAN: &str = "other_plan";
/// Settings that are read, or that no prediction needs.
const SETTINGS: &str = "accept_len acceptance_length accept_rate num_spec_tokens mem_util max_model_len device_gib \
                        batch_per_device speedup num_prompts prefix_len hit_rate cache_hit";
/// Suffixes of columns with the size of a pool; others have its degrees.
const SIZES: [&str; 2] = ["workers", "devices_each"];
/// Columns on the origin of a row.
const ABOUT: [&str; 10] =
    ["date", "notes", "note", "address", "tier", "unit", "kind", "point_id", "hardware_published", "class"];

/// A record of a table by column name.
pub struct Record<'a>(pub BTreeMap<&'a str, &'a str>);

impl Record<'_> {
    pub(super) fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", |text| text.trim())
    }

    /// The model id, or the published name where the table has no id.
    fn model(&self) -> &str {
        match self.text("model") {
            "" => self.text("model_as_published"),
            id => id,
        }
    }

    /// The model; at home without a size in brackets: `Qwen3-Coder-Next (80B-A3B)`.
    fn named_model(&self, layout: TableLayout) -> &str {
        let name = self.model();
        if layout == TableLayout::Home { name.split(" (").next().unwrap_or(name) } else { name }
    }

    /// The device; at home the cards as published, else the processor.
    fn hardware(&self, layout: TableLayout) -> &str {
        match layout {
            TableLayout::Home => self.either(["gpu", "cpu"]),
            _ => self.text("hardware"),
        }
    }

    /// The weight format; at home without the size of the file: `Q4_K_M 4.36GiB`.
    fn weight_format(&self, layout: TableLayout) -> String {
        if layout != TableLayout::Home {
            return self.either(["weight_format", "precision"]).into();
        }
        let sized = |word: &&str| word.starts_with(['~', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
        let is_size = |word: &&str| sized(word) && ["GB", "GiB"].iter().any(|unit| word.ends_with(unit));
        self.text("quant").split_whitespace().filter(|word| !is_size(word)).collect::<Vec<_>>().join(" ")
    }

    fn either(&self, keys: [&str; 2]) -> &str {
        keys.map(|key| self.text(key)).into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// Columns with a figure of the run that are not scored; `scored` are.
    fn unscored(&self, layout: TableLayout, under_a_rate: bool, scored: &[&str]) -> Vec<String> {
        let degree = |key: &str| {
            let plain = key.strip_prefix("prefill_").or(key.strip_prefix("decode_")).unwrap_or(key);
            SIZES.contains(&plain) || Degree::stated().any(|degree| degree.key() == plain)
        };
        let listed = |list: &str, key: &str| list.split(' ').any(|read| read == key);
        let more = match layout {
            TableLayout::Sessions => READ_OF_SESSIONS,
            TableLayout::Points => READ_OF_POINTS,
            TableLayout::Home => READ_OF_HOME,
            _ if under_a_rate => READ_UNDER_A_RATE,
            _ => "",
        };
        let read =
            |key: &str| [READ, SETTINGS, more].iter().any(|list| listed(list, key)) || scored.contains(&key);
        let known = |key: &str| read(key) || ABOUT.contains(&key) || degree(key);
        let figures = self.0.iter().filter(|(key, text)| !known(key) && text.trim().parse::<f64>().is_ok());
        figures.map(|(key, _)| (*key).to_owned()).collect()
    }

    /// A number within `limit`, or 0.
    pub(super) fn number(&self, key: &str, limit: &Limit) -> Result<Option<f64>, Error> {
        let text = self.text(key);
        if text.is_empty() {
            return Ok(None);
        }
        let within =
            |number: f64| number == 0.0 || limit.holds(if limit.whole { number.trunc() } else { number });
        let found = text.parse::<f64>().ok().filter(|number| number.is_sign_positive() && within(*number));
        found.map(Some).ok_or_else(|| {
            let expected = format!("0, {}, or an empty cell", limit.range());
            Error::new(key, text, expected, "correct the cell, or leave it empty")
        })
    }

    pub(super) fn whole(&self, key: &str, limit: &Limit) -> Result<Option<u64>, Error> {
        Ok(self.number(key, limit)?.map(|number| number as u64))
    }

    fn degrees(&self, pool: &str) -> Result<MeasuredDegrees, Error> {
        if let Some(degrees) = self.pool_text(pool)? {
            return Ok(degrees);
        }
        let one =
            |name: &str| Ok::<_, Error>(self.whole(&format!("{pool}{name}"), &DEGREE)?.unwrap_or(1).max(1));
        let workers = self.whole(&format!("{pool}workers"), &DEGREE)?;
        let stated = ["tp", "pp", "dp"].iter().any(|name| !self.text(&format!("{pool}{name}")).is_empty());
        Ok(MeasuredDegrees {
            given: stated,
            workers,
            tp: one("tp")?,
            pp: one("pp")?,
            dp: one("dp")?,
            ep: one("ep")?,
        })
    }

    /// Reads the row.
    pub fn measured(&self) -> Result<MeasuredRow, Error> {
        let layout = self.layout();
        let long = layout == TableLayout::Long;
        let mode = self.text("mode");
        let drawn = self.is_drawn(layout);
        let mean = |nominal: u64| if drawn { (nominal as f64 * MEAN_OF_DRAWN) as u64 } else { nominal };
        let stated = self.stated_concurrency()?;
        let concurrency = stated.or(self.is_single_stream().then_some(1));
        let mut traffic = self.simulated(layout, concurrency)?;
        let [isl, osl] = self.lengths(layout)?;
        let devices = self.whole("devices", &DEVICES)?;
        let pools = self.pools(layout, devices)?;
        let separately = (long && stated.unwrap_or(1) <= 1) || self.is_timed_separately(layout);
        let size = size(mean(isl.unwrap_or(1)), mean(osl.unwrap_or(TOKENS)), &pools, devices);
        let (outcome, scored) = self.outcome(layout, traffic.as_ref(), (size, isl), separately)?;
        let (speculative, accepted) = self.speculation(layout)?;
        let (runtime, version) = match layout {
            TableLayout::Points => self.runtime_of_point(),
            _ => (self.text("runtime"), self.either(["runtime_version", "version"])),
        };
        let weight_format = self.weight_format(layout);
        let recipe = PublishedRecipe::of(&RecipeRow {
            layout,
            source: self.text("source"),
            date: self.text("date"),
            model: self.model(),
            hardware: self.hardware(layout),
            runtime,
            weight_format: &weight_format,
            tp: pools[0].tp,
            ranks: pools[0].dp,
            lengths: [isl, osl].map(|length| length.unwrap_or(1)),
            clients: concurrency.unwrap_or(1),
            pools: pools.len(),
        });
        if let Some((recipe, traffic)) = recipe.zip(traffic.as_mut()) {
            recipe.complete(traffic, isl.unwrap_or(1), concurrency.unwrap_or(1));
        }
        let usual_kv = recipe.and_then(|recipe| recipe.kv_format.as_deref()).unwrap_or_default();
        let kv_format = Some(self.either(["kv_format", "kv_precision"])).filter(|stated| !stated.is_empty());
        let in_cache = self.tokens_in_cache(layout, isl)?;
        Ok(MeasuredRow {
            id: self.text("id").into(),
            model: self.named_model(layout).into(),
            hardware: self.hardware(layout).into(),
            devices,
            runtime: runtime.into(),
            version: version.into(),
            weight_format,
            kv_format: kv_format.unwrap_or(usual_kv).into(),
            mode: if mode.is_empty() { "agg" } else { mode }.into(),
            unscored: self.not_scored(layout, traffic.is_some(), &outcome, &scored)?,
            kind: self.kind(layout, concurrency, traffic.is_some())?,
            refused: self.refused(layout),
            host_part: HostPart::parse(self.text(HOST_PART)),
            host: Some(self.text(HOST).to_owned()).filter(|host| !host.is_empty()),
            unknown_cache: self.unknown_cache(layout),
            memory_share: self.positive("mem_util", &MEMORY_SHARE)?,
            assumed: self.assumed(layout, isl, osl),
            class: self.text("class").into(),
            pools,
            equal_lengths: !drawn && !long && layout != TableLayout::Sessions,
            isl: mean(isl.unwrap_or(1)).saturating_sub(in_cache).max(1),
            osl: mean(osl.unwrap_or(TOKENS)).max(2),
            depth: in_cache.saturating_add(if long || layout == TableLayout::Home {
                self.depth()
            } else {
                0
            }),
            concurrency,
            traffic,
            speculative,
            accepted,
            arm: (layout == TableLayout::Points).then(|| self.text("setting").to_owned()),
            timed_separately: separately,
            flags: recipe.map(|recipe| recipe.flags(isl.unwrap_or(1))).unwrap_or_default(),
            from_start: (!long && self.text("source").contains(MEANS)).then_some(REQUESTS_PER_CLIENT),
            source: self.text("source").into(),
            warning: self.text("doubt").into(),
            outcome,
        })
    }

    /// Refuses a table without the columns that its layout needs.
    pub fn has_columns(&self) -> Result<(), Error> {
        let needed: &[&str] = match self.layout() {
            TableLayout::Home => &["model", "gpu", "runtime"],
            _ if self.is_of_peers() => &[],
            _ => &["model", "hardware", "runtime"],
        };
        let missing = needed.iter().copied().find(|key| !self.0.contains_key(key));
        missing.map_or(Ok(()), |key| {
            let fix = "use the column names of serving.csv or singlestream.csv";
            Err(Error::new(key, "no such column", "a column of that name", fix))
        })
    }

    /// Whether the lengths of its requests are drawn.
    fn is_drawn(&self, layout: TableLayout) -> bool {
        match layout {
            TableLayout::Points => self.is_drawn_point(),
            TableLayout::Sessions | TableLayout::Home => false,
            _ => DRAWN.iter().any(|source| self.text("source").contains(source)),
        }
    }

    fn is_single_stream(&self) -> bool {
        let mode = self.text("mode");
        ["single-stream", "single stream"].iter().any(|name| mode.starts_with(name))
            || mode.ends_with("-bench")
    }

    /// Whether all prompts were computed before all answers, as benchmarks of single machines and of fixed batches do.
    fn is_timed_separately(&self, layout: TableLayout) -> bool {
        let mode = self.text("mode");
        layout == TableLayout::Home
            || (layout == TableLayout::Long && mode.ends_with("-bench"))
            || self.is_fixed_batch()
            || (layout == TableLayout::Wide && ALONE.iter().any(|name| mode.starts_with(name)))
    }

    /// Demonstrations of a batch (`demo, fixed batch`) state the TTFT of one of its users.
    fn is_fixed_batch(&self) -> bool {
        self.text("mode").contains("fixed-batch")
    }

    fn stated_concurrency(&self) -> Result<Option<u64>, Error> {
        let stated = self.whole("concurrency", &CONCURRENCY)?.map(|requests| requests.max(1));
        let of_all = match (self.count("batch_per_device", &CONCURRENCY)?, self.count("devices", &DEVICES)?) {
            (Some(each), Some(devices)) => Some(each.saturating_mul(devices)),
            _ => None,
        };
        Ok(stated.or(of_all))
    }

    /// ISL and OSL, where the row states them.
    fn lengths(&self, layout: TableLayout) -> Result<[Option<u64>; 2], Error> {
        match layout {
            TableLayout::Sessions => self.session_lengths(),
            TableLayout::Home => Ok([self.count("prompt_tokens", &ISL)?, self.count("gen_tokens", &OSL)?]),
            _ => Ok([self.whole("isl", &ISL)?, self.whole("osl", &OSL)?]),
        }
    }

    /// Lengths that a row of drafts or of a home machine does not state.
    fn assumed(&self, layout: TableLayout, isl: Option<u64>, osl: Option<u64>) -> Vec<String> {
        if ![TableLayout::Drafts, TableLayout::Home].contains(&layout) {
            return vec![];
        }
        let prompt = isl.is_none().then(|| "a prompt of 1 token".to_owned());
        prompt.into_iter().chain(osl.is_none().then(|| format!("an answer of {TOKENS} tokens"))).collect()
    }

    /// Tokens in the cache before the run, from the notes of the row.
    fn depth(&self) -> u64 {
        depth(self.either(["notes", "note"]))
    }

    /// Columns and metrics of this row that are not scored.
    fn not_scored(
        &self,
        layout: TableLayout,
        simulated: bool,
        outcome: &MeasuredMetrics,
        scored: &[&str],
    ) -> Result<Vec<String>, Error> {
        let mut unscored = self.unscored(layout, simulated, scored);
        let one_figure = match layout {
            TableLayout::Long => self.number("value", &MEASURED)?,
            TableLayout::Points => self.number("measured", &MEASURED)?,
            _ => None,
        };
        if one_figure.is_some() && *outcome == MeasuredMetrics::default() {
            unscored.push(format!("metric {}", self.text("metric")));
        }
        Ok(unscored)
    }

    /// The traffic of a row that is simulated.
    fn simulated(
        &self,
        layout: TableLayout,
        concurrency: Option<u64>,
    ) -> Result<Option<MeasuredTraffic>, Error> {
        match layout {
            TableLayout::Sessions => self.sessions(concurrency),
            TableLayout::Points => self.point(concurrency),
            TableLayout::Wide | TableLayout::Drafts => self.traffic(concurrency),
            _ => Ok(None),
        }
    }

    /// The figures of the row, and the columns that they are in.
    fn outcome(
        &self,
        layout: TableLayout,
        traffic: Option<&MeasuredTraffic>,
        (size, isl): (RunSize, Option<u64>),
        separately: bool,
    ) -> Result<(MeasuredMetrics, Vec<&'static str>), Error> {
        Ok(match layout {
            TableLayout::Sessions => (self.session_metrics()?, vec![]),
            TableLayout::Points => (self.point_metric()?, vec![]),
            TableLayout::Long => {
                let (found, columns) = closed_loop(self.metric(size)?);
                (self.one_metric(found, size, separately)?, columns)
            }
            _ if traffic.is_some_and(MeasuredTraffic::is_under_a_rate) => {
                let (found, columns) = under_a_rate(self.figures(size)?);
                (
                    MeasuredMetrics { ttft_p99_ms: self.positive("ttft_p99_ms", &MILLISECONDS)?, ..found },
                    columns,
                )
            }
            _ => {
                let (mut found, mut columns) = closed_loop(self.figures(size)?);
                // Without the length of a prompt its rate is not predicted.
                if isl.is_none() && found.more.get(RunFigure::Prefill).is_some() {
                    found.more.set(RunFigure::Prefill, None);
                    columns.retain(|column| !column.starts_with("prefill_") && !column.starts_with("pp_"));
                }
                (found, columns)
            }
        })
    }

    fn pools(&self, layout: TableLayout, devices: Option<u64>) -> Result<Vec<MeasuredDegrees>, Error> {
        let mode = self.text("mode");
        Ok(match (mode, layout) {
            _ if mode.contains("disagg") => vec![self.degrees("prefill_")?, self.degrees("decode_")?],
            ("prefill-only", _) => vec![self.degrees("prefill_")?],
            ("decode-only", _) => vec![self.degrees("decode_")?],
            (_, TableLayout::Points) => vec![self.parallel().of_attention(devices)],
            (_, TableLayout::Sessions | TableLayout::Long) => vec![self.degrees("")?.of_attention(devices)],
            _ => vec![self.degrees("")?],
        })
    }

    /// The method of speculative decoding, and the tokens that a step yields with it.
    fn speculation(&self, layout: TableLayout) -> Result<(Option<String>, Option<f64>), Error> {
        if layout == TableLayout::Points {
            return Ok(self.speculation_of_point());
        }
        let stated = self.text("speculative").to_lowercase();
        let plain = ["", "none", "none stated", "no", "unknown"].contains(&stated.as_str());
        let accepted = match self.positive("acceptance_length", &DRAFT_TOKENS)? {
            Some(length) => Some(length),
            None => self.positive("accept_len", &DRAFT_TOKENS)?,
        };
        Ok(((!plain).then_some(stated), accepted))
    }

    /// A number above 0.
    pub(super) fn positive(&self, key: &str, limit: &Limit) -> Result<Option<f64>, Error> {
        Ok(self.number(key, limit)?.filter(|number| *number > 0.0))
    }

    /// A whole number above 0.
    pub(super) fn count(&self, key: &str, limit: &Limit) -> Result<Option<u64>, Error> {
        Ok(self.positive(key, limit)?.map(|number| number as u64))
    }

    /// A row with one metric. Rates of runs that time prompts and answers separately are converted to times.
    fn one_metric(
        &self,
        found: MeasuredMetrics,
        size: RunSize,
        separately: bool,
    ) -> Result<MeasuredMetrics, Error> {
        let value = self.positive("value", &MEASURED)?;
        let milliseconds = |tokens: f64| value.map(|rate| 1e3 * tokens / rate);
        let requests = self.number("concurrency", &CONCURRENCY)?.unwrap_or(1.0).max(1.0);
        Ok(match self.text("metric") {
            "prefill_tok_s" => {
                let isl = self.whole("isl", &ISL)?.map_or(1.0, |_| size.isl);
                MeasuredMetrics { ttft_ms: milliseconds(isl * requests), ..found }
            }
            "output_tok_s_total" if separately && self.text("mode").ends_with("-bench") => {
                MeasuredMetrics { tpot_ms: milliseconds(requests), ..found }
            }
            // With several devices, tables do not say which device the memory figure is for.
            "vram_gb" if self.whole("devices", &DEVICES)?.unwrap_or(1) == 1 => {
                MeasuredMetrics { memory_bytes: value.map(|gb| gb * 1e9), ..found }
            }
            _ => found,
        })
    }
}

/// The size of a run on these pools, or on as many devices as the row states of its only one.
fn size(isl: u64, osl: u64, pools: &[MeasuredDegrees], devices: Option<u64>) -> RunSize {
    let stated = devices.filter(|_| pools.len() == 1);
    let of =
        |pool: Option<&MeasuredDegrees>| stated.or(pool.map(MeasuredDegrees::devices)).unwrap_or(1) as f64;
    RunSize { isl: isl as f64, osl: osl as f64, prompts: of(pools.first()), answers: of(pools.last()) }
}

/// Medians of a closed loop, or means where there are none: the first wave, which means see and medians do not, is not
/// predicted.
fn closed_loop(mut found: ReadFigures) -> (MeasuredMetrics, Vec<&'static str>) {
    let mut of = |latency: Latency| {
        let median = found.latency(latency, Statistic::Median);
        median.or_else(|| found.latency(latency, Statistic::Mean))
    };
    let [ttft_ms, tpot_ms, e2e_ms] = [Latency::Ttft, Latency::Tpot, Latency::E2e].map(&mut of);
    let mut more = found.figures;
    more.set(RunFigure::E2e, e2e_ms);
    (MeasuredMetrics { ttft_ms, tpot_ms, more, ..MeasuredMetrics::default() }, found.columns)
}

/// Means where the row has one: under a rate, tables have these first. Else medians.
fn under_a_rate(mut found: ReadFigures) -> (MeasuredMetrics, Vec<&'static str>) {
    let means = found.has_means();
    let statistic = if means { Statistic::Mean } else { Statistic::Median };
    let [ttft_ms, tpot_ms, e2e_ms] =
        [Latency::Ttft, Latency::Tpot, Latency::E2e].map(|latency| found.latency(latency, statistic));
    let figures = MeasuredMetrics { ttft_ms, tpot_ms, e2e_ms, means, ..MeasuredMetrics::default() };
    (MeasuredMetrics { more: found.figures, ..figures }, found.columns)
}

impl MeasuredDegrees {
    /// Devices of all its replicas.
    pub fn devices(&self) -> u64 {
        [self.workers.unwrap_or(1), self.tp, self.pp, self.dp].into_iter().fold(1, u64::saturating_mul)
    }
}

/// Tokens in the KV cache before the run, from the notes of llama-bench rows: `@ d4096`, `at depth 4096`.
fn depth(notes: &str) -> u64 {
    let after =
        ["@ d", "at depth ", "depth "].iter().find_map(|mark| notes.split_once(mark)).map(|(_, after)| after);
    let digits: String = after.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|tokens| ISL.holds(*tokens as f64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::measured_traffic::MeasuredArrivals;

    fn record<'a>(cells: &[(&'a str, &'a str)]) -> Record<'a> {
        let base = [("model", "a/b"), ("hardware", "x"), ("runtime", "vllm")];
        Record(base.into_iter().chain(cells.iter().copied()).collect())
    }

    #[test]
    fn a_serving_row_keeps_its_degrees_and_the_mean_of_drawn_lengths() {
        let row =
            record(&[("isl", "1024"), ("osl", "1000"), ("tp", "4"), ("ttft_ms", "12.5"), ("tpot_ms", "")]);
        let plain = row.measured().unwrap();
        assert_eq!((plain.isl, plain.osl, plain.pools[0].tp, plain.pools[0].ep), (1024, 1000, 4, 1));
        assert_eq!((plain.outcome.ttft_ms, plain.outcome.tpot_ms), (Some(12.5), None));
        let drawn =
            record(&[("isl", "1000"), ("osl", "1000"), ("source", "SemiAnalysis InferenceX, as shipped")]);
        assert_eq!(drawn.measured().unwrap().isl, 900);
    }

    #[test]
    fn a_rate_is_read_as_a_time() {
        let decode =
            record(&[("metric", "decode_tok_s_per_user"), ("value", "40"), ("notes", "tg32 @ d4096, fa=1")]);
        let row = decode.measured().unwrap();
        assert_eq!((row.outcome.tpot_ms, row.depth, row.timed_separately), (Some(25.0), 4096, true));
        let prompt = record(&[("metric", "prefill_tok_s"), ("value", "1000"), ("isl", "512.0")]);
        assert_eq!(prompt.measured().unwrap().outcome.ttft_ms, Some(512.0));
        let held = |devices| record(&[("metric", "vram_gb"), ("value", "9.5"), ("devices", devices)]);
        let bytes = |devices| held(devices).measured().unwrap().outcome.memory_bytes;
        assert_eq!((bytes("1.0"), bytes("2.0")), (Some(9.5e9), None));
    }

    #[test]
    fn a_row_with_a_rate_and_no_concurrency_has_its_traffic_and_means() {
        let cells = [
            ("rate", "5"),
            ("arrival", "Constant spacing"),
            ("duration_s", "600"),
            ("stage", "0"),
            ("distinct_prompts", "44"),
            ("prefix_len", ""),
            ("max_num_seqs", "128"),
            ("gpu_memory_utilization", "0.9"),
            ("ttft_mean_ms", "44.5"),
            ("ttft_p50_ms", "43.7"),
            ("ttft_p99_ms", "69"),
            ("e2e_mean_ms", "3610"),
            ("e2e_p99_ms", "4054"),
        ];
        let row = record(&cells).measured().unwrap();
        let traffic = row.traffic.unwrap();
        assert_eq!(traffic.arrivals, MeasuredArrivals::Rate { per_s: 5.0, variation: 0.0 });
        assert_eq!(traffic.requests, Some(3000));
        assert_eq!((traffic.distinct_prompts, traffic.prefix, traffic.goes_on), (Some(44), None, false));
        assert_eq!((traffic.max_num_seqs, traffic.max_num_batched_tokens), (Some(128), None));
        assert_eq!(traffic.gpu_memory_utilization, Some(0.9));
        let outcome = row.outcome;
        assert_eq!((outcome.ttft_ms, outcome.tpot_ms, outcome.means), (Some(44.5), None, true));
        assert_eq!((outcome.e2e_ms, outcome.ttft_p99_ms), (Some(3610.0), Some(69.0)));
        assert_eq!((row.unscored, row.concurrency), (vec![], None));
        assert_eq!(outcome.more, Figures::of([(RunFigure::E2eP99, 4054.0)]));
        let after = [("rate", "2"), ("num_prompts", "90"), ("duration_s", "60"), ("stage", "1")];
        let after = record(&after).measured().unwrap().traffic.unwrap();
        assert_eq!((after.requests, after.goes_on), (Some(90), true));
        assert_eq!(after.arrivals, MeasuredArrivals::Rate { per_s: 2.0, variation: 1.0 });
    }

    #[test]
    fn a_rate_without_means_has_medians_and_a_closed_loop_no_rate() {
        let open =
            record(&[("rate", "5"), ("ttft_p50_ms", "43"), ("e2e_p50_ms", "3600")]).measured().unwrap();
        assert_eq!((open.outcome.ttft_ms, open.outcome.e2e_ms), (Some(43.0), Some(3600.0)));
        assert!(!open.outcome.means && open.traffic.unwrap().requests.is_none());
        let closed =
            record(&[("rate", "5"), ("concurrency", "8"), ("ttft_mean_ms", "43")]).measured().unwrap();
        assert_eq!((closed.traffic, closed.outcome.ttft_ms, closed.outcome.means), (None, Some(43.0), false));
        assert_eq!(closed.unscored, ["rate"]);
        assert_eq!(record(&[("rate", "0")]).measured().unwrap().traffic, None);
        let fault = record(&[("rate", "fast")]).measured().unwrap_err();
        assert_eq!((fault.key.as_str(), fault.found.as_str()), ("rate", "fast"));
        let fault = record(&[("rate", "5"), ("gpu_memory_utilization", "90")]).measured().unwrap_err();
        assert_eq!(fault.key, "gpu_memory_utilization");
    }

    #[test]
    fn what_is_not_scored_is_named_and_what_is_not_stated_is_not_guessed() {
        let row = record(&[
            ("mode", "agg"),
            ("watts", "12"),
            ("date", "2025"),
            ("tpot_ms", "8"),
            ("decode_ep", "1"),
        ]);
        let plain = row.measured().unwrap();
        assert_eq!((plain.unscored, plain.concurrency), (vec!["watts".to_owned()], None));
        assert!(!plain.pools[0].given && plain.speculative.is_none());
        let long = record(&[("mode", "single-stream"), ("metric", "watts"), ("value", "9")]);
        let single = long.measured().unwrap();
        assert_eq!((single.unscored, single.concurrency), (vec!["metric watts".to_owned()], Some(1)));
        let guessed = record(&[("speculative", "mtp"), ("tp", "8")]).measured().unwrap();
        assert!(guessed.speculative.is_some() && guessed.pools[0].given);
    }

    #[test]
    fn a_cell_that_is_no_number_is_named() {
        for wrong in ["inf", "NaN", "-1", "1e300"] {
            assert_eq!(record(&[("tpot_ms", wrong)]).measured().unwrap_err().found, wrong);
        }
        let fault = record(&[("concurrency", "many")]).measured().unwrap_err();
        assert_eq!((fault.key.as_str(), fault.found.as_str()), ("concurrency", "many"));
        let fault = Record(BTreeMap::from([("model", "a/b")])).has_columns().unwrap_err();
        assert_eq!(fault.key, "hardware");
    }
}
