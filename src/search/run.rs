//! The search itself: shapes, then every deployment of them, then the answer.

use rayon::prelude::*;

use super::aggregated::{self, finish};
use super::answers::{Answers, List};
use super::outcome::{Census, Found, Outcome, Status};
use super::point::before;
use super::question::{OffloadPolicy, Question};
use super::shape::{Laid, Refused, Shape, cuts, refuse, same_plans, shape};
use super::{prompts, split};
use crate::plan::enumerate::enumerate;
use crate::plan::parallel::ParallelPlan;
use crate::serving::terms::Offload;

/// How the outside looks on and may interrupt.
pub struct Control<'a> {
    /// Told how much is done of how much.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Asked whether to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Nobody looks on.
pub const UNWATCHED: Control<'static> = Control { progress: &|_, _| {}, stop: &|| false };

/// Parts that the work is cut into. Fixed, so that what is pruned, and so the census, does not depend
/// on the number of threads.
const PARTS: usize = 4;

/// Alternatives that are told.
const ALTERNATIVES: usize = 8;

/// Answers a question.
pub fn run(question: &Question, control: &Control) -> Outcome {
    let mut census = Census::default();
    if let Err(reason) = question.context_fits() {
        census.refuse(reason.kind(), 1, &reason.to_string());
        return Outcome {
            status: Status::Infeasible,
            best: None,
            alternatives: vec![],
            front: vec![],
            census,
            nearest: None,
        };
    }
    let none: &[Offload] = &[Offload::Nothing];
    let mut shapes = prepare(question, none, &mut census);
    let nothing_fits = !shapes.iter().any(|shape| shape.fits > 0);
    if question.offload == OffloadPolicy::Always || (question.offload == OffloadPolicy::Auto && nothing_fits)
    {
        shapes.extend(prepare(question, question.offloads(), &mut census));
    }
    census.shapes = shapes.len() as u64;
    let parts: Vec<Vec<usize>> =
        (0..PARTS).map(|part| (part..shapes.len()).step_by(PARTS).collect()).collect();
    let halves = if question.split { 2 } else { 1 };
    let total = shapes.len() * halves;
    let done = std::sync::atomic::AtomicUsize::new(0);
    let tick = || {
        let now = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        (control.progress)(now, total);
        (control.stop)()
    };
    let stopped = std::sync::atomic::AtomicBool::new(false);
    let each = |part: &Vec<usize>, mut look: Box<dyn FnMut(usize) + '_>| {
        for &index in part {
            if tick() {
                stopped.store(true, std::sync::atomic::Ordering::Relaxed);
                break;
            }
            look(index);
        }
    };
    let surveys = parts
        .par_iter()
        .map(|part| {
            let mut survey = aggregated::Survey::new(question);
            each(part, Box::new(|index| aggregated::survey(question, &shapes, index, &mut survey)));
            survey
        })
        .reduce_with(|a, b| a.merged(question, b));
    let mut together = surveys.unwrap_or_else(|| aggregated::Survey::new(question));
    let mut apart = split::Survey::new(question);
    if question.split {
        let fronts = prompts::fronts(question, &shapes);
        let surveys: Vec<_> = parts
            .par_iter()
            .map(|part| {
                let mut answers = Answers::new(question);
                each(part, Box::new(|index| answers.survey(question, &shapes, index)));
                answers
            })
            .collect();
        let mut answers = Answers::new(question);
        surveys.into_iter().for_each(|some| answers.merge(some));
        answers.settle(question);
        census.add(std::mem::take(&mut answers.census));
        let mut laid: Vec<Option<Laid>> = shapes.iter().map(|_| None).collect();
        for index in answers.shapes() {
            laid[index].get_or_insert_with(|| Laid::new(question, &shapes[index]));
        }
        let leader = finish(question, &shapes, &together);
        let leader = leader.iter().map(|found| &found.point);
        let leader = leader.reduce(|a, b| if before(b, a, &question.aims) { b } else { a });
        // What promises most comes first, so that its deployments prune the rest.
        let all = fronts.iter().flat_map(|front| {
            let same = |list: &&List| front.suits(&list.answers);
            answers.lists().filter(same).map(move |list| (front.promise(&list.answers), front, list))
        });
        let mut pairs: Vec<_> = all.collect();
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
        let surveys = (0..PARTS)
            .into_par_iter()
            .map(|part| {
                let mut survey = split::Survey::new(question);
                for &(_, front, list) in pairs.iter().skip(part).step_by(PARTS) {
                    if (control.stop)() {
                        stopped.store(true, std::sync::atomic::Ordering::Relaxed);
                        break;
                    }
                    let (laid, rivals) = (&laid[..], &together.front);
                    split::Pair { question, front, list, laid, rivals, leader }.survey(&mut survey);
                }
                survey
            })
            .reduce_with(|a, b| a.merged(question, b));
        apart = surveys.unwrap_or(apart);
    }
    census.add(std::mem::take(&mut together.census));
    census.add(std::mem::take(&mut apart.census));
    let interrupted = stopped.into_inner();
    answer(question, &shapes, (together, apart), census, interrupted)
}

