//! The audit of a prediction as text and as Markdown.

use super::page::{bullet_within, join, section, wrap};
use crate::report::audit::{AuditReport, AuditedInput, AuditedOverride, ORDERING};
use crate::report::number::{bar, count, digits, percent, word};
use crate::report::table::table_within;
use crate::spec::visible::visible;

/// Width of a bar, in characters.
const BAR: usize = 12;
/// Inputs of a list that is not complete.
pub const FEW: usize = 12;

/// A relative change with its sign.
fn signed(share: f64) -> String {
    let size = percent(share.abs());
    match share {
        0.0 => "-".to_owned(),
        share => format!("{}{size}", if share < 0.0 { "-" } else { "+" }),
    }
}

fn changes(input: &AuditedInput) -> impl Iterator<Item = String> {
    ORDERING
        .map(|metric| signed(input.on(metric).map_or(0.0, |effect| effect.at_10_percent_more)))
        .into_iter()
}

/// Inputs with the change of each metric where they are 10 % larger.
fn inputs(inputs: &[AuditedInput], most: usize, width: usize) -> String {
    let largest = inputs.first().map_or(0.0, AuditedInput::largest);
    let rows = inputs.iter().take(most).map(|input| -> Vec<String> {
        let share = if largest > 0.0 { input.largest() / largest } else { 0.0 };
        let head = [input.name(), input.value.clone(), input.grade.to_string()];
        head.into_iter().chain(changes(input)).chain([bar(share, BAR)]).collect()
    });
    let metrics = ORDERING.map(|metric| metric.entry().heading);
    let header: Vec<&str> = ["input", "value", "grade"].into_iter().chain(metrics).chain([""]).collect();
    let rest = inputs.len().saturating_sub(most);
    let more = match rest {
        0 => String::new(),
        rest => format!("{} with smaller effects: --detail\n", count(rest as u64, "input")),
    };
    table_within(&header, rows, width) + &more
}

fn overrides(overrides: &[AuditedOverride], width: usize) -> String {
    let line = |one: &AuditedOverride| {
        let effects = one
            .effects
            .iter()
            .filter(|effect| ORDERING.iter().any(|metric| metric.entry().column == effect.column));
        let effects: Vec<String> = effects
            .map(|effect| {
                let without = effect.without.map_or("does not run".to_owned(), digits);
                format!("{} {without} -> {}", effect.column, digits(effect.with))
            })
            .collect();
        let effects = if effects.is_empty() { "changes no metric".to_owned() } else { effects.join(", ") };
        bullet_within(&format!("{}: {effects}", visible(&one.set)), width)
    };
    overrides.iter().map(line).collect()
}

/// The audit in lines of at most `width` characters; `most` inputs of each kind.
pub fn audit(report: &AuditReport, most: usize, width: usize) -> String {
    let first = report.question.optimize.first().map(|term| word(term.metric));
    let head = format!("{} on {}: {}", report.question.model, report.question.hardware, report.notation);
    let weakest = format!(
        "weakest source: {}; objective {}; changes are those of a metric where the input is 10 % larger, at the same plan",
        report.section.grade,
        first.unwrap_or("none")
    );

    let left_out =
        report.section.left_out.iter().map(|one| bullet_within(&format!("{}: {}", one.part, one.why), width));
    join([
        wrap(&visible(&head), width, 0, 2) + &wrap(&weakest, width, 0, 2),
        section("Overrides", "without -> with", overrides(&report.section.overrides, width)),
        section(
            "Assumptions",
            "measured, fitted or assumed",
            inputs(&report.section.assumptions, most, width),
        ),
        section("Data sheets", "and figures read from devices", inputs(&report.known, most, width)),
        section("Left out", "no formula of their own", left_out.collect::<String>()),
    ])
}

/// A cell of a Markdown table.
fn cell(text: &str) -> String {
    visible(text).replace('|', "\\|").replace('\n', " ")
}

/// The audit as Markdown, every input with its source.
pub fn markdown(report: &AuditReport) -> String {
    let mut text = format!(
        "# Assumptions of {} on {}\n\nPlan: {}. Weakest source: {}.\n",
        cell(&report.question.model),
        cell(&report.question.hardware),
        cell(&report.notation),
        report.section.grade
    );
    if !report.section.overrides.is_empty() {
        text.push_str("\n## Overrides\n\n");
        report.section.overrides.iter().for_each(|one| {
            let effects = one.effects.iter().map(|effect| {
                let without = effect.without.map_or("does not run".to_owned(), digits);
                format!("{} {without} → {}", effect.column, digits(effect.with))
            });
            text.push_str(&format!("- `{}`: {}\n", cell(&one.set), effects.collect::<Vec<_>>().join(", ")));
        });
    }
    for (title, inputs) in [("Assumptions", &report.section.assumptions), ("Data sheets", &report.known)] {
        let metrics = ORDERING.map(|metric| metric.entry().heading).join(" | ");
        text.push_str(&format!(
            "\n## {title}\n\nChange of a metric where the input is 10 % larger, at the same plan.\n\n\
             | input | value | grade | {metrics} | source |\n|---|---|---|--:|--:|--:|--:|---|\n"
        ));
        for input in inputs {
            let head = [cell(&input.name()), cell(&input.value), input.grade.to_string()];
            let cells: Vec<String> =
                head.into_iter().chain(changes(input)).chain([cell(&input.source)]).collect();
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    text.push_str("\n## Left out\n\n");
    report.section.left_out.iter().for_each(|one| text.push_str(&format!("- {}: {}\n", one.part, one.why)));
    text
}
