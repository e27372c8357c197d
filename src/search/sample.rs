//! Deployments drawn at random from all that are legal, pruned or not: none of them may be better than the best.
//!
//! Draws by a seed of its own, so that the same sample can be drawn again. Knows no bound and no pruning rule.

use super::aggregated::room;
use super::candidate::{Candidate, Duty, PoolPlan};
use super::layouts::each;
use super::outcome::{Census, Found};
use super::point::{Point, before, place};
use super::question::{Question, Traffic};
use super::shape::{Shape, shape};
use crate::plan::parallel::ParallelPlan;
use crate::serving::terms::Offload;
use crate::spec::objective::Metric;

/// What came of a sample.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Deployments that were drawn and evaluated.
    pub drawn: u64,
    /// Of them, within the limits.
    pub kept: u64,
    /// Of those, better than what is called the best.
    pub better: Vec<Found>,
}

/// Draws `count` deployments by `seed` and holds them against `best`; against nothing where it is none.
pub fn sample(question: &Question, best: Option<&Point>, count: u64, seed: u64) -> Sample {
    let none: &[Offload] = &[Offload::Nothing];
    let shapes = each(question, &mut Census::default(), |formats, instance| {
        none.iter().filter_map(|offload| shape(question, formats, &instance, *offload).ok()).next()
    });
    let shapes: Vec<Shape> = shapes.into_iter().flatten().collect();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut sample = Sample::default();
    if shapes.is_empty() {
        return sample;
    }
    // Where nothing can be drawn, trying again does not help.
    for _ in 0..count.saturating_mul(8) {
        if sample.drawn == count {
            break;
        }
        let apart = question.split && random.bool();
        let candidate = if apart {
            split(question, &shapes, &mut random)
        } else {
            together(question, &shapes, &mut random)
        };
        let Some(candidate) = candidate else { continue };
        let found = Found { point: super::aggregated::measure(question, &candidate), candidate };
        sample.drawn += 1;
        if question.missed(&found.point).is_some() || !carries(question, &found) {
            continue;
        }
        sample.kept += 1;
        if best.is_none_or(|best| before(&found.point, best, &question.aims)) {
            sample.better.push(found);
        }
    }
    sample
}

/// Whether it carries the rate that is asked for, where one is.
fn carries(question: &Question, found: &Found) -> bool {
    let Traffic::Rate(rate) = question.traffic else { return true };
    let requests = found.candidate.concurrency(&Traffic::Free) as f64;
    requests / found.point[place(Metric::E2e)] >= rate
}

/// A load that memory has room for: as likely few as many.
fn load(question: &Question, shape: &Shape, answering: u64, random: &mut fastrand::Rng) -> Option<u64> {
    let dp = shape.plan.dp;
    match question.traffic {
        Traffic::InFlight(requests) => {
            let each = requests.div_ceil(answering);
            (each.div_ceil(dp) <= shape.fits).then_some(each)
        }
        _ => {
            let below = 1u64 << random.u32(0..=shape.fits.checked_ilog2()?);
            Some(random.u64(below..=(2 * below - 1).min(shape.fits)) * dp)
        }
    }
}

fn pool(duty: Duty, shape: &Shape, replicas: u64, concurrency: u64) -> PoolPlan {
    PoolPlan { duty, plan: shape.plan, stages: shape.stages.clone(), replicas, concurrency }
}

fn together(question: &Question, shapes: &[Shape], random: &mut fastrand::Rng) -> Option<Candidate> {
    let shape = &shapes[random.usize(0..shapes.len())];
    let room = room(question, shape.plan.devices());
    if shape.fits == 0 || room == 0 {
        return None;
    }
    let replicas = random.u64(1..=room);
    if matches!(question.traffic, Traffic::InFlight(requests) if requests < replicas) {
        return None;
    }
    let concurrency = load(question, shape, replicas, random)?;
    let pools = vec![pool(Duty::Both, shape, replicas, concurrency)];
    Some(Candidate { formats: shape.formats, pools, offload: Offload::Nothing })
}

fn split(question: &Question, shapes: &[Shape], random: &mut fastrand::Rng) -> Option<Candidate> {
    let draw = |random: &mut fastrand::Rng| &shapes[random.usize(0..shapes.len())];
    let (front, back) = (draw(random), draw(random));
    let size = |plan: &ParallelPlan| plan.devices();
    let (a, b, all) = (size(&front.plan), size(&back.plan), question.cluster.devices());
    let fit = front.formats == back.formats && front.prefills && back.fits > 0 && !back.plan.sp;
    if !fit || a + b > all {
        return None;
    }
    let fronts = random.u64(1..=(all - b) / a);
    let backs = question.room().beside(a, fronts, b).filter(|backs| *backs > 0)?;
    let backs = random.u64(1..=backs);
    if matches!(question.traffic, Traffic::InFlight(requests) if requests < backs) {
        return None;
    }
    let concurrency = load(question, back, backs, random)?;
    let pools =
        vec![pool(Duty::Prefill, front, fronts, front.plan.dp), pool(Duty::Decode, back, backs, concurrency)];
    Some(Candidate { formats: back.formats, pools, offload: Offload::Nothing })
}
