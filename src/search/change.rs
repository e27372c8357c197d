//! The same problem with one change: more memory, faster links, another device, a looser SLO.
//!
//! This module changes problems; it does not solve them.

use std::sync::Arc;

use super::problem::{Formats, Problem, Traffic};
use crate::quantity::datum::Datum;
use crate::serving::economy::{Bill, Owned};
use crate::serving::terms::Lengths;
use crate::spec::objective::Metric;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Additional memory on every device, in bytes.
    Memory(f64),
    /// Factor on memory bandwidth.
    Bandwidth(f64),
    /// Factor on compute throughput.
    Compute(f64),
    /// Factor on the bandwidth of links between devices.
    Links(f64),
    /// One more device in every node of the innermost tier for single-node systems; otherwise one more node.
    Device,
    /// A latency SLO longer by a number of seconds.
    Limit(Metric, f64),
    /// Concurrency.
    InFlight(u64),
    /// Prompt length in tokens, with the same fraction cached as before.
    Prompt(u64),
    /// Factor on the purchase price.
    Purchase(f64),
}

impl Problem {
    /// The problem with one change; `None` where the change does not apply.
    pub fn with_change(&self, change: Change) -> Option<Problem> {
        let times = |datum: &mut Datum, factor: f64| datum.value *= factor;
        match change {
            Change::Memory(bytes) => Some(self.with_machines(|one| one.machine.chip.capacity.value += bytes)),
            Change::Bandwidth(factor) => {
                Some(self.with_machines(|one| times(&mut one.machine.chip.bandwidth, factor)))
            }
            Change::Compute(factor) => Some(self.with_machines(|one| {
                let chip = &mut one.machine.chip;
                [&mut chip.weight_peak, &mut chip.native_peak, &mut chip.attention_peak]
                    .into_iter()
                    .for_each(|peak| times(peak, factor));
            })),
            Change::Links(factor) => (self.cluster.devices() > 1).then(|| {
                self.with_machines(|one| {
                    one.machine.links.iter_mut().for_each(|link| times(&mut link.bandwidth, factor));
                })
            }),
            Change::Device => self.with_more_devices(),
            Change::Limit(metric, seconds) => {
                let mut limits = self.limits;
                let limit = match metric {
                    Metric::Ttft => &mut limits.ttft,
                    Metric::Tpot => &mut limits.tpot,
                    Metric::E2e => &mut limits.e2e,
                    _ => return None,
                };
                *limit = Some((*limit)? + seconds);
                Some(self.with_limits(limits))
            }
            Change::InFlight(requests) => Some(self.with_traffic(Traffic::InFlight(requests.into()))),
            Change::Prompt(isl) => {
                let lengths = self.workload.lengths;
                let longer =
                    self.with_lengths(Lengths { isl, prefix: lengths.prefix.min(isl - 1), ..lengths });
                longer.context_fits().is_ok().then_some(longer)
            }
            Change::Purchase(factor) => match &self.workload.bill {
                Some(Bill::Owned(bill)) => {
                    let purchase = Datum { value: bill.purchase.value * factor, ..bill.purchase.clone() };
                    Some(self.with_bill(Bill::Owned(Owned { purchase, ..bill.clone() })))
                }
                _ => None,
            },
        }
    }

    /// The question whether any deployment meets the conditions. No objective matters: the quickest is the likeliest to meet
    /// the SLOs, and takes neither energy nor cost.
    pub fn feasibility(&self) -> Problem {
        let mut problem = self.optimizing(Metric::E2e);
        problem.any = true;
        problem
    }

    fn with_machines(&self, alter: impl Fn(&mut Formats)) -> Problem {
        let mut problem = self.clone();
        Arc::make_mut(&mut problem.formats).iter_mut().for_each(|one| {
            alter(one);
            one.reread();
        });
        problem
    }

    /// Adds one device, or one node where there are several.
    fn with_more_devices(&self) -> Option<Problem> {
        let mut cluster = self.cluster.clone();
        let last = cluster.tiers.last_mut()?;
        if cluster.nodes > 1 {
            cluster.nodes += 1;
            last.devices += cluster.devices_per_node;
        } else {
            cluster.devices_per_node += 1;
            // An instance lies inside one unit of the innermost tier: with several tiers, one more device does not
            // fit.
            last.devices += 1;
            if cluster.tiers.len() > 1 {
                return None;
            }
        }
        Some(self.with_cluster(cluster))
    }
}
