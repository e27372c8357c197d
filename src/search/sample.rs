//! Deployments drawn at random from everything that a runtime could be given, and from what is near an answer: none of
//! them may be better than what is called the best.
//!
//! Enumerates nothing that the search does and knows none of its bounds, families, grids or sizes: degrees of any size,
//! unlike instances side by side, pools of any sizes, stages cut anywhere, idle devices, loads of any number. What is
//! drawn counts once the plan's rules, the devices and the memory are checked here. Draws by a seed of its own, so that
//! the same sample can be drawn again.

mod draw;
mod fit;

use super::candidate::{Candidate, PoolRole};
use super::outcome::EvaluatedCandidate;
use super::point::{Point, place, point};
use super::question::{Problem, Traffic};
use crate::quantity::read::Plain;
use crate::spec::objective::{Direction, ObjectiveTerm};
use draw::Draw;

/// What came of a sample.
#[derive(Clone, Debug, Default)]
pub struct SampleResult {
    /// Deployments that were drawn, may run, and were evaluated.
    pub drawn: u64,
    /// Of them, within the limits.
    pub kept: u64,
    /// Of those, better than what is called the best.
    pub better: Vec<EvaluatedCandidate>,
}

/// Draws `count` deployments by `seed`, half of them near `best`, and compares them with it; with nothing where it is
/// none.
pub fn sample(question: &Problem, best: Option<&EvaluatedCandidate>, count: u64, seed: u64) -> SampleResult {
    let mut sample = SampleResult::default();
    // A request that the model was not made for is served by nothing.
    if question.context_fits().is_err() {
        return sample;
    }
    let mut draw = Draw::new(question, seed);
    // Where nothing can be drawn, trying again does not help.
    for _ in 0..count.saturating_mul(4) {
        if sample.drawn == count {
            break;
        }
        let Some(candidate) = draw.candidate(best.map(|best| &best.candidate)) else { continue };
        if !fit::runs(question, &candidate) {
            continue;
        }
        let evaluation = candidate.evaluate(&Plain, question, &mut ());
        sample.drawn += 1;
        if question.missed_in_pools(&evaluation).next().is_some() || !carries(question, &candidate) {
            continue;
        }
        let found = EvaluatedCandidate { point: point(&evaluation.metrics), candidate };
        sample.kept += 1;
        if best.is_none_or(|best| ahead(&found.point, &best.point, &question.aims)) {
            sample.better.push(found);
        }
    }
    sample
}

/// Values that differ by less are the same: sums of the same terms in another order.
const HAIR: f64 = 1e-9;

/// Whether `a` is better than `b` in the first aim in which they differ by more than rounding.
fn ahead(a: &Point, b: &Point, aims: &[ObjectiveTerm]) -> bool {
    for aim in aims {
        let (x, y) = (a[place(aim.metric)], b[place(aim.metric)]);
        let apart = (x - y).abs() > HAIR * x.abs().max(y.abs());
        match (x.is_nan(), y.is_nan()) {
            (true, true) => continue,
            (true, false) => return false,
            (false, true) => return true,
            _ if !apart => continue,
            _ => return (x < y) == (aim.direction == Direction::Minimize),
        }
    }
    false
}

/// Whether it carries what the question says is there: with every slot filled again at once it has that rate, or that
/// many requests in flight. Pools that only decode need no slot for what waits for its prompt.
fn carries(question: &Problem, candidate: &Candidate) -> bool {
    let enough = |there: f64, least: f64| there >= least * (1.0 - HAIR);
    let filled = || {
        let mut free = question.clone();
        free.traffic = Traffic::Free;
        candidate.evaluate(&Plain, &free, &mut ()).metrics
    };
    match question.traffic {
        Traffic::Free => true,
        Traffic::Rate(rate) => {
            enough(filled().output_tok_s.value() / question.stated.lengths.osl as f64, rate)
        }
        Traffic::InFlight(requests) => {
            let both = candidate.pools.iter().any(|pool| pool.duty == PoolRole::Both);
            !both || enough(filled().in_flight.value(), requests as f64)
        }
    }
}
