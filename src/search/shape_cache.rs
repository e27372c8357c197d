//! Prepared instance configurations of a search, shared by the modules that pair or mix them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::decode_options::DecodeOption;
use super::point::{Point, place, point};
use super::prefill_options::PrefillOption;
use super::problem::{Problem, Traffic};
use super::shape::PreparedShape;
use super::shapes::Shapes;
use crate::quantity::read::Plain;
use crate::serving::disaggregated::split;
use crate::spec::objective::Metric;

/// All instance configurations of a search; each is prepared on first use.
pub struct ShapeCache<'q> {
    pub problem: &'q Problem,
    pub shapes: &'q Shapes,
    prepared: BTreeMap<usize, OnceLock<PreparedShape<'q>>>,
}

impl<'q> ShapeCache<'q> {
    pub fn new(problem: &'q Problem, shapes: &'q Shapes) -> Self {
        let prepared = shapes.iter().map(|(number, _)| (number, OnceLock::new())).collect();
        ShapeCache { problem, shapes, prepared }
    }

    pub fn get(&self, shape: usize) -> &PreparedShape<'q> {
        let prepare = || PreparedShape::of(self.problem, self.shapes.shared(shape).clone());
        self.prepared[&shape].get_or_init(prepare)
    }

    /// TTFT in seconds, including the KV transfer to a decode worker: without queueing, and with the planned queue.
    /// At low concurrency, a request alone does not queue.
    pub fn first_token(&self, prefill: &PrefillOption, decode: &DecodeOption) -> (f64, f64) {
        let under = |traffic| self.under(traffic, (prefill, 1), (decode, 1))[place(Metric::Ttft)];
        match self.problem.traffic {
            Traffic::InFlight(_) => (under(Traffic::InFlight(1.into())), under(Traffic::Free)),
            traffic => {
                let ttft = under(traffic);
                (ttft, ttft)
            }
        }
    }

    /// Metrics of `prefills` prefill workers and `decodes` decode workers anywhere in the cluster, by the common evaluation
    /// function.
    pub fn at(&self, prefill: &PrefillOption, prefills: u64, decode: &DecodeOption, decodes: u64) -> Point {
        self.under(self.problem.traffic, (prefill, prefills), (decode, decodes))
    }

    fn under(
        &self,
        traffic: Traffic,
        (prefill, prefills): (&PrefillOption, u64),
        (decode, decodes): (&DecodeOption, u64),
    ) -> Point {
        let demand = traffic.demand(&Plain);
        let machine = self.problem.formats[decode.formats].plain();
        let prefill_pool = prefill.prepared.pool(prefills, prefill.prepared.shape.plan.dp);
        let decode_pool = self.get(decode.shape).pool(decodes, decode.concurrency);
        let terms = self.problem.terms();
        let pools = (&[prefill_pool][..], &[decode_pool][..], &[][..]);
        point(&split(&Plain, pools, (machine, machine.outermost()), terms, &demand, &mut ()).metrics)
    }
}
