//! The loads of one decode worker, as far as they matter.

use super::decode_options::{DecodeOption, DecodeOptionList};
use super::load_gap::LoadGap;
use super::load_search::{LoadRange, LoadSearch};
use super::outcome::Census;
use super::point::Point;
use super::problem::Problem;
use super::required_metrics::RequiredMetrics;

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
