//! One row of a measurement table: deployment, load and results. Names are as published, not resolved in the
//! catalogue.

use std::collections::BTreeMap;

use super::recipes::PublishedRecipe;
use super::replayed::{AgentSessions, READ_OF_POINTS, READ_OF_SESSIONS, TableLayout};
use crate::spec::degree::Degree;
use crate::spec::error::Error;
use crate::spec::limits::{
    CONCURRENCY, DEGREE, DEVICES, DISTINCT_PROMPTS, DRAFT_TOKENS, ISL, Limit, MEASURED, MEMORY_SHARE,
    MILLISECONDS, OSL, PREFIX, RATE, SECONDS, SENT, SEQUENCES, STEP_TOKENS,
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
}

/// When the requests of a run came.
#[derive(Clone, Debug, PartialEq)]
pub enum MeasuredArrivals {
    /// At a rate, whether or not earlier ones are answered: requests per second over the whole deployment, and the
    /// coefficient of variation of the gaps between them, 0 for even gaps, 1 for Poisson arrivals.
    Rate { per_s: f64, variation: f64 },
    /// As many clients as the concurrency of the row, each after its last answer.
    Clients,
    /// The same clients with sessions.
    Sessions(AgentSessions),
    /// At the times of a trace that this names.
    Trace(String),
}

/// The traffic of a run that is simulated, and the settings of its servers.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredTraffic {
    pub arrivals: MeasuredArrivals,
    /// Requests that were sent, where known.
    pub requests: Option<u64>,
    /// Tokens at the start of all prompts that are the same.
    pub prefix: Option<u64>,
    /// Different prompts, where the same ones came again and again.
    pub distinct_prompts: Option<u64>,
    /// Whether the run went on from an earlier stage, so that its first requests met filled caches.
    pub goes_on: bool,
    /// New tokens in one step, at most, where set.
    pub max_num_batched_tokens: Option<u64>,
    /// Requests that a scheduler runs at a time, where set.
    pub max_num_seqs: Option<u64>,
    /// Fraction of the memory of a device that the runtime uses, where set.
    pub gpu_memory_utilization: Option<f64>,
    /// Of vLLM's steps with decoding requests, only every such one computes prompts, where set.
    pub prefill_interval: Option<u64>,
    /// Tokens of a prompt above which a step of vLLM computes no more of it than this, where set.
    pub long_prompt_threshold: Option<u64>,
    /// Whether no prompt is computed in parts.
    pub whole_prompts: bool,
    /// Passes after which ranks of SGLang with prompts wait no more for ranks without, where set.
    pub delayed_passes: Option<u64>,
    /// Steps of SGLang without prompts after one with them, where set.
    pub decodes_after_prefill: Option<u64>,
    /// Tokens that the KV cache of an attention rank holds, where the server said so.
    pub cache_tokens: Option<u64>,
    /// Inputs that the row does not state, with the values that are taken for them and their sources.
    pub assumed: Vec<String>,
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
}

/// Sources whose ISL and OSL are drawn from 80 to 100 % of the nominal length.
const DRAWN: [&str; 2] = ["InferenceX", "InferenceMAX"];
/// Drawn lengths, least and most, as fractions of the nominal length.
pub const DRAWN_LENGTHS: [f64; 2] = [0.8, 1.0];
/// Mean of these lengths, as a fraction of the nominal length.
pub const MEAN_OF_DRAWN: f64 = (DRAWN_LENGTHS[0] + DRAWN_LENGTHS[1]) / 2.0;
/// Output tokens of a run where the table does not give them.
const TOKENS: u64 = 128;

/// Columns that define a run, and those that are scored.
const READ: &str = "id model model_as_published hardware devices runtime runtime_version version weight_format \
                    precision kv_format kv_precision mode isl osl concurrency speculative source doubt metric \
                    value workers ttft_ms ttft_p50_ms tpot_ms tpot_p50_ms vram_gb";
