//! The simulation of the best plans as text.

use super::page::{heading, indent, paragraph, shorten};
use crate::report::checked::{CheckedPlan, SimulatedCheck, TRUSTED};
use crate::report::number::{percent, time};
use crate::report::result::OptimizeResult;
use crate::report::simulate::ServedFigures;
use crate::report::table::{grouped, table};

/// Width of the plan column, in characters.
const PLAN: usize = 44;

pub fn checked(answer: &OptimizeResult) -> String {
    let Some(check) = &answer.checked else { return String::new() };
    let note = format!("{} requests to each plan, {}", grouped(check.requests), check.percentile.name());
    let header = ["plan", "TTFT", "simulated", "TPOT", "simulated", "within SLOs"];
    let mut text = heading("Checked by simulation", &note);
    text.push_str(&indent(&table(&header, check.plans.iter().map(row)), 2));
    text.push_str(&paragraph(&verdict(check)));
    if let Some(most) = check.largest_difference {
        text.push_str(&paragraph(&format!("Over all plans, they differ by at most {}.", percent(most))));
    }
    text
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
    let Some(best) = check.plans.first() else { return String::new() };
    let Some((simulated, difference)) = best.simulated.as_ref().zip(best.difference()) else {
        let reason = best.reason.as_deref().unwrap_or("it has no answer");
        return format!("The best plan was not simulated: {reason}.");
    };
    let (ttft, tpot) = (time(simulated.ttft_ms), time(simulated.tpot_ms));
    let believe = if difference > TRUSTED { ": believe the simulation" } else { "" };
    let trusted = format!(
        "TTFT {ttft}, TPOT {tpot} of the best plan by simulation, from which the formulas differ by {}{believe}.",
        percent(difference)
    );
    let limited = check.plans.iter().any(|plan| plan.within_slos.is_some());
    let within = match check.first_within_slos {
        _ if !limited => String::new(),
        Some(0) => " The best plan meets the SLOs.".to_owned(),
        Some(at) => {
            let plan = check.plans.get(at as usize).map_or("", |plan| &plan.notation);
            format!(" The best plan misses the SLOs; the first of these that meets them is {plan}.")
        }
        None => " None of these plans meets the SLOs.".to_owned(),
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
            first_within_slos: meets.iter().position(|meets| *meets).map(|at| at as u64),
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
    fn the_first_plan_within_the_slos_is_named() {
        assert!(verdict(&check(100.0, [true, true])).ends_with("The best plan meets the SLOs."));
        let other = verdict(&check(100.0, [false, true]));
        assert!(other.ends_with("the first of these that meets them is 1 x tp2."), "{other}");
        assert!(verdict(&check(100.0, [false; 2])).ends_with("None of these plans meets the SLOs."));
    }
}
