//! How near a question is to what was measured, and how far off predictions are for questions as near.
//!
//! A question is far for every reason that holds: an unseen model, unseen hardware, a load beyond all measured ones.
//! Each has its interval, from predictions of rows that were left out for the same reason; together they are as wide as
//! the widest of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::runtime::ServingFit;

/// How near a question is to what was measured, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nearness {
    /// Model, device, runtime and weight format were measured together, under loads around this one.
    Measured,
    /// Device and runtime were measured together, and the model elsewhere.
    HardwareAndRuntime,
    /// Lengths or requests of a rank lie beyond all that were measured here.
    Load,
    /// The model was measured nowhere.
    Model,
    /// The device was measured, under another runtime.
    Hardware,
    /// Other devices of its maker were, under this runtime.
    Vendor,
    /// Prefill and decode are apart: measured too, but no constant was fitted to it.
    Split,
    /// The runtime was measured on no device of this maker, or nowhere: its constants are borrowed.
    Nothing,
}

/// Quantiles of measured over predicted, over data that was left out of the fit: p10, p50, p90.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// For questions this near.
    pub near: Nearness,
    /// Of the time to first token.
    pub ttft: [f64; 3],
    /// Of the time per output token.
    pub tpot: [f64; 3],
    /// Of the output rate.
    pub throughput: [f64; 3],
    /// The data, their number and what error is left.
    pub source: String,
}

impl Nearness {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Nearness::Measured => "measured",
            Nearness::HardwareAndRuntime => "hardware_and_runtime",
            Nearness::Load => "load",
            Nearness::Model => "model",
            Nearness::Hardware => "hardware",
            Nearness::Vendor => "vendor",
            Nearness::Split => "split",
            Nearness::Nothing => "nothing",
        }
    }
}

impl Interval {
    /// As wide as both; the median and the name are the farther one's.
    pub fn widest(&self, other: &Interval) -> Interval {
        let (far, near) = if self.near >= other.near { (self, other) } else { (other, self) };
        let wide = |of: fn(&Interval) -> &[f64; 3]| {
            let ([low, middle, high], [a, _, b]) = (*of(far), *of(near));
            [low.min(a), middle, high.max(b)]
        };
        let source = if far.source == near.source {
            far.source.clone()
        } else {
            format!("the wider ends of: {}; {}", far.source, near.source)
        };
        Interval {
            near: far.near,
            ttft: wide(|one| &one.ttft),
            tpot: wide(|one| &one.tpot),
            throughput: wide(|one| &one.throughput),
            source,
        }
    }
}

/// One model on one device in one weight format, as far as it was measured: the least and the most of each setting.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredAt {
    /// The model's architecture and its number of parameters.
    pub model: String,
    /// The device.
    pub hardware: String,
    /// The weight format.
    pub weight_format: String,
    /// Prompt tokens.
    pub isl: [u64; 2],
    /// Output tokens.
    pub osl: [u64; 2],
    /// Requests of an attention rank.
    pub requests: [u64; 2],
}

/// What a fit predicted of rows while their like was left out of it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// What was left out, in words.
    pub name: String,
    /// Rows that were predicted.
    pub rows: usize,
    /// Median absolute error of the time per output token, and the one that nine in ten stay below.
    pub tpot: Option<[f64; 2]>,
    /// The same of the time to first token.
    pub ttft: Option<[f64; 2]>,
    /// Share of rows whose time per output token lies between p10 and p90 of the other groups left out so.
    pub tpot_covered: Option<f64>,
    /// The same of the time to first token.
    pub ttft_covered: Option<f64>,
    /// Choices under a limit on the time per output token.
    pub choices: Option<usize>,
    /// Share of these that meet the limit as measured.
    pub limit_met: Option<f64>,
    /// Median throughput that these give up against the best measured.
    pub regret: Option<f64>,
    /// Share that meets the limit where it is held at the p90.
    pub limit_met_p90: Option<f64>,
    /// Median throughput that these give up.
    pub regret_p90: Option<f64>,
}

/// How far off answers to a question may be.
#[derive(Clone, Debug)]
pub struct PredictionIntervals {
    /// Where the same instances prefill and decode.
    pub together: Interval,
    /// The least and the most requests of a rank that were measured, and the interval of loads beyond.
    pub beyond: Option<([u64; 2], Interval)>,
    /// Where prefill and decode are apart.
    pub split: Interval,
}

