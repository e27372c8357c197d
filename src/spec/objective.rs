//! Traffic, SLOs and objectives of a problem.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::figure::{Seconds, read};
use super::image::ImageSize;
use super::limits::{CONCURRENCY, E2E, IMAGES, ISL, OSL, RATE, TPOT, TTFT};
use super::percentile::Percentile;

/// A metric of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Time to first token, ms.
    Ttft,
    /// Time per output token after the first, ms.
    Tpot,
    /// Time of a whole request, ms.
    E2e,
    /// Output tokens per second of the whole deployment.
    OutputTokS,
    /// Output tokens per second and device.
    OutputTokSPerDevice,
    /// Output tokens per second of one user.
    OutputTokSPerUser,
    /// USD per million output tokens, prefill work included.
    UsdPerMtok,
    /// Power of the devices, W.
    Watts,
    /// Output tokens per joule.
    TokPerJoule,
    /// Devices in use.
    Devices,
    /// Longest context that fits at this concurrency, tokens.
    MaxContext,
}

/// The better direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Lower is better.
    Minimize,
    /// Higher is better.
    Maximize,
}

/// A metric's name, unit and better direction.
#[derive(Clone, Copy, Debug)]
pub struct MetricEntry {
    /// The metric.
    pub metric: Metric,
    /// Its name in flags and columns.
    pub name: &'static str,
    /// Its name in results, with the unit.
    pub column: &'static str,
    /// Base units per unit of the column.
    pub scale: f64,
    /// The better direction.
    pub direction: Direction,
    /// Definition.
    pub meaning: &'static str,
}

const fn entry(
    metric: Metric,
    name: &'static str,
    column: &'static str,
    scale: f64,
    direction: Direction,
    meaning: &'static str,
) -> MetricEntry {
    MetricEntry { metric, name, column, scale, direction, meaning }
}

/// Every metric; tables, exports and schemas follow this list.
pub static METRICS: &[MetricEntry] = &[
    entry(
        Metric::Ttft,
        "ttft",
        "ttft_ms",
        1e-3,
        Direction::Minimize,
        "time from sending a request to its first output token",
    ),
    entry(
        Metric::Tpot,
        "tpot",
        "tpot_ms",
        1e-3,
        Direction::Minimize,
        "mean time per output token of a request after its first token (mean ITL)",
    ),
    entry(
        Metric::E2e,
        "e2e",
        "e2e_ms",
        1e-3,
        Direction::Minimize,
        "time from sending a request to its last token: TTFT + (OSL - 1) x TPOT",
    ),
    entry(
        Metric::OutputTokS,
        "output_tok_s",
        "output_tok_s",
        1.0,
        Direction::Maximize,
        "output tokens per second of the whole deployment",
    ),
    entry(
        Metric::OutputTokSPerDevice,
        "output_tok_s_per_device",
        "output_tok_s_per_device",
        1.0,
        Direction::Maximize,
        "output tokens per second, per device in use",
    ),
    entry(
        Metric::OutputTokSPerUser,
        "output_tok_s_per_user",
        "output_tok_s_per_user",
        1.0,
        Direction::Maximize,
        "output tokens per second of one user: 1 / TPOT",
    ),
    entry(
        Metric::UsdPerMtok,
        "usd_per_mtok",
        "usd_per_mtok",
        1e-6,
        Direction::Minimize,
        "USD per million output tokens, prefill work included",
    ),
    entry(Metric::Watts, "watts", "watts", 1.0, Direction::Minimize, "power drawn by the devices in use"),
    entry(
        Metric::TokPerJoule,
        "tok_per_joule",
        "tok_per_joule",
        1.0,
        Direction::Maximize,
        "output tokens per joule of the devices",
    ),
    entry(Metric::Devices, "devices", "devices", 1.0, Direction::Minimize, "devices in use"),
    entry(
        Metric::MaxContext,
        "max_context",
        "max_context_tokens",
        1.0,
        Direction::Maximize,
        "longest prompt plus output whose KV cache fits at this concurrency",
    ),
];

impl Metric {
    /// Its line of [`METRICS`].
    pub fn entry(self) -> &'static MetricEntry {
        METRICS.iter().find(|entry| entry.metric == self).expect("METRICS lists every metric")
    }

    /// The metric with this name.
    ///
    /// # Errors
    /// The name is unknown; the fix suggests near names.
    pub fn parse(name: &str) -> Result<Metric, Error> {
        let known = METRICS.iter().find(|entry| entry.name == name.trim() || entry.column == name.trim());
        known.map(|entry| entry.metric).ok_or_else(|| {
            let names: Vec<_> = METRICS.iter().map(|entry| entry.name).collect();
            let fix = super::text::suggest(name, names.iter().copied(), "mantile-opt optimize --help");
            Error::new("", format!("`{name}`"), format!("one of {}", names.join(", ")), fix)
        })
    }
}

