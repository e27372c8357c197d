//! Rows of two more tables: sessions of agents that benchmarks replay, and points that other simulators published.

use super::measured::{MeasuredDegrees, MeasuredMetrics, MeasuredRow, Record};
use super::measured_traffic::{MeasuredArrivals, MeasuredTraffic};
use crate::spec::degree::Degree;
use crate::spec::error::Error;
use crate::spec::limits::{ACCEPTANCE, ISL, Limit, MILLISECONDS, OSL, SECONDS, SENT, SEQUENCES, STEP_TOKENS};
use crate::traffic::agents::{AgentTraffic, MeanAndVariation};

/// The layout of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableLayout {
    /// A run per row.
    Wide,
    /// A metric per row, in `metric` and `value`.
    Long,
    /// A run per row, of sessions of agents.
    Sessions,
    /// A metric per row, in `metric` and `measured`, with a setting of the simulator.
    Points,
    /// A run per row, on a machine at home.
    Home,
    /// A run without a draft and one with it per row.
    Drafts,
    /// A start of a server per row.
    Started,
}

/// Sessions of agents, of which each client plays one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSessions {
    pub traffic: AgentTraffic,
    /// Seconds that are measured.
    pub lasted_s: f64,
}

/// A figure that is taken for one that a row does not state, and its source.
struct PublishedFigure {
    value: f64,
    words: &'static str,
    source: &'static str,
}

/// 98,827 calls in 393 sessions.
const CORPUS: &str = "semianalysisai/cc-traces-weka-062126";
const PROMPT: PublishedFigure =
    PublishedFigure { value: 219_000.0, words: "a mean prompt of 219,000 tokens", source: CORPUS };
const OUTPUT: PublishedFigure =
    PublishedFigure { value: 1_080.0, words: "a mean output of 1,080 tokens", source: CORPUS };
const REPEATED: PublishedFigure =
    PublishedFigure { value: 0.983, words: "prompts of which 98.3 % are repeated", source: CORPUS };
/// 64 clients x 3,629 s / 6,608 requests, less 25.5 s from request to answer.
const THINK_S: PublishedFigure = PublishedFigure {
    value: 9.7,
    words: "9.7 s from an answer to the next turn",
    source: "https://github.com/ai-dynamo/aisimulate/blob/2bc0da0d8600c14989fb1c10be08f9a7fe628964/docs/experiments/\
             agentx-deepseek-v4-pro-440246-b200-vllm/job-4228930-comparison.json",
};
const LASTED_S: PublishedFigure = PublishedFigure {
    value: 3600.0,
    words: "an hour that is measured",
    source: "https://github.com/SemiAnalysisAI/InferenceX-app/blob/0654d8a9b2ae46cd70be3016849ce2f3788460ee/packages/\
             app/src/components/datasets/agentx-methodology-article.tsx",
};

/// Spreads around the means of rows: those of 140,338 requests of Claude Code. Outputs with a mean of 690 tokens and a
/// median of 252 are log-normal: its 90th and 99th percentiles are 1,550 and 6,800 where 1,671 and 6,571 were counted.
const OUTPUT_MEAN_AND_MEDIAN: [f64; 2] = [690.0, 252.0];
/// Median tokens that a request adds to its session. The mean, which long first prompts raise, is the row's.
const NEW_MEDIAN: f64 = 857.0;
/// The variation of the sizes of sessions with which the first quartile, the median and the p90 of prompts are 0.29, 0.64
/// and 2.27 of the mean prompt: 0.30, 0.63 and 2.30 were counted.
const SIZES_VARIATION: f64 = 0.9;
/// The longest request of the corpus, in tokens.
const LONGEST: f64 = 990_000.0;
/// First and third quartile of the seconds from an answer to the next turn, in 783,000 of another service's gaps.
const WAIT_QUARTILES_S: [f64; 2] = [0.69, 8.6];
const SPREADS: &str = "new tokens of a median of 857, outputs, waits and sizes of sessions as spread as published ones \
     (https://tracelab.cs.washington.edu/exp/llm_generation/token_length_distribution/, \
     https://gitea.gahow.org/gahow/agentic-kvc/src/commit/41a0c1c48f2866caf940b007d4bc6e13f6fe8245/scripts/\
     compute_inter_turn_gap_remote.py)";

