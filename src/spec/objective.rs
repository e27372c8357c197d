//! What is asked: the traffic, the limits, and what to minimise or maximise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::figure::{Seconds, read};
use super::image::ImageSize;
use super::limits::{CONCURRENCY, E2E, IMAGES, ISL, OSL, RATE, TPOT, TTFT};
use super::percentile::Percentile;

/// Something that a candidate is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Time to first token, ms.
    Ttft,
    /// Time per output token after the first, ms.
    Tpot,
    /// Time of a whole request, ms.
    E2e,
    /// Output tokens a second of the whole deployment.
    OutputTokS,
    /// Output tokens a second and device.
    OutputTokSPerDevice,
    /// Output tokens a second that one user sees.
    OutputTokSPerUser,
    /// US dollars per million output tokens, the prompts' work included.
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

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Less is better.
    Minimize,
    /// More is better.
    Maximize,
}

/// A metric's name, unit and good direction.
#[derive(Clone, Copy, Debug)]
pub struct MetricEntry {
    /// The metric.
    pub metric: Metric,
    /// Its name in flags and columns.
    pub name: &'static str,
    /// Its name in the results, with the unit.
    pub column: &'static str,
    /// How many base units one of the column's unit has.
    pub scale: f64,
    /// Which way is better.
    pub direction: Direction,
    /// What it means.
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
        "mean time per output token after the first, of one request (its mean ITL)",
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
        "the same, per device in use",
    ),
    entry(
        Metric::OutputTokSPerUser,
        "output_tok_s_per_user",
        "output_tok_s_per_user",
        1.0,
        Direction::Maximize,
        "the pace one user sees: 1 / TPOT",
    ),
    entry(
        Metric::UsdPerMtok,
        "usd_per_mtok",
        "usd_per_mtok",
        1e-6,
        Direction::Minimize,
        "US dollars per million output tokens, the prompts' work included",
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
        "longest prompt plus answer whose cache fits at this concurrency",
    ),
];

impl Metric {
    /// Its line of [`METRICS`].
    pub fn entry(self) -> &'static MetricEntry {
        METRICS.iter().find(|entry| entry.metric == self).expect("METRICS lists every metric")
    }

    /// The metric called `name`.
    ///
    /// # Errors
    /// There is none of that name; near names are suggested.
    pub fn parse(name: &str) -> Result<Metric, Error> {
        let known = METRICS.iter().find(|entry| entry.name == name.trim() || entry.column == name.trim());
        known.map(|entry| entry.metric).ok_or_else(|| {
            let names: Vec<_> = METRICS.iter().map(|entry| entry.name).collect();
            let fix = super::text::suggest(name, names.iter().copied(), "mantile-opt optimize --help");
            Error::new("", format!("`{name}`"), format!("one of {}", names.join(", ")), fix)
        })
    }
}

/// Upper limits on latency, in seconds.
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
    /// Whole request.
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
    /// These limits, and where one is unset, the other's.
    pub fn or(self, other: LatencyLimits) -> LatencyLimits {
        LatencyLimits {
            ttft: self.ttft.or(other.ttft),
            tpot: self.tpot.or(other.tpot),
            e2e: self.e2e.or(other.e2e),
        }
    }

    /// Checks that each is a time.
    ///
    /// # Errors
    /// Names the one that is outside its limits.
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
    /// What it stands for.
    pub description: String,
    /// Prompt tokens.
    pub isl: u64,
    /// Output tokens.
    pub osl: u64,
    /// Prompt tokens that every request shares and that a cache holds already.
    #[serde(default)]
    pub prefix: u64,
    /// Images of each request; their tokens come on top of the prompt's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub images: u64,
    /// Size of each image in pixels, e.g. `1024x768`; encoders that bring all images to one size need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_size: Option<ImageSize>,
    /// Whether all requests have exactly these lengths, as benchmarks may: they then move in step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub equal_lengths: bool,
    /// Requests in flight over the whole deployment; chosen by the search where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// Requests per second that must be carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Which part of the requests latencies and their limits are of, where they come at a rate; the median request's
    /// where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<Percentile>,
    /// Latency limits that go with it.
    #[serde(default)]
    pub limits: LatencyLimits,
    /// Where the lengths come from.
    pub source: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Longest prompt or answer, in tokens: what [`ISL`] and [`OSL`] allow.
pub const MOST_TOKENS: u64 = 100_000_000;

impl Workload {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// A length or number is zero or beyond reason, or the prefix is as long as the prompt.
    pub fn check(&self) -> Result<(), Error> {
        ISL.check_whole("isl", self.isl)?;
        OSL.check_whole("osl", self.osl)?;
        IMAGES.check_whole("images", self.images)?;
        if self.prefix >= self.isl {
            let found = format!("{} of {} prompt tokens", self.prefix, self.isl);
            let fix = "a request has at least one token of its own";
            return Err(Error::new("prefix", found, "fewer than the prompt has", fix));
        }
        self.concurrency.map_or(Ok(()), |number| CONCURRENCY.check_whole("concurrency", number))?;
        self.rate.map_or(Ok(()), |rate| RATE.check("rate", rate))?;
        if self.rate.is_some() && self.concurrency.is_some() {
            let fix = "state the rate of arrivals or the requests in flight: each follows from the other";
            return Err(Error::new("rate", "both rate and concurrency", "one of them", fix));
        }
        if self.percentile.is_some() && self.rate.is_none() {
            let fix = "state --rate: of requests that follow one another only the typical latency is known";
            return Err(Error::new("percentile", "no rate", "requests that come at a rate", fix));
        }
        self.limits.check()
    }
}

/// One thing to make as small or as large as can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveTerm {
    /// Judged by this.
    pub metric: Metric,
    /// This way.
    pub direction: Direction,
}

/// What to look for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// File name without `.json`.
    pub id: String,
    /// What it is for.
    pub description: String,
    /// The traffic it is meant for, unless another is stated.
    pub workload: String,
    /// Limits that go with it, tighter than the workload's or in their place.
    #[serde(default)]
    pub limits: LatencyLimits,
    /// Do not take the workload's limits over.
    #[serde(default)]
    pub ignore_workload_limits: bool,
    /// What to optimise; later ones decide between equals.
    pub optimize: Vec<ObjectiveTerm>,
    /// Axes of the Pareto front.
    pub pareto: Vec<Metric>,
}

impl Objective {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Nothing to optimise, or no axis.
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
