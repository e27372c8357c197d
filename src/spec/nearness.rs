//! The distance of a problem from the measurements, and the prediction error at that distance.
//!
//! Every reason that applies counts: an unseen model, unseen hardware, a load beyond all measured ones. Each has its
//! interval, from predictions of rows held out for the same reason; the combination is as wide as the widest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::runtime::ServingFit;

/// The distance of a problem from the measurements, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nearness {
    /// Model, device, runtime and weight format were measured in combination, at similar loads.
    Measured,
    /// Device and runtime were measured in combination, the model elsewhere.
    HardwareAndRuntime,
    /// Lengths or concurrency per rank are beyond all measurements here.
    Load,
    /// The model was never measured.
    Model,
    /// The device was measured, under another runtime.
    Hardware,
    /// Other devices of the vendor were measured, under this runtime.
    Vendor,
    /// The processor of a host computes all of the model or a part.
    Processor,
    /// Disaggregated: measured, but no constant was fitted to it.
    Split,
    /// Layers are divided over hosts: no constant was fitted to collectives on a network.
    Hosts,
    /// The runtime was measured on no device of this vendor, or nowhere: its constants are borrowed.
    Nothing,
}

/// Quantiles of measured / predicted over held-out data: p10, p50, p90.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The nearness that it applies to.
    pub near: Nearness,
    /// Of TTFT.
    pub ttft: [f64; 3],
    /// Of TPOT.
    pub tpot: [f64; 3],
    /// Of the output rate.
    pub throughput: [f64; 3],
    /// The data, their number and the remaining error.
    pub source: String,
}

impl Nearness {
    /// Its name in files, and its meaning in words.
    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Nearness::Measured => {
                ("measured", "this model, device, runtime and weight format were measured at similar loads")
            }
            Nearness::HardwareAndRuntime => {
                ("hardware_and_runtime", "this device and runtime were measured, this model elsewhere")
            }
            Nearness::Load => ("load", "the lengths or the load per rank are beyond those measured here"),
            Nearness::Model => ("model", "this model was never measured"),
            Nearness::Hardware => ("hardware", "this device was measured, with another runtime"),
            Nearness::Vendor => {
                ("vendor", "other devices of this vendor were measured with this runtime, this one was not")
            }
            Nearness::Processor => (
                "processor",
                "a processor computes, as in published runs of one request at a time on other processors",
            ),
            Nearness::Split => {
                ("split", "disaggregated serving was measured, but no constant is fitted to it")
            }
            Nearness::Hosts => (
                "hosts",
                "layers are divided over hosts, and no constant is fitted to collectives between them",
            ),
            Nearness::Nothing => (
                "nothing",
                "this runtime was measured on no device of this vendor: its constants are borrowed",
            ),
        }
    }

    pub fn name(self) -> &'static str {
        self.texts().0
    }

    pub fn words(self) -> &'static str {
        self.texts().1
    }
}

/// Quantiles with the prediction as their median: constants are fitted so that as many measurements are above as below.
pub fn around_prediction([low, _, high]: [f64; 3]) -> [f64; 3] {
    [low.min(1.0), 1.0, high.max(1.0)]
}

impl Interval {
    /// With the prediction as its median.
    pub fn around_prediction(self) -> Interval {
        Interval {
            ttft: around_prediction(self.ttft),
            tpot: around_prediction(self.tpot),
            throughput: around_prediction(self.throughput),
            ..self
        }
    }

    /// As wide as both; the median and the name are those of the farther one.
    pub fn widest(&self, other: &Interval) -> Interval {
        let (far, near) = if self.near >= other.near { (self, other) } else { (other, self) };
        let wide = |of: fn(&Interval) -> &[f64; 3]| {
            let ([low, middle, high], [a, _, b]) = (*of(far), *of(near));
            [low.min(a), middle, high.max(b)]
        };
        Interval {
            near: far.near,
            ttft: wide(|one| &one.ttft),
            tpot: wide(|one| &one.tpot),
            throughput: wide(|one| &one.throughput),
            source: widest_of(&far.source, &near.source),
        }
    }
}

/// Start of the source of an interval that covers several.
const WIDEST: &str = "the widest of: ";

/// The sources of two intervals, each once.
fn widest_of(far: &str, near: &str) -> String {
    fn parts(source: &str) -> impl Iterator<Item = &str> {
        source.trim_start_matches(WIDEST).split("; ")
    }
    let more = parts(near).filter(|source| parts(far).all(|known| known != *source));
    let sources: Vec<&str> = parts(far).chain(more).collect();
    let start = if sources.len() > 1 { WIDEST } else { "" };
    format!("{start}{}", sources.join("; "))
}