/// Lengths of points, and whether means are compared with them. `silicon_source` there is InferenceX.
const DRAWN_POINTS: &str = "lengths from 80 to 100 % of the nominal ones (random_range_ratio in \
     https://github.com/ai-dynamo/aisimulate/blob/a0436da5f48f991219a1025cf9e993771e977d8b/docs/data/\
     minimax-m3-moe-cc16/replay.json)";

/// The start of `workload` of the rows whose sessions are drawn.
const AGENTX: &str = "AgentX";

/// Columns of sessions that are read, next to those of all tables.
pub(super) const READ_OF_SESSIONS: &str = "workload arm acceptance_length mean_input_tokens mean_output_tokens hit_rate_gpu hit_rate_theoretical \
     kv_cache_tokens ttft_mean_s ttft_p50_s itl_mean_ms itl_p50_ms requests duration_s e2e_mean_s \
     prefill_schedule_interval \
     long_prefill_token_threshold max_num_batched_tokens max_num_seqs";
/// The same of points.
pub(super) const READ_OF_POINTS: &str = "parallel setting measured predicted simulator max_num_batched_tokens max_num_seqs prefill_schedule_interval";

impl Record<'_> {
    pub(super) fn layout(&self) -> TableLayout {
        let has = |key: &str| self.0.contains_key(key);
        match () {
            () if has("metric") && has("measured") => TableLayout::Points,
            () if has("metric") => TableLayout::Long,
            () if has("workload") && has("hit_rate_theoretical") => TableLayout::Sessions,
            () if has("quant") && has("gpu") => TableLayout::Home,
            () if has("method") && has("num_spec_tokens") => TableLayout::Drafts,
            () if has("mem_util") && has("kv_tokens") => TableLayout::Started,
            () => TableLayout::Wide,
        }
    }

    /// The traffic of a row of sessions; `None` where it is neither that nor a trace.
    pub(super) fn sessions(&self, concurrency: Option<u64>) -> Result<Option<MeasuredTraffic>, Error> {
        let workload = self.text("workload");
        let mut assumed = vec![];
        let arrivals = match concurrency {
            Some(clients) if workload.starts_with(AGENTX) => {
                MeasuredArrivals::Sessions(self.agent_sessions(clients, &mut assumed)?)
            }
            _ if workload.contains("trace") => MeasuredArrivals::Trace(workload.to_owned()),
            _ => return Ok(None),
        };
        let traffic = self.replayed(arrivals, self.text("note"))?;
        Ok(Some(MeasuredTraffic { assumed, ..traffic }))
    }

    /// The traffic of a published point.
    pub(super) fn point(&self, concurrency: Option<u64>) -> Result<Option<MeasuredTraffic>, Error> {
        let setting = self.text("setting");
        let arrivals = match concurrency {
            Some(_) => MeasuredArrivals::Clients,
            None => MeasuredArrivals::Trace(setting.to_owned()),
        };
        let assumed = if self.is_drawn_point() { vec![DRAWN_POINTS.to_owned()] } else { vec![] };
        let traffic = self.replayed(arrivals, setting)?;
        Ok(Some(MeasuredTraffic { assumed, ..traffic }))
    }

    /// Whether the lengths of a point are drawn: its source names those that are fixed.
    pub(super) fn is_drawn_point(&self) -> bool {
        !self.text("source").contains("fixed")
    }

    fn replayed(&self, arrivals: MeasuredArrivals, flags: &str) -> Result<MeasuredTraffic, Error> {
        let of = |key: &str, words: &[&str], limit: &Limit| {
            let stated = self.count(key, limit)?;
            let found = || words.iter().find_map(|words| number_after(flags, words));
            Ok::<_, Error>(stated.or_else(found))
        };
        let sequences = || number_between(flags, "max ", " sequences");
        Ok(MeasuredTraffic {
            arrivals,
            requests: None,
            prefix: None,
            prefix_groups: None,
            distinct_prompts: None,
            goes_on: false,
            max_num_batched_tokens: of("max_num_batched_tokens", &["max_num_batched_tokens"], &STEP_TOKENS)?,
            max_num_seqs: of("max_num_seqs", &["max_num_seqs"], &SEQUENCES)?.or_else(sequences),
            gpu_memory_utilization: None,
            whole_prompts: false,
            delayed_passes: None,
            decodes_after_prefill: None,
            assumed: vec![],
            // Some cells have words after the number.
            cache_tokens: number_after(self.text("kv_cache_tokens"), ""),
            prefill_interval: of(
                "prefill_schedule_interval",
                &["prefill_schedule_interval", "prefill interval"],
                &SEQUENCES,
            )?,
            long_prompt_threshold: of(
                "long_prefill_token_threshold",
                &["long_prefill_token_threshold", "long-prefill threshold"],
                &STEP_TOKENS,
            )?,
        })
    }

    /// The sessions of a row; `assumed` gets what it does not state.
    fn agent_sessions(&self, clients: u64, assumed: &mut Vec<String>) -> Result<AgentSessions, Error> {
        let mut or = |stated: Option<f64>, usual: PublishedFigure| {
            stated.unwrap_or_else(|| {
                assumed.push(format!("{} ({})", usual.words, usual.source));
                usual.value
            })
        };
        let requests = self.positive("requests", &SENT)?;
        let (lasted, e2e) = (self.positive("duration_s", &SECONDS)?, self.positive("e2e_mean_s", &SECONDS)?);
        // A client waits for an answer or thinks.
        let thinks = requests.zip(lasted).zip(e2e);
        let thinks =
            thinks.map(|((requests, lasted), e2e)| (clients as f64 * lasted / requests - e2e).max(0.0));
        let prompt = or(self.positive("mean_input_tokens", &ISL)?, PROMPT);
        let repeated = or(self.positive("hit_rate_theoretical", &ACCEPTANCE)?, REPEATED);
        let output = or(self.positive("mean_output_tokens", &OSL)?, OUTPUT);
        let think_s = or(thinks, THINK_S);
        let lasted_s = or(lasted, LASTED_S);
        assumed.push(SPREADS.to_owned());
        let [mean, median] = OUTPUT_MEAN_AND_MEDIAN;
        let new_tokens = (prompt * (1.0 - repeated)).max(1.0);
        let traffic = AgentTraffic {
            prompt,
            sizes_variation: SIZES_VARIATION,
            longest: LONGEST,
            new_tokens: MeanAndVariation::of_median(new_tokens, NEW_MEDIAN),
            output: MeanAndVariation::of_median(output, output * median / mean),
            think_s: MeanAndVariation::of_quartiles(think_s, WAIT_QUARTILES_S),
        };
        Ok(AgentSessions { traffic, lasted_s })
    }

    /// Mean lengths of the requests of sessions.
    pub(super) fn session_lengths(&self) -> Result<[Option<u64>; 2], Error> {
        let mean = |key, limit, usual: PublishedFigure| {
            Ok::<_, Error>(Some(self.positive(key, limit)?.unwrap_or(usual.value) as u64))
        };
        Ok([mean("mean_input_tokens", &ISL, PROMPT)?, mean("mean_output_tokens", &OSL, OUTPUT)?])
    }

    /// Medians where the row has one, else means.
    pub(super) fn session_metrics(&self) -> Result<MeasuredMetrics, Error> {
        let ms = |key| Ok::<_, Error>(self.positive(key, &SECONDS)?.map(|seconds| 1e3 * seconds));
        let itl = |key| self.positive(key, &MILLISECONDS);
        let hit_rate = self.number("hit_rate_gpu", &ACCEPTANCE)?;
        let medians = (ms("ttft_p50_s")?, itl("itl_p50_ms")?);
        let means = medians == (None, None);
        let (ttft_ms, tpot_ms) = if means { (ms("ttft_mean_s")?, itl("itl_mean_ms")?) } else { medians };
        Ok(MeasuredMetrics { ttft_ms, tpot_ms, hit_rate, means, ..MeasuredMetrics::default() })
    }

    /// The metric of a point.
    pub(super) fn point_metric(&self) -> Result<MeasuredMetrics, Error> {
        let value = self.positive("measured", &MILLISECONDS)?;
        let none = MeasuredMetrics::default();
        Ok(match self.text("metric") {
            "ttft_p50_ms" => MeasuredMetrics { ttft_ms: value, ..none },
            "tpot_p50_ms" => MeasuredMetrics { tpot_ms: value, ..none },
            // Publishers compare them with the means of their simulators.
            "ttft_ms" | "ttft_mean_ms" => MeasuredMetrics { ttft_ms: value, means: true, ..none },
            "tpot_ms" | "tpot_mean_ms" => MeasuredMetrics { tpot_ms: value, means: true, ..none },
            "ttft_s" => MeasuredMetrics { ttft_ms: value.map(|seconds| 1e3 * seconds), means: true, ..none },
            "hit_rate" => MeasuredMetrics { hit_rate: value, ..none },
            _ => none,
        })
    }

    /// Name and version of the runtime of a point: `vllm 0.23.1`; with its draft in brackets: `sglang (mtp 3)`.
    pub(super) fn runtime_of_point(&self) -> (&str, &str) {
        let name = self.text("runtime");
        let versioned =
            name.split_once(' ').filter(|(_, rest)| rest.starts_with(|first: char| first.is_ascii_digit()));
        versioned.unwrap_or((name, ""))
    }

    /// Draft and tokens of a step of a point: `sglang (mtp 3, acceptance 2.49)`.
    pub(super) fn speculation_of_point(&self) -> (Option<String>, Option<f64>) {
        let notes = self.text("runtime").split_once('(').map_or("", |(_, notes)| notes);
        let draft = notes.split([',', ')']).map(str::trim).find(|note| note.starts_with("mtp"));
        let accepted = notes.split_once("acceptance ").map(|(_, after)| after.trim_end_matches(')'));
        (draft.map(str::to_owned), accepted.and_then(|number| number.trim().parse().ok()))
    }

    /// Degrees in one cell: `dp8 ep8`.
    pub(super) fn parallel(&self) -> MeasuredDegrees {
        let text = self.text("parallel");
        let of = |name: &str| {
            let number = |word: &str| word.strip_prefix(name).and_then(|number| number.parse().ok());
            text.split_whitespace().find_map(number).filter(|degree| *degree > 0)
        };
        let one = |degree: Degree| of(degree.key()).unwrap_or(1);
        MeasuredDegrees {
            given: !text.is_empty(),
            workers: None,
            tp: one(Degree::Tp),
            pp: one(Degree::Pp),
            dp: one(Degree::Dp),
            ep: one(Degree::Ep),
        }
    }
}

