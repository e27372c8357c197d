//! Two answers compared, as text.

use super::page::{bullet_within, heading, join, section};
use crate::report::answer_diff::AnswerDiff;
use crate::report::number::{change, digits};
use crate::report::table::table_within;
use crate::spec::visible::visible;

/// The metrics with a column of their own.
const SHOWN: [&str; 5] = ["ttft_ms", "tpot_ms", "output_tok_s", "usd_per_hour", "usd_per_mtok"];

fn signed(value: Option<f64>) -> String {
    match value {
        None => "does not run".to_owned(),
        Some(0.0) => "-".to_owned(),
        Some(value) if value > 0.0 => format!("+{}", digits(value)),
        Some(value) => format!("-{}", digits(-value)),
    }
}

fn inputs(diff: &AnswerDiff) -> Vec<Vec<String>> {
    let lines = diff.inputs.iter().flat_map(|input| input.names.iter().zip(input.a.iter().zip(&input.b)));
    let shown =
        |text: &String| if text.is_empty() { "default".to_owned() } else { visible(text).into_owned() };
    lines.map(|(key, (a, b))| vec![key.clone(), shown(a), shown(b)]).chain(plans(diff)).collect()
}

/// The plans, where they are no input of their own.
fn plans(diff: &AnswerDiff) -> Option<Vec<String>> {
    let [a, b] = diff.plans.each_ref().map(|plan| visible(plan).into_owned());
    (diff.searched && a != b).then(|| vec!["(best plan)".to_owned(), a, b])
}

/// The comparison in lines of at most `width` characters.
pub fn table(diff: &AnswerDiff, width: usize) -> String {
    if diff.inputs.is_empty() && diff.files.is_empty() {
        return "The inputs are the same.\n".to_owned();
    }
    let known: Vec<&str> = SHOWN
        .into_iter()
        .filter(|column| diff.metrics.iter().any(|metric| metric.column == *column && metric.a != metric.b))
        .collect();
    let metric = |column: &str| diff.metrics.iter().find(|metric| metric.column == column);
    let row = |name: &str, cell: &dyn Fn(&str) -> String| -> Vec<String> {
        [name.to_owned()].into_iter().chain(known.iter().map(|column| cell(column))).collect()
    };
    let value = |value: Option<f64>| value.map_or("-".to_owned(), digits);
    let mut rows = vec![
        row("A", &|column| value(metric(column).and_then(|metric| metric.a))),
        row("B", &|column| value(metric(column).and_then(|metric| metric.b))),
        row("B to A", &|column| {
            let both = metric(column).and_then(|metric| metric.a.zip(metric.b));
            both.map_or("-".to_owned(), |(a, b)| change(a, b))
        }),
    ];
    let parts = diff.inputs.iter().flat_map(|input| &input.effects).any(|effect| effect.part.is_some());
    for input in &diff.inputs {
        let effect = |column: &str| input.effects.iter().find(|effect| effect.column == column);
        rows.push(row(&input.names.join(" + "), &|column| match effect(column) {
            Some(effect) => signed(if parts { effect.part } else { effect.alone }),
            None => "-".to_owned(),
        }));
    }
    let about = match parts {
        true if diff.searched => {
            "and the part of the change that each input explains, with the best plan of every mixture"
        }
        true => "and the part of the change that each input explains: the parts add up",
        false => "and the change where only one input is that of B",
    };
    let header: Vec<&str> = [""].into_iter().chain(known.iter().copied()).collect();
    let files: String = diff.files.iter().map(|file| bullet_within(file, width)).collect();
    join([
        heading("Inputs", "that differ") + &table_within(&["key", "A", "B"], inputs(diff), width),
        heading("Metrics", about) + &table_within(&header, rows, width),
        section("Files", "of the catalogue that differ", files),
    ])
}
