//! Answering shapes and loads worth pairing with a prompt pool: of one size and cache, none is beaten
//! by another in everything that the question looks at.

use std::collections::BTreeMap;

use super::outcome::Census;
use super::question::{Problem, Traffic};
use super::region::Span;
use super::required_metrics::RequiredMetrics;
use super::shape::{InstanceConfig, PreparedShape, largest, least};
use crate::plan::parallel::Phase;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::serving::disaggregated::{answering, context, link_rate};
use crate::serving::residency::cache_per_sequence;
use crate::serving::terms::{InstanceLoad, OffloadTarget};

/// An answering shape at one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecodeOption {
    /// Index of the shape.
    pub shape: usize,
    /// Index of its formats.
    pub formats: usize,
    /// Devices of an instance.
    pub devices: u64,
    /// Requests in flight of an instance.
    pub concurrency: u64,
    /// How many instances it is meant for, where the traffic is stated; else 0.
    pub instances: u64,
    /// Time per output token.
    pub tpot: f64,
    /// Requests per second that an instance makes way for.
    pub rate: f64,
    /// Power of an instance; 0 where the question does not look at energy.
    pub watts: f64,
    /// Longest context that fits; 0 where the question does not look at it.
    pub context: f64,
}

/// Loads of a shape between two that are listed: none of them quicker than the floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadGap {
    /// The shape at a load just below.
    pub floor: DecodeOption,
    /// Requests in flight of an instance, from and to.
    pub loads: (u64, u64),
    /// Requests between one load and the next.
    pub step: u64,
}

impl LoadGap {
    /// How many loads.
    pub fn count(&self) -> u64 {
        (self.loads.1 - self.loads.0) / self.step + 1
    }

    /// Its lower and its upper half; `reload` says what the shape is at another load. Not to be asked of one load.
    pub fn halves(self, reload: impl Fn(&DecodeOption, u64) -> DecodeOption) -> [LoadGap; 2] {
        let steps = (self.loads.1 - self.loads.0) / self.step;
        let middle = self.loads.0 + steps / 2 * self.step;
        let floor = reload(&self.floor, middle);
        [
            LoadGap { loads: (self.loads.0, middle), ..self },
            LoadGap { floor, loads: (middle + self.step, self.loads.1), ..self },
        ]
    }

    /// The most that any load in it could be, in every respect. Its power is at least `idle` W.
    pub fn ideal(&self, idle: f64) -> DecodeOption {
        let more = self.loads.1 as f64 / self.floor.concurrency as f64;
        let watts = if self.floor.watts > 0.0 { idle } else { 0.0 };
        DecodeOption { rate: self.floor.rate * more, watts, ..self.floor }
    }
}

/// What answers of one kind have in common: formats, devices, bytes received per device, and for how
/// many instances they are meant.
type OptionClass = (usize, u64, u64, u64);

/// Answers of one kind.
#[derive(Clone, Debug, Default)]
pub struct DecodeOptionList {
    /// From quick to slow, none beaten.
    pub answers: Vec<DecodeOption>,
    /// Loads in between that only the optimum considers.
    pub gaps: Vec<LoadGap>,
    /// Bytes of a prompt's cache that each device receives, as bits: answers of one list wait alike for it.
    pub received: u64,
    /// What any load, listed or not, is at best. Known once the answers have settled.
    pub span: Option<Span>,
    /// How many loads that are.
    pub loads: u64,
}

impl DecodeOptionList {
    fn of(lists: &mut BTreeMap<OptionClass, DecodeOptionList>, kind: OptionClass) -> &mut DecodeOptionList {
        lists
            .entry(kind)
            .or_insert_with(|| DecodeOptionList { received: kind.2, ..DecodeOptionList::default() })
    }

    /// Whether a known answer is as good in all that counts.
    fn outruns(&self, other: &DecodeOption, looks: RequiredMetrics) -> bool {
        let slower = self.answers.partition_point(|known| known.tpot <= other.tpot);
        let as_good = |known: &DecodeOption| {
            known.rate >= other.rate
                && (!looks.power || known.rate == other.rate)
                && known.watts <= other.watts
                && known.context >= other.context
        };
        self.answers[..slower].iter().rev().any(as_good)
    }

    fn offer(&mut self, answer: DecodeOption, looks: RequiredMetrics) {
        if self.outruns(&answer, looks) {
            return;
        }
        let from = self.answers.partition_point(|known| known.tpot < answer.tpot);
        let beaten = |known: &DecodeOption| {
            known.rate <= answer.rate
                && (!looks.power || known.rate == answer.rate)
                && known.watts >= answer.watts
                && known.context <= answer.context
        };
        if looks.pace_alone() {
            let many = self.answers[from..].iter().take_while(|known| beaten(known)).count();
            self.answers.splice(from..from + many, [answer]);
            return;
        }
        let mut place = 0;
        self.answers.retain(|known| {
            place += 1;
            place <= from || !beaten(known)
        });
        self.answers.insert(from, answer);
    }
}

