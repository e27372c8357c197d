//! Decode workers and loads worth pairing with a prefill pool. Within one size and one KV cache size, no option is
//! dominated in the metrics that the problem requires.

use crate::spec::offload::Offload;
use std::collections::BTreeMap;

use super::decode_loads::{DecodeLoads, LoadGap};
use super::load_search;
use super::outcome::Census;
use super::point::Point;
use super::problem::{Problem, Traffic};
use super::region::Span;
use super::required_metrics::RequiredMetrics;
use super::shape::{InstanceConfig, PreparedShape, least};
use crate::plan::parallel::Phase;
use crate::plan::rules::PairKey;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::disaggregated::{context, decode_performance, link_rate};
use crate::serving::residency::cache_per_sequence;
use crate::serving::terms::InstanceLoad;

/// A decode worker at one load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DecodeOption {
    /// Index of the instance configuration.
    pub shape: usize,
    /// Index of its format pair.
    pub formats: usize,
    /// Devices per worker.
    pub devices: u64,
    /// Concurrency of a worker.
    pub concurrency: u64,
    /// Number of workers that the option assumes for given traffic; otherwise 0.
    pub instances: u64,
    /// Time per output token, in seconds.
    pub tpot: f64,
    /// Requests per second that a worker sustains.
    pub rate: f64,
    /// Power of a worker in W; 0 where the problem does not need energy.
    pub watts: f64,
    /// Energy of a worker per request at the rate that its steps allow, in J; 0 where the problem does not need energy.
    pub joules: f64,
    /// Longest context that fits, in tokens; 0 where the problem does not need it.
    pub context: f64,
}

impl DecodeOption {
    /// Whether it is at least as good as a slower option, or one of equal TPOT, in every required metric.
    fn as_good(&self, other: &DecodeOption, required: RequiredMetrics) -> bool {
        self.rate >= other.rate
            && (!required.power || self.rate == other.rate)
            && (!required.queue || self.tpot == other.tpot)
            && self.watts <= other.watts
            && self.context >= other.context
    }

    /// Mean time in which a request decodes, in seconds; NaN where the problem does not need energy.
    pub fn decoding(&self) -> f64 {
        self.joules * self.concurrency as f64 / self.watts
    }
}

/// Key of a class of decode options: formats, devices, KV bytes received per device, number of workers, and key
/// of the prefill workers that they pair with.
type OptionClass = (usize, u64, u64, u64, PairKey);

#[derive(Clone, Debug, Default)]
pub struct DecodeOptionList {
    /// Sorted by increasing TPOT, none dominated.
    pub options: Vec<DecodeOption>,
    /// Gaps between listed loads; only the optimum considers them.
    pub gaps: Vec<LoadGap>,
    /// KV cache bytes of a prompt that each device receives, as bits. All options of a list have the same KV transfer
    /// time.
    pub received: u64,
    /// Bounds over all loads, listed or not. Set by [`DecodeOptions::settle`].
    pub span: Option<Span>,
    /// Number of these loads.
    pub loads: u64,
}

impl DecodeOptionList {
    fn of(lists: &mut BTreeMap<OptionClass, DecodeOptionList>, kind: OptionClass) -> &mut DecodeOptionList {
        lists
            .entry(kind)
            .or_insert_with(|| DecodeOptionList { received: kind.2, ..DecodeOptionList::default() })
    }

    /// Whether a known option is at least as good in every required metric.
    pub(super) fn dominates(&self, other: &DecodeOption, required: RequiredMetrics) -> bool {
        let slower = self.options.partition_point(|known| known.tpot <= other.tpot);
        self.options[..slower].iter().rev().any(|known| known.as_good(other, required))
    }

    pub(super) fn offer(&mut self, option: DecodeOption, required: RequiredMetrics) {
        // Of equals the plainest, which has the lowest index.
        let first = self.options.partition_point(|known| known.tpot < option.tpot);
        let mut alike = self.options[first..].iter_mut().take_while(|known| known.tpot == option.tpot);
        if let Some(known) = alike.find(|known| DecodeOption { shape: option.shape, ..**known } == option) {
            known.shape = known.shape.min(option.shape);
            return;
        }
        if self.dominates(&option, required) {
            return;
        }
        let beaten = |known: &DecodeOption| option.as_good(known, required);
        if required.rate_only() {
            let many = self.options[first..].iter().take_while(|known| beaten(known)).count();
            self.options.splice(first..first + many, [option]);
            return;
        }
        let mut place = 0;
        self.options.retain(|known| {
            place += 1;
            place <= first || !beaten(known)
        });
        self.options.insert(first, option);
    }
}

/// Level of detail at which a configuration is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Every load that may matter.
    Loads,
    /// One load; all others are bounded by a gap.
    Outline,
}

