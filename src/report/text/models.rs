//! Models that one system serves, as text: the largest models, the longest contexts, the most users.

use super::page::{BAD, GOOD, WIDTH, heading, indent, join, paragraph, shorten, styled, wrap};
use super::recommend::{assumed, missed, sought};
use crate::report::number::{count, digits};
use crate::report::recommend::models::{ServedModel, ServedModels};
use crate::report::table::{grouped, table as rows};

/// Maximum number of rows of a table.
const ROWS: usize = 12;
/// Maximum number of names in a list.
const NAMES: usize = 5;

/// The whole report.
pub fn table(answer: &ServedModels) -> String {
    let verdict = match answer.models.first() {
        Some(held) => {
            let largest = format!("{}, {}", held.build.model, held.build.each.weight_format);
            styled(
                GOOD,
                &format!(
                    "{} of the catalogue meet the SLO; largest: {largest}",
                    count(answer.models.len() as u64, "model")
                ),
            )
        }
        None => styled(BAD, "NO MODEL MEETS THE SLO on this hardware"),
    };
    join([
        format!("{verdict}\n{}", wrap(&sought(&answer.sought), WIDTH, 0, 2)),
        largest(&answer.models),
        first(answer, "Longest contexts", &answer.longest_contexts, |held| {
            format!("{} tokens", grouped(held.longest_context_tokens))
        }),
        first(answer, "Most users", &answer.most_users, |held| {
            format!(
                "{}, {} tok/s in total",
                count(held.build.most_users, "user"),
                digits(held.build.most_output_tok_s)
            )
        }),
        missed(&answer.missed),
        assumed(&answer.sought),
        paragraph(&format!(
            "{} considered, {} meet the SLO; {} searches, {}",
            count(answer.looked.systems, "model"),
            grouped(answer.looked.serve),
            grouped(answer.looked.searches),
            count(answer.looked.candidates, "candidate")
        )),
    ])
}

fn largest(models: &[ServedModel]) -> String {
    if models.is_empty() {
        return String::new();
    }
    let header =
        ["model", "parameters", "weights", "plan", "tok/s/user", "users", "tok/s", "context", "USD/Mtok"];
    let row = |held: &ServedModel| {
        let build = &held.build;
        vec![
            shorten(&build.model, 40),
            format!("{} B", digits(held.parameters as f64 * 1e-9)),
            build.each.weight_format.clone(),
            shorten(&build.each.plan.label, 24),
            digits(build.tok_s_per_user),
            grouped(build.most_users),
            digits(build.most_output_tok_s),
            grouped(held.longest_context_tokens),
            build.money.usd_per_mtok_full.map_or_else(|| "-".to_string(), digits),
        ]
    };
    let rest = models.len().saturating_sub(ROWS);
    let more = if rest > 0 { format!("{rest} more in --format csv") } else { String::new() };
    let told: Vec<Vec<String>> = models.iter().take(ROWS).map(row).collect();
    heading("Largest models", &more) + &indent(&rows(&header, &told), 2)
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
    if lines.is_empty() { lines } else { heading(title, "") + &lines }
}