impl PredictionIntervals {
    /// The interval for pools apart or not, with so many requests of a rank.
    pub fn of(&self, split: bool, requests: u64) -> &Interval {
        match &self.beyond {
            _ if split => &self.split,
            Some((measured, beyond)) if !around(*measured, requests) => beyond,
            _ => &self.together,
        }
    }
}

/// What is asked of a fit.
#[derive(Clone, Copy, Debug)]
pub struct FitQuery<'a> {
    /// The device.
    pub device: &'a Device,
    /// The weight format.
    pub weight_format: &'a str,
    /// The model, as [`MeasuredAt::model`] has it.
    pub model: &'a str,
    /// Prompt and output tokens.
    pub lengths: (u64, u64),
}

/// Settings so many times beyond what was measured still count as measured: lengths of most rows are drawn between 80
/// and 100 % of the nominal ones.
const AROUND: f64 = 1.25;

/// Whether `value` lies around the least and the most that were measured.
pub fn around([least, most]: [u64; 2], value: u64) -> bool {
    let value = value as f64;
    value * AROUND >= least as f64 && value <= most as f64 * AROUND
}

impl ServingFit {
    /// Why a question is far from what was measured, whatever its number of requests; nearest first, at least one.
    pub fn near(&self, asked: &FitQuery) -> Vec<Nearness> {
        let maker = format!("{}-", asked.device.vendor);
        let of_maker = |id: &String| id.starts_with(&maker) || *id == asked.device.id;
        if !self.measured_on.iter().any(of_maker) {
            return vec![Nearness::Nothing];
        }
        let here = self.measured_on.contains(&asked.device.id);
        let mut found = Vec::new();
        if !here {
            let anywhere = self.measured_anywhere.contains(&asked.device.id);
            found.push(if anywhere { Nearness::Hardware } else { Nearness::Vendor });
        }
        // A profile of an earlier fit does not say which models were measured.
        if self.measured.is_empty() {
            if here {
                found.push(Nearness::HardwareAndRuntime);
            }
            return found;
        }
        let own = self.like(asked).iter().any(|one| one.is(asked));
        if !own && !self.models.iter().any(|model| model == asked.model) {
            found.push(Nearness::Model);
        } else if !own && here {
            found.push(Nearness::HardwareAndRuntime);
        }
        let (isl, osl) = asked.lengths;
        if !self.like(asked).iter().any(|one| around(one.isl, isl) && around(one.osl, osl)) {
            found.push(Nearness::Load);
        }
        if found.is_empty() {
            found.push(Nearness::Measured);
        }
        found.sort();
        found
    }

    /// The least and the most requests of a rank that were measured under lengths around those asked for.
    pub fn requests(&self, asked: &FitQuery) -> Option<[u64; 2]> {
        let (isl, osl) = asked.lengths;
        let like = self.like(asked);
        let near = like.iter().filter(|one| around(one.isl, isl) && around(one.osl, osl));
        near.map(|one| one.requests).reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
    }

    /// What was measured of the question's model on its device and in its format; else of any on the device; else all.
    fn like(&self, asked: &FitQuery) -> Vec<&MeasuredAt> {
        let own: Vec<_> = self.measured.iter().filter(|one| one.is(asked)).collect();
        if !own.is_empty() {
            return own;
        }
        let here: Vec<_> = self.measured.iter().filter(|one| one.hardware == asked.device.id).collect();
        if here.is_empty() { self.measured.iter().collect() } else { here }
    }

    /// How far off predictions may be for questions that are far for these reasons; none where one of them was never
    /// looked at.
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
    fn is(&self, asked: &FitQuery) -> bool {
        self.model == asked.model
            && self.hardware == asked.device.id
            && self.weight_format == asked.weight_format
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
    fn a_quarter_beyond_is_around() {
        let range = [100, 1000];
        let inside = [80, 100, 500, 1250].map(|value| around(range, value));
        assert_eq!(inside, [true; 4]);
        assert!(!around(range, 79) && !around(range, 1251));
    }
}
