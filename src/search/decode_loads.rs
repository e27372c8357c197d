//! The loads of one decode worker, as far as they matter, the loads between two listed ones, and a bound on every
//! deployment that a decode worker is part of.

use super::decode_options::{DecodeOption, DecodeOptionList};
use super::load_search::{LoadRange, LoadSearch};
use super::outcome::Census;
use super::point::{Point, place, point};
use super::problem::Problem;
use super::required_metrics::RequiredMetrics;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::quantity::tolerance::ROUNDING;
use crate::quantity::unit::{SECOND, TOKEN, WATT};
use crate::serving::evaluate::{PoolMetrics, Slowest, judge};
use crate::serving::metrics::{e2e, open_flow};
use crate::spec::objective::Metric;

/// Loads of a configuration between two listed loads. None has a lower TPOT than the floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadGap {
    /// The option at the load just below.
    pub bound: DecodeOption,
    /// Range of the concurrency of a worker.
    pub loads: (u64, u64),
    /// Concurrency step between two loads.
    pub step: u64,
    /// Maximum mean time in which a request decodes, in seconds.
    pub slowest: f64,
    /// Maximum TPOT, in seconds.
    pub most_tpot: f64,
}

impl LoadGap {
    pub fn count(&self) -> u64 {
        (self.loads.1 - self.loads.0) / self.step + 1
    }

    /// Its lower and upper half; `reload` evaluates the configuration at another load. The gap must hold at least two
    /// loads.
    pub fn halves(self, reload: impl Fn(&DecodeOption, u64) -> DecodeOption) -> [LoadGap; 2] {
        let steps = (self.loads.1 - self.loads.0) / self.step;
        let middle = self.loads.0 + steps / 2 * self.step;
        let floor = reload(&self.bound, middle);
        [
            LoadGap {
                loads: (self.loads.0, middle),
                slowest: floor.decoding(),
                most_tpot: floor.tpot,
                ..self
            },
            LoadGap { bound: floor, loads: (middle + self.step, self.loads.1), ..self },
        ]
    }

    /// Upper bound over its loads in every metric. A worker draws `idle` W and the energy of its steps, which do not
    /// need less of it at a higher load.
    pub fn ideal(&self, idle: f64) -> DecodeOption {
        let low = &self.bound;
        let more = self.loads.1 as f64 / low.concurrency as f64;
        let busy = (low.watts - idle).max(0.0) * low.decoding() / self.slowest;
        let watts = if low.watts > 0.0 { (idle + busy) * (1.0 - ROUNDING) } else { 0.0 };
        DecodeOption { rate: low.rate * more, watts, joules: low.joules / more * (1.0 - ROUNDING), ..*low }
    }
}

/// The loads of a decode worker. A range of loads is skipped if an option is at least as good as its ideal.
pub(super) struct DecodeLoads<'a> {
    pub(super) problem: &'a Problem,
    /// The best of the rest of the search, where only the optimum is needed.
    pub(super) leader: Option<&'a Point>,
    pub(super) at: &'a dyn Fn(u64) -> DecodeOption,
    /// Concurrency step between two loads.
    pub(super) dp: u64,
    /// SLO of the TPOT, in seconds.
    pub(super) limit: f64,
    /// Power of an idle worker, in W.
    pub(super) idle: f64,
    pub(super) required: RequiredMetrics,
    /// Options of other configurations.
    pub(super) rivals: Option<&'a DecodeOptionList>,
    pub(super) list: &'a mut DecodeOptionList,
    pub(super) census: &'a mut Census,
}

impl DecodeLoads<'_> {
    fn gap(&self, range: &LoadRange<DecodeOption>) -> LoadGap {
        // At a higher load no request decodes in less time.
        let above = range.above.map(|above| above.unwrap_or_else(|missed| missed));
        LoadGap {
            bound: range.low.1,
            loads: ((range.low.0 + 1) * self.dp, range.high * self.dp),
            step: self.dp,
            slowest: above.map_or(f64::INFINITY, |above| above.decoding()),
            most_tpot: above.map_or(f64::INFINITY, |above| above.tpot),
        }
    }
}

impl LoadSearch for DecodeLoads<'_> {
    type Figures = DecodeOption;

    fn see(&mut self, load: u64) -> Result<DecodeOption, DecodeOption> {
        let option = (self.at)(load);
        if option.tpot > self.limit {
            self.discard("latency_limit", 1);
            return Err(option);
        }
        self.list.offer(option, self.required);
        Ok(option)
    }

    fn beaten(&self, range: &LoadRange<DecodeOption>, _: bool) -> Option<&'static str> {
        let most = self.gap(range).ideal(self.idle);
        // Rounding may hide that the ideal is reached.
        let most = DecodeOption { rate: most.rate * (1.0 + 1e-12), ..most };
        if self.leader.is_some_and(|leader| !self.problem.is_better(&most.deployed(self.problem), leader)) {
            return Some("dominated");
        }
        let lists = self.rivals.into_iter().chain([&*self.list]);
        lists.into_iter().any(|list| list.dominates(&most, self.required)).then_some("outrun")
    }

    fn discard(&mut self, reason: &'static str, loads: u64) {
        self.census.discard(reason, loads);
    }

    fn take_between(&mut self, range: &LoadRange<DecodeOption>) -> bool {
        self.list.gaps.push(self.gap(range));
        true
    }
}

impl DecodeOption {
    /// Upper bound in every metric of a deployment with such workers, as if prompts took neither time nor devices.
    pub fn deployed(&self, problem: &Problem) -> Point {
        let terms = problem.terms();
        let seconds = |value: f64| Qty::literal(value * SECOND);
        let (ttft, tpot) = (seconds(0.0), seconds(self.tpot));
        let whole = e2e(ttft, tpot, terms.osl);
        let power = terms.power_draw.as_ref().map(|_| {
            let idle = problem.idle(self.devices).watts;
            Qty::literal(self.watts.max(idle) * WATT)
        });
        let worker = PoolMetrics {
            ttft,
            tpot,
            e2e: whole,
            life: whole,
            slowest: Slowest { ttft, tpot, e2e: whole },
            output: open_flow(Qty::from(self.rate) / seconds(1.0), terms.osl),
            devices: Qty::from(self.devices as f64),
            power,
            context: Qty::literal(f64::INFINITY * TOKEN),
        };
        let mut bound = point(&judge(&Plain, terms, &worker));
        // No more output than if all devices decoded.
        bound[place(Metric::OutputTokS)] *= problem.cluster.devices() as f64 / self.devices as f64;
        bound
    }
}