impl MeasuredDegrees {
    /// The same where a table counts, as SGLang does, the devices of all attention ranks as those of tensor parallelism.
    pub(super) fn of_attention(self, devices: Option<u64>) -> MeasuredDegrees {
        let counted = devices.is_some_and(|devices| self.tp.saturating_mul(self.pp) == devices);
        let within = self.dp > 1 && counted && self.tp.is_multiple_of(self.dp);
        MeasuredDegrees { tp: if within { self.tp / self.dp } else { self.tp }, ..self }
    }
}

impl MeasuredRow {
    /// Joins the metrics of the next row of a table, where it is of the same run.
    pub fn join(&mut self, other: MeasuredRow) -> Option<MeasuredRow> {
        let is_point = |row: &MeasuredRow| row.arm.is_some() && row.is_replayed();
        if !is_point(self) || (&self.id, &self.arm) != (&other.id, &other.arm) {
            return Some(other);
        }
        self.outcome.join(&other.outcome);
        self.unscored.extend(other.unscored);
        None
    }

    /// Whether it is a row of sessions, of a trace, or a published point: simulated, and taken for no fit.
    pub fn is_replayed(&self) -> bool {
        self.traffic.as_ref().is_some_and(|traffic| match traffic.arrivals {
            MeasuredArrivals::Rate { .. } => false,
            MeasuredArrivals::Clients => self.arm.is_some(),
            MeasuredArrivals::Sessions(_) | MeasuredArrivals::Trace(_) => true,
        })
    }