pub struct DecodeOptions {
    lists: BTreeMap<OptionClass, DecodeOptionList>,
    required: RequiredMetrics,
    pub census: Census,
}

/// KV cache bytes of a prompt that each device receives, and prompts per second that the links of a worker can
/// receive.
pub fn kv_transfer(prepared: &PreparedShape) -> (Qty<f64>, f64) {
    let problem = prepared.problem;
    let machine = problem.formats[prepared.shape.formats].plain();
    let received =
        cache_per_sequence(&Plain, &prepared.instance, Phase::Decode, problem.terms().isl, machine);
    (received, link_rate(&Plain, &prepared.instance, (machine, machine.outermost()), received).value())
}

/// `prepared` at a load, with the metrics in `required`. Its links can receive `most` requests per second.
fn at(
    prepared: &PreparedShape,
    (index, concurrency): (usize, u64),
    most: f64,
    required: RequiredMetrics,
) -> DecodeOption {
    let InstanceConfig { formats, plan, .. } = *prepared.shape;
    let (machine, terms) = (prepared.problem.formats[formats].plain(), prepared.problem.terms());
    let load = InstanceLoad { concurrency, offload: Offload::Nothing };
    let one = decode_performance(&Plain, &prepared.instance, machine, terms, &load, &mut ());
    let draw = terms.power_draw.as_ref().filter(|_| required.energy);
    let devices = Qty::from(plan.devices() as f64);
    let watts = draw.map_or(0.0, |draw| one.power(&Plain, &prepared.instance, devices, draw).value());
    let fits = || context(&Plain, &prepared.instance, machine, terms, &load).value();
    DecodeOption {
        shape: index,
        formats,
        devices: plan.devices(),
        concurrency,
        instances: 0,
        tpot: one.tpot.value(),
        rate: one.rate.value().min(most),
        watts,
        joules: watts / one.rate.value(),
        context: if required.context { fits() } else { 0.0 },
    }
}

/// The same configuration at another load.
pub fn reload(prepared: &PreparedShape, option: &DecodeOption, concurrency: u64) -> DecodeOption {
    let (most, required) = (kv_transfer(prepared).1, RequiredMetrics::of(prepared.problem));
    DecodeOption { instances: option.instances, ..at(prepared, (option.shape, concurrency), most, required) }
}

impl DecodeOptions {
    pub fn new(problem: &Problem) -> DecodeOptions {
        DecodeOptions {
            lists: BTreeMap::new(),
            required: RequiredMetrics::of(problem),
            census: Census::default(),
        }
    }

    pub fn lists(&self) -> impl Iterator<Item = &DecodeOptionList> {
        self.lists.values()
    }

    /// Configurations of the options and gaps.
    pub fn shapes(&self) -> impl Iterator<Item = usize> {
        self.lists.values().flat_map(|list| {
            let between = list.gaps.iter().map(|gap| gap.bound.shape);
            list.options.iter().map(|option| option.shape).chain(between)
        })
    }

    /// The metrics that the options are compared by, next to latency and throughput.
    pub fn required(&self) -> RequiredMetrics {
        self.required
    }

    pub fn merge(&mut self, other: DecodeOptions) {
        self.census.add(other.census);
        for (kind, list) in other.lists {
            let known = DecodeOptionList::of(&mut self.lists, kind);
            list.options.into_iter().for_each(|option| known.offer(option, self.required));
            known.gaps.extend(list.gaps);
        }
    }

    /// Drops the gaps that cannot improve on the listed options, and computes the bounds of each list.
    pub fn settle(&mut self, problem: &Problem) {
        for list in self.lists.values_mut() {
            let mut gaps = std::mem::take(&mut list.gaps);
            gaps.retain(|gap| {
                let idle = problem.idle(gap.bound.devices).watts;
                let open = !list.dominates(&gap.ideal(idle), self.required);
                if !open {
                    self.census.discard("outrun", gap.count());
                }
                open
            });
            let between = gaps.iter().map(|gap| Span::between(gap, problem));
            let listed = Span::listed(&list.options, self.required.rate_only());
            list.span = Some(between.fold(listed, Span::union));
            list.loads = list.options.len() as u64 + gaps.iter().map(LoadGap::count).sum::<u64>();
            list.gaps = gaps;
        }
    }

