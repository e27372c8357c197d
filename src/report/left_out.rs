//! Cross-validation errors (leave-one-group-out), as text and rows.

use crate::spec::nearness::LeftOut;

pub const HEADER: [&str; 12] = [
    "held out",
    "rows",
    "TPOT",
    "TPOT p90",
    "coverage 80 %",
    "TTFT",
    "TTFT p90",
    "coverage 80 %",
    "SLO met",
    "regret",
    "SLO met at p90",
    "regret",
];

/// A row of [`HEADER`]; shares in %.
pub fn cells(row: &LeftOut) -> Vec<String> {
    let share = |value: Option<f64>| value.map(|value| format!("{:.1}", 100.0 * value)).unwrap_or_default();
    let ends = |score: Option<[f64; 2]>| [score.map(|ends| ends[0]), score.map(|ends| ends[1])];
    let ([tpot, tpot_p90], [ttft, ttft_p90]) = (ends(row.tpot), ends(row.ttft));
    let mut cells = vec![row.name.clone(), row.rows.to_string()];
    cells.extend([tpot, tpot_p90, row.tpot_covered, ttft, ttft_p90, row.ttft_covered].map(share));
    cells.extend([row.limit_met, row.regret, row.limit_met_p90, row.regret_p90].map(share));
    cells
}

pub fn markdown(rows: &[LeftOut]) -> String {
    let share = |value: Option<f64>| value.map(|value| format!("{:.1} %", 100.0 * value)).unwrap_or_default();
    let mut text = String::from(
        "| held out | TPOT MdAPE | in p10–p90 | TTFT MdAPE | in p10–p90 | choices | SLO met | regret | `--risk p90` | regret |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for one in rows {
        let choices = one.choices.map(|choices| choices.to_string()).unwrap_or_default();
        let median = |score: Option<[f64; 2]>| share(score.map(|ends| ends[0]));
        let cells = [
            one.name.clone(),
            median(one.tpot),
            share(one.tpot_covered),
            median(one.ttft),
            share(one.ttft_covered),
            choices,
            share(one.limit_met),
            share(one.regret),
            share(one.limit_met_p90),
            share(one.regret_p90),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}