    /// Whether it is a run of one's own with several clients: simulated where the scheduler is, else in closed form.
    pub fn is_of_own_clients(&self) -> bool {
        let clients = |traffic: &MeasuredTraffic| traffic.arrivals == MeasuredArrivals::Clients;
        self.arm.is_none() && self.traffic.as_ref().is_some_and(clients)
    }
}

impl MeasuredMetrics {
    /// Adds the figures of `other`; medians take the place of means.
    fn join(&mut self, other: &MeasuredMetrics) {
        let has_times = |metrics: &MeasuredMetrics| metrics.ttft_ms.is_some() || metrics.tpot_ms.is_some();
        self.hit_rate = self.hit_rate.or(other.hit_rate);
        if !has_times(other) || (other.means && !self.means && has_times(self)) {
            return;
        }
        if self.means != other.means {
            *self = MeasuredMetrics { ttft_ms: None, tpot_ms: None, means: other.means, ..*self };
        }
        self.ttft_ms = self.ttft_ms.or(other.ttft_ms);
        self.tpot_ms = self.tpot_ms.or(other.tpot_ms);
    }
}

/// The whole number after these words of a text.
fn number_after(text: &str, words: &str) -> Option<u64> {
    let (_, after) = text.split_once(words)?;
    let digits: String = after.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|number| *number > 0)
}

