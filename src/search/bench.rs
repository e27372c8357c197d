//! The shapes of a search, laid out once for all who pair or mix them. Knows no space.

use std::sync::OnceLock;

use super::answers::Answer;
use super::point::{Point, place, point};
use super::prompts::Front;
use super::question::{Question, Traffic};
use super::shape::{Laid, Shape};
use crate::quantity::read::Plain;
use crate::serving::disaggregated::split;
use crate::spec::objective::Metric;

/// All shapes of a search; each is laid out when it is first needed.
pub struct Bench<'q> {
    /// What is asked.
    pub question: &'q Question,
    /// The shapes.
    pub shapes: &'q [Shape],
    laid: Vec<OnceLock<Laid<'q>>>,
}

impl<'q> Bench<'q> {
    /// Nothing laid out yet.
    pub fn new(question: &'q Question, shapes: &'q [Shape]) -> Self {
        Bench { question, shapes, laid: shapes.iter().map(|_| OnceLock::new()).collect() }
    }

    /// A shape, laid out.
    pub fn get(&self, shape: usize) -> &Laid<'q> {
        self.laid[shape].get_or_init(|| Laid::new(self.question, &self.shapes[shape]))
    }

    /// Time to first token of a prompt, in seconds: its way through prefill and to a decode instance, at least and with
    /// the queue that is planned for. Where only so many are in flight, one alone waits for nobody.
    pub fn first_token(&self, front: &Front, answer: &Answer) -> (f64, f64) {
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
    pub fn at(&self, front: &Front, fronts: u64, answer: &Answer, backs: u64) -> Point {
        self.under(self.question.traffic, (front, fronts), (answer, backs))
    }

    fn under(
        &self,
        traffic: Traffic,
        (front, fronts): (&Front, u64),
        (answer, backs): (&Answer, u64),
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
