//! Cross-validation errors (leave-one-group-out), as text and rows.

use crate::spec::nearness::LeftOut;
use crate::spec::percentile::OddsLevel;

pub const HEADER: [&str; 14] = [
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
    "SLO met at p75",
    "regret",
    "SLO met at p90",
    "regret",
];

/// Share of choices that meet the SLO, and their regret: by the prediction itself, with the default odds, and with 90 %.
fn decisions(row: &LeftOut) -> [Option<f64>; 6] {
    let at = |level: OddsLevel| {
        let found = row.at_odds.iter().find(|one| (one.odds - level.probability()).abs() < 1e-9);
        [found.map(|one| one.limit_met), found.and_then(|one| one.regret)]
    };
    let [[met, regret], [met_p90, regret_p90]] = [OddsLevel::DEFAULT, OddsLevel::P90].map(at);
    [row.limit_met, row.regret, met, regret, met_p90, regret_p90]
}

/// A row of [`HEADER`]; shares in %.
pub fn cells(row: &LeftOut) -> Vec<String> {
    let share = |value: Option<f64>| value.map(|value| format!("{:.1}", 100.0 * value)).unwrap_or_default();
    let ends = |score: Option<[f64; 2]>| [score.map(|ends| ends[0]), score.map(|ends| ends[1])];
    let ([tpot, tpot_p90], [ttft, ttft_p90]) = (ends(row.tpot), ends(row.ttft));
    let mut cells = vec![row.name.clone(), row.rows.to_string()];
    cells.extend([tpot, tpot_p90, row.tpot_covered, ttft, ttft_p90, row.ttft_covered].map(share));
    cells.extend(decisions(row).map(share));
    cells
}

pub fn markdown(rows: &[LeftOut]) -> String {
    let share = |value: Option<f64>| value.map(|value| format!("{:.1} %", 100.0 * value)).unwrap_or_default();
    let mut text = String::from(
        "| held out | TPOT MdAPE | in p10–p90 | TTFT MdAPE | in p10–p90 | choices | SLO met | regret | `--risk p75` | regret | `--risk p90` | regret |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
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
        ];
        let cells = cells.into_iter().chain(decisions(one).map(share)).collect::<Vec<_>>();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}
