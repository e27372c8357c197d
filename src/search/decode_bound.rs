//! A bound on every deployment that a decode worker is part of.

use super::decode_options::DecodeOption;
use super::point::{Point, place, point};
use super::problem::Problem;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::quantity::unit::{SECOND, TOKEN, WATT};
use crate::serving::evaluate::{PoolMetrics, Slowest, judge};
use crate::serving::metrics::{e2e, open_flow};
use crate::spec::objective::Metric;

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
