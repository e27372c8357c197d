//! The shapes of a search, laid out once for all who pair or mix them. Knows no space.

use std::sync::OnceLock;

use super::decode_options::DecodeOption;
use super::point::{Point, place, point};
use super::prefill_options::PrefillOption;
use super::question::{Problem, Traffic};
use super::shape::{InstanceConfig, PreparedShape};
use crate::quantity::read::Plain;
use crate::serving::disaggregated::split;
use crate::spec::objective::Metric;

/// All shapes of a search; each is laid out when it is first needed.
pub struct ShapeCache<'q> {
    /// What is asked.
    pub question: &'q Problem,
    /// The shapes.
    pub shapes: &'q [InstanceConfig],
    laid: Vec<OnceLock<PreparedShape<'q>>>,
}

impl<'q> ShapeCache<'q> {
    /// Nothing laid out yet.
    pub fn new(question: &'q Problem, shapes: &'q [InstanceConfig]) -> Self {
        ShapeCache { question, shapes, laid: shapes.iter().map(|_| OnceLock::new()).collect() }
    }

    /// A shape, laid out.
    pub fn get(&self, shape: usize) -> &PreparedShape<'q> {
        self.laid[shape].get_or_init(|| PreparedShape::new(self.question, &self.shapes[shape]))
    }

    /// Time to first token of a prompt, in seconds: its way through prefill and to a decode instance, at least and with
    /// the queue that is planned for. Where only so many are in flight, one alone waits for nobody.
    pub fn first_token(&self, front: &PrefillOption, answer: &DecodeOption) -> (f64, f64) {
        let under = |traffic| self.under(traffic, (front, 1), (answer, 1))[place(Metric::Ttft)];
        match self.question.traffic {
            Traffic::InFlight(_) => (under(Traffic::InFlight(1)), under(Traffic::Free)),
            traffic => {
                let ttft = under(traffic);
                (ttft, ttft)
            }
        }
    }

    /// `fronts` prompt instances and `backs` answering ones, through the one door.
    pub fn at(&self, front: &PrefillOption, fronts: u64, answer: &DecodeOption, backs: u64) -> Point {
        self.under(self.question.traffic, (front, fronts), (answer, backs))
    }

    fn under(
        &self,
        traffic: Traffic,
        (front, fronts): (&PrefillOption, u64),
        (answer, backs): (&DecodeOption, u64),
    ) -> Point {
        let demand = traffic.demand(&Plain);
        let machine = self.question.formats[answer.formats].plain();
        let prompts = front.laid.pool(fronts, front.laid.shape.plan.dp);
        let answers = self.get(answer.shape).pool(backs, answer.concurrency);
        let terms = self.question.terms();
        let pools = (&[prompts][..], &[answers][..], &[][..]);
        point(&split(&Plain, pools, machine, terms, &demand, &mut ()).metrics)
    }
}
