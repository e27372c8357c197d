//! Which of many conditions cannot all be kept: a deletion filter. Knows nothing of what the conditions say.

/// Conditions that conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflict {
    /// Their indices: leaving out any one of them, the others can be kept.
    pub kept: Vec<usize>,
    /// Every look at it was decided, so that none of them can be left out.
    pub irreducible: bool,
}

/// Narrows `all` conditions, which conflict, to some of which none can be left out. `conflicts` says whether those
/// that it is handed do, alone; nothing where it cannot tell. What comes first is left out first.
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

#[cfg(test)]
mod tests {
    use super::*;

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
