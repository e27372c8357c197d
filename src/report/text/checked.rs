//! The simulation of the best plans as text.

use super::page::{heading, indent, paragraph, shorten};
use crate::report::checked::{CheckedPlan, SimulatedCheck, TRUSTED};
use crate::report::number::{percent, time};
use crate::report::simulate::ServedFigures;
use crate::report::table::{grouped, table};

/// Width of the plan column, in characters.
const PLAN: usize = 44;

/// The plans that were simulated; empty if none was.
pub fn checked(check: Option<&SimulatedCheck>) -> String {
    let Some(check) = check else { return String::new() };
    let note = format!("{} requests to each plan, {}", grouped(check.requests), check.percentile.name());
    let mut text = heading("Checked by simulation", &note);
    text.push_str(&indent(&table(&HEADINGS, rows(check)), 2));
    text.push_str(&paragraph(&verdict(check)));
    if let Some(most) = check.largest_difference {
        text.push_str(&paragraph(&format!("Over all plans, they differ by at most {}.", percent(most))));
    }
    text
}

pub const HEADINGS: [&str; 6] = ["plan", "TTFT", "simulated", "TPOT", "simulated", "within SLOs"];

/// A row of [`HEADINGS`] for each plan.
pub fn rows(check: &SimulatedCheck) -> impl Iterator<Item = Vec<String>> {
    check.plans.iter().map(row)
}

fn row(plan: &CheckedPlan) -> Vec<String> {
    let of = |figures: &Option<ServedFigures>, value: fn(&ServedFigures) -> f64| {
        figures.as_ref().map_or_else(String::new, |figures| time(value(figures)))
    };
    let within = plan.within_slos.map_or_else(String::new, percent);
    vec![
        shorten(&plan.notation, PLAN),
        of(&plan.formulas, |one| one.ttft_ms),
        of(&plan.simulated, |one| one.ttft_ms),
        of(&plan.formulas, |one| one.tpot_ms),
        of(&plan.simulated, |one| one.tpot_ms),
        plan.reason.as_ref().map_or(within, |_| "not simulated".to_owned()),
    ]
}

/// Which of the two to believe, and which plan meets the SLOs.
pub fn verdict(check: &SimulatedCheck) -> String {
    let (Some(optimum), Some(shown)) = (check.plans.first(), check.plans.get(check.shown as usize)) else {
        return String::new();
    };
    let Some((simulated, difference)) = shown.simulated.as_ref().zip(shown.difference()) else {
        let reason = shown.reason.as_deref().unwrap_or("it has no answer");
        return format!("The best plan was not simulated: {reason}.");
    };
    let (ttft, tpot) = (time(simulated.ttft_ms), time(simulated.tpot_ms));
    let believe = if difference > TRUSTED { ": believe the simulation" } else { "" };
    let trusted = format!(
        "TTFT {ttft}, TPOT {tpot} of this plan by simulation, from which the formulas differ by {}{believe}.",
        percent(difference)
    );
    let limited = check.plans.iter().any(|plan| plan.within_slos.is_some());
    let count = check.plans.len();
    let within = match (optimum.meets_slos == Some(true), check.shown) {
        (true, 0) if !limited => String::new(),
        (true, 0) => " It meets the SLOs.".to_owned(),
        (false, at) if check.plans[at as usize].meets_slos != Some(true) => {
            format!(" It misses the SLOs, as do all {count} plans that were simulated.")
        }
        (true, _) => {
            format!(" By simulation it is better than the optimum of the formulas, {}.", optimum.notation)
        }
        (false, _) => {
            let missed = optimum
                .within_slos
                .map_or_else(String::new, |part| format!(": {} are within", percent(part)));
            format!(
                " It meets the SLOs; the optimum of the formulas, {}, misses them{missed}.",
                optimum.notation
            )
        }
    };
    trusted + &within
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::percentile::Percentile;

    fn check(simulated_ttft_ms: f64, meets: [bool; 2]) -> SimulatedCheck {
        let figures = |ttft_ms| ServedFigures { ttft_ms, tpot_ms: 20.0, e2e_ms: 900.0, output_tok_s: 50.0 };
        let plans = meets.iter().zip(["1 x tp1", "1 x tp2"]).map(|(meets, notation)| CheckedPlan {
            notation: notation.to_owned(),
            formulas: Some(figures(100.0)),
            simulated: Some(figures(simulated_ttft_ms)),
            within_slos: Some(0.5),
            meets_slos: Some(*meets),
            reason: None,
        });
        SimulatedCheck {
            requests: 10,
            seed: 1,
            percentile: Percentile::P95,
            plans: plans.collect(),
            largest_difference: None,
            shown: meets.iter().position(|meets| *meets).unwrap_or(0) as u64,
        }
    }

    #[test]
    fn above_a_difference_of_a_tenth_the_simulation_counts() {
        let near = verdict(&check(92.0, [true, true]));
        assert!(near.contains("differ by 9 %") && !near.contains("believe"), "{near}");
        let far = verdict(&check(80.0, [true, true]));
        assert!(far.contains("differ by 25 %: believe the simulation"), "{far}");
    }

    #[test]
    fn the_plan_that_misses_the_slos_is_named() {
        assert!(verdict(&check(100.0, [true, true])).ends_with("It meets the SLOs."));
        let other = verdict(&check(100.0, [false, true]));
        assert!(
            other.ends_with("the optimum of the formulas, 1 x tp1, misses them: 50 % are within."),
            "{other}"
        );
        assert!(verdict(&check(100.0, [false; 2])).ends_with("as do all 2 plans that were simulated."));
    }
}