/// Every shape that is legal and holds the model.
fn prepare(question: &Question, offloads: &[Offload], census: &mut Census) -> Vec<Shape> {
    let mut plans: Vec<(usize, crate::plan::enumerate::Plans)> = Vec::new();
    let mut wanted: Vec<(usize, ParallelPlan)> = Vec::new();
    for (index, formats) in question.formats.iter().enumerate() {
        let known = plans.iter().find(|(other, _)| same_plans(&question.formats[*other], formats));
        let legal = match known {
            Some((_, plans)) => &plans.legal,
            None => {
                plans.push((index, enumerate(&question.graph, &question.legal_limits(formats))));
                let (_, fresh) = plans.last().expect("just pushed");
                fresh
                    .illegal
                    .iter()
                    .for_each(|(kind, (count, example))| census.refuse(kind, *count, example));
                &fresh.legal
            }
        };
        wanted.extend(legal.iter().map(|plan| (index, *plan)));
    }
    let made: Vec<(Vec<Shape>, Refused)> = wanted
        .par_iter()
        .map(|&(formats, plan)| {
            let (mut shapes, mut refused) = (Vec::new(), Refused::new());
            for cut in cuts(question, plan) {
                for &offload in offloads {
                    match shape(question, formats, plan, cut.clone(), offload) {
                        Ok(shape) => shapes.push(shape),
                        Err(reason) => refuse(&mut refused, &reason),
                    }
                }
            }
            (shapes, refused)
        })
        .collect();
    let mut shapes = Vec::new();
    for (some, refused) in made {
        shapes.extend(some);
        refused.iter().for_each(|(kind, (count, example))| census.refuse(kind, *count, example));
    }
    shapes
}

fn answer(
    question: &Question,
    shapes: &[Shape],
    (together, apart): (aggregated::Survey, split::Survey),
    census: Census,
    interrupted: bool,
) -> Outcome {
    let mut deployments = finish(question, shapes, &together);
    let whole = |candidate: super::candidate::Candidate| {
        let point = aggregated::measure(question, &candidate);
        Found { candidate, point }
    };
    deployments.extend(apart.best.map(|(_, key)| whole(key.candidate(shapes))));
    deployments.extend(together.strategies.values().map(|(_, key)| whole(key.candidate(shapes))));
    deployments.sort_by(|a, b| order(question, a, b));
    deployments.dedup_by(|a, b| a.candidate == b.candidate);
    let mut alternatives: Vec<Found> = Vec::new();
    let mut deployments = deployments.into_iter();
    let best = deployments.next();
    for found in deployments {
        let alike = |other: &Found| strategy(other) == strategy(&found);
        if alternatives.len() < ALTERNATIVES && !alternatives.iter().chain(&best).any(alike) {
            alternatives.push(found);
        }
    }
    let mut front = together.front.map(FrontKey::Together);
    front.merge(apart.front.map(FrontKey::Apart));
    if let Some(best) = &best {
        front.insert(best.point, FrontKey::Best);
    }
    let front = front.into_sorted().into_iter().map(|(point, key)| {
        let candidate = match key {
            FrontKey::Together(key) => key.candidate(shapes),
            FrontKey::Apart(key) => key.candidate(shapes),
            FrontKey::Best => best.as_ref().expect("it was inserted").candidate.clone(),
        };
        Found { candidate, point }
    });
    let front: Vec<Found> = front.collect();
    let nearest = together
        .nearest
        .filter(|_| best.is_none())
        .map(|(_, point, key, reason)| (Found { candidate: key.candidate(shapes), point }, reason));
    let status = match (best.is_some(), interrupted) {
        (true, false) => Status::Optimal,
        (true, true) => Status::Feasible,
        (false, false) => Status::Infeasible,
        (false, true) => Status::Unknown,
    };
    Outcome { status, best, alternatives, front, census, nearest }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum FrontKey {
    Together(aggregated::Key),
    Apart(split::Key),
    /// The optimum, be it of several shapes.
    Best,
}

/// By the aims; equals by their plans, so that the order is always the same.
fn order(question: &Question, a: &Found, b: &Found) -> std::cmp::Ordering {
    if before(&a.point, &b.point, &question.aims) {
        std::cmp::Ordering::Less
    } else if before(&b.point, &a.point, &question.aims) {
        std::cmp::Ordering::Greater
    } else {
        (a.candidate.formats, &a.candidate.pools).cmp(&(b.candidate.formats, &b.candidate.pools))
    }
}

/// What makes one deployment different in kind from another.
fn strategy(found: &Found) -> (usize, Vec<(super::candidate::Duty, String)>) {
    let pools = found.candidate.pools.iter().map(|pool| (pool.duty, pool.plan.label()));
    (found.candidate.formats, pools.collect())
}