/// The same of runs under a rate.
const READ_UNDER_A_RATE: &str = "rate arrival num_prompts duration_s stage prefix_len distinct_prompts \
                                 max_num_batched_tokens max_num_seqs gpu_memory_utilization ttft_mean_ms ttft_p99_ms \
                                 tpot_mean_ms e2e_mean_ms e2e_ms e2e_p50_ms";
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

    fn either(&self, keys: [&str; 2]) -> &str {
        keys.map(|key| self.text(key)).into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// Columns with a figure of the run that are not scored.
    fn unscored(&self, layout: TableLayout, under_a_rate: bool) -> Vec<String> {
        let degree = |key: &str| {
            let plain = key.strip_prefix("prefill_").or(key.strip_prefix("decode_")).unwrap_or(key);
            SIZES.contains(&plain) || Degree::stated().any(|degree| degree.key() == plain)
        };
        let listed = |list: &str, key: &str| list.split(' ').any(|read| read == key);
        let more = match layout {
            TableLayout::Sessions => READ_OF_SESSIONS,
            TableLayout::Points => READ_OF_POINTS,
            _ if under_a_rate => READ_UNDER_A_RATE,
            _ => "",
        };
        let read = |key: &str| listed(READ, key) || listed(more, key);
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

    fn whole(&self, key: &str, limit: &Limit) -> Result<Option<u64>, Error> {
        Ok(self.number(key, limit)?.map(|number| number as u64))
    }

    fn degrees(&self, pool: &str) -> Result<MeasuredDegrees, Error> {
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
        for key in ["model", "hardware", "runtime"] {
            if !self.0.contains_key(key) {
                let fix = "use the column names of serving.csv or singlestream.csv";
                return Err(Error::new(key, "no such column", "a column of that name", fix));
            }
        }
        let layout = self.layout();
        let long = layout == TableLayout::Long;
        let mode = self.text("mode");
        let drawn = DRAWN.iter().any(|source| self.text("source").contains(source));
        let drawn = match layout {
            TableLayout::Wide | TableLayout::Long => drawn,
            TableLayout::Points => self.is_drawn_point(),
            TableLayout::Sessions => false,
        };
        let mean = |nominal: u64| if drawn { (nominal as f64 * MEAN_OF_DRAWN) as u64 } else { nominal };
        let single = mode == "single-stream" || mode.ends_with("-bench");
        let stated = self.whole("concurrency", &CONCURRENCY)?.map(|requests| requests.max(1));
        let concurrency = stated.or(single.then_some(1));
        let mut traffic = self.simulated(layout, concurrency)?;
        let [isl, osl] = match layout {
            TableLayout::Sessions => self.session_lengths()?,
            _ => [self.whole("isl", &ISL)?, self.whole("osl", &OSL)?],
        };
        let outcome = self.outcome(layout, traffic.is_some(), isl.unwrap_or(1))?;
        let mut unscored = self.unscored(layout, traffic.is_some());
        let one_figure = match layout {
            TableLayout::Long => self.number("value", &MEASURED)?,
            TableLayout::Points => self.number("measured", &MEASURED)?,
            _ => None,
        };
        if one_figure.is_some() && outcome == MeasuredMetrics::default() {
            unscored.push(format!("metric {}", self.text("metric")));
        }
        let devices = self.whole("devices", &DEVICES)?;
        let (speculative, accepted) = self.speculation(layout)?;
        let (runtime, version) = match layout {
            TableLayout::Points => self.runtime_of_point(),
            _ => (self.text("runtime"), self.either(["runtime_version", "version"])),
        };
        let pools = self.pools(layout, devices)?;
        let named = [self.model(), self.text("hardware"), runtime];
        let recipe = PublishedRecipe::of(layout, self.text("source"), named, pools[0].dp);
        if let Some((recipe, traffic)) = recipe.zip(traffic.as_mut()) {
            recipe.complete(traffic, isl.unwrap_or(1), concurrency.unwrap_or(1));
        }
        let usual = recipe.and_then(|recipe| recipe.kv_format.as_deref()).unwrap_or_default();
        let kv_format = match self.either(["kv_format", "kv_precision"]) {
            "" => usual,
            stated => stated,
        };
        Ok(MeasuredRow {
            id: self.text("id").into(),
            model: self.model().into(),
            hardware: self.text("hardware").into(),
            devices,
            runtime: runtime.into(),
            version: version.into(),
            weight_format: self.either(["weight_format", "precision"]).into(),
            kv_format: kv_format.into(),
            mode: if mode.is_empty() { "agg" } else { mode }.into(),
            pools,
            equal_lengths: !drawn && !long && layout != TableLayout::Sessions,
            isl: mean(isl.unwrap_or(1)).max(1),
            osl: mean(osl.unwrap_or(TOKENS)).max(2),
            depth: if long { depth(self.text("notes")) } else { 0 },
            concurrency,
            traffic,
            speculative,
            accepted,
            arm: (layout == TableLayout::Points).then(|| self.text("setting").to_owned()),
            unscored,
            timed_separately: long && (stated.unwrap_or(1) <= 1 || mode.ends_with("-bench")),
            source: self.text("source").into(),
            warning: self.text("doubt").into(),
            outcome,
        })
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
            TableLayout::Wide if concurrency.is_none() => self.traffic(),
            TableLayout::Wide | TableLayout::Long => Ok(None),
        }
    }

    fn outcome(&self, layout: TableLayout, simulated: bool, isl: u64) -> Result<MeasuredMetrics, Error> {
        match layout {
            TableLayout::Long => self.one_metric(isl),
            TableLayout::Sessions => self.session_metrics(),
            TableLayout::Points => self.point_metric(),
            TableLayout::Wide if simulated => self.under_a_rate(),
            TableLayout::Wide => self.latencies(),
        }
    }

    fn pools(&self, layout: TableLayout, devices: Option<u64>) -> Result<Vec<MeasuredDegrees>, Error> {
        Ok(match (self.text("mode"), layout) {
            ("disagg", _) => vec![self.degrees("prefill_")?, self.degrees("decode_")?],
            (_, TableLayout::Points) => vec![self.parallel().of_attention(devices)],
            (_, TableLayout::Sessions) => vec![self.degrees("")?.of_attention(devices)],
            _ => vec![self.degrees("")?],
        })
    }

    /// The method of speculative decoding, and the tokens that a step yields with it.
    fn speculation(&self, layout: TableLayout) -> Result<(Option<String>, Option<f64>), Error> {
        if layout == TableLayout::Points {
            return Ok(self.speculation_of_point());
        }
        let stated = self.text("speculative");
        let plain = ["", "none", "no", "unknown"].contains(&stated);
        let accepted = match layout {
            TableLayout::Sessions => self.positive("acceptance_length", &DRAFT_TOKENS)?,
            _ => None,
        };
        Ok(((!plain).then(|| stated.to_owned()), accepted))
    }

    /// A number above 0.
    pub(super) fn positive(&self, key: &str, limit: &Limit) -> Result<Option<f64>, Error> {
        Ok(self.number(key, limit)?.filter(|number| *number > 0.0))
    }

    /// A whole number above 0.
    pub(super) fn count(&self, key: &str, limit: &Limit) -> Result<Option<u64>, Error> {
        Ok(self.positive(key, limit)?.map(|number| number as u64))
    }

    /// The traffic of a run under a rate, where the row has one.
    fn traffic(&self) -> Result<Option<MeasuredTraffic>, Error> {
        let Some(rate_per_s) = self.positive("rate", &RATE)? else { return Ok(None) };
        let lasted = self.positive("duration_s", &SECONDS)?;
        let in_that_time = lasted.map(|seconds| (seconds * rate_per_s).round().clamp(1.0, SENT.most) as u64);
        let constant = self.text("arrival").to_lowercase().starts_with("constant");
        Ok(Some(MeasuredTraffic {
            // Arrivals of many users who do not know of each other, where the table does not say.
            arrivals: MeasuredArrivals::Rate {
                per_s: rate_per_s,
                variation: if constant { 0.0 } else { 1.0 },
            },
            requests: self.count("num_prompts", &SENT)?.or(in_that_time),
            prefix: self.count("prefix_len", &PREFIX)?,
            distinct_prompts: self.count("distinct_prompts", &DISTINCT_PROMPTS)?,
            goes_on: self.text("stage").parse::<u64>().is_ok_and(|stage| stage > 0),
            max_num_batched_tokens: self.count("max_num_batched_tokens", &STEP_TOKENS)?,
            max_num_seqs: self.count("max_num_seqs", &SEQUENCES)?,
            gpu_memory_utilization: self.positive("gpu_memory_utilization", &MEMORY_SHARE)?,
            prefill_interval: None,
            long_prompt_threshold: None,
            whole_prompts: false,
            delayed_passes: None,
            decodes_after_prefill: None,
            cache_tokens: None,
            assumed: vec![],
        }))
    }

    fn latencies(&self) -> Result<MeasuredMetrics, Error> {
        let median = |[first, second]: [&str; 2]| {
            Ok::<_, Error>(self.positive(first, &MILLISECONDS)?.or(self.positive(second, &MILLISECONDS)?))
        };
        Ok(MeasuredMetrics {
            ttft_ms: median(["ttft_ms", "ttft_p50_ms"])?,
            tpot_ms: median(["tpot_ms", "tpot_p50_ms"])?,
            ..MeasuredMetrics::default()
        })
    }

    /// Means where the row has one: under a rate, tables have these first. Else medians.
    fn under_a_rate(&self) -> Result<MeasuredMetrics, Error> {
        let of = |key: &str| self.positive(key, &MILLISECONDS);
        let ttft_p99_ms = of("ttft_p99_ms")?;
        let [ttft_ms, tpot_ms, e2e_ms] = [of("ttft_mean_ms")?, of("tpot_mean_ms")?, of("e2e_mean_ms")?];
        if ttft_ms.is_some() || tpot_ms.is_some() || e2e_ms.is_some() {
            let means =
                MeasuredMetrics { ttft_ms, tpot_ms, e2e_ms, means: true, ..MeasuredMetrics::default() };
            return Ok(MeasuredMetrics { ttft_p99_ms, ..means });
        }
        let e2e_ms = of("e2e_ms")?.or(of("e2e_p50_ms")?);
        Ok(MeasuredMetrics { e2e_ms, ttft_p99_ms, ..self.latencies()? })
    }

    /// A row with one metric; rates are converted to times.
    fn one_metric(&self, isl: u64) -> Result<MeasuredMetrics, Error> {
        let value = self.number("value", &MEASURED)?.filter(|number| *number > 0.0);
        let milliseconds = |tokens: f64| value.map(|rate| 1e3 * tokens / rate);
        let requests = self.number("concurrency", &CONCURRENCY)?.unwrap_or(1.0).max(1.0);
        Ok(match self.text("metric") {
            "decode_tok_s_per_user" => {
                MeasuredMetrics { tpot_ms: milliseconds(1.0), ..MeasuredMetrics::default() }
            }
            "prefill_tok_s" => {
                MeasuredMetrics { ttft_ms: milliseconds(isl as f64 * requests), ..MeasuredMetrics::default() }
            }
            "output_tok_s_total" => {
                MeasuredMetrics { tpot_ms: milliseconds(requests), ..MeasuredMetrics::default() }
            }
            // With several devices, tables do not say which device the memory figure is for.
            "vram_gb" if self.whole("devices", &DEVICES)?.unwrap_or(1) == 1 => {
                MeasuredMetrics { memory_bytes: value.map(|gb| gb * 1e9), ..MeasuredMetrics::default() }
            }
            _ => MeasuredMetrics::default(),
        })
    }
}

