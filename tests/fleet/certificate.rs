//! A fleet's certificate read by somebody else: from its JSON alone, every row is added up and the program solved.

use good_lp::solvers::microlp::microlp;
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, variable};
use mantile::report::fleet::program::report_program;
use mantile::search::fleet::{FleetBounds, FleetObjective, mix};
use mantile::search::mip::solve::SolveBudget;
use mantile::search::outcome::Status;
use proptest::prelude::*;
use serde_json::Value;

use super::fleets;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

/// The sum of costs, or the first bound or row that is broken.
fn checked(program: &Value) -> Result<f64, String> {
    let mut cost = 0.0;
    for column in list(&program["columns"]) {
        let value = number(&column["value"]);
        let whole = column["kind"] == "whole";
        if value < number(&column["least"])
            || value > number(&column["most"])
            || whole && value.fract() != 0.0
        {
            return Err(format!("{} is {value}", column["name"]));
        }
        cost += value * number(&column["cost"]);
    }
    for row in list(&program["rows"]) {
        let (mut sum, mut slack) = (0.0, 1e-9);
        for (at, factor) in list(&row["columns"]).iter().zip(list(&row["coefficients"])) {
            let column = &program["columns"][at.as_u64().unwrap() as usize];
            sum += number(factor) * number(&column["value"]);
            // Shares are told to a billionth.
            slack += if column["kind"] == "share" { number(factor).abs() * 1e-9 } else { 0.0 };
        }
        let over = sum - number(&row["bound"]);
        let kept = match row["sense"].as_str().unwrap() {
            "<=" => over <= slack,
            ">=" => over >= -slack,
            _ => over.abs() <= slack,
        };
        if !kept {
            return Err(format!("{} is off by {over}", row["name"]));
        }
    }
    Ok(cost)
}

/// The least cost, by a solver that is given nothing else.
fn solved(program: &Value) -> Option<f64> {
    let mut variables = ProblemVariables::new();
    let columns = list(&program["columns"]).iter().map(|column| {
        let one = variable().bounds(number(&column["least"])..=number(&column["most"]));
        variables.add(if column["kind"] == "whole" { one.integer() } else { one })
    });
    let columns: Vec<_> = columns.collect();
    let costs = columns.iter().zip(list(&program["columns"]));
    let objective: Expression = costs.map(|(variable, column)| number(&column["cost"]) * *variable).sum();
    let mut model = variables.minimise(objective.clone()).using(microlp);
    for row in list(&program["rows"]) {
        let terms = list(&row["columns"]).iter().zip(list(&row["coefficients"]));
        let left: Expression =
            terms.map(|(at, factor)| number(factor) * columns[at.as_u64().unwrap() as usize]).sum();
        let bound = number(&row["bound"]);
        model.add_constraint(match row["sense"].as_str().unwrap() {
            "<=" => left.leq(bound),
            ">=" => left.geq(bound),
            _ => left.eq(bound),
        });
    }
    Some(model.solve().ok()?.eval(objective))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_certificate_is_checked_and_solved_again_from_its_json_alone(
        fleet in fleets(), spare in any::<bool>(), aim in 0usize..3, at in any::<prop::sample::Index>()
    ) {
        let aim = [FleetObjective::Cost, FleetObjective::Devices, FleetObjective::Throughput][aim];
        let budget = (aim == FleetObjective::Throughput).then_some(20.0);
        let found = mix(&fleet, aim, &FleetBounds { spare, usd_per_hour: budget, ..FleetBounds::default() }, &SolveBudget::default());
        let mut shown = serde_json::to_value(report_program(&found.program, found.solved.values.as_ref())).unwrap();
        let Some(objective) = found.solved.objective else {
            prop_assert_eq!(solved(&shown), None);
            return Ok(());
        };
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
        let cost = checked(&shown);
        prop_assert!(cost.as_ref().is_ok_and(|cost| close(*cost, objective)), "{:?} {}", cost, objective);
        if found.solved.status == Status::Optimal {
            let again = solved(&shown);
            prop_assert!(again.is_some_and(|again| close(again, objective)), "{:?} {}", again, objective);
        }
        // Another value is seen: it breaks a row, or costs something else, or was never needed.
        let column = at.index(found.program.columns.len());
        shown["columns"][column]["value"] = Value::from(1e7);
        prop_assert!(checked(&shown).is_err());
    }
}
