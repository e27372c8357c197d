//! Traffic, SLOs and objectives of a problem.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::image::ImageSize;
use super::limits::{CONCURRENCY, E2E, IMAGES, ISL, OSL, RATE, TPOT, TTFT};
use super::metric_table::metric_table;
use super::percentile::Percentile;

/// The better direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Lower is better.
    Minimize,
    /// Higher is better.
    Maximize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricFormat {
    /// A time in the unit that reads best, after the metric's word.
    Time,
    /// A number before the metric's word.
    Number,
    Count,
    /// Whole tokens, rounded down.
    Tokens,
}

/// The input without which a metric is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricInput {
    /// It is always known.
    Nothing,
    Price,
    Power,
}

#[derive(Clone, Copy, Debug)]
pub struct MetricEntry {
    pub metric: Metric,
    /// Its name in flags and columns.
    pub name: &'static str,
    /// Its name in results, with the unit.
    pub column: &'static str,
    /// Base units per unit of the column.
    pub scale: f64,
    pub direction: Direction,
    pub format: MetricFormat,
    /// The input without which it is unknown.
    pub needs: MetricInput,
    /// Its name in a sentence.
    pub word: &'static str,
    /// Its name in the head of a table.
    pub heading: &'static str,
    /// Symbol of the formula that makes it; `None` for a count.
    pub formula: Option<&'static str>,
    pub meaning: &'static str,
    /// Whether it can be an objective and an axis of the front.
    pub searched: bool,
}

impl MetricEntry {
    /// A value in base units as its column shows it.
    pub fn in_column(&self, value: f64) -> f64 {
        match self.format {
            MetricFormat::Tokens => value.floor(),
            MetricFormat::Time | MetricFormat::Number | MetricFormat::Count => value * (1.0 / self.scale),
        }
    }
}

/// Makes the metrics and [`METRICS`] from the rows of the table.
macro_rules! metrics {
    ($($metric:ident {
        name: $name:literal, column: $column:ident, scale: $scale:expr,
        direction: $direction:ident, format: $format:ident, needs: $needs:ident,
        word: $word:literal, heading: $heading:literal, formula: $formula:expr,
        meaning: $meaning:literal,
        $(reported_only: $why:literal,)?
        $(json: $json:ty,)?
    })*) => {
        /// A metric of a candidate. Those that the search compares come first: their number is their place in a point.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Metric {
            $(
                #[doc = $meaning]
                $(
                    #[doc = ""]
                    #[doc = concat!("Neither an objective nor an axis: ", $why)]
                    #[serde(skip_deserializing)]
                )?
                $metric = number(MetricRow::$metric as usize),
            )*
        }

        /// The rows of the table, in its order.
        #[derive(Clone, Copy)]
        enum MetricRow {
            $($metric,)*
        }

        /// Whether the search compares the metric of each row.
        const SEARCHED: &[bool] = &[$({
            let why: &[&str] = &[$($why)?];
            why.is_empty()
        }),*];

        /// Every metric, in the order of the table; reports, glossary and schemas follow it.
        pub static METRICS: &[MetricEntry] = &[$(MetricEntry {
            metric: Metric::$metric,
            name: $name,
            column: stringify!($column),
            scale: $scale,
            direction: Direction::$direction,
            format: MetricFormat::$format,
            needs: MetricInput::$needs,
            word: $word,
            heading: $heading,
            formula: $formula,
            meaning: $meaning,
            searched: SEARCHED[MetricRow::$metric as usize],
        }),*];

        impl Metric {
            /// Its row of the table of metrics.
            #[inline(always)]
            pub fn entry(self) -> &'static MetricEntry {
                match self {
                    $(Metric::$metric => &METRICS[MetricRow::$metric as usize],)*
                }
            }
        }
    };
}

pub const SEARCHED_METRICS: usize = count(SEARCHED.len(), true);

/// Number of the first `rows` rows that are searched, or that are not.
const fn count(rows: usize, searched: bool) -> usize {
    let (mut row, mut found) = (0, 0);
    while row < rows {
        found += (SEARCHED[row] == searched) as usize;
        row += 1;
    }
    found
}

/// Number of the metric of `row`: the searched ones first.
const fn number(row: usize) -> isize {
    let before = count(row, SEARCHED[row]);
    (if SEARCHED[row] { before } else { SEARCHED_METRICS + before }) as isize
}

metric_table!(metrics);

impl Metric {
    /// The metric with this name or column, if the search compares it.
    pub fn parse(name: &str) -> Result<Metric, Error> {
        let searched = || METRICS.iter().filter(|entry| entry.searched);
        let known = searched().find(|entry| entry.name == name.trim() || entry.column == name.trim());
        known.map(|entry| entry.metric).ok_or_else(|| {
            let names: Vec<_> = searched().map(|entry| entry.name).collect();
            let fix = super::near::suggest(name, names.iter().copied(), "mantile-opt optimize --help");
            Error::new("", format!("`{name}`"), format!("one of {}", names.join(", ")), fix)
        })
    }
}

/// Latency SLOs: upper limits, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyLimits {
    /// Time to first token.
    #[serde(default, with = "seconds", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub ttft: Option<f64>,
    /// Time per output token.
    #[serde(default, with = "seconds", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub tpot: Option<f64>,
    /// End-to-end time of a request.
    #[serde(default, with = "seconds", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub e2e: Option<f64>,
}

/// A time limit as text with its unit.
mod seconds {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::spec::figure::{Seconds, read};

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| read::<Seconds>(&text).map_err(D::Error::custom)).transpose()
    }

    pub fn serialize<S: Serializer>(limit: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        match limit {
            Some(seconds) => serializer.serialize_str(&format!("{seconds} s")),
            None => serializer.serialize_none(),
        }
    }
}

impl LatencyLimits {
    /// The SLO of `metric`, in seconds.
    pub fn of(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Ttft => self.ttft,
            Metric::Tpot => self.tpot,
            Metric::E2e => self.e2e,
            _ => None,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == LatencyLimits::default()
    }

    /// These SLOs; unset ones come from `other`.
    pub fn or(self, other: LatencyLimits) -> LatencyLimits {
        LatencyLimits {
            ttft: self.ttft.or(other.ttft),
            tpot: self.tpot.or(other.tpot),
            e2e: self.e2e.or(other.e2e),
        }
    }

    /// Checks that each SLO is a time in range.
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
    /// Different prefixes among the requests; absent means one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_groups: Option<u64>,
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

pub(super) fn is_zero(number: &u64) -> bool {
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
    pub fn check(&self) -> Result<(), Error> {
        if self.optimize.is_empty() {
            return Err(Error::new("optimize", "nothing", "at least one metric and direction", "add one"));
        }
        if self.pareto.is_empty() {
            return Err(Error::new("pareto", "no axis", "at least one metric", "add one, e.g. \"tpot\""));
        }
        let optimized: Vec<Metric> = self.optimize.iter().map(|term| term.metric).collect();
        for (key, listed) in [("optimize", &optimized), ("pareto", &self.pareto)] {
            let twice = (1..listed.len()).find(|at| listed[..*at].contains(&listed[*at]));
            if let Some(at) = twice {
                let found =
                    format!("`{}` a second time, in {} entries", listed[at].entry().name, listed.len());
                let expected = format!("each metric once, so at most {}", METRICS.len());
                return Err(Error::new(format!("{key}[{at}]"), found, expected, "remove it"));
            }
        }
        self.limits.check()
    }
}
