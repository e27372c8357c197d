//! Verification of saved recommendations against the formulas: every build re-estimated, dominance, named
//! builds, a sample of rejected systems, and the search itself. Independent of the catalogue.

use serde_json::Value;

use super::{CLOSE, CheckResult, Verified, differences, figure, rows, unlike, value, whole};
use crate::report::recommend::{Requirements, SizedSystem};
use crate::search::problem::{Problem, Traffic};
use crate::search::sample::sample;
use crate::search::sizing::Sized;

/// Re-estimates a saved build from its plan, with cost and power.
pub fn estimated(saved: &Value, serving: &SizedSystem, sought: &Requirements) -> Vec<String> {
    let problem = serving.problem;
    let mut shared: Problem = problem.clone();
    shared.traffic = Traffic::InFlight(serving.sized.share);
    let at_share = match super::row::again(&shared, &saved["each"]) {
        Ok(found) => found,
        Err(faults) => return faults.into_iter().map(|fault| format!("each.{fault}")).collect(),
    };
    let sized = Sized { at_share, ..serving.sized.clone() };
    let build = SizedSystem {
        problem,
        sized: &sized,
        prices: serving.prices.clone(),
        names: serving.names.clone(),
        keeps_quality: serving.keeps_quality,
    }
    .build(sought);
    let again = value(&build);
    let mut faults = Vec::new();
    for key in again.as_object().into_iter().flat_map(|build| build.keys()) {
        // The status depends on the other builds.
        if !["standing", "because", "each"].contains(&key.as_str()) {
            differences(key, &saved[key], &again[key], &mut faults);
        }
    }
    let pace = build.tok_s_per_user;
    if pace < sought.target_tok_s * (1.0 - CLOSE) {
        faults.push(format!("tok_s_per_user: recomputed {pace}, target {}", sought.target_tok_s));
    }
    if build.most_users < sought.users {
        faults.push(format!("most_users: recomputed {}, target {}", build.most_users, sought.users));
    }
    faults
}

/// The saved values that rank a build: cost, users, speed, output, quality.
#[derive(Clone, Copy)]
struct Judged {
    cost: f64,
    users: f64,
    pace: f64,
    output: f64,
    kept: bool,
}

fn judged(build: &Value) -> Judged {
    Judged {
        cost: build["money"]["usd_per_hour"].as_f64().unwrap_or(f64::INFINITY),
        users: figure(build, "most_users"),
        pace: figure(build, "tok_s_per_user"),
        output: figure(build, "most_output_tok_s"),
        kept: build["keeps_quality"] == true,
    }
}

impl Judged {
    /// Nowhere worse.
    fn covers(&self, other: &Judged) -> bool {
        self.cost <= other.cost
            && self.users >= other.users
            && self.pace >= other.pace
            && self.output >= other.output
            && self.kept >= other.kept
    }
}

/// The name of a build as the dominating build of another.
fn called(build: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    format!("{}, {}", text(&build["name"]), text(&build["each"]["weight_format"]))
}

/// Whether a build exceeds, or may exceed, a budget.
fn breaks(build: &Value, sought: &Requirements) -> bool {
    let beyond = |found: &Value, most: Option<f64>| {
        most.is_some_and(|most| found.as_f64().is_none_or(|found| found > most))
    };
    beyond(&build["money"]["buy_usd"], sought.budget_usd)
        || beyond(&build["money"]["usd_per_hour"], sought.budget_usd_per_hour)
        || beyond(&build["watts"], sought.max_watts)
}

/// Checks the status of each build against all others.
fn standing(builds: &[&Value], sought: &Requirements) -> Vec<String> {
    let mut faults = Vec::new();
    let within: Vec<bool> = builds.iter().map(|build| !breaks(build, sought)).collect();
    let numbers: Vec<Judged> = builds.iter().map(|build| judged(build)).collect();
    for (at, build) in builds.iter().enumerate() {
        let better = |other: &usize| {
            let (a, b) = (&numbers[*other], &numbers[at]);
            *other != at && within[*other] && a.covers(b) && (!b.covers(a) || *other < at)
        };
        let by: Vec<usize> = (0..builds.len()).filter(better).collect();
        let expected = if !within[at] {
            "over budget"
        } else if numbers[at].cost.is_infinite() {
            "unpriced"
        } else if by.is_empty() {
            "front"
        } else {
            "dominated"
        };
        if build["standing"] != expected {
            faults.push(format!("{}: saved {}, recomputed {expected}", called(build), build["standing"]));
        } else if expected == "dominated" {
            let because = build["because"].as_str().unwrap_or_default();
            if !by.iter().any(|other| called(builds[*other]) == because) {
                faults.push(format!(
                    "{}: saved dominated by {because}, recomputed {}",
                    called(build),
                    called(builds[by[0]])
                ));
            }
        }
        if at > 0 && numbers[at - 1].cost > numbers[at].cost {
            faults.push(format!("{}: cheaper than the build before it", called(build)));
        }
    }
    faults
}

