//! The run behind a measurement, simulated: how often each batch enters its latencies.
//!
//! A mean TTFT or TPOT is a sum of step times, each as often as its requests waited for such a step. The simulation says
//! how often; the times then follow the constants, so that a fit takes no queue for a slow kernel.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::deployment::PredictedTimes;
use super::sample::{LogMultipliers, STEP, to_peaks, with_multipliers};
use crate::cost::machine::Machine;
use crate::quantity::num::Qty;
use crate::search::simulated_pool::InstanceClock;
use crate::serving::mixed::RankLoad;
use crate::spec::constant::CONSTANTS;
use crate::traffic::outcome::RequestRecord;
use crate::traffic::run::{PoolSettings, run};
use crate::traffic::source::{DrawnTraffic, RequestSource};
use crate::traffic::step_load::{StepClock, StepLoad};

/// The run of one replica.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    pub clock: InstanceClock,
    pub pool: PoolSettings,
    pub traffic: DrawnTraffic,
    /// Requests at the start that no figure counts.
    pub warm_up: u64,
    /// Whether the measured latencies are means; else they are medians.
    pub means: bool,
}

/// Steps of a run in a row, with equal loads but for the tokens that they add.
struct TakenSteps {
    start_s: f64,
    end_s: f64,
    steps: f64,
    load: RankLoad<Qty<f64>>,
}

/// A clock that keeps the steps of a run.
struct RecordingClock<'a> {
    clock: &'a InstanceClock,
    /// The loads that were timed since the last step.
    timed: RefCell<Vec<RankLoad<Qty<f64>>>>,
    taken: RefCell<Vec<TakenSteps>>,
}

impl StepClock for RecordingClock<'_> {
    fn seconds(&self, ranks: &[StepLoad]) -> f64 {
        let Some((load, seconds)) = self.clock.slowest(ranks) else { return 0.0 };
        self.timed.borrow_mut().push(load);
        seconds
    }

    fn taken(&self, start_s: f64, end_s: f64, steps: u32, _: &[StepLoad]) {
        let mut timed = self.timed.borrow_mut();
        if let Some(first) = timed.first() {
            // Each step adds a token to every request that decodes.
            let cached = first.cached + f64::from(steps - 1) / 2.0;
            let load = RankLoad { cached, ..*first };
            self.taken.borrow_mut().push(TakenSteps { start_s, end_s, steps: f64::from(steps), load });
        }
        timed.clear();
    }
}

/// A kind of step, and how often it enters the latencies of a request.
#[derive(Clone, Copy, Debug)]
struct WeightedStep {
    load: RankLoad<Qty<f64>>,
    ttft: f64,
    tpot: f64,
}

/// How often each kind of step enters the latencies.
struct StepWeights(Vec<WeightedStep>);

/// Latencies near the constants of a machine: parts that grow with one constant each, and the rest.
#[derive(Clone, Debug)]
pub struct Expansion {
    /// The changes at which the parts have their size.
    at: LogMultipliers,
    /// Changes below these make no kernel faster: it is at the roofline.
    least: LogMultipliers,
    /// TTFT and TPOT.
    rest: [f64; 2],
    parts: [[f64; 2]; CONSTANTS.len()],
}

impl Expansion {
    /// The latencies with other constants.
    pub fn times(&self, changes: &LogMultipliers) -> PredictedTimes {
        let mut sums = self.rest;
        for (place, part) in self.parts.iter().enumerate() {
            let grown = if part[0] == 0.0 && part[1] == 0.0 {
                1.0
            } else {
                libm::exp(changes[place].max(self.least[place]) - self.at[place])
            };
            sums[0] += part[0] * grown;
            sums[1] += part[1] * grown;
        }
        PredictedTimes { ttft: sums[0], tpot: sums[1] }
    }
}

/// Share of the requests around the median whose mean is taken for it.
const MIDDLE: f64 = 0.3;
/// Loads of one kind differ by this factor at most in the requests, and in the tokens.
const SAME_REQUESTS: f64 = 1.3;
const SAME_TOKENS: f64 = 1.6;