/// The whole number between these words of a text.
fn number_between(text: &str, before: &str, after: &str) -> Option<u64> {
    let number = |(at, _): (usize, &str)| {
        let rest = &text[at + before.len()..];
        let (digits, _) = rest.split_once(after)?;
        digits.parse().ok().filter(|number| *number > 0)
    };
    text.match_indices(before).find_map(number)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(cells: &[(&'static str, &'static str)]) -> MeasuredRow {
        let names = [("model", "a/b"), ("hardware", "x"), ("runtime", "vllm")];
        Record(names.into_iter().chain(cells.iter().copied()).collect::<BTreeMap<_, _>>()).measured().unwrap()
    }

    const SESSIONS: [(&str, &str); 12] = [
        ("workload", "AgentX: 393 entries"),
        ("concurrency", "64"),
        ("mean_input_tokens", "126018.6"),
        ("mean_output_tokens", "984.4"),
        ("hit_rate_gpu", "0.93879"),
        ("hit_rate_theoretical", "0.9687"),
        ("ttft_mean_s", "4.7"),
        ("ttft_p50_s", "1.98"),
        ("itl_p50_ms", "20.88"),
        ("requests", "6608"),
        ("duration_s", "3629"),
        ("e2e_mean_s", "25.48"),
    ];

    fn agents(row: &MeasuredRow) -> &AgentSessions {
        match &row.traffic.as_ref().unwrap().arrivals {
            MeasuredArrivals::Sessions(sessions) => sessions,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sessions_are_those_that_the_row_states() {
        let row = read(&SESSIONS);
        let sessions = agents(&row);
        assert_eq!((row.isl, row.osl, row.concurrency), (126_018, 984, Some(64)));
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-3 * other, "{one} {other}");
        let AgentTraffic { new_tokens, output, think_s, .. } = &sessions.traffic;
        near(new_tokens.mean, 126_018.6 * 0.0313);
        near(think_s.mean, 64.0 * 3629.0 / 6608.0 - 25.48);
        near(output.mean, 984.4);
        // What the row states is not assumed; how it is spread is.
        assert_eq!(sessions.lasted_s, 3629.0);
        assert_eq!(row.traffic.as_ref().unwrap().assumed, [SPREADS]);
        // Medians, where there are some.
        assert_eq!((row.outcome.ttft_ms, row.outcome.tpot_ms), (Some(1980.0), Some(20.88)));
        assert_eq!((row.outcome.hit_rate, row.outcome.means), (Some(0.93879), false));
        assert!(row.is_replayed() && row.unscored.is_empty(), "{:?}", row.unscored);
    }

    #[test]
    fn inputs_that_a_row_lacks_are_named_with_their_source() {
        let bare =
            SESSIONS.iter().copied().filter(|(key, _)| !key.starts_with("mean_") && *key != "requests");
        let row = read(&bare.collect::<Vec<_>>());
        let sessions = agents(&row);
        let AgentTraffic { prompt, think_s, .. } = &sessions.traffic;
        assert_eq!((*prompt, think_s.mean, row.osl), (PROMPT.value, THINK_S.value, 1080));
        let assumed = &row.traffic.as_ref().unwrap().assumed;
        assert_eq!(assumed.len(), 4);
        assert!(assumed.iter().any(|input| input.contains("219,000") && input.contains(CORPUS)));
        let trace = read(&[("workload", "Mooncake trace, 5000 requests"), ("hit_rate_theoretical", "")]);
        let traffic = trace.traffic.unwrap();
        assert!(matches!(traffic.arrivals, MeasuredArrivals::Trace(name) if name.starts_with("Mooncake")));
    }

    #[test]
    fn a_cache_has_the_size_that_its_server_said() {
        let of = |text: &'static str| read(&[&SESSIONS[..], &[("kv_cache_tokens", text)]].concat());
        let size = |text| of(text).traffic.unwrap().cache_tokens;
        assert_eq!(
            (size("3300000 (about)"), size("1704256"), size("")),
            (Some(3_300_000), Some(1_704_256), None)
        );
    }

    #[test]
    fn flags_of_the_server_are_read_from_their_columns_and_from_notes() {
        let note = "max_num_batched_tokens 8192 a rank, max 16 sequences a rank, prefill interval 8, \
                    long-prefill threshold 512, retention interval 32768";
        let of = |more: &[(&'static str, &'static str)]| {
            read(&[&SESSIONS[..], &[("note", note)], more].concat()).traffic.unwrap()
        };
        let traffic = of(&[]);
        assert_eq!((traffic.max_num_batched_tokens, traffic.max_num_seqs), (Some(8192), Some(16)));
        assert_eq!((traffic.prefill_interval, traffic.long_prompt_threshold), (Some(8), Some(512)));
        assert_eq!(of(&[("prefill_schedule_interval", "4")]).prefill_interval, Some(4));
    }

    fn point(metric: &'static str, measured: &'static str) -> MeasuredRow {
        read(&[
            ("id", "p"),
            ("runtime", "sglang (2026-09, mtp 3, acceptance 2.49)"),
            ("devices", "8"),
            ("parallel", "tp8 dp8 ep8"),
            ("isl", "8192"),
            ("osl", "1024"),
            ("concurrency", "128"),
            ("metric", metric),
            ("measured", measured),
            ("setting", "prefill_schedule_interval 4"),
        ])
    }

    #[test]
    fn metrics_of_a_point_are_those_of_one_run_and_medians_come_before_means() {
        let mut row = point("output_tok_s", "5834");
        assert_eq!(row.unscored, ["metric output_tok_s"]);
        for (metric, measured) in
            [("ttft_mean_ms", "4124"), ("ttft_p50_ms", "3678"), ("tpot_mean_ms", "17.9")]
        {
            assert_eq!(row.join(point(metric, measured)), None);
        }
        assert_eq!(row.join(point("tpot_p50_ms", "18.2")), None);
        let outcome = row.outcome;
        assert_eq!((outcome.ttft_ms, outcome.tpot_ms, outcome.means), (Some(3678.0), Some(18.2), false));
        let other = MeasuredRow { id: "q".into(), ..point("tpot_ms", "9") };
        assert_eq!(row.join(other.clone()), Some(other));
    }

    #[test]
    fn a_point_has_its_degrees_its_draft_and_its_setting() {
        let row = point("tpot_ms", "17.9");
        // SGLang counts the devices of all attention ranks as those of tensor parallelism.
        let MeasuredDegrees { tp, dp, ep, .. } = row.pools[0];
        assert_eq!((tp, dp, ep), (1, 8, 8));
        assert_eq!((row.isl, row.osl, row.equal_lengths), (7372, 921, false));
        assert_eq!((row.speculative.as_deref(), row.accepted), (Some("mtp 3"), Some(2.49)));
        let traffic = row.traffic.unwrap();
        assert_eq!((traffic.arrivals, traffic.prefill_interval), (MeasuredArrivals::Clients, Some(4)));
        let plain = read(&[
            ("runtime", "vllm 0.23.1"),
            ("metric", "tpot_ms"),
            ("measured", "9"),
            ("parallel", "tp8 ep8"),
        ]);
        assert_eq!((plain.runtime.as_str(), plain.version.as_str()), ("vllm", "0.23.1"));
        assert_eq!((plain.pools[0].tp, plain.pools[0].dp, plain.pools[0].ep), (8, 1, 8));
    }
}