/// One model on one device in one weight format, with the measured range of each setting.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredAt {
    /// The model's architecture and parameter count.
    pub model: String,
    /// The device.
    pub hardware: String,
    /// The weight format.
    pub weight_format: String,
    /// Prompt tokens.
    pub isl: [u64; 2],
    /// Output tokens.
    pub osl: [u64; 2],
    /// Requests per attention rank.
    pub requests: [u64; 2],
}

/// Choices under a TPOT SLO that must be met with stated odds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChoicesAtOdds {
    /// The odds.
    pub odds: f64,
    /// Share of the choices that meets the SLO as measured.
    pub limit_met: f64,
    /// Mean throughput regret of these; null where none does.
    pub regret: Option<f64>,
}

/// Held-out prediction errors of a fit.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The kind of held-out group, in words.
    pub name: String,
    /// Number of predicted rows.
    pub rows: usize,
    /// Median and p90 of the absolute TPOT error.
    pub tpot: Option<[f64; 2]>,
    /// The same for TTFT.
    pub ttft: Option<[f64; 2]>,
    /// Share of rows whose TPOT is between p10 and p90 of the other held-out groups.
    pub tpot_covered: Option<f64>,
    /// The same for TTFT.
    pub ttft_covered: Option<f64>,
    /// Number of choices under a TPOT SLO.
    pub choices: Option<usize>,
    /// Share of these choices that meets the SLO as measured.
    pub limit_met: Option<f64>,
    /// Mean throughput regret against the best measured configuration.
    pub regret: Option<f64>,
    /// The same where the SLO must be met with stated odds, by the errors of the other held-out groups.
    #[serde(default)]
    pub at_odds: Vec<ChoicesAtOdds>,
}

/// The deployments whose predictions have the same errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// Replicas whose layers are divided inside a host.
    Aggregated,
    /// Replicas with a part that the host's processor computes.
    OnProcessor,
    /// Replicas with layers divided over hosts.
    OverHosts,
    /// Pools for each phase.
    Disaggregated,
}

/// A value for each class of deployments.
#[derive(Clone, Debug)]
pub struct ByErrorClass<T> {
    pub aggregated: T,
    /// The most requests per rank that were measured, and the value of loads beyond. Fewer are the simpler case: the same
    /// steps with smaller batches.
    pub beyond: Option<(u64, T)>,
    /// With one request per rank, as measured, and with more.
    pub on_processor: [T; 2],
    pub over_hosts: T,
    pub disaggregated: T,
}

pub type PredictionIntervals = ByErrorClass<Interval>;

impl<T> ByErrorClass<T> {
    /// The value of a class at this number of requests per rank.
    #[inline(always)]
    pub fn at(&self, class: ErrorClass, requests: u64) -> &T {
        match (class, &self.beyond) {
            (ErrorClass::Disaggregated, _) => &self.disaggregated,
            (ErrorClass::OverHosts, _) => &self.over_hosts,
            (ErrorClass::OnProcessor, _) => &self.on_processor[usize::from(requests > 1)],
            // Clearly more than the most that were measured.
            (_, Some((most, beyond))) if requests as f64 > *most as f64 * AROUND => beyond,
            _ => &self.aggregated,
        }
    }

