//! A recommendation in one screen: the builds to choose from, the first in words, rejected systems; or models.

use super::super::head as plan_head;
use super::super::launch::first_command;
use super::super::models as model_list;
use super::super::page::{join, shorten};
use super::super::recommend::{choices, head, kinds, least_memory, left_out, priced, ttft_and_watts};
use super::{fact, lines, more};
use crate::report::number::{count, digits};
use crate::report::recommend::models::ServedModels;
use crate::report::recommend::{Build, Recommendation, RejectedBuild};
use crate::report::table::{grouped, table_within};

const CHOICES: usize = 5;
const MODELS: usize = 12;
/// Lines of a screen.
const LINES: usize = 24;
const NAMES: usize = 3;

/// Hardware for a model in lines of at most `width` characters; `command` is the one that posed the problem.
pub fn recommend(answer: &Recommendation, command: &str, width: usize) -> String {
    let choices = choices(answer);
    let first = choices.first().map(|(_, build)| *build).or(answer.builds.first());
    let facts = first.map(|build| facts(build, width)).unwrap_or_default()
        + &not_compared(answer, width)
        + &rejected(&answer.missed, width);
    let screen = |most: usize| {
        join([
            head(answer, width),
            table(&choices[..most.min(choices.len())], width),
            facts.clone(),
            more(command, "every build in full, rejected systems, defaults", width)
                + &first_command(answer.launch.as_ref(), width),
        ])
    };
    // Upgrades may wait for a larger screen; the minimum, what is cheaper, and the best value may not.
    most_that_fit(choices.len() - answer.tiers.len(), CHOICES, screen)
}

/// The screen with the most rows that fit, at least `least`: a narrow terminal wraps names.
fn most_that_fit(least: usize, most: usize, screen: impl Fn(usize) -> String) -> String {
    let fits = |rows: &usize| screen(*rows).lines().count() <= LINES;
    screen((least..=most).rev().find(fits).unwrap_or(least))
}

/// Offers that are left out of the comparison, and how to include them.
fn not_compared(answer: &Recommendation, width: usize) -> String {
    left_out(answer, NAMES).iter().map(|line| fact("left out", line, width)).collect()
}

/// Models for one system in lines of at most `width` characters.
pub fn models(answer: &ServedModels, command: &str, width: usize) -> String {
    let screen = |models: usize| {
        join([
            model_list::head(answer, width),
            model_list::families(&answer.models, models, width),
            rejected(&answer.missed, width),
            more(command, "longest contexts, most users, rejected models, defaults", width)
                + &first_command(answer.launch.as_ref(), width),
        ])
    };
    most_that_fit(1, MODELS, screen)
}

fn table(choices: &[(String, &Build)], width: usize) -> String {
    if choices.is_empty() {
        return String::new();
    }
    let known = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), digits);
    let bought = choices.iter().any(|(_, build)| build.money.buy_usd.is_some());
    let row = |(title, build): &(String, &Build)| {
        let mut row = vec![
            title.clone(),
            build.name.clone(),
            build.each.weight_format.clone(),
            known(build.money.usd_per_hour),
        ];
        if bought {
            row.push(known(build.money.buy_usd));
            row.push(known(build.money.buy_usd.and(build.money.most_usd())));
        }
        row.extend([digits(build.tok_s_per_user), build.joint_odds(), grouped(build.most_users)]);
        row
    };
    let prices: &[&str] = if bought { &["USD/h", "buy USD", "at most"] } else { &["USD/h"] };
    let header = [&["choice", "build", "weights"], prices, &["tok/s/user", "odds", "max users"]].concat();
    table_within(&header, choices.iter().map(row), width)
}

/// Plan, speed and cost of a build.
fn facts(build: &Build, width: usize) -> String {
    let each = if build.copies > 1 { "each: " } else { "" };
    let plan = format!(
        "{each}{} on {}, {} weights, {}",
        plan_head::plan(&build.each),
        count(build.devices / build.copies.max(1), "device"),
        build.each.weight_format,
        build.runtime
    );
    let [ttft, watts] = ttft_and_watts(build);
    let speed = format!(
        "{} tok/s/user{ttft}, {} tok/s{watts}",
        digits(build.tok_s_per_user),
        digits(build.output_tok_s)
    );
    let mut facts = vec![("build", build.name.clone()), ("plan", plan), ("speed", speed)];
    facts.extend(build.odds().map(|odds| ("SLO odds", odds)));
    facts.extend(least_memory(build).map(|memory| ("memory", memory)));
    facts.push(("cost", priced(build)));
    lines(&facts, width)
}

/// Reasons of rejected builds that are named, the commonest first.
const NAMED_REASONS: usize = 3;

/// Counts of the kinds of reasons, the most frequent first.
fn rejected(misses: &[RejectedBuild], width: usize) -> String {
    let number = |kind: &str| misses.iter().filter(|miss| miss.kind == kind).count();
    let mut counts: Vec<(usize, &str)> = kinds(misses).into_iter().map(|kind| (number(kind), kind)).collect();
    counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let mut list: Vec<String> = counts.iter().map(|(number, kind)| format!("{number} {kind}")).collect();
    if list.len() > NAMED_REASONS + 1 {
        let others: usize = counts[NAMED_REASONS..].iter().map(|(number, _)| number).sum();
        list.truncate(NAMED_REASONS);
        list.push(format!("{others} others"));
    }
    match list.is_empty() {
        true => String::new(),
        false => fact("rejected", &shorten(&list.join(", "), 2 * width), width),
    }
}
