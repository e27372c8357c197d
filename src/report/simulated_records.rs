//! One record for each request of a simulation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sheet::{self, CsvColumn, known};
use super::simulate::SlowRequest;
use crate::traffic::outcome::{RequestOutcome, RequestRecord};

/// Records that an answer holds, at most; a file holds all.
pub const MOST_RECORDS: usize = 10_000;

/// The life of a request. Times are those that its client sees; they are absent without an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedRequest {
    /// Its number, in order of arrival.
    pub id: u64,
    /// When it was sent, in seconds from the start of the run.
    pub arrival: f64,
    pub isl: u32,
    pub osl: u32,
    /// Tokens of its prompt that were in the cache.
    pub cached_tokens: u32,
    /// Until its first step began.
    pub queue_ms: Option<f64>,
    /// From there to its first token.
    pub prefill_ms: Option<f64>,
    /// From the end of its prefill until a worker that decodes had its cache.
    pub transfer_ms: Option<f64>,
    /// From its first to its last token, without preemptions.
    pub decode_ms: Option<f64>,
    /// In the queue after preemptions.
    pub preempted_ms: Option<f64>,
    pub preemptions: u32,
    pub ttft_ms: Option<f64>,
    /// Absent of a single token too.
    pub tpot_ms: Option<f64>,
    pub e2e_ms: Option<f64>,
    pub outcome: RequestOutcome,
}

impl SimulatedRequest {
    /// A request that was answered, as its client sees it.
    pub fn answered(one: &RequestRecord) -> SimulatedRequest {
        let parts = SlowRequest::of(one);
        SimulatedRequest {
            queue_ms: Some(parts.queue_ms),
            prefill_ms: Some(parts.prefill_ms),
            transfer_ms: Some(parts.transfer_ms),
            decode_ms: Some(parts.decode_ms),
            preempted_ms: Some(parts.preempted_ms),
            ttft_ms: Some(one.ttft_s() * 1e3),
            tpot_ms: one.tpot_s().map(|seconds| seconds * 1e3),
            e2e_ms: Some(parts.e2e_ms),
            ..SimulatedRequest::unanswered(one, RequestOutcome::Answered)
        }
    }

    /// A request that ended without an answer.
    pub fn unanswered(one: &RequestRecord, outcome: RequestOutcome) -> SimulatedRequest {
        SimulatedRequest {
            id: one.id,
            arrival: one.arrived_s,
            isl: one.prompt,
            osl: one.output,
            cached_tokens: one.cached_tokens,
            queue_ms: None,
            prefill_ms: None,
            transfer_ms: None,
            decode_ms: None,
            preempted_ms: None,
            preemptions: one.preemptions,
            ttft_ms: None,
            tpot_ms: None,
            e2e_ms: None,
            outcome,
        }
    }
}

/// The first records of a run, as an answer has them upon request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptRequests {
    /// The first ones that are counted, in order of arrival: 10,000 at most.
    pub requests: Vec<SimulatedRequest>,
    /// Further ones, which only a file holds.
    pub left_out: u64,
}

impl KeptRequests {
    /// Keeps a record, if there is space for it.
    pub fn keep(&mut self, one: &SimulatedRequest) {
        if self.requests.len() < MOST_RECORDS {
            self.requests.push(one.clone());
        } else {
            self.left_out += 1;
        }
    }
}

/// The columns, which `--trace` reads: it uses `arrival`, `isl` and `osl`.
static COLUMNS: &[CsvColumn<SimulatedRequest>] = &[
    ("id", |one| one.id.to_string()),
    ("arrival", |one| one.arrival.to_string()),
    ("isl", |one| one.isl.to_string()),
    ("osl", |one| one.osl.to_string()),
    ("cached_tokens", |one| one.cached_tokens.to_string()),
    ("queue_ms", |one| known(one.queue_ms)),
    ("prefill_ms", |one| known(one.prefill_ms)),
    ("transfer_ms", |one| known(one.transfer_ms)),
    ("decode_ms", |one| known(one.decode_ms)),
    ("preempted_ms", |one| known(one.preempted_ms)),
    ("preemptions", |one| one.preemptions.to_string()),
    ("ttft_ms", |one| known(one.ttft_ms)),
    ("tpot_ms", |one| known(one.tpot_ms)),
    ("e2e_ms", |one| known(one.e2e_ms)),
    ("outcome", |one| one.outcome.name().to_owned()),
];

/// A format of records, line by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFormat {
    Csv,
    /// A JSON object a line.
    JsonLines,
}

impl RecordFormat {
    /// By the ending of a file's name, if it is that of one.
    pub fn of_ending(ending: &str) -> Option<RecordFormat> {
        match ending.to_ascii_lowercase().as_str() {
            "csv" => Some(RecordFormat::Csv),
            "jsonl" => Some(RecordFormat::JsonLines),
            _ => None,
        }
    }

    /// The text before the first record.
    pub fn head(self) -> String {
        match self {
            RecordFormat::Csv => sheet::csv(COLUMNS.iter().map(|(name, _)| *name), []),
            RecordFormat::JsonLines => String::new(),
        }
    }

    /// A record as its line.
    pub fn line(self, one: &SimulatedRequest) -> String {
        match self {
            RecordFormat::Csv => sheet::lines([COLUMNS.iter().map(|(_, cell)| cell(one)).collect()]),
            RecordFormat::JsonLines => {
                format!("{}\n", serde_json::to_string(one).expect("reports have only text keys"))
            }
        }
    }
}
