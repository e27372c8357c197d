//! Bounds of regions of disaggregated deployments, and dominance within regions.

use super::PoolPair;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::quantity::tolerance::ROUNDING;
use crate::quantity::unit::{SECOND, TOKEN, WATT};
use crate::search::decode_loads::LoadGap;
use crate::search::point::{Point, place, point};
use crate::search::problem::Traffic;
use crate::search::region::{Loads, Region, Span};
use crate::serving::evaluate::{PoolMetrics, Slowest, judge};
use crate::serving::metrics::{e2e, open_flow};
use crate::spec::objective::Metric;

impl PoolPair<'_, '_> {
    /// Whether every deployment of a region is dominated by a neighbour: one worker fewer in the pool with excess
    /// capacity, or a lighter decode load that the prefill pool still fills.
    pub(super) fn lopsided(&self, span: &Span, region: &Region) -> bool {
        let (prefills, decodes) = (region.prefill_instances, region.decode_instances);
        let carried = |prefills: u64| prefills as f64 * self.prefill.rate;
        let passing = self.moving(span.best.tpot);
        let flow = passing.min(decodes.1 as f64 * span.best.rate);
        // With limited concurrency, fewer prefill workers may cause more queueing.
        let idle_prefill =
            !self.prompts_bound(prefills.1) && carried(prefills.0 - 1) >= flow * (1.0 + ROUNDING);
        let most = carried(prefills.1).min(passing) * (1.0 + ROUNDING);
        let idle_decode = most <= (decodes.0 - 1) as f64 * span.least_rate;
        let lower_rate = match region.loads {
            Loads::Listed(from, _) => from.checked_sub(1).map(|i| self.decode.options[i].rate),
            Loads::Between(gap) => Some(gap.bound.rate),
        };
        let fills = |enough: f64| {
            lower_rate
                .filter(|_| self.required.rate_only())
                .is_some_and(|rate| enough <= decodes.0 as f64 * rate)
        };
        match self.problem.traffic {
            Traffic::Rate(_) => false,
            // A lighter decode load queues more requests for prefill: it is better only with slots for all of them.
            Traffic::InFlight(_) => {
                idle_prefill
                    || idle_decode
                    || self.short_of_slots(region)
                    || fills(passing * (1.0 + ROUNDING))
            }
            Traffic::Free => idle_prefill || idle_decode || fills(most),
        }
    }

    pub(super) fn span(&self, region: &Region) -> Span {
        match region.loads {
            Loads::Listed(from, to) => {
                Span::listed(&self.decode.options[from..=to], self.required.rate_only())
            }
            Loads::Between(gap) => Span::between(&gap, self.problem),
        }
    }

    /// Width of the loads of a region, as a factor on TPOT or rate.
    pub(super) fn spread(&self, region: &Region) -> f64 {
        match region.loads {
            Loads::Listed(from, to) => {
                let (first, last) = (self.decode.options[from], self.decode.options[to]);
                (last.tpot / first.tpot).max(last.rate / first.rate)
            }
            Loads::Between(gap) => gap.loads.1 as f64 / gap.loads.0 as f64,
        }
    }

    /// Whether prefill concurrency is so low that one worker fewer increases queueing.
    pub(super) fn prompts_bound(&self, prefills: u64) -> bool {
        let Some(requests) = self.problem.traffic.in_flight() else { return false };
        let ranks = (prefills * self.prefill.prepared.shape.plan.dp) as f64;
        let queued = (requests - 1.0) / ranks * self.prefill.prepared.prompt.slowest.value();
        queued <= (self.ttft.1 - self.ttft.0) * (1.0 + ROUNDING)
    }

    /// Whether requests wait for slots in every deployment of a region, and at the next heavier load too, which has
    /// higher throughput and a lower E2E latency, at a higher TPOT.
    pub(super) fn short_of_slots(&self, region: &Region) -> bool {
        let (Loads::Listed(_, to), Some(requests)) = (region.loads, self.problem.traffic.in_flight()) else {
            return false;
        };
        let heavier_wins = self.required.rate_only() && !self.required.tpot;
        let Some(heavier) = self.decode.options.get(to + 1).filter(|_| heavier_wins) else { return false };
        let decoding = (self.problem.workload.lengths.osl - 1) as f64 * heavier.tpot;
        let come =
            (requests / (self.ttft.1 + decoding)).min(region.prefill_instances.0 as f64 * self.prefill.rate);
        region.decode_instances.1 as f64 * heavier.rate * (1.0 + ROUNDING) < come
    }