impl MeasuredRun {
    /// Simulates it with the constants of `base` under `changes`, and expands its latencies there; `None` where no
    /// request was answered.
    pub fn expand(&self, base: &Machine<Qty<f64>>, changes: &LogMultipliers) -> Option<Expansion> {
        let clock = InstanceClock { machine: with_multipliers(base, changes), ..self.clock.clone() };
        let weights = self.weights(&clock)?;
        let of = |changes: &LogMultipliers| weights.times(&clock, &with_multipliers(base, changes));
        let here = of(changes);
        let least = to_peaks(base);
        let mut expansion = Expansion {
            at: std::array::from_fn(|place| changes[place].max(least[place])),
            least,
            rest: [here.ttft, here.tpot],
            parts: [[0.0; 2]; CONSTANTS.len()],
        };
        for place in 0..CONSTANTS.len() {
            let mut changed = *changes;
            changed[place] = expansion.at[place] + STEP;
            let there = of(&changed);
            let part = [(there.ttft - here.ttft) / STEP, (there.tpot - here.tpot) / STEP];
            expansion.parts[place] = part;
            expansion.rest[0] -= part[0];
            expansion.rest[1] -= part[1];
        }
        Some(expansion)
    }

    fn weights(&self, clock: &InstanceClock) -> Option<StepWeights> {
        let recording = RecordingClock { clock, timed: RefCell::default(), taken: RefCell::default() };
        let mut records: Vec<RequestRecord> = vec![];
        let mut record = |one: &RequestRecord| records.push(*one);
        let source = RequestSource::new(self.traffic.clone()).pausing(clock.front_end_s());
        run(&self.pool.clone().into(), source, &recording, &mut record, &|| false);
        let taken = recording.taken.into_inner();
        records.retain(|one| one.output > 1 && one.id >= self.warm_up);
        if records.is_empty() {
            return None;
        }
        let of_ttft = self.selected(&records, RequestRecord::ttft_s);
        let of_tpot = self.selected(&records, |one| one.tpot_s().unwrap_or(0.0));
        let share = 1.0 / of_ttft.len() as f64;
        let mut ttft = Spread::new(&taken);
        of_ttft.iter().for_each(|one| ttft.add(one.arrived_s, one.first_token_s, share));
        let mut tpot = Spread::new(&taken);
        let share_of_tpot = 1.0 / of_tpot.len() as f64;
        for one in &of_tpot {
            tpot.add(one.first_token_s, one.last_token_s, share_of_tpot / f64::from(one.output - 1));
        }
        Some(StepWeights(grouped(&taken, &ttft.done(), &tpot.done())))
    }

    /// The requests whose mean is the measured figure: all, or those around the median of `latency`.
    fn selected<'a>(
        &self,
        records: &'a [RequestRecord],
        latency: impl Fn(&RequestRecord) -> f64,
    ) -> Vec<&'a RequestRecord> {
        let mut sorted: Vec<&RequestRecord> = records.iter().collect();
        if self.means {
            return sorted;
        }
        sorted.sort_by(|a, b| latency(a).total_cmp(&latency(b)));
        let count = sorted.len() as f64;
        let first = ((0.5 - MIDDLE / 2.0) * count).floor() as usize;
        let end = ((0.5 + MIDDLE / 2.0) * count).ceil() as usize;
        sorted[first..end.max(first + 1).min(sorted.len())].to_vec()
    }
}

/// Sums, for each of the steps taken, over time spans that contain it.
struct Spread<'a> {
    taken: &'a [TakenSteps],
    /// Changes of the sum from one to the next, and what steps have by themselves.
    changes: Vec<f64>,
    own: Vec<f64>,
}