/// Checks that each named build is in the list, and that the cheapest is the cheapest.
fn named(saved: &Value, builds: &[&Value], sought: &Requirements) -> Vec<String> {
    let mut faults = Vec::new();
    let one = |key: &str| Some(&saved[key]).filter(|build| !build.is_null());
    let all =
        ["minimum", "cheapest", "value"].into_iter().filter_map(|key| Some((key.to_string(), one(key)?)));
    let tiers = rows(saved, "tiers").into_iter().enumerate().map(|(at, tier)| (format!("tiers.{at}"), tier));
    for (key, build) in all.chain(tiers) {
        let listed = builds.iter().find(|other| called(other) == called(build));
        match listed {
            None => faults.push(format!("{key}: {} is not among the builds", called(build))),
            Some(listed) => differences(&key, build, listed, &mut faults),
        }
    }
    let serving: Vec<&&Value> = builds
        .iter()
        .filter(|build| !breaks(build, sought))
        .filter(|build| figure(build, "tok_s_per_user") >= sought.target_tok_s * (1.0 - CLOSE))
        .filter(|build| figure(build, "most_users") >= sought.users as f64)
        .filter(|build| judged(build).cost.is_finite())
        .collect();
    let least = |kept: bool| {
        let costs = serving.iter().map(|build| judged(build)).filter(|build| build.kept || !kept);
        costs.map(|build| build.cost).fold(f64::INFINITY, f64::min)
    };
    let cost = |key: &str| one(key).map_or(f64::INFINITY, |build| judged(build).cost);
    let (minimum, cheapest) = (least(true), least(false));
    if cost("minimum") != minimum {
        let told = cost("minimum");
        faults.push(format!(
            "minimum: saved {told} USD/h, the cheapest that keeps quality and meets the SLO costs {minimum}"
        ));
    }
    if one("minimum").is_some_and(|build| build["keeps_quality"] != true) {
        faults.push("minimum: it does not keep the model's quality".into());
    }
    let least_told = cost("minimum").min(cost("cheapest"));
    if least_told != cheapest {
        faults.push(format!(
            "cheapest: saved {least_told} USD/h, the cheapest that meets the SLO costs {cheapest}"
        ));
    }
    faults
}

/// Random deployments of rejected systems: none may meet the SLO.
pub fn missed(questions: &[(String, Problem)], (count, seed): (u64, u64)) -> CheckResult {
    let each = count.div_ceil(questions.len().max(1) as u64);
    let (mut drawn, mut faults) = (0, Vec::new());
    for (name, problem) in questions {
        let mut one = problem.clone();
        one.traffic = Traffic::InFlight(1);
        let found = sample(&one, None, each, seed);
        drawn += found.drawn;
        if let Some(better) = found.better.first() {
            let plan = crate::report::answer::plan(&better.candidate).label;
            faults.push(format!("{name}: saved as rejected, {plan} meets the SLO"));
        }
    }
    let what = format!("sample: no random deployment of {} rejected systems meets the SLO", questions.len());
    CheckResult::new(what, drawn as usize, faults)
}

/// The builds of a result for a model.
pub fn builds(saved: &Value) -> Vec<&Value> {
    rows(saved, "builds")
}

/// The builds of a result for a system.
pub fn held(saved: &Value) -> Vec<&Value> {
    rows(saved, "models").into_iter().map(|held| &held["build"]).collect()
}

/// Checks a saved result; `faults` are those of its re-estimated builds, one list per build, and `fresh` is the
/// result of a new search.
pub fn verify(
    sought: &Requirements,
    (saved, fresh): (&Value, &Value),
    faults: Vec<(String, Vec<String>)>,
    missed: CheckResult,
    seed: u64,
) -> Verified {
    let told = faults.len();
    let faults = faults.into_iter().flat_map(|(name, faults)| {
        faults.into_iter().map(move |fault| format!("{name}: {fault}")).collect::<Vec<_>>()
    });
    let mut checks = vec![
        CheckResult::new(
            "question: resolves to the same inputs, with defaults",
            1,
            unlike(&["scenario", "sought"], saved, fresh),
        ),
        CheckResult::new("builds: re-estimated, each with its own plan", told, faults.collect()),
    ];
    let builds = builds(saved);
    if saved["models"].is_null() {
        checks.push(CheckResult::new(
            "standing: front and dominated builds are classified correctly",
            builds.len(),
            standing(&builds, sought),
        ));
        checks.push(CheckResult::new(
            "named: among the builds, and the cheapest is the cheapest",
            rows(saved, "tiers").len() + 3,
            named(saved, &builds, sought),
        ));
    } else {
        let held = rows(saved, "models");
        let larger =
            held.windows(2).filter(|pair| figure(pair[0], "parameters") < figure(pair[1], "parameters"));
        let faults =
            larger.map(|pair| format!("{}: larger than the model before it", pair[1]["build"]["model"]));
        checks.push(CheckResult::new("order: the largest model first", held.len(), faults.collect()));
    }
    checks.push(missed);
    let what = "search: a new search gives the same result in every field";
    checks.push(CheckResult::new(what, 1, whole(saved, fresh, &[])));
    Verified::of(checks, seed)
}
