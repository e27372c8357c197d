//! Minimal sets of conflicting conditions, by a deletion filter or, for few conditions, by enumeration. Conditions
//! are opaque indices.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflict {
    /// Their indices. Dropping any one of them makes the others feasible.
    pub kept: Vec<usize>,
    /// Every test was decided, so the set is irreducible.
    pub irreducible: bool,
}

/// Reduces `all` conflicting conditions to an irreducible set. `conflicts` says whether the given conditions conflict
/// on their own, or `None` if undecided. Earlier conditions are dropped first.
pub fn irreducible(all: usize, mut conflicts: impl FnMut(&[usize]) -> Option<bool>) -> Conflict {
    let mut kept: Vec<usize> = (0..all).collect();
    let mut irreducible = true;
    for one in 0..all {
        let without: Vec<usize> = kept.iter().copied().filter(|other| *other != one).collect();
        match conflicts(&without) {
            Some(true) => kept = without,
            Some(false) => {}
            None => irreducible = false,
        }
    }
    Conflict { kept, irreducible }
}

/// Every minimal conflicting set of `all` conditions, smallest first. `conflicts` says whether the given conditions
/// conflict on their own. It is called for every set without a known conflict, so `all` must be small.
pub fn minimal<E>(
    all: usize,
    mut conflicts: impl FnMut(&[usize]) -> Result<bool, E>,
) -> Result<Vec<Vec<usize>>, E> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    for set in by_size(all) {
        let holds_one = found.iter().any(|known| known.iter().all(|one| set.contains(one)));
        if !holds_one && conflicts(&set)? {
            found.push(set);
        }
    }
    Ok(found)
}

/// Every minimal set that shares a member with each of `sets`, smallest first: the conditions to drop to end all
/// conflicts.
pub fn hitting(sets: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let all = sets.iter().flatten().max().map_or(0, |last| last + 1);
    let mut found: Vec<Vec<usize>> = Vec::new();
    for set in by_size(all) {
        let hits = sets.iter().all(|other| other.iter().any(|one| set.contains(one)));
        let minimal = !found.iter().any(|known| known.iter().all(|one| set.contains(one)));
        if hits && minimal && !set.is_empty() {
            found.push(set);
        }
    }
    found
}

/// Every set of numbers below `all`, smallest first.
fn by_size(all: usize) -> Vec<Vec<usize>> {
    let members = |mask: u32| (0..all).filter(|one| mask >> one & 1 == 1).collect::<Vec<_>>();
    let mut sets: Vec<Vec<usize>> = (0..1u32 << all.min(16)).map(members).collect();
    sets.sort_by_key(Vec::len);
    sets
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn minimal_sets_conflict_and_what_hits_them_ends_all(masks in prop::collection::vec(1u32..64, 0..5)) {
            let inside = |set: &[usize], mask: u32| (0..6).all(|one| mask >> one & 1 == 0 || set.contains(&one));
            let clash = |set: &[usize]| masks.iter().any(|mask| inside(set, *mask));
            let found = minimal(6, |set| Ok::<_, ()>(clash(set))).unwrap();
            for set in &found {
                prop_assert!(clash(set));
                for left in set {
                    let others: Vec<usize> = set.iter().copied().filter(|one| one != left).collect();
                    prop_assert!(!clash(&others));
                }
            }
            prop_assert!(masks.iter().all(|mask| found.iter().any(|set| set.iter().all(|one| mask >> one & 1 == 1))));
            for hit in hitting(&found) {
                let kept = |left: Option<usize>| -> Vec<usize> {
                    (0..6).filter(|one| !hit.contains(one) || Some(*one) == left).collect()
                };
                prop_assert!(!clash(&kept(None)));
                prop_assert!(hit.iter().all(|one| clash(&kept(Some(*one)))));
            }
        }
    }

    #[test]
    fn of_two_conflicts_the_one_that_comes_last_stays() {
        let sets: [&[usize]; 2] = [&[0, 2], &[1, 3]];
        let clash = |keep: &[usize]| sets.iter().any(|set| set.iter().all(|one| keep.contains(one)));
        let found = irreducible(5, |keep| Some(clash(keep)));
        assert_eq!(found, Conflict { kept: vec![1, 3], irreducible: true });
        let doubtful = irreducible(5, |keep| (keep.len() > 3).then(|| clash(keep)));
        assert!(!doubtful.irreducible && clash(&doubtful.kept));
    }
}
