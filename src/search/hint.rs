//! A search that starts from a known deployment, so that worse ones are left out from the start, and from known layouts.

use super::candidate::{Candidate, PoolPlan};
use super::layouts::Layouts;
use super::outcome::Outcome;
use super::point::{Point, place};
use super::prepared::PreparedInstances;
use super::problem::{Problem, Traffic};
use super::run::{Control, run_above, run_with};
use super::shape::shape;
use crate::quantity::tolerance::SUMMED;
use crate::spec::objective::Direction;
use crate::spec::offload::Offload;
use crate::spec::role::Role;

/// Solves a problem of which only the optimum is needed, and of which `known` may be a solution. The result is that of a
/// search without it. The `layouts` are those of a problem with the same instances.
pub fn run_with_hint(
    problem: &Problem,
    known: Option<&Candidate>,
    layouts: &Layouts,
    control: &Control,
) -> Outcome {
    let point = known.filter(|_| problem.only_best()).and_then(|known| known_point(problem, known));
    let found = above(problem, point.as_ref(), layouts, control);
    let Some(point) = point else { return found };
    // A floor that the space does not reach would have left out what is best.
    let floor = a_little_worse(problem, &point);
    let reached = found.best.as_ref().is_some_and(|best| problem.is_better(&best.point, &floor));
    if reached || (control.stop)() { found } else { run_with(problem, layouts, control) }
}

/// Solves a problem of which only results as good as `floor` are needed: the optimum, if it is as good.
pub fn above(problem: &Problem, floor: Option<&Point>, layouts: &Layouts, control: &Control) -> Outcome {
    let floor = floor.filter(|_| problem.only_best()).map(|point| a_little_worse(problem, point));
    run_above(problem, (floor.as_ref(), layouts), control)
}

/// A point that is worse by the slack in the objective's first term.
fn a_little_worse(problem: &Problem, point: &Point) -> Point {
    let mut worse = *point;
    if let Some(term) = problem.objective.first() {
        worse[place(term.metric)] *= match term.direction {
            Direction::Minimize => 1.0 + SUMMED,
            Direction::Maximize => 1.0 - SUMMED,
        };
    }
    worse
}

/// The metrics of the known deployment with the loads of the traffic; `None` where it is none of the search space or misses
/// an SLO.
pub fn known_point(problem: &Problem, known: &Candidate) -> Option<Point> {
    let known = at_traffic(problem, known)?;
    let instances = PreparedInstances::new(problem);
    let within = |pool: &PoolPlan| {
        shape(problem, known.formats, &instances.bare(pool), (Offload::Nothing, 1)).is_ok_and(|shape| {
            let carried = pool.concurrency <= shape.fits * pool.plan.dp;
            match pool.role {
                Role::Aggregated => shape.roles.aggregated && carried,
                Role::Decode => shape.roles.decode && carried,
                Role::Prefill => shape.prefills(problem),
            }
        })
    };
    if known.pools.len() > 2 || known.offload != Offload::Nothing || !known.pools.iter().all(within) {
        return None;
    }
    let point = known.measure(problem, &instances.of(&known));
    problem.missed(&point, known.margin(problem)).is_none().then_some(point)
}

/// The deployment with the loads of the traffic.
fn at_traffic(problem: &Problem, known: &Candidate) -> Option<Candidate> {
    let mut known = known.clone();
    match problem.traffic {
        Traffic::Free => {}
        Traffic::InFlight(_) => {
            let requests = problem.traffic.slots()?;
            for pool in known.pools.iter_mut().filter(|pool| pool.role != Role::Prefill) {
                if pool.replicas > requests {
                    return None;
                }
                let slots = requests.div_ceil(pool.replicas);
                pool.concurrency = match pool.role {
                    Role::Aggregated => slots,
                    _ => pool.concurrency.min(requests.div_ceil(pool.plan.dp) * pool.plan.dp),
                };
            }
        }
        Traffic::Rate(_) => return None,
    }
    Some(known)
}