    /// Examines one configuration at the loads that may meet the SLOs. What cannot improve on `known` is left out.
    pub fn explore(
        &mut self,
        prepared: &PreparedShape,
        index: usize,
        (known, leader): (Option<&DecodeOptions>, Option<&Point>),
        depth: Depth,
    ) {
        let (problem, shape) = (prepared.problem, &prepared.shape);
        let usable =
            shape.roles.decode && shape.fits > 0 && !shape.plan.sp && shape.offload == Offload::Nothing;
        let most = problem.capacity().most(shape.plan.devices());
        if !usable || most == 0 {
            return;
        }
        let (received, taken) = kv_transfer(prepared);
        let pairs = problem.runtime.pair_key(&shape.plan);
        let kind =
            |instances| (shape.formats, shape.plan.devices(), received.value().to_bits(), instances, pairs);
        let required = self.required;
        let at = |concurrency: u64, instances: u64| DecodeOption {
            instances,
            ..at(prepared, (index, concurrency), taken, required)
        };
        match problem.traffic {
            Traffic::Free | Traffic::InFlight(_) => {
                let at = |requests| at(prepared.concurrency(requests), 0);
                // At most as many slots as requests.
                let slots = problem
                    .traffic
                    .slots()
                    .map_or(shape.fits, |requests| shape.fits.min(requests.div_ceil(shape.plan.dp)));
                match depth {
                    Depth::Loads => {
                        let rivals = known.and_then(|known| known.lists.get(&kind(0)));
                        self.free((prepared, slots), leader, (kind(0), rivals), &at);
                    }
                    Depth::Outline => self.outline((prepared, slots), kind(0), &at),
                }
            }
            Traffic::Rate(rate) => {
                let at = |requests, instances| at(prepared.concurrency(requests), instances);
                self.given(rate, (prepared, most), &kind, &at);
            }
        }
    }

    /// The least load of 1 to `most` workers that sustains `rate`. Of workers under the same load, the fewest: more of them
    /// only take more devices.
    fn given(
        &mut self,
        rate: f64,
        (prepared, most): (&PreparedShape, u64),
        kind: &dyn Fn(u64) -> OptionClass,
        at: &dyn Fn(u64, u64) -> DecodeOption,
    ) {
        let (fits, stages) = (prepared.shape.fits, prepared.shape.plan.pp);
        let sustained = |requests: u64| at(requests, 0).rate;
        let (mut instances, mut load) = (1, fits + 1);
        while instances <= most && load > 1 {
            let each = rate / instances as f64;
            match least(fits, stages, |requests| sustained(requests) >= each) {
                Some(enough) if enough < load => {
                    load = enough;
                    let option = at(enough, instances);
                    if option.tpot > prepared.tpot_limit() {
                        self.census.discard("latency_limit", 1);
                    } else {
                        DecodeOptionList::of(&mut self.lists, kind(instances)).offer(option, self.required);
                    }
                }
                _ => {}
            }
            // The workers that a lower load takes, which may be one more by rounding.
            let lower = [load - 1, (load - 1) / stages * stages];
            let rates = lower.into_iter().filter(|requests| *requests > 0).map(sustained);
            let fewest = (rate / rates.fold(0.0, f64::max)) as u64;
            instances = fewest.max(instances + 1);
        }
    }

    /// The load of one request, with a gap that bounds all others.
    fn outline(
        &mut self,
        (prepared, slots): (&PreparedShape, u64),
        kind: OptionClass,
        at: &dyn Fn(u64) -> DecodeOption,
    ) {
        let floor = at(1);
        if floor.tpot > prepared.tpot_limit() {
            return;
        }
        let list = DecodeOptionList::of(&mut self.lists, kind);
        list.offer(floor, self.required);
        if slots > 1 {
            let loads = (prepared.concurrency(2), prepared.concurrency(slots));
            let step = prepared.shape.plan.dp;
            let last = at(slots);
            let (slowest, most_tpot) = (last.decoding(), last.tpot);
            list.gaps.push(LoadGap { bound: floor, loads, step, slowest, most_tpot });
        }
    }

    /// Every load from one request to the most `slots` that meets the TPOT SLO.
    fn free(
        &mut self,
        (prepared, slots): (&PreparedShape, u64),
        leader: Option<&Point>,
        (kind, rivals): (OptionClass, Option<&DecodeOptionList>),
        at: &dyn Fn(u64) -> DecodeOption,
    ) {
        let problem = prepared.problem;
        let mut loads = DecodeLoads {
            at,
            dp: prepared.shape.plan.dp,
            problem,
            leader: leader.filter(|_| problem.only_best()),
            limit: prepared.tpot_limit(),
            idle: problem.idle(prepared.shape.plan.devices()).watts,
            required: self.required,
            rivals,
            list: DecodeOptionList::of(&mut self.lists, kind),
            census: &mut self.census,
        };
        load_search::explore(&mut loads, (1, slots), problem.front_sampling.load_steps);
        if loads.list.options.is_empty() {
            self.lists.remove(&kind);
        }
    }
}