/// Latency SLOs: upper limits, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyLimits {
    /// Time to first token.
    #[serde(
        default,
        deserialize_with = "time",
        serialize_with = "spell",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>")]
    pub ttft: Option<f64>,
    /// Time per output token.
    #[serde(
        default,
        deserialize_with = "time",
        serialize_with = "spell",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>")]
    pub tpot: Option<f64>,
    /// End-to-end time of a request.
    #[serde(
        default,
        deserialize_with = "time",
        serialize_with = "spell",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>")]
    pub e2e: Option<f64>,
}

fn time<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| read::<Seconds>(&text).map_err(serde::de::Error::custom)).transpose()
}

fn spell<S: serde::Serializer>(limit: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match limit {
        Some(seconds) => serializer.serialize_str(&format!("{seconds} s")),
        None => serializer.serialize_none(),
    }
}

impl LatencyLimits {
    /// These SLOs; unset ones come from `other`.
    pub fn or(self, other: LatencyLimits) -> LatencyLimits {
        LatencyLimits {
            ttft: self.ttft.or(other.ttft),
            tpot: self.tpot.or(other.tpot),
            e2e: self.e2e.or(other.e2e),
        }
    }

    /// Checks that each SLO is a time in range.
    ///
    /// # Errors
    /// Names the SLO that is out of range.
    pub fn check(&self) -> Result<(), Error> {
        let all = [(&TTFT, self.ttft), (&TPOT, self.tpot), (&E2E, self.e2e)];
        all.into_iter()
            .try_for_each(|(limit, value)| value.map_or(Ok(()), |value| limit.check(limit.name, value)))
    }
}

/// The traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// File name without `.json`.
    pub id: String,
    /// Description.
    pub description: String,
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Prompt tokens that every request shares and that are already cached.
    #[serde(default)]
    pub prefix: u64,
    /// Images per request; their tokens are added to the prompt's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub images: u64,
    /// Size of each image in pixels, e.g. `1024x768`; not needed for encoders of a fixed image size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_size: Option<ImageSize>,
    /// Whether all requests have exactly these lengths, as in some benchmarks; the requests then proceed in step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub equal_lengths: bool,
    /// Concurrent requests over the whole deployment; chosen by the search if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// Required requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Latency percentile that the SLOs apply to, for traffic at a rate; the median if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<Percentile>,
    /// Latency SLOs of the workload.
    #[serde(default)]
    pub limits: LatencyLimits,
    /// Source of the lengths.
    pub source: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Maximum ISL or OSL in tokens, the limit of [`ISL`] and [`OSL`].
pub const MOST_TOKENS: u64 = 100_000_000;

impl Workload {
    /// Checks the constraints that the types do not express.
    ///
    /// # Errors
    /// A length or number is 0 or out of range, or the prefix is as long as the prompt.
    pub fn check(&self) -> Result<(), Error> {
        ISL.check_whole("isl", self.isl)?;
        OSL.check_whole("osl", self.osl)?;
        IMAGES.check_whole("images", self.images)?;
        if self.prefix >= self.isl {
            let found = format!("{} of {} prompt tokens", self.prefix, self.isl);
            let fix = "a request has at least one token of its own";
            return Err(Error::new("prefix", found, "fewer than the prompt tokens", fix));
        }
        self.concurrency.map_or(Ok(()), |number| CONCURRENCY.check_whole("concurrency", number))?;
        self.rate.map_or(Ok(()), |rate| RATE.check("rate", rate))?;
        if self.rate.is_some() && self.concurrency.is_some() {
            let fix = "set either the rate or the concurrency: each determines the other";
            return Err(Error::new("rate", "both rate and concurrency", "one of them", fix));
        }
        if self.percentile.is_some() && self.rate.is_none() {
            let fix =
                "set --rate: percentiles need an arrival rate; closed-loop traffic has only mean latency";
            return Err(Error::new("percentile", "no rate", "an arrival rate", fix));
        }
        self.limits.check()
    }
}

/// One metric to minimise or maximise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveTerm {
    /// The metric.
    pub metric: Metric,
    /// The direction.
    pub direction: Direction,
}

/// An objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// File name without `.json`.
    pub id: String,
    /// Description.
    pub description: String,
    /// The default workload.
    pub workload: String,
    /// SLOs of the objective; they override the workload's.
    #[serde(default)]
    pub limits: LatencyLimits,
    /// Ignores the workload's SLOs.
    #[serde(default)]
    pub ignore_workload_limits: bool,
    /// Aims in lexicographic order: later ones break ties.
    pub optimize: Vec<ObjectiveTerm>,
    /// Metrics of the Pareto front.
    pub pareto: Vec<Metric>,
}

impl Objective {
    /// Checks the constraints that the types do not express.
    ///
    /// # Errors
    /// No aim, or no axis.
    pub fn check(&self) -> Result<(), Error> {
        if self.optimize.is_empty() {
            return Err(Error::new("optimize", "nothing", "at least one metric and direction", "add one"));
        }
        if self.pareto.is_empty() {
            return Err(Error::new("pareto", "no axis", "at least one metric", "add one, e.g. \"tpot\""));
        }
        self.limits.check()
    }
}