/// How closely a shape is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// At every load that may matter.
    Loads,
    /// At one load; what all others could be at best is a gap.
    Outline,
}

/// Answers by kind.
pub struct DecodeOptions {
    lists: BTreeMap<OptionClass, DecodeOptionList>,
    looks: RequiredMetrics,
    /// What became of the candidates.
    pub census: Census,
}

/// What each device of a shape receives of a prompt's cache, and how many prompts a second an instance's links take.
pub fn receipt(question: &Problem, laid: &PreparedShape) -> (Qty<f64>, f64) {
    let machine = question.formats[laid.shape.formats].plain();
    let received = cache_per_sequence(&Plain, &laid.instance, Phase::Decode, question.terms().isl, machine);
    (received, link_rate(&Plain, &laid.instance, machine, received).value())
}

/// `laid` at a load, as far as `looks` says; its links take `most` requests per second.
fn at(
    question: &Problem,
    laid: &PreparedShape,
    (index, concurrency): (usize, u64),
    most: f64,
    looks: RequiredMetrics,
) -> DecodeOption {
    let InstanceConfig { formats, plan, .. } = *laid.shape;
    let machine = question.formats[formats].plain();
    let load = InstanceLoad { concurrency, offload: OffloadTarget::Nothing };
    let terms = question.terms();
    let one = answering(&Plain, &laid.instance, machine, terms, &load, &mut ());
    let draw = terms.draw.as_ref().filter(|_| looks.energy);
    let devices = Qty::from(plan.devices() as f64);
    let fits = || context(&Plain, &laid.instance, machine, terms, &load).value();
    DecodeOption {
        shape: index,
        formats,
        devices: plan.devices(),
        concurrency,
        instances: 0,
        tpot: one.tpot.value(),
        rate: one.rate.value().min(most),
        watts: draw.map_or(0.0, |draw| one.drawn(&Plain, &laid.instance, devices, draw).value()),
        context: if looks.context { fits() } else { 0.0 },
    }
}

/// The same shape at another load.
pub fn reload(
    question: &Problem,
    laid: &PreparedShape,
    answer: &DecodeOption,
    concurrency: u64,
) -> DecodeOption {
    DecodeOption {
        instances: answer.instances,
        ..at(
            question,
            laid,
            (answer.shape, concurrency),
            receipt(question, laid).1,
            RequiredMetrics::of(question),
        )
    }
}

impl DecodeOptions {
    /// None yet.
    pub fn new(question: &Problem) -> DecodeOptions {
        DecodeOptions {
            lists: BTreeMap::new(),
            looks: RequiredMetrics::of(question),
            census: Census::default(),
        }
    }

    /// The lists.
    pub fn lists(&self) -> impl Iterator<Item = &DecodeOptionList> {
        self.lists.values()
    }

    /// Whether nothing but pace counts, so that each later answer of a list carries more.
    pub fn by_pace(&self) -> bool {
        self.looks.pace_alone()
    }

    /// Takes others in.
    pub fn merge(&mut self, other: DecodeOptions) {
        self.census.add(other.census);
        for (kind, list) in other.lists {
            let known = DecodeOptionList::of(&mut self.lists, kind);
            list.answers.into_iter().for_each(|answer| known.offer(answer, self.looks));
            known.gaps.extend(list.gaps);
        }
    }

    /// Drops the gaps in which nothing can be better than what is listed, and sums each list up.
    pub fn settle(&mut self, question: &Problem) {
        for list in self.lists.values_mut() {
            let mut gaps = std::mem::take(&mut list.gaps);
            gaps.retain(|gap| {
                let idle = question.idle(gap.floor.devices).watts;
                let open = !list.outruns(&gap.ideal(idle), self.looks);
                if !open {
                    self.census.discard("outrun", gap.count());
                }
                open
            });
            let between = gaps.iter().map(|gap| Span::between(gap, question));
            let listed = Span::listed(&list.answers, self.looks.pace_alone());
            list.span = Some(between.fold(listed, Span::together));
            list.loads = list.answers.len() as u64 + gaps.iter().map(LoadGap::count).sum::<u64>();
            list.gaps = gaps;
        }
    }

