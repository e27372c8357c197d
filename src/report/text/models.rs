//! Models that one system serves, as text: by size and age, the longest contexts, the most users.

use super::page::{
    BAD, GOOD, WIDTH, bullets, heading, indent, join, paragraph, remainder, section, shorten, styled_within,
    wrap,
};
use super::recommend::{missed, sought};
use crate::report::number::{count, digits};
use crate::report::recommend::models::{ServedModel, ServedModels};
use crate::report::table::{grouped, table_within};

const ROWS: usize = 12;
const NAMES: usize = 5;

pub fn table(answer: &ServedModels) -> String {
    join([
        head(answer, WIDTH),
        families(&answer.models, ROWS, usize::from(u16::MAX)),
        first(answer, "Longest contexts", &answer.longest_contexts, |held| {
            format!("{} tokens", grouped(held.build.max_context_tokens as u64))
        }),
        first(answer, "Most users", &answer.most_users, |held| {
            format!(
                "{}, {} tok/s in total",
                count(held.build.most_users, "user"),
                digits(held.build.most_output_tok_s)
            )
        }),
        missed(&answer.missed),
        section("Defaults used", "not specified", bullets(&answer.sought.assumed)),
        paragraph(&format!(
            "{} considered, {} meet the SLO; {} searches, {}",
            count(answer.looked.systems, "model"),
            grouped(answer.looked.serve),
            grouped(answer.looked.searches),
            count(answer.looked.candidates, "candidate")
        )),
    ])
}

pub(super) fn head(answer: &ServedModels, width: usize) -> String {
    let verdict = match answer.models.first() {
        Some(served) => {
            let first = format!("{}, {}", served.build.model, served.build.each.weight_format);
            let models = count(answer.models.len() as u64, "model");
            styled_within(GOOD, &format!("{models} of the catalogue meet the SLO; first: {first}"), width)
        }
        None => styled_within(BAD, "NO MODEL MEETS THE SLO on this hardware", width),
    };
    verdict + &wrap(&sought(&answer.sought), width, 0, 2)
}

/// The first model of each of the first `most` families, in lines of at most `width` characters.
pub(super) fn families(models: &[ServedModel], most: usize, width: usize) -> String {
    if models.is_empty() {
        return String::new();
    }
    let header = [
        "model",
        "released",
        "parameters",
        "runtime, weights",
        "tok/s/user",
        "odds",
        "users",
        "context",
        "also runs in",
    ];
    let row = |held: &ServedModel| {
        let build = &held.build;
        vec![
            shorten(&build.model, 40),
            held.released.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{} B", digits(held.parameters as f64 * 1e-9)),
            format!("{} {}", build.runtime, build.each.weight_format),
            digits(build.tok_s_per_user),
            build.joint_odds(),
            grouped(build.most_users),
            grouped(held.build.max_context_tokens as u64),
            other(held),
        ]
    };
    let mut one_each: Vec<&ServedModel> = Vec::new();
    for held in models {
        if !one_each.iter().any(|other| other.family == held.family) {
            one_each.push(held);
        }
    }
    let more = remainder(models.len(), most.min(one_each.len()), "models in --format csv");
    let rows = one_each.into_iter().take(most).map(row);
    heading("One model of each family", &more)
        + &indent(&table_within(&header, rows, width.saturating_sub(2)), 2)
}

/// The fastest other runtime in which the model runs, with its speed per user.
fn other(held: &ServedModel) -> String {
    let elsewhere = held.others.iter().filter(|other| other.runtime != held.build.runtime);
    let fastest = elsewhere.max_by(|a, b| a.tok_s_per_user.total_cmp(&b.tok_s_per_user));
    fastest.map_or_else(
        || "-".to_owned(),
        |other| format!("{} {}: {}", other.runtime, other.weight_format, digits(other.tok_s_per_user)),
    )
}

fn first(
    answer: &ServedModels,
    title: &str,
    names: &[String],
    figure: impl Fn(&ServedModel) -> String,
) -> String {
    let find = |name: &String| answer.models.iter().find(|held| held.build.model == *name);
    let lines: String = names
        .iter()
        .take(NAMES)
        .filter_map(|name| Some(format!("  {name}: {}\n", figure(find(name)?))))
        .collect();
    section(title, "", lines)
}