    pub fn map<U>(self, to: impl Fn(T) -> U) -> ByErrorClass<U> {
        ByErrorClass {
            aggregated: to(self.aggregated),
            beyond: self.beyond.map(|(most, beyond)| (most, to(beyond))),
            on_processor: self.on_processor.map(&to),
            over_hosts: to(self.over_hosts),
            disaggregated: to(self.disaggregated),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct FitQuery<'a> {
    pub device: &'a Device,
    pub weight_format: &'a str,
    /// The model, as [`MeasuredAt::model`] has it.
    pub model: &'a str,
    /// ISL and OSL.
    pub lengths: (u64, u64),
}

/// Settings within this factor of the measured range count as measured: lengths of most rows are drawn between 80 and
/// 100 % of the nominal ones.
const AROUND: f64 = 1.25;

/// Whether `value` is near the measured range.
pub fn around([least, most]: [u64; 2], value: u64) -> bool {
    let value = value as f64;
    value * AROUND >= least as f64 && value <= most as f64 * AROUND
}

impl ServingFit {
    /// The reasons for a problem's distance from the measurements, whatever its load; nearest first, at least one.
    pub fn near(&self, query: &FitQuery) -> Vec<Nearness> {
        let maker = format!("{}-", query.device.vendor.name());
        let of_maker = |id: &String| id.starts_with(&maker) || id == query.device.measured_as();
        if !self.measured_on.iter().any(of_maker) {
            return vec![Nearness::Nothing];
        }
        let on = |ids: &[String]| ids.iter().any(|id| id == query.device.measured_as());
        let here = on(&self.measured_on);
        let mut found = Vec::new();
        if !here {
            let anywhere = on(&self.measured_anywhere);
            found.push(if anywhere { Nearness::Hardware } else { Nearness::Vendor });
        }
        // The profile of an earlier fit does not list the measured models.
        if self.measured.is_empty() {
            if here {
                found.push(Nearness::HardwareAndRuntime);
            }
            return found;
        }
        let own = self.like(query).iter().any(|one| one.is(query));
        if !own && !self.models.iter().any(|model| model == query.model) {
            found.push(Nearness::Model);
        } else if !own && here {
            found.push(Nearness::HardwareAndRuntime);
        }
        let (isl, osl) = query.lengths;
        if !self.like(query).iter().any(|one| around(one.isl, isl) && around(one.osl, osl)) {
            found.push(Nearness::Load);
        }
        if found.is_empty() {
            found.push(Nearness::Measured);
        }
        found.sort();
        found
    }

    /// The measured range of requests per rank at lengths near those of the problem.
    pub fn requests(&self, query: &FitQuery) -> Option<[u64; 2]> {
        let (isl, osl) = query.lengths;
        let like = self.like(query);
        let near = like.iter().filter(|one| around(one.isl, isl) && around(one.osl, osl));
        near.map(|one| one.requests).reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
    }

    /// Measurements of the problem's model on its device and in its format; else of any on the device; else all.
    pub fn like(&self, query: &FitQuery) -> Vec<&MeasuredAt> {
        let own: Vec<_> = self.measured.iter().filter(|one| one.is(query)).collect();
        if !own.is_empty() {
            return own;
        }
        let here: Vec<_> =
            self.measured.iter().filter(|one| one.hardware == query.device.measured_as()).collect();
        if here.is_empty() { self.measured.iter().collect() } else { here }
    }

    /// The prediction interval for problems with these reasons; none where one of them was never evaluated.
    pub fn interval(&self, why: &[Nearness]) -> Option<Interval> {
        let of = |near: &Nearness| self.intervals.iter().find(|interval| interval.near == *near);
        let mut all = Vec::new();
        for near in why {
            all.push(of(near)?.clone());
        }
        all.into_iter().reduce(|a, b| a.widest(&b))
    }
}

impl MeasuredAt {
    fn is(&self, query: &FitQuery) -> bool {
        self.model == query.model
            && self.hardware == query.device.measured_as()
            && self.weight_format == query.weight_format
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(near: Nearness, [low, middle, high]: [f64; 3]) -> Interval {
        let ends = [low, middle, high];
        Interval { near, ttft: ends, tpot: ends, throughput: ends, source: String::new() }
    }

    proptest! {
        #[test]
        fn what_is_far_for_two_reasons_is_no_surer_than_for_one(
            (a, b, c, d) in (0.1..0.9, 1.1..9.0, 0.1..0.9, 1.1..9.0),
        ) {
            let one = interval(Nearness::Model, [a, 1.0, b]);
            let other = interval(Nearness::Vendor, [c, 1.1, d]);
            let both = one.widest(&other);
            for each in [&one, &other] {
                prop_assert!(both.tpot[0] <= each.tpot[0] && both.tpot[2] >= each.tpot[2]);
            }
            prop_assert_eq!((both.near, both.tpot[1]), (Nearness::Vendor, 1.1));
        }
    }

    #[test]
    fn a_source_is_named_once() {
        let both = widest_of("a", "b");
        assert_eq!(both, "the widest of: a; b");
        for (far, near, all) in [
            ("a", "a", "a"),
            (&both, &both, &both),
            (&both, "a", &both),
            ("b", &both, "the widest of: b; a"),
            (&both, "c", "the widest of: a; b; c"),
        ] {
            assert_eq!(widest_of(far, near), all, "{far}, {near}");
        }
    }

    #[test]
    fn a_quarter_beyond_is_around() {
        let range = [100, 1000];
        let inside = [80, 100, 500, 1250].map(|value| around(range, value));
        assert_eq!(inside, [true; 4]);
        assert!(!around(range, 79) && !around(range, 1251));
    }
}