    /// Looks at one shape at the loads that may keep the limits.
    pub fn survey(&mut self, question: &Problem, laid: &PreparedShape, index: usize, depth: Depth) {
        let shape = laid.shape;
        let usable = shape.fits > 0 && !shape.plan.sp && shape.offload == OffloadTarget::Nothing;
        let most = question.room().most(shape.plan.devices());
        if !usable || most == 0 {
            return;
        }
        let (received, taken) = receipt(question, laid);
        let kind = |instances| (shape.formats, shape.plan.devices(), received.value().to_bits(), instances);
        let looks = self.looks;
        let at = |concurrency: u64, instances: u64| DecodeOption {
            instances,
            ..at(question, laid, (index, concurrency), taken, looks)
        };
        let mut offer = |answer: DecodeOption| {
            DecodeOptionList::of(&mut self.lists, kind(answer.instances)).offer(answer, looks);
        };
        match question.traffic {
            Traffic::Free | Traffic::InFlight(_) => {
                let at = |requests| at(laid.concurrency(requests), 0);
                // No more slots than there are requests.
                let slots = match question.traffic {
                    Traffic::InFlight(requests) => shape.fits.min(requests.div_ceil(shape.plan.dp)),
                    _ => shape.fits,
                };
                match depth {
                    Depth::Loads => self.free(question, (laid, slots), kind(0), &at),
                    Depth::Outline => self.outline((question, slots), laid, kind(0), &at),
                }
            }
            Traffic::Rate(rate) => {
                for instances in 1..=most {
                    let each = rate / instances as f64;
                    let carries = |requests| at(laid.concurrency(requests), 0).rate >= each;
                    if let Some(enough) = least(shape.fits, shape.plan.pp, carries) {
                        offer(at(laid.concurrency(enough), instances));
                    }
                }
            }
        }
    }

    /// One request, and what more could be at best.
    fn outline(
        &mut self,
        (question, slots): (&Problem, u64),
        laid: &PreparedShape,
        kind: OptionClass,
        at: &dyn Fn(u64) -> DecodeOption,
    ) {
        let floor = at(1);
        if question.limits.tpot.is_some_and(|limit| floor.tpot > limit) {
            return;
        }
        let list = DecodeOptionList::of(&mut self.lists, kind);
        list.offer(floor, self.looks);
        if slots > 1 {
            let loads = (laid.concurrency(2), laid.concurrency(slots));
            list.gaps.push(LoadGap { floor, loads, step: laid.shape.plan.dp });
        }
    }

    /// Every load from one request to the most `slots` that keep the TPOT limit.
    fn free(
        &mut self,
        question: &Problem,
        (laid, slots): (&PreparedShape, u64),
        kind: OptionClass,
        at: &dyn Fn(u64) -> DecodeOption,
    ) {
        let (looks, dp) = (self.looks, laid.shape.plan.dp);
        let idle = question.idle(laid.shape.plan.devices()).watts;
        let limit = question.limits.tpot.unwrap_or(f64::INFINITY);
        let within = largest(slots, |requests| at(requests).tpot <= limit);
        self.census.discard("latency_limit", slots - within);
        if within == 0 {
            return;
        }
        let list = DecodeOptionList::of(&mut self.lists, kind);
        let loads = loads(within, question.front_sampling.every_load_up_to);
        let see = |list: &mut DecodeOptionList, place: usize| {
            let answer = at(loads[place]);
            list.offer(answer, looks);
            answer
        };
        let last = loads.len() - 1;
        let mut between = vec![(0, last, see(list, 0))];
        see(list, last);
        while let Some((low, high, floor)) = between.pop() {
            if high == low || loads[high] - loads[low] < 2 {
                continue;
            }
            let inside = (laid.concurrency(loads[low] + 1), laid.concurrency(loads[high] - 1));
            let gap = LoadGap { floor, loads: inside, step: dp };
            let most = gap.ideal(idle);
            // Rounding may hide that the ideal is reached.
            if list.outruns(&DecodeOption { rate: most.rate * (1.0 + 1e-12), ..most }, looks) {
                self.census.discard("outrun", loads[high] - loads[low] - 1);
                continue;
            }
            if high - low == 1 {
                list.gaps.push(gap);
                continue;
            }
            let middle = low + (high - low) / 2;
            let there = see(list, middle);
            between.push((low, middle, floor));
            between.push((middle, high, there));
        }
    }
}

/// The loads that are listed: every one at first, then in steps of one part in `every`, and the last.
fn loads(within: u64, every: u64) -> Vec<u64> {
    let next = |&load: &u64| Some(load + (load / every).max(1));
    let mut loads: Vec<u64> =
        std::iter::successors(Some(1), next).take_while(|&load| load < within).collect();
    loads.push(within);
    loads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_every_one_at_first_and_end_at_the_last() {
        assert_eq!(loads(1, 32), [1]);
        assert_eq!(loads(3, 32), [1, 2, 3]);
        let many = loads(1000, 32);
        assert_eq!(many[..64], (1..=64).collect::<Vec<_>>());
        assert_eq!(many.last(), Some(&1000));
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] <= pair[0].div_ceil(32).max(1)));
    }
}