impl Spread<'_> {
    fn new(taken: &[TakenSteps]) -> Spread<'_> {
        Spread { taken, changes: vec![0.0; taken.len() + 1], own: vec![0.0; taken.len()] }
    }

    /// Adds `weight` to all steps in the span, and its share to the one in which it starts.
    fn add(&mut self, start_s: f64, end_s: f64, weight: f64) {
        let first = self.taken.partition_point(|one| one.end_s <= start_s);
        let end = self.taken.partition_point(|one| one.end_s <= end_s * (1.0 + 1e-12));
        if first >= end {
            return;
        }
        let one = &self.taken[first];
        let part = ((one.end_s - start_s) / (one.end_s - one.start_s)).clamp(0.0, 1.0);
        self.own[first] += weight * part;
        self.changes[first + 1] += weight;
        self.changes[end] -= weight;
    }

    fn done(self) -> Vec<f64> {
        let mut sum = 0.0;
        let each = self.own.iter().zip(&self.changes);
        each.map(|(own, change)| {
            sum += change;
            own + sum
        })
        .collect()
    }
}

/// Like steps together, with the mean of their loads.
fn grouped(taken: &[TakenSteps], ttft: &[f64], tpot: &[f64]) -> Vec<WeightedStep> {
    let level = |number: Qty<f64>, factor: f64| {
        let number = number.value();
        if number > 0.0 { (libm::log(number) / libm::log(factor)).round() as i32 } else { i32::MIN }
    };
    let whole: f64 = taken.iter().zip(tpot).map(|(one, weight)| weight * one.steps).sum();
    let first: f64 = taken.iter().zip(ttft).map(|(one, weight)| weight * one.steps).sum();
    let mut kinds = BTreeMap::<[i32; 4], Vec<(f64, WeightedStep)>>::new();
    for ((one, ttft), tpot) in taken.iter().zip(ttft).zip(tpot) {
        let (ttft, tpot) = (ttft * one.steps, tpot * one.steps);
        // Means of loads, with the same weight for both latencies.
        let weight = ttft / first.max(f64::MIN_POSITIVE) + tpot / whole.max(f64::MIN_POSITIVE);
        if weight <= 0.0 {
            continue;
        }
        let load = one.load;
        let key = [
            level(load.decoding, SAME_REQUESTS),
            level(load.cached, SAME_TOKENS),
            level(load.new_tokens * load.prompts, SAME_TOKENS),
            level(load.prompts, SAME_TOKENS),
        ];
        kinds.entry(key).or_default().push((weight, WeightedStep { load, ttft, tpot }));
    }
    kinds.into_values().map(|steps| mean(&steps)).collect()
}

/// One step for many: the mean load, and the sums of the weights.
fn mean(steps: &[(f64, WeightedStep)]) -> WeightedStep {
    let all: f64 = steps.iter().map(|(weight, _)| weight).sum();
    let of = |pick: fn(&RankLoad<Qty<f64>>) -> Qty<f64>| {
        Qty::from(steps.iter().map(|(weight, one)| weight * pick(&one.load).value()).sum::<f64>() / all)
    };
    WeightedStep {
        load: RankLoad {
            decoding: of(|load| load.decoding),
            cached: of(|load| load.cached),
            prompts: of(|load| load.prompts),
            new_tokens: of(|load| load.new_tokens),
            prompt_cached: of(|load| load.prompt_cached),
            all_decoding: of(|load| load.all_decoding),
            all_new_tokens: of(|load| load.all_new_tokens),
        },
        ttft: steps.iter().map(|(_, one)| one.ttft).sum(),
        tpot: steps.iter().map(|(_, one)| one.tpot).sum(),
    }
}

impl StepWeights {
    /// The latencies on `machine`.
    fn times(&self, clock: &InstanceClock, machine: &Machine<Qty<f64>>) -> PredictedTimes {
        let clock = InstanceClock { machine: machine.clone(), ..clock.clone() };
        let mut times = PredictedTimes { ttft: clock.front_end_s(), tpot: 0.0 };
        for one in &self.0 {
            let seconds = clock.step(&one.load).1.value();
            times.ttft += one.ttft * seconds;
            times.tpot += one.tpot * seconds;
        }
        times
    }
}