    /// Requests per second at the given concurrency without queueing, at the given TPOT; unlimited where no
    /// concurrency is given.
    fn moving(&self, tpot: f64) -> f64 {
        self.problem.traffic.in_flight().map_or(f64::INFINITY, |requests| {
            let decoding = (self.problem.workload.lengths.osl - 1) as f64 * tpot;
            requests / (self.ttft.0 + decoding)
        })
    }

    /// Upper bound of the throughput at any load of a region: in a sorted list, lighter loads lack slots and heavier
    /// loads have a higher TPOT.
    pub(super) fn passing(&self, span: &Span, region: &Region) -> f64 {
        match region.loads {
            Loads::Listed(from, to) if self.required.rate_only() => {
                let (options, slots) = (&self.decode.options[from..=to], region.decode_instances.1 as f64);
                let short = options.partition_point(|one| slots * one.rate < self.moving(one.tpot));
                self.moving(options[short.saturating_sub(1)].tpot)
            }
            _ => self.moving(span.best.tpot),
        }
    }

    /// The same for all loads of the list and the gaps between them.
    pub(super) fn passing_any(&self, span: &Span, whole: &Region) -> f64 {
        let slots = whole.decode_instances.1 as f64;
        let between = |gap: &LoadGap| self.moving(gap.bound.tpot).min(slots * gap.ideal(0.0).rate);
        self.decode.gaps.iter().map(between).fold(self.passing(span, whole), f64::max)
    }

    pub(super) fn sizes(&self) -> (u64, u64) {
        (self.prefill.prepared.shape.plan.devices(), self.decode.options[0].devices)
    }

    /// Upper bound over a region in every metric.
    pub(super) fn ideal(&self, span: &Span, region: &Region, passing: f64) -> Point {
        let Span { best, .. } = span;
        let terms = self.problem.terms();
        let (prefill_size, decode_size) = self.sizes();
        let (prefills, decodes) = (region.prefill_instances, region.decode_instances);
        let flow = match self.problem.traffic {
            Traffic::Rate(rate) => rate,
            _ => (decodes.1 as f64 * best.rate).min(prefills.1 as f64 * self.prefill.rate).min(passing),
        };
        // Minimum workers of each pool per request/s.
        let least = |count: u64, rate: f64, flow: f64| (count as f64 / flow).max(1.0 / rate);
        let size = |flow: f64| {
            least(prefills.0, self.prefill.rate, flow) * prefill_size as f64
                + least(decodes.0, best.rate, flow) * decode_size as f64
        };
        let flow = flow.min(self.problem.cluster.devices() as f64 / size(flow)) * (1.0 + ROUNDING);
        let per_flow = |a: f64, b: f64| {
            least(prefills.0, self.prefill.rate, flow) * a + least(decodes.0, best.rate, flow) * b
        };
        let watts = terms.power_draw.as_ref().map(|_| {
            let energy = self.prefill.energy
                + least(prefills.0, self.prefill.rate, flow) * self.prefill.idle
                + (least(decodes.0, best.rate, flow) * best.watts).max(best.joules);
            Qty::literal(energy * flow * (1.0 - ROUNDING) * WATT)
        });
        // In a closed loop, requests that do not decode wait for their first token.
        let given = self.problem.traffic.in_flight();
        let waiting = given.map_or(0.0, |requests| {
            let decoding = (self.problem.workload.lengths.osl - 1) as f64 * span.most_tpot;
            requests / flow * (1.0 - ROUNDING) - decoding
        });
        let ttft = Qty::literal(self.ttft.0.max(waiting) * SECOND);
        let tpot = Qty::literal(best.tpot * SECOND);
        let whole = e2e(ttft, tpot, terms.osl);
        // Little's law: concurrency divided by the maximum rate.
        let whole = given
            .map_or(whole, |requests| whole.max(Qty::literal(requests / flow * (1.0 - ROUNDING) * SECOND)));
        let share = PoolMetrics {
            ttft,
            tpot,
            e2e: whole,
            life: whole,
            slowest: Slowest { ttft, tpot, e2e: whole },
            output: open_flow(Qty::from(flow) / Qty::literal(1.0 * SECOND), terms.osl),
            devices: Qty::from(per_flow(prefill_size as f64, decode_size as f64) * flow * (1.0 - ROUNDING)),
            power: watts,
            context: Qty::literal(best.context * TOKEN),
        };
        let mut ideal = point(&judge(&Plain, terms, &share));
        ideal[place(Metric::Devices)] = (prefills.0 * prefill_size + decodes.0 * decode_size) as f64;
        if watts.is_some() {
            ideal[place(Metric::Watts)] =
                (prefills.0 as f64 * self.prefill.idle + decodes.0 as f64 * best.watts) * (1.0 - ROUNDING);
        }
        ideal
    }
}
