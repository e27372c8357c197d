//! The same question with one thing changed: more memory, faster links, another device, a looser limit.
//!
//! Knows how a question changes, not what comes of it.

use super::question::{Formats, Problem, Traffic};
use crate::quantity::datum::Datum;
use crate::serving::economy::{Bill, Owned};
use crate::serving::terms::Lengths;
use crate::spec::objective::Metric;

/// One thing that is changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// So many bytes more memory on every device.
    Memory(f64),
    /// Memory so many times as fast.
    Bandwidth(f64),
    /// Arithmetic so many times as fast.
    Compute(f64),
    /// Links between devices so many times as fast.
    Links(f64),
    /// One device more in every node of the innermost tier, of systems of one node; else one node more.
    Device,
    /// A limit so many seconds longer.
    Limit(Metric, f64),
    /// So many requests in flight.
    InFlight(u64),
    /// Prompts of so many tokens, as much of them cached as before.
    Prompt(u64),
    /// A purchase so many times as dear.
    Purchase(f64),
}

impl Problem {
    /// The question with one thing changed; none where there is no such thing to change.
    pub fn changed(&self, change: Change) -> Option<Problem> {
        let times = |datum: &mut Datum, factor: f64| datum.value *= factor;
        match change {
            Change::Memory(bytes) => Some(self.driven(|one| one.machine.chip.capacity.value += bytes)),
            Change::Bandwidth(factor) => {
                Some(self.driven(|one| times(&mut one.machine.chip.bandwidth, factor)))
            }
            Change::Compute(factor) => Some(self.driven(|one| {
                let chip = &mut one.machine.chip;
                [&mut chip.weight_peak, &mut chip.native_peak, &mut chip.attention_peak]
                    .into_iter()
                    .for_each(|peak| times(peak, factor));
            })),
            Change::Links(factor) => (self.cluster.devices() > 1).then(|| {
                self.driven(|one| {
                    one.machine.links.iter_mut().for_each(|link| times(&mut link.bandwidth, factor));
                })
            }),
            Change::Device => self.larger(),
            Change::Limit(metric, seconds) => {
                let mut limits = self.limits;
                let limit = match metric {
                    Metric::Ttft => &mut limits.ttft,
                    Metric::Tpot => &mut limits.tpot,
                    Metric::E2e => &mut limits.e2e,
                    _ => return None,
                };
                *limit = Some((*limit)? + seconds);
                let mut question = self.clone();
                question.limits = limits;
                Some(question)
            }
            Change::InFlight(requests) => {
                let mut question = self.clone();
                question.traffic = Traffic::InFlight(requests);
                Some(question)
            }
            Change::Prompt(isl) => {
                let lengths = self.stated.lengths;
                let longer =
                    self.with_lengths(Lengths { isl, prefix: lengths.prefix.min(isl - 1), ..lengths });
                longer.context_fits().is_ok().then_some(longer)
            }
            Change::Purchase(factor) => match &self.stated.bill {
                Some(Bill::Owned(bill)) => {
                    let purchase = Datum { value: bill.purchase.value * factor, ..bill.purchase.clone() };
                    Some(self.billed(Bill::Owned(Owned { purchase, ..bill.clone() })))
                }
                _ => None,
            },
        }
    }

    /// With other figures in every pair of formats.
    fn driven(&self, alter: impl Fn(&mut Formats)) -> Problem {
        let mut question = self.clone();
        question.formats.iter_mut().for_each(|one| {
            alter(one);
            one.reread();
        });
        question
    }

    /// With one device more, or one node more where there are several.
    fn larger(&self) -> Option<Problem> {
        let mut cluster = self.cluster.clone();
        let last = cluster.tiers.last_mut()?;
        if cluster.nodes > 1 {
            cluster.nodes += 1;
            last.devices += cluster.devices_per_node;
        } else {
            cluster.devices_per_node += 1;
            // An instance lies inside one unit of the innermost tier: several tiers leave no place for one more.
            last.devices += 1;
            if cluster.tiers.len() > 1 {
                return None;
            }
        }
        Some(self.on(cluster))
    }
}