/// Tokens in the KV cache before the run, from the notes of llama-bench rows: `@ d4096`, `at depth 4096`.
fn depth(notes: &str) -> u64 {
    let after = ["@ d", "at depth "].iter().find_map(|mark| notes.split_once(mark)).map(|(_, after)| after);
    let digits: String = after.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|tokens| ISL.holds(*tokens as f64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((row.unscored, row.concurrency), (vec!["e2e_p99_ms".to_owned()], None));
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
        assert_eq!((closed.traffic, closed.outcome), (None, MeasuredMetrics::default()));
        assert_eq!(closed.unscored, ["rate", "ttft_mean_ms"]);
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
            ("output_tok_s", "12"),
            ("date", "2025"),
            ("tpot_ms", "8"),
            ("decode_ep", "1"),
        ]);
        let plain = row.measured().unwrap();
        assert_eq!((plain.unscored, plain.concurrency), (vec!["output_tok_s".to_owned()], None));
        assert!(!plain.pools[0].given && plain.speculative.is_none());
        let long = record(&[("mode", "single-stream"), ("metric", "total_tok_s"), ("value", "9")]);
        let single = long.measured().unwrap();
        assert_eq!((single.unscored, single.concurrency), (vec!["metric total_tok_s".to_owned()], Some(1)));
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
        let fault = Record(BTreeMap::from([("model", "a/b")])).measured().unwrap_err();
        assert_eq!(fault.key, "hardware");
    }
}
