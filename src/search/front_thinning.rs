//! Points that represent a longer Pareto front, and how much the other points differ from them.

use std::collections::HashMap;

use super::outcome::EvaluatedCandidate;
use super::point::{Point, WIDTH, place, rank};
use crate::spec::objective::Metric;

/// The listed part of a front.
#[derive(Clone, Debug, PartialEq)]
pub struct ThinnedFront {
    /// Indices of the listed points, in order.
    pub listed: Vec<usize>,
    /// Each other point has a listed one within this fraction of it on every axis; `None` where there is none listed.
    pub tolerance: Option<f64>,
}

/// Bisection steps of the width of a cell.
const STEPS: usize = 10;
/// The narrowest cell, as the logarithm of a factor.
const NARROWEST: f64 = 1e-4;

/// At most `most` points of a front: the `best`, the best on each axis, and the first of each cell of a grid whose
/// cells have the same factor on all `axes`. The factor is the smallest for which the points are few enough, to one
/// part in a hundred.
pub fn thinned(
    front: &[EvaluatedCandidate],
    axes: &[Metric],
    best: Option<&EvaluatedCandidate>,
    most: usize,
) -> ThinnedFront {
    if front.len() <= most {
        return ThinnedFront { listed: (0..front.len()).collect(), tolerance: Some(0.0) };
    }
    if most == 0 {
        return ThinnedFront { listed: vec![], tolerance: None };
    }
    let places = logarithms(front, axes);
    let same = |one: &EvaluatedCandidate, best: &EvaluatedCandidate| {
        axes.iter().all(|axis| rank(&one.point, *axis) == rank(&best.point, *axis))
    };
    let found = best.and_then(|best| front.iter().position(|one| same(one, best)));
    let mut first: Vec<usize> = found.into_iter().collect();
    for at in axes.iter().filter_map(|axis| extreme(front, *axis)) {
        if !first.contains(&at) {
            first.push(at);
        }
    }
    // In one cell all points are together.
    let (mut narrow, mut wide) =
        (NARROWEST, 2.0 * places.iter().flatten().copied().fold(NARROWEST, f64::max));
    let mut kept = cells(&places, &first, wide);
    for _ in 0..STEPS {
        let middle = (narrow * wide).sqrt();
        let tried = cells(&places, &first, middle);
        if tried.0.len() <= most { (wide, kept) = (middle, tried) } else { narrow = middle }
    }
    let (mut listed, farthest) = kept;
    let tolerance = (listed.len() <= most).then_some(libm::expm1(farthest));
    listed.truncate(most);
    listed.sort_unstable();
    ThinnedFront { listed, tolerance }
}

/// The best point on an axis: the first of equals.
fn extreme(front: &[EvaluatedCandidate], axis: Metric) -> Option<usize> {
    let value = |at: &usize| front[*at].point[place(axis)];
    let known = (0..front.len()).filter(|at| !value(at).is_nan());
    known.reduce(|a, b| if rank(&front[b].point, axis) < rank(&front[a].point, axis) { b } else { a })
}

/// The logarithm of each point on each axis, from that of the lowest. Unknown and zero figures are below all others.
fn logarithms(front: &[EvaluatedCandidate], axes: &[Metric]) -> Vec<[f64; WIDTH]> {
    let mut places = vec![[0.0; WIDTH]; front.len()];
    for (at, axis) in axes.iter().enumerate() {
        let value = |point: &Point| {
            let value = point[place(*axis)];
            if value > 0.0 { libm::log(value) } else { libm::log(f64::MIN_POSITIVE) }
        };
        let lowest = front.iter().map(|one| value(&one.point)).fold(f64::INFINITY, f64::min);
        places.iter_mut().zip(front).for_each(|(place, one)| place[at] = value(&one.point) - lowest);
    }
    places
}

/// The `first` points, then the first of each cell of a `width`; and the largest distance of a point from the one that
/// represents it.
fn cells(places: &[[f64; WIDTH]], first: &[usize], width: f64) -> (Vec<usize>, f64) {
    let mut listed = first.to_vec();
    let mut by_cell: HashMap<[i32; WIDTH], usize> = HashMap::new();
    let mut farthest = 0.0f64;
    for at in first.iter().copied().chain((0..places.len()).filter(|at| !first.contains(at))) {
        let cell = places[at].map(|place| (place / width) as i32);
        let nearest = *by_cell.entry(cell).or_insert(at);
        if nearest == at && !first.contains(&at) {
            listed.push(at);
        }
        let distances = places[at].iter().zip(&places[nearest]).map(|(a, b)| (a - b).abs());
        farthest = if first.contains(&at) { farthest } else { distances.fold(farthest, f64::max) };
    }
    (listed, farthest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::candidate::Candidate;
    use crate::spec::offload::Offload;
    use proptest::prelude::*;

    const AXES: [Metric; 2] = [Metric::Ttft, Metric::OutputTokS];

    fn front(figures: &[(f64, f64)]) -> Vec<EvaluatedCandidate> {
        let one = |(at, (ttft, output)): (usize, &(f64, f64))| {
            let mut point = [f64::NAN; WIDTH];
            (point[place(Metric::Ttft)], point[place(Metric::OutputTokS)]) = (*ttft, *output);
            EvaluatedCandidate {
                candidate: Candidate { formats: at, pools: vec![], offload: Offload::Nothing },
                point,
            }
        };
        figures.iter().enumerate().map(one).collect()
    }

    proptest! {
        #[test]
        fn each_point_has_a_listed_one_within_the_tolerance(
            figures in prop::collection::vec((1e-3f64..10.0, 1.0f64..1e5), 1..200),
            best in 0usize..200, most in 0usize..60,
        ) {
            let front = front(&figures);
            let best = front.get(best);
            let thin = thinned(&front, &AXES, best, most);
            prop_assert_eq!(thin.listed.len() <= most, true);
            prop_assert!(thin.listed.windows(2).all(|pair| pair[0] < pair[1]));
            if front.len() <= most {
                prop_assert_eq!(thin.listed.len(), front.len());
            }
            if let Some(best) = best.filter(|_| most > 0) {
                let same = |at: &usize| front[*at].candidate.formats == best.candidate.formats;
                prop_assert!(thin.listed.iter().any(same));
            }
            let Some(tolerance) = thin.tolerance else { return Ok(()) };
            for (ttft, output) in &figures {
                let near = |at: &usize| {
                    let ratio = |a: f64, b: f64| (a / b).max(b / a) <= (1.0 + tolerance) * (1.0 + 1e-9);
                    ratio(figures[*at].0, *ttft) && ratio(figures[*at].1, *output)
                };
                prop_assert!(thin.listed.iter().any(near), "{ttft} {output} {tolerance}");
            }
        }
    }
}
