//! Small programmes against brute force, solvers that lie, and reasons that cannot be shortened.

use mantile::search::mip::backend::{SolverClaim, claim};
use mantile::search::mip::reasons::reasons;
use mantile::search::mip::solve::{Prover, SolveBudget, Solver, solve, solve_with};
use mantile::search::mip::{MipModel, MipValues, SHARE, Sense, VariableKind};
use mantile::search::outcome::Status;
use proptest::prelude::*;

/// A program of whole numbers up to `most`, with factors up to `size`.
fn programmes(size: i64) -> impl Strategy<Value = MipModel> {
    let columns = prop::collection::vec((-2i64..=1, 0i64..=6, -9i64..=9), 2..=5);
    columns.prop_flat_map(move |columns| {
        let n = columns.len();
        let row = (prop::collection::vec(-size..=size, n), 0..3usize, -size..=4 * size);
        prop::collection::vec(row, 1..=5).prop_map(move |rows| {
            let mut program = MipModel::default();
            for (at, (least, more, cost)) in columns.iter().enumerate() {
                program.whole(format!("x{at}"), (*least, least + more), *cost);
            }
            for (at, (factors, sense, bound)) in rows.into_iter().enumerate() {
                let terms = factors.into_iter().enumerate().filter(|(_, factor)| *factor != 0).collect();
                let sense = [Sense::AtMost, Sense::AtLeast, Sense::Equal][sense];
                program.row((format!("r{at}"), format!("g{}", at % 3)), terms, sense, bound);
            }
            program
        })
    })
}

/// Every point there is.
fn brute(program: &MipModel) -> Option<i128> {
    let bounds: Vec<(i64, i64)> = (0..program.columns.len()).map(|at| program.bounds(at)).collect();
    let mut values: MipValues = bounds.iter().map(|(low, _)| *low).collect();
    let mut best: Option<i128> = None;
    loop {
        if program.check(&values).is_ok() {
            let cost = program.objective(&values);
            best = Some(best.map_or(cost, |best| best.min(cost)));
        }
        let Some(at) = (0..values.len()).find(|at| values[*at] < bounds[*at].1) else { return best };
        values[at] += 1;
        (0..at).for_each(|before| values[before] = bounds[before].0);
    }
}

