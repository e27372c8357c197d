//! Answering shapes and loads worth pairing with a prompt pool: of one size and cache, none is outrun
//! by another that is at least as quick.

use std::collections::BTreeMap;

use super::outcome::Census;
use super::question::{Question, Traffic};
use super::shape::{Laid, Shape, largest, least};
use crate::plan::parallel::Phase;
use crate::quantity::read::Plain;
use crate::serving::evaluate::decode_pool;
use crate::serving::residency::cache_per_sequence;
use crate::serving::terms::{Load, Offload};

/// Up to so many requests of a rank every load stands on the front; beyond, steps of 1/32.
pub const EVERY_LOAD_UP_TO: u64 = 32;

/// An answering shape at one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
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
}

/// What answers of one kind have in common: formats, devices, bytes received per device, and for how
/// many instances they are meant.
type Kind = (usize, u64, u64, u64);

/// Answers by kind, each list from quick to slow, later ones carrying more.
#[derive(Default)]
pub struct Answers {
    lists: BTreeMap<Kind, Vec<Answer>>,
    /// What became of the candidates.
    pub census: Census,
}

/// Sizes that fill domains without gaps.
pub fn even(question: &Question, shape: &Shape) -> bool {
    let (devices, domain) = (shape.plan.devices(), question.cluster.domain());
    domain % devices == 0 || devices % domain == 0
}

impl Answers {
    /// The lists.
    pub fn lists(&self) -> impl Iterator<Item = &Vec<Answer>> {
        self.lists.values()
    }

    /// Whether a known answer is as quick and carries as much.
    fn outruns(&self, kind: &Kind, tpot: f64, rate: f64) -> bool {
        let Some(list) = self.lists.get(kind) else { return false };
        let slower = list.partition_point(|known| known.tpot <= tpot);
        slower > 0 && list[slower - 1].rate >= rate
    }

    fn offer(&mut self, kind: Kind, answer: Answer) {
        if self.outruns(&kind, answer.tpot, answer.rate) {
            return;
        }
        let list = self.lists.entry(kind).or_default();
        let from = list.partition_point(|known| known.tpot < answer.tpot);
        let beaten = list[from..].iter().take_while(|known| known.rate <= answer.rate).count();
        list.splice(from..from + beaten, [answer]);
    }

    /// Takes others in.
    pub fn merge(&mut self, other: Answers) {
        self.census.add(other.census);
        for (kind, list) in other.lists {
            list.into_iter().for_each(|answer| self.offer(kind, answer));
        }
    }

    /// Looks at one shape at every load that may keep the limits.
    pub fn survey(&mut self, question: &Question, shapes: &[Shape], index: usize) {
        let shape = &shapes[index];
        let usable = shape.fits > 0 && !shape.plan.sp && shape.offload == Offload::Nothing;
        if !usable || !even(question, shape) {
            return;
        }
        let laid = Laid::new(question, shape);
        let machine = question.formats[shape.formats].plain();
        let received =
            cache_per_sequence(&Plain, &laid.instance, Phase::Decode, question.terms().isl, machine);
        let kind = |instances| (shape.formats, shape.plan.devices(), received.value().to_bits(), instances);
        let at = |concurrency: u64, instances: u64| {
            let load = Load { concurrency, offload: Offload::Nothing };
            let (tpot, rate) = decode_pool(&Plain, &laid.instance, machine, question.terms(), &load);
            let (formats, devices) = (shape.formats, shape.plan.devices());
            Answer {
                shape: index,
                formats,
                devices,
                concurrency,
                instances,
                tpot: tpot.value(),
                rate: rate.value(),
            }
        };
        let most = question.cluster.devices() / shape.plan.devices();
        match question.traffic {
            Traffic::Free => {
                self.free(question, &laid, kind(0), &|requests| at(laid.concurrency(requests), 0))
            }
            Traffic::InFlight(requests) => {
                for instances in 1..=most.min(requests) {
                    let each = requests.div_ceil(instances);
                    if each <= laid.concurrency(shape.fits) {
                        self.offer(kind(instances), at(each, instances));
                    }
                }
            }
            Traffic::Rate(rate) => {
                for instances in 1..=most {
                    let each = rate / instances as f64;
                    let carries = |requests| at(laid.concurrency(requests), 0).rate >= each;
                    if let Some(enough) = least(shape.fits, shape.plan.pp, carries) {
                        self.offer(kind(instances), at(laid.concurrency(enough), instances));
                    }
                }
            }
        }
    }

    /// Every load from one request to the largest that fits and keeps the TPOT limit.
    fn free(&mut self, question: &Question, laid: &Laid, kind: Kind, at: &dyn Fn(u64) -> Answer) {
        let limit = question.limits.tpot.unwrap_or(f64::INFINITY);
        let within = largest(laid.shape.fits, |requests| at(requests).tpot <= limit);
        self.census.candidates += laid.shape.fits;
        self.census.prune("latency_limit", laid.shape.fits - within);
        if within == 0 {
            return;
        }
        let loads = loads(within);
        let see = |answers: &mut Answers, place: usize| {
            let answer = at(loads[place]);
            answers.offer(kind, answer);
            answer
        };
        let last = loads.len() - 1;
        let mut between = vec![(0, last, see(self, 0))];
        see(self, last);
        while let Some((low, high, answer)) = between.pop() {
            if high - low < 2 {
                continue;
            }
            // Between two loads nothing is quicker than the lower one or carries more than the higher
            // would at that pace.
            let most = answer.rate * (loads[high - 1] as f64 / loads[low] as f64);
            if self.outruns(&kind, answer.tpot, most * (1.0 + 1e-12)) {
                self.census.prune("outrun", (high - low - 1) as u64);
                continue;
            }
            let middle = low + (high - low) / 2;
            let there = see(self, middle);
            between.push((low, middle, answer));
            between.push((middle, high, there));
        }
    }
}

/// The loads that are looked at: every one at first, then in steps of 1/32, and the last.
fn loads(within: u64) -> Vec<u64> {
    let next = |&load: &u64| Some(load + (load / EVERY_LOAD_UP_TO).max(1));
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
        assert_eq!(loads(1), [1]);
        assert_eq!(loads(3), [1, 2, 3]);
        let many = loads(1000);
        assert_eq!(many[..64], (1..=64).collect::<Vec<_>>());
        assert_eq!(many.last(), Some(&1000));
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] <= pair[0].div_ceil(32).max(1)));
    }
}
