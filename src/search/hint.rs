//! A search that starts from a known deployment, so that worse ones are left out from the start, and from known layouts.

use super::candidate::{Candidate, PoolPlan, PoolRole};
use super::layouts::Layouts;
use super::outcome::Outcome;
use super::point::{Point, place};
use super::prepared::PreparedInstances;
use super::problem::{Problem, Traffic};
use super::run::{Control, run_above};
use super::shape::shape;
use crate::serving::terms::OffloadTarget;
use crate::spec::objective::Direction;

/// How much worse than the known deployment a result may be: what is as good is found as without it.
const SLACK: f64 = 1e-9;

/// Solves a problem of which only the optimum is needed, and of which `known` may be a solution. The result is that of a
/// search without it. The `layouts` are those of a problem with the same instances.
pub fn run_with_hint(
    problem: &Problem,
    known: Option<&Candidate>,
    layouts: &Layouts,
    control: &Control,
) -> Outcome {
    let point = known.filter(|_| problem.only_best()).and_then(|known| floor(problem, known));
    let found = run_above(problem, (point.as_ref(), layouts), control);
    let Some(point) = point else { return found };
    // A floor that the space does not reach would have left out what is best.
    let reached = found.best.as_ref().is_some_and(|best| problem.is_better(&best.point, &point));
    if reached || (control.stop)() { found } else { run_above(problem, (None, layouts), control) }
}

/// A point that the known deployment is better than; `None` where it is none of the search space.
fn floor(problem: &Problem, known: &Candidate) -> Option<Point> {
    let known = at_traffic(problem, known)?;
    let instances = PreparedInstances::new(problem);
    let within = |pool: &PoolPlan| {
        shape(problem, known.formats, &instances.bare(pool), OffloadTarget::Nothing).is_ok_and(|shape| {
            let carried = pool.concurrency <= shape.fits * pool.plan.dp;
            match pool.role {
                PoolRole::Aggregated => shape.roles.aggregated && carried,
                PoolRole::Decode => shape.roles.decode && carried,
                PoolRole::Prefill => shape.prefills(problem),
            }
        })
    };
    let aim = problem.aims.first()?;
    if known.pools.len() > 2 || known.offload != OffloadTarget::Nothing || !known.pools.iter().all(within) {
        return None;
    }
    let mut point = known.measure(problem, &instances.of(&known));
    if problem.missed(&point).is_some() {
        return None;
    }
    point[place(aim.metric)] *= match aim.direction {
        Direction::Minimize => 1.0 + SLACK,
        Direction::Maximize => 1.0 - SLACK,
    };
    Some(point)
}

/// The deployment with the loads of the traffic.
fn at_traffic(problem: &Problem, known: &Candidate) -> Option<Candidate> {
    let mut known = known.clone();
    match problem.traffic {
        Traffic::Free => {}
        Traffic::InFlight(requests) => {
            for pool in known.pools.iter_mut().filter(|pool| pool.role != PoolRole::Prefill) {
                if pool.replicas > requests {
                    return None;
                }
                let slots = requests.div_ceil(pool.replicas);
                pool.concurrency = match pool.role {
                    PoolRole::Aggregated => slots,
                    _ => pool.concurrency.min(requests.div_ceil(pool.plan.dp) * pool.plan.dp),
                };
            }
        }
        Traffic::Rate(_) => return None,
    }
    Some(known)
}
