//! Neighbours of a given placement, and random placements: none may be better than the optimum.
//!
//! A fixed seed makes the sample reproducible. Independent of bounds and prices.

use super::chain::{Stage, consecutive};

/// Every placement on some of `members` members that differs from `stages` by one move: a cut moved by one layer, two
/// stages swapped with or without their layers, a stage moved to an unused member, a stage merged into a neighbour,
/// or a part of a stage moved to an unused member.
pub fn neighbours(stages: &[Stage], members: usize) -> Vec<Vec<Stage>> {
    let unused: Vec<usize> =
        (0..members).filter(|member| stages.iter().all(|stage| stage.member != *member)).collect();
    neighbours_with(stages, &unused)
}

/// The same, where `unused` are the available unused members.
pub fn neighbours_with(stages: &[Stage], unused: &[usize]) -> Vec<Vec<Stage>> {
    let parts: Vec<(usize, usize)> =
        stages.iter().map(|stage| (stage.member, stage.to - stage.from)).collect();
    let mut found: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut with = |change: &dyn Fn(&mut Vec<(usize, usize)>)| {
        let mut other = parts.clone();
        change(&mut other);
        found.push(other);
    };
    for at in 0..parts.len() {
        for next in at + 1..parts.len() {
            with(&|other| other.swap(at, next));
            with(&|other| (other[at].0, other[next].0) = (parts[next].0, parts[at].0));
        }
        for (giving, taking) in [(at, at + 1), (at + 1, at)] {
            let Some(&(_, layers)) = parts.get(giving).filter(|_| taking < parts.len()) else { continue };
            for moved in [1, layers] {
                with(&|other| {
                    other[giving].1 -= moved;
                    other[taking].1 += moved;
                });
            }
        }
        for &member in unused {
            with(&|other| other[at].0 = member);
            for layers in 1..parts[at].1 {
                with(&|other| {
                    other[at].1 -= layers;
                    other.insert(at, (member, layers));
                });
                with(&|other| {
                    other[at].1 -= layers;
                    other.insert(at + 1, (member, layers));
                });
            }
        }
    }
    let mut rows: Vec<Vec<Stage>> = found.into_iter().map(consecutive).collect();
    rows.retain(|other| other != stages);
    rows
}

/// `count` random placements of `layers` layers on some of `members` members in any order, drawn by `seed`.
pub fn drawn(layers: usize, members: usize, count: u64, seed: u64) -> Vec<Vec<Stage>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let most = layers.min(members);
    let mut one = || {
        let mut order: Vec<usize> = (0..members).collect();
        random.shuffle(&mut order);
        let stages = random.usize(1..=most);
        let mut cuts: Vec<usize> = (1..layers).collect();
        random.shuffle(&mut cuts);
        let mut cuts: Vec<usize> = cuts.into_iter().take(stages - 1).chain([0, layers]).collect();
        cuts.sort_unstable();
        let lengths = cuts.windows(2).map(|cut| cut[1] - cut[0]);
        consecutive(order.into_iter().zip(lengths))
    };
    if most == 0 { vec![] } else { (0..count).map(|_| one()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn key(stages: &[Stage]) -> Vec<(usize, usize)> {
        stages.iter().map(|stage| (stage.member, stage.to)).collect()
    }

    fn sound(stages: &[Stage], layers: usize) {
        let members: BTreeSet<usize> = stages.iter().map(|stage| stage.member).collect();
        assert_eq!(members.len(), stages.len(), "{stages:?}");
        assert!(stages[0].from == 0 && stages[stages.len() - 1].to == layers);
        assert!(stages.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert!(stages.iter().all(|stage| stage.from < stage.to));
    }

    #[test]
    fn every_neighbour_is_a_placement_and_both_cuts_are_moved() {
        let stages = consecutive([(2, 3), (0, 2)]);
        let found = neighbours(&stages, 3);
        found.iter().for_each(|other| sound(other, 5));
        let all: BTreeSet<_> = found.iter().map(|other| key(other)).collect();
        for expected in [
            vec![(2, 2), (0, 5)],
            vec![(2, 4), (0, 5)],
            vec![(0, 2), (2, 5)],
            vec![(0, 3), (2, 5)],
            vec![(1, 3), (0, 5)],
            vec![(2, 5)],
            vec![(0, 5)],
            vec![(2, 1), (1, 3), (0, 5)],
            vec![(2, 3), (0, 4), (1, 5)],
        ] {
            assert!(all.contains(&expected), "{expected:?}");
        }
        assert!(!all.contains(&key(&stages)));
    }

    #[test]
    fn what_is_drawn_is_a_placement_and_the_same_again() {
        let first = drawn(7, 4, 200, 3);
        first.iter().for_each(|stages| sound(stages, 7));
        assert_eq!(first, drawn(7, 4, 200, 3));
        let different: BTreeSet<_> = first.iter().map(|stages| key(stages)).collect();
        assert!(different.len() > 50, "{}", different.len());
        assert!(drawn(7, 0, 5, 1).is_empty());
    }
}
