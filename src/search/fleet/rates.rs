//! What a system carries of each length of request within the limits, in every shape that some length is best
//! served in.
//!
//! Knows like instances alone: a system runs as many of one shape as it has room for.

use std::sync::Arc;

use crate::search::aggregated::{measure, room};
use crate::search::candidate::{Candidate, Duty, PoolPlan};
use crate::search::layouts::each;
use crate::search::outcome::Census;
use crate::search::point::{Point, place};
use crate::search::question::Question;
use crate::search::shape::{Laid, filled_up, shape};
use crate::serving::instance::Instance;
use crate::serving::terms::{Lengths, Offload};
use crate::spec::objective::Metric;

/// What a system in one shape carries of one length of request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// Requests in flight of each instance.
    pub concurrency: u64,
    /// Requests a second of the whole system.
    pub requests_per_s: f64,
    /// Metrics of the whole system at that load.
    pub point: Point,
}

/// A system in one shape.
#[derive(Clone, Debug)]
pub struct ShapeRates {
    /// The deployment; its concurrency differs by length.
    pub candidate: Candidate,
    /// What it carries of each length; none where it keeps no limit or does not fit.
    pub carried: Vec<Option<Carried>>,
}

impl ShapeRates {
    /// What it comes to under a load of requests of `lengths`, through the one door.
    pub fn at(&self, question: &Question, lengths: Lengths, concurrency: u64) -> Point {
        let mut candidate = self.candidate.clone();
        candidate.pools.iter_mut().for_each(|pool| pool.concurrency = concurrency);
        measure(&question.with_lengths(lengths), &candidate)
    }
}

/// Every shape of the question's system with what it carries of each length, without those that another shape
/// beats at every length.
pub fn rates(question: &Question, lengths: &[Lengths]) -> Vec<ShapeRates> {
    let asked: Vec<Question> = lengths.iter().map(|lengths| question.with_lengths(*lengths)).collect();
    let asked = &asked;
    let found = each(question, &mut Census::default(), |formats, instance| {
        let instance = Arc::new(instance);
        let carried: Vec<Option<Carried>> =
            asked.iter().map(|question| carries(question, formats, &instance)).collect();
        carried.iter().any(Option::is_some).then(|| {
            let (plan, stages) = (instance.plan, instance.stages.clone());
            let replicas = room(question, plan.devices());
            let pool = PoolPlan { duty: Duty::Both, plan, stages, replicas, concurrency: plan.dp };
            let candidate = Candidate { formats, pools: vec![pool], offload: Offload::Nothing };
            ShapeRates { candidate, carried }
        })
    });
    let rate = |carried: &Option<Carried>| carried.map_or(0.0, |carried| carried.requests_per_s);
    let beats =
        |a: &ShapeRates, b: &ShapeRates| a.carried.iter().zip(&b.carried).all(|(a, b)| rate(a) >= rate(b));
    let mut kept: Vec<ShapeRates> = Vec::new();
    for shape in found.into_iter().flatten() {
        if !kept.iter().any(|known| beats(known, &shape)) {
            kept.retain(|known| !beats(&shape, known));
            kept.push(shape);
        }
    }
    kept
}

/// What one shape carries of the question's lengths: the largest load that memory and limits allow, or the one
/// below it that fills the micro-batches of a pipeline alike.
fn carries(question: &Question, formats: usize, instance: &Arc<Instance>) -> Option<Carried> {
    question.context_fits().ok()?;
    let shape = shape(question, formats, instance, Offload::Nothing).ok()?;
    let laid = Laid::of(question, &shape, instance.clone());
    let replicas = room(question, shape.plan.devices());
    let at = |requests: u64| laid.at(replicas, laid.concurrency(requests));
    let most = filled_up(shape.fits, |requests| question.filled(&at(requests)));
    let even = most - most % shape.plan.pp;
    let osl = question.stated.lengths.osl as f64;
    let loads = if even == most { vec![most] } else { vec![most, even] };
    loads
        .into_iter()
        .filter(|requests| *requests > 0)
        .map(|requests| {
            let point = at(requests);
            let requests_per_s = point[place(Metric::OutputTokS)] / osl;
            Carried { concurrency: laid.concurrency(requests), requests_per_s, point }
        })
        .max_by(|a, b| a.requests_per_s.total_cmp(&b.requests_per_s))
}