fn holds(program: &MipModel) -> Result<(), TestCaseError> {
    let solved = solve(program, &SolveBudget::default());
    match brute(program) {
        None => prop_assert_eq!(solved.status, Status::Infeasible, "{:?}", solved),
        Some(best) => {
            prop_assert_eq!(solved.status, Status::Optimal, "{:?}", solved);
            prop_assert_eq!(program.objective(&solved.values.clone().unwrap()), best, "{:?}", solved);
            prop_assert_eq!(solved.bound, solved.objective);
            prop_assert_eq!(solved.rows_checked, program.rows.len() as u64);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn small_programmes_are_solved_as_brute_force_does(program in programmes(9)) {
        holds(&program)?;
    }

    #[test]
    fn rows_in_mib_are_solved_as_brute_force_does(program in programmes(80_000)) {
        holds(&program)?;
    }

    /// Bytes beside counts: no solver in floating point is asked, and the answer is right all the same.
    #[test]
    fn uneven_programmes_are_refused_to_the_solver_and_solved(program in programmes(9), scale in 2i64..9) {
        let mut uneven = program;
        let columns = uneven.columns.len();
        uneven.row(("bytes", "memory"), vec![(0, 100_000_000_000), (columns - 1, scale)], Sense::AtMost, 200_000_000_000);
        prop_assert!(uneven.even().is_err());
        holds(&uneven)?;
        prop_assert_eq!(solve(&uneven, &SolveBudget::default()).prover, Prover::OwnSearch);
    }

    #[test]
    fn reasons_conflict_and_none_of_them_can_be_left_out(program in programmes(9)) {
        if brute(&program).is_none() {
            let why = reasons(&program, &SolveBudget::default());
            prop_assert!(why.irreducible);
            prop_assert!(brute(&program.only(&why.conflict)).is_none());
            for group in &why.conflict {
                let others: Vec<String> = why.conflict.iter().filter(|other| *other != group).cloned().collect();
                prop_assert!(brute(&program.only(&others)).is_some(), "{} is not needed", group);
            }
            for help in &why.relaxations {
                let mut moved = program.clone();
                let row = moved.rows.iter_mut().find(|row| row.name == help.row).unwrap();
                let toward = (help.stated - help.needed).signum();
                row.bound = help.needed;
                prop_assert!(brute(&moved).is_some());
                moved.rows.iter_mut().find(|row| row.name == help.row).unwrap().bound = help.needed + toward;
                prop_assert!(brute(&moved).is_none(), "a smaller change of {} would do", help.row);
            }
        }
    }
}

/// Two types of device, seven requests: 3 x 2 + 1 x 1 cost 7, the best.
fn fleet() -> MipModel {
    let mut program = MipModel::default();
    let large = program.whole("large", (0, 5), 2);
    let small = program.whole("small", (0, 9), 1);
    program.row(("demand", "traffic"), vec![(large, 2), (small, 1)], Sense::AtLeast, 7);
    program
}

#[test]
fn a_solver_that_lies_is_caught_and_our_own_search_answers() {
    let point = |values: MipValues, bound: f64| {
        move |_: &MipModel, _: u64| {
            Ok(SolverClaim::Point { values: values.clone(), bound: Some(bound), optimal: true, nodes: 1 })
        }
    };
    let lies: [(&dyn Fn(&MipModel, u64) -> Result<SolverClaim, String>, &str); 6] = [
        (&point(vec![3, 0], 6.0), "demand is violated"),
        (&point(vec![6, 0], 6.0), "large is 6"),
        (&point(vec![3], 6.0), "1 values for 2 columns"),
        (&point(vec![3, 1], 9.0), "bound is above its own point"),
        (&|_, _| Ok(SolverClaim::Infeasible), "feasible program as infeasible"),
        (&|_, _| Err("internal error".into()), "internal error"),
    ];
    for (lie, doubt) in lies {
        let solved = solve_with(&fleet(), &SolveBudget::default(), lie);
        assert_eq!((solved.status, solved.objective), (Status::Optimal, Some(7.0)), "{doubt}");
        assert_eq!(solved.prover, Prover::OwnSearch);
        assert!(solved.doubts.iter().any(|shown| shown.contains(doubt)), "{:?}", solved.doubts);
    }
}

#[test]
fn what_is_not_proved_is_not_called_optimal() {
    let stopped = |_: &MipModel, _: u64| Ok(SolverClaim::Stopped { bound: Some(3.0), nodes: 9 });
    let none = SolveBudget { nodes: 1, own_nodes: 0 };
    // Three and a half large ones carry it: four do, and nothing costs less than three and a half.
    for solver in [&stopped as Solver, &|_, _| Err("exactly integral solution failed".into())] {
        let solved = solve_with(&fleet(), &none, solver);
        assert_eq!((solved.status, solved.objective, solved.bound), (Status::Feasible, Some(8.0), Some(7.0)));
        assert_eq!((solved.values, solved.rows_checked), (Some(vec![4, 0]), 1));
    }
    // Nothing rounded up is exactly seven.
    let mut exact = MipModel::default();
    let pair = exact.whole("pair", (0, 9), 1);
    exact.row(("demand", "traffic"), vec![(pair, 2)], Sense::Equal, 7);
    let solved = solve_with(&exact, &none, &stopped);
    assert_eq!((solved.status, solved.bound), (Status::Unknown, Some(3.0)));
    let halfway = |_: &MipModel, _: u64| {
        Ok(SolverClaim::Point { values: vec![4, 0], bound: Some(6.5), optimal: false, nodes: 9 })
    };
    let solved = solve_with(&fleet(), &none, &halfway);
    assert_eq!(solved.status, Status::Feasible);
    assert_eq!((solved.objective, solved.bound), (Some(8.0), Some(7.0)), "costs are whole: 6.5 means 7");
}

#[test]
fn shares_are_checked_to_a_billionth() {
    let mut program = fleet();
    let part = program.share("part", 0);
    program.row(("all", ""), vec![(part, 3)], Sense::Equal, 1);
    let solved = solve(&program, &SolveBudget::default());
    assert_eq!((solved.status, solved.objective), (Status::Optimal, Some(7.0)));
    let values = solved.values.unwrap();
    assert_eq!(values[part], (SHARE / 3) as i64);
    let mut off = values;
    off[part] += 2;
    assert!(program.check(&off).unwrap_err().contains("all is violated"));
    assert_eq!(program.columns[part].kind, VariableKind::Share);
}

#[test]
fn the_least_change_of_a_budget_is_found_and_tried() {
    let mut program = fleet();
    program.row(("budget", "budget"), vec![(0, 2), (1, 1)], Sense::AtMost, 5);
    program.row(("room", "room"), vec![(0, 1), (1, 1)], Sense::AtMost, 9);
    let why = reasons(&program, &SolveBudget::default());
    assert_eq!(why.conflict, ["traffic", "budget"], "the room is not at fault");
    let shown: Vec<(&str, i64)> = why.relaxations.iter().map(|r| (r.row.as_str(), r.needed)).collect();
    assert_eq!(shown, [("demand", 5), ("budget", 7)]);
    assert!(matches!(claim(&program, 100), Ok(SolverClaim::Infeasible)));
}

/// A row that nothing keeps is known as such without a solver, in a program of any size.
#[test]
fn what_no_value_keeps_is_infeasible_at_once() {
    let mut program = fleet();
    program.row(("traffic that nothing serves", "traffic"), vec![], Sense::Equal, 1);
    let solved = solve_with(&program, &SolveBudget::default(), &|_, _| Err("never asked".into()));
    assert_eq!((solved.status, solved.nodes), (Status::Infeasible, 0));
    assert!(solved.doubts.is_empty(), "{:?}", solved.doubts);
    assert!(!fleet().hopeless());
}
