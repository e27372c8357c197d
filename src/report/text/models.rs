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
    let mut one_each: Vec<&ServedModel> = Vec::new();
    for held in models {
        if !one_each.iter().any(|other| other.family == held.family) {
            one_each.push(held);
        }
    }
    let more = remainder(models.len(), most.min(one_each.len()), "models in --format csv");
    let shown: Vec<&FamilyColumn> = COLUMNS.iter().filter(|column| column.least <= width).collect();
    let header: Vec<&str> = shown.iter().map(|column| column.title).collect();
    let row =
        |held: &ServedModel| shown.iter().map(|column| (column.cell)(held, width)).collect::<Vec<String>>();
    let rows = one_each.into_iter().take(most).map(row);
    heading("One model of each family", &more)
        + &indent(&table_within(&header, rows, width.saturating_sub(2)), 2)
}

/// A column of the families.
struct FamilyColumn {
    title: &'static str,
    /// Minimum width of the table in which it is shown.
    least: usize,
    cell: fn(&ServedModel, usize) -> String,
}

/// Width from which names have their organisation, and longest names below and above.
const WIDE: usize = 120;
const LONGEST: [usize; 2] = [24, 40];

fn name(held: &ServedModel, width: usize) -> String {
    let whole = &held.build.model;
    match width >= WIDE {
        true => shorten(whole, LONGEST[1]),
        false => shorten(whole.rsplit('/').next().unwrap_or(whole), LONGEST[0]),
    }
}

const COLUMNS: [FamilyColumn; 9] = [
    FamilyColumn { title: "model", least: 0, cell: name },
    FamilyColumn {
        title: "released",
        least: WIDE,
        cell: |held, _| held.released.clone().unwrap_or_else(|| "-".to_owned()),
    },
    FamilyColumn {
        title: "size",
        least: 0,
        cell: |held, _| format!("{} B", digits(held.parameters as f64 * 1e-9)),
    },
    FamilyColumn {
        title: "runtime, weights",
        least: 0,
        cell: |held, _| format!("{} {}", held.build.runtime, held.build.each.weight_format),
    },
    FamilyColumn { title: "tok/s/user", least: 0, cell: |held, _| digits(held.build.tok_s_per_user) },
    FamilyColumn { title: "odds", least: 0, cell: |held, _| held.build.joint_odds() },
    FamilyColumn { title: "users", least: 100, cell: |held, _| grouped(held.build.most_users) },
    FamilyColumn {
        title: "context",
        least: 100,
        cell: |held, _| grouped(held.build.max_context_tokens as u64),
    },
    FamilyColumn { title: "also runs in", least: WIDE, cell: |held, _| other(held) },
];

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
