//! Prediction errors and decision quality, as text and rows.

use super::sheet;
use super::table::table;
use crate::quantity::unit::GIB;
use crate::validate::decision::Decision;
use crate::validate::figures::RunFigure;
use crate::validate::score::{PointScore, Score};
use crate::validate::summary::{
    ComparedFigure, DroppedRow, FigureOfRow, FigureScore, ReplayedRow, RowGroup, ScoredRow, Validation,
};

/// The scores of a figure, in the order of their columns.
const SCORES: [&str; 8] = ["n", "mdape", "mape", "p90", "bias", "within_10", "within_25", "coverage_80"];

/// The scores of a hit rate, in points.
const POINTS: [&str; 4] = ["n", "median", "p90", "bias"];

/// The groups as rows, all rows first.
pub fn groups_csv(found: &Validation) -> String {
    let scores = |figure: &'static str| SCORES.map(|score| format!("{figure}_{score}"));
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let header = [
        owned(&["group", "n", "unsupported"]),
        ["tpot", "ttft"].map(scores).concat(),
        owned(&["slo_met", "regret", "slo_met_p90", "regret_p90"]),
        ["memory", "e2e", "ttft_p99"].map(scores).concat(),
        RunFigure::EACH
            .map(|figure| SCORES.map(|score| format!("{}_{score}", group_column(figure))))
            .concat(),
        POINTS.map(|score| format!("hit_rate_{score}")).to_vec(),
    ];
    sheet::csv(header.concat().iter().map(String::as_str), group_rows(found))
}

/// Every scored row: measured, predicted, and the interval of each figure.
pub fn rows_csv(rows: &[ScoredRow]) -> String {
    let figure = |name: &str| ["", "_predicted", "_p10", "_p90"].map(|of| format!("{name}{of}"));
    let names = ["id", "model", "hardware", "runtime", "mode"].map(str::to_owned);
    let times = ["ttft_ms", "tpot_ms"].map(figure).concat();
    let more = ["memory_bytes", "e2e_ms", "ttft_p99_ms"].map(figure).concat();
    let hits = ["hit_rate", "hit_rate_predicted"].map(str::to_owned);
    let further = RunFigure::EACH.map(|figure| [column(figure, ""), column(figure, "_predicted")]).concat();
    let header = [&names[..], &times, &["unsupported".to_owned()], &more, &hits, &further].concat();
    sheet::csv(header.iter().map(String::as_str), rows.iter().map(row_cells))
}

fn column(figure: RunFigure, of: &str) -> String {
    let name = figure.name().to_lowercase().replace([' ', '/'], "_");
    format!("{name}{of}")
}

/// The start of a figure's columns in the rows of groups, where E2E alone is that of runs under a rate.
fn group_column(figure: RunFigure) -> String {
    column(figure, if figure == RunFigure::E2e { "_closed_loop" } else { "" })
}

fn row_cells(row: &ScoredRow) -> Vec<String> {
    let number = |value: Option<f64>| {
        value.filter(|value| value.is_finite()).map(|value| format!("{value:.4}")).unwrap_or_default()
    };
    let made = row.predicted.as_ref().ok();
    let measured = &row.measured;
    let memory = made.and_then(|made| made.memory);
    let figure = |measured: Option<f64>, made: Option<(f64, Option<(f64, f64)>)>| {
        let ends = made.and_then(|(_, interval)| interval);
        [measured, made.map(|(value, _)| value), ends.map(|(low, _)| low), ends.map(|(_, high)| high)]
            .map(number)
    };
    let names = [&measured.id, &measured.model, &measured.hardware, &measured.runtime, &measured.mode];
    let outcome = &measured.outcome;
    let unsupported = row.predicted.as_ref().err().cloned().unwrap_or_default();
    let both = |figure| [outcome.more.get(figure), made.and_then(|made| made.more.get(figure))].map(number);
    [
        &names.map(String::clone)[..],
        &figure(outcome.ttft_ms, made.map(|made| (made.ttft_ms, made.ttft_interval))),
        &figure(outcome.tpot_ms, made.map(|made| (made.tpot_ms, made.tpot_interval))),
        &[unsupported],
        &figure(outcome.memory_bytes, memory),
        &figure(outcome.e2e_ms, made.and_then(|made| Some((made.e2e_ms?, None)))),
        &figure(outcome.ttft_p99_ms, made.and_then(|made| Some((made.ttft_p99_ms?, None)))),
        &[outcome.hit_rate, made.and_then(|made| made.hit_rate)].map(number),
        &RunFigure::EACH.map(both).concat(),
    ]
    .concat()
}

fn group_rows(found: &Validation) -> Vec<Vec<String>> {
    let number = |value: f64| format!("{value:.4}");
    let of = |group: &RowGroup| {
        let name = if group.name.is_empty() { "all" } else { &group.name };
        let mut cells = vec![name.to_owned(), group.n.to_string(), group.unsupported.to_string()];
        let scored = |score: Option<Score>| match score {
            Some(s) => {
                let mut scores = vec![s.n.to_string()];
                scores.extend([s.mdape, s.mape, s.p90, s.bias, s.within_10, s.within_25].map(number));
                scores.push(s.coverage_80.map(number).unwrap_or_default());
                scores
            }
            None => vec![String::new(); 8],
        };
        cells.extend([group.tpot, group.ttft].into_iter().flat_map(scored));
        for decision in [group.decision, group.decision_p90] {
            cells.extend(
                [|d: Decision| Some(d.slo_met), |d: Decision| d.regret]
                    .map(|of| decision.and_then(of).map(number).unwrap_or_default()),
            );
        }
        cells.extend([group.memory, group.e2e, group.ttft_p99].into_iter().flat_map(scored));
        let further = |figure| group.figures.iter().find(|one| one.figure == figure).map(|one| one.score);
        cells.extend(RunFigure::EACH.map(further).into_iter().flat_map(scored));
        let points = |s: PointScore| [s.n.to_string(), number(s.median), number(s.p90), number(s.bias)];
        cells.extend(group.hit_rate.map(points).unwrap_or_default());
        cells
    };
    all(found).map(of).collect()
}

fn all(found: &Validation) -> impl Iterator<Item = &RowGroup> {
    let first = std::iter::once(&found.overall).chain(&found.groups).chain(&found.sessions);
    first.chain(&found.doubtful).chain(&found.above_capacity)
}

/// Errors in % as a Markdown table: all rows, then the groups.
pub fn markdown(found: &Validation) -> String {
    let percent = |value: f64| format!("{:.1} %", 100.0 * value);
    let cells = |score: Option<Score>, mean: Option<f64>| match score {
        Some(s) => [
            s.n.to_string(),
            percent(s.mdape),
            mean.map(percent).unwrap_or_default(),
            percent(s.bias),
            s.coverage_80.map(percent).unwrap_or_default(),
        ],
        None => ["0".into(), String::new(), String::new(), String::new(), String::new()],
    };
    let mut text = String::from(
        "| rows | skipped | TPOT: n | MdAPE | mean of cells | bias | in p10–p90 | TTFT: n | MdAPE | mean of cells | bias | in p10–p90 |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for group in all(found) {
        let tpot = cells(group.tpot, group.tpot_mean_of_cells);
        let both: Vec<String> = tpot.into_iter().chain(cells(group.ttft, group.ttft_mean_of_cells)).collect();
        text.push_str(&format!("| {} | {} | {} |\n", shown(group), group.unsupported, both.join(" | ")));
    }
    let sections =
        [memory_table(found), rate_table(found), figure_table(found), hit_table(found), peer_table(found)];
    text + &sections.iter().map(ErrorTable::markdown).collect::<String>()
}

/// A table below the first, in every format for people.
struct ErrorTable {
    header: &'static [&'static str],
    /// Columns of names; the others have numbers.
    names: usize,
    /// Unit of the numbers that are no counts, where the text has none.
    unit: &'static str,
    rows: Vec<Vec<String>>,
}

impl ErrorTable {
    fn text(&self) -> String {
        match self.rows.is_empty() {
            true => String::new(),
            false => format!("\n{}", table(self.header, &self.rows)),
        }
    }

    fn markdown(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let header: Vec<String> = self.header.iter().map(|name| (*name).to_owned()).collect();
        let rule = |at: usize| if at < self.names { "---" } else { "--:" };
        let rules: Vec<&str> = (0..header.len()).map(rule).collect();
        let cell =
            |(at, cell): (usize, &String)| match at < self.names || self.header[at] == "n" || cell.is_empty()
            {
                true => cell.clone(),
                false => format!("{cell}{}", self.unit),
            };
        let cells = |row: &Vec<String>| row.iter().enumerate().map(cell).collect::<Vec<_>>();
        let rows: String = self.rows.iter().map(|row| line(&cells(row))).collect();
        format!("\n{}|{}|\n{rows}", line(&header), rules.join("|"))
    }
}

/// Whether a group has runs under a rate.
fn is_under_a_rate(group: &RowGroup) -> bool {
    group.e2e.is_some() || group.ttft_p99.is_some()
}

/// The name of a group as rows of a table have it.
fn shown(group: &RowGroup) -> &str {
    if group.name.is_empty() { "all unflagged rows" } else { &group.name }
}

pub fn text(found: &Validation) -> String {
    const HEADER: [&str; 13] = [
        "rows", "n", "skipped", "TPOT", "p90", "bias", "cov. 80", "TTFT", "p90", "bias", "cov. 80",
        "SLO met", "regret",
    ];
    let rows: Vec<Vec<String>> = all(found)
        .map(|group| {
            let mut row = vec![shown(group).to_owned(), group.n.to_string(), group.unsupported.to_string()];
            row.extend(errors(group.tpot));
            row.extend(errors(group.ttft));
            row.push(group.decision.map(|d| percent(d.slo_met)).unwrap_or_default());
            row.push(group.decision.and_then(|d| d.regret).map(percent).unwrap_or_default());
            row
        })
        .collect();
    let mut text = String::from("MdAPE, p90 APE, median bias and coverage of the 80 % interval, in %\n\n");
    text.push_str(&table(&HEADER, &rows));
    let sections = [memory_table(found), rate_table(found), figure_table(found), hit_table(found)];
    text + &sections.iter().map(ErrorTable::text).collect::<String>()
        + &one_by_one(found)
        + &peer_table(found).text()
        + &choices(found)
        + &skipped(found)
}

fn count(score: Option<Score>) -> String {
    score.map(|score| score.n.to_string()).unwrap_or_default()
}

/// Errors of memory.
fn memory_table(found: &Validation) -> ErrorTable {
    let held = all(found).filter(|group| group.memory.is_some()).map(|group| {
        let names = [shown(group).to_owned(), count(group.memory)];
        names.into_iter().chain(errors(group.memory)).collect::<Vec<_>>()
    });
    let header = &["memory per device", "n", "MdAPE", "p90", "bias", "cov. 80"];
    ErrorTable { header, names: 1, unit: " %", rows: held.collect() }
}

/// Errors of runs under a rate. No intervals are known here.
fn rate_table(found: &Validation) -> ErrorTable {
    let rows = all(found).filter(|group| is_under_a_rate(group)).map(|group| {
        let of =
            |score: Option<Score>| std::iter::once(count(score)).chain(errors(score).into_iter().take(3));
        let name = std::iter::once(shown(group).to_owned());
        name.chain(of(group.e2e)).chain(of(group.ttft_p99)).collect::<Vec<_>>()
    });
    let header = &["under a rate", "n", "E2E", "p90", "bias", "n", "TTFT p99", "p90", "bias"];
    ErrorTable { header, names: 1, unit: " %", rows: rows.collect() }
}

/// Errors of further figures, by group. No intervals are known here.
fn figure_table(found: &Validation) -> ErrorTable {
    let of = |group: &RowGroup, one: &FigureScore| {
        let n = one.score.n.to_string();
        let names = [one.figure.name().to_owned(), shown(group).to_owned(), n];
        names.into_iter().chain(errors(Some(one.score)).into_iter().take(3)).collect::<Vec<_>>()
    };
    let rows = all(found).flat_map(|group| group.figures.iter().map(move |one| of(group, one)));
    ErrorTable {
        header: &["figure", "rows", "n", "MdAPE", "p90", "bias"],
        names: 2,
        unit: " %",
        rows: rows.collect(),
    }
}

/// Errors of other simulators.
fn peer_table(found: &Validation) -> ErrorTable {
    let rows = found.peers.iter().map(|one| {
        let names = [one.simulator.clone(), one.metric.clone(), one.score.n.to_string()];
        names.into_iter().chain(errors(Some(one.score)).into_iter().take(3)).collect::<Vec<_>>()
    });
    let header = &["other simulator", "metric", "n", "MdAPE", "p90", "bias"];
    ErrorTable { header, names: 2, unit: " %", rows: rows.collect() }
}

/// Errors of cache hit rates, in points.
fn hit_table(found: &Validation) -> ErrorTable {
    let rows = all(found).filter_map(|group| {
        let score = group.hit_rate?;
        let n = score.n.to_string();
        Some(vec![shown(group).to_owned(), n, percent(score.median), percent(score.p90), percent(score.bias)])
    });
    let header = &["cache hit rate, in points", "n", "median", "p90", "bias"];
    ErrorTable { header, names: 1, unit: "", rows: rows.collect() }
}

/// The figures of rows that are few: measured, predicted, and the error.
fn one_by_one(found: &Validation) -> String {
    if found.rows.is_empty() {
        return String::new();
    }
    let time = |figure: Option<ComparedFigure>| match figure {
        Some(ComparedFigure { measured, predicted }) => {
            let digits = usize::from(measured.min(predicted) < 100.0);
            let shown = |value: f64| format!("{value:.digits$}");
            [shown(measured), shown(predicted), percent(predicted / measured - 1.0)]
        }
        None => <[String; 3]>::default(),
    };
    let share = |figure: Option<ComparedFigure>| match figure {
        Some(ComparedFigure { measured, predicted }) => [measured, predicted].map(percent),
        None => <[String; 2]>::default(),
    };
    let row = |row: &ReplayedRow| {
        let names = [&row.id, &row.setting].map(String::clone);
        [&names[..], &share(row.hit_rate), &time(row.ttft_ms), &time(row.tpot_ms)].concat()
    };
    let header = [
        "row",
        "setting",
        "hit %",
        "predicted",
        "TTFT ms",
        "predicted",
        "error",
        "TPOT ms",
        "predicted",
        "error",
    ];
    let has = |row: &&ReplayedRow| row.hit_rate.is_some() || row.ttft_ms.is_some() || row.tpot_ms.is_some();
    let rows: Vec<_> = found.rows.iter().filter(has).map(row).collect();
    let main = if rows.is_empty() { String::new() } else { format!("\n{}", table(&header, rows)) };
    main + &further(found)
}

/// The further figures of rows that are few.
fn further(found: &Validation) -> String {
    let of = |row: &ReplayedRow, one: &FigureOfRow| {
        let shown = |value: f64| match one.figure {
            RunFigure::Weights | RunFigure::KvMemory => format!("{:.2} GiB", value / GIB),
            RunFigure::KvTokens => format!("{value:.0}"),
            _ => format!("{value:.1}"),
        };
        let error = percent(one.predicted / one.measured - 1.0);
        vec![row.id.clone(), one.figure.name().to_owned(), shown(one.measured), shown(one.predicted), error]
    };
    let rows: Vec<_> =
        found.rows.iter().flat_map(|row| row.figures.iter().map(move |one| of(row, one))).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}", table(&["row", "figure", "measured", "predicted", "error"], rows))
}

/// A fraction in %, with one digit.
fn percent(value: f64) -> String {
    format!("{:.1}", 100.0 * value)
}

/// MdAPE, p90, bias and coverage.
fn errors(score: Option<Score>) -> [String; 4] {
    let cells = |s: Score| {
        [percent(s.mdape), percent(s.p90), percent(s.bias), s.coverage_80.map(percent).unwrap_or_default()]
    };
    score.map(cells).unwrap_or_default()
}

fn choices(found: &Validation) -> String {
    let mut text = String::new();
    if let Some(d) = &found.overall.decision {
        text.push_str(&format!(
            "\n{} choices under a TPOT SLO in {} groups of comparable rows; rank correlation of throughput {:.2}\n",
            d.choices, d.groups, d.spearman
        ));
    }
    if let Some(d) = &found.overall.decision_p90 {
        text.push_str(&format!(
            "With the SLO at prediction p90 (--risk p90), {} % meet it at {} % regret\n",
            percent(d.slo_met),
            d.regret.map(percent).unwrap_or_default()
        ));
    }
    if found.overall.too_small > 0 {
        text.push_str(&format!(
            "\n{} of {} rows ran although they are predicted to be out of memory\n",
            found.overall.too_small, found.overall.n
        ));
    }
    text
}

/// Figures and rows that are not scored.
fn skipped(found: &Validation) -> String {
    let mut text = String::new();
    if !found.assumed.is_empty() {
        text.push_str("\nAssumed, where rows do not state it:\n");
        for one in &found.assumed {
            text.push_str(&format!("  {:>5}  {}\n", one.rows, one.input));
        }
    }
    if !found.unscored.is_empty() {
        let columns = found.unscored.iter().map(|one| format!("{} ({} rows)", one.column, one.rows));
        text.push_str(&format!("\nNot scored: {}\n", columns.collect::<Vec<_>>().join(", ")));
    }
    if !found.dropped.is_empty() {
        text.push_str(&format!("\nRows left out for a faulty cell: {}\n", found.dropped.len()));
        for DroppedRow { table, row, column, found, expected } in &found.dropped {
            let column = if column.is_empty() { String::new() } else { format!(", {column}") };
            text.push_str(&format!("  {table}, row {row}{column}: found `{found}`, expected {expected}\n"));
        }
    }
    if !found.unsupported.is_empty() {
        text.push_str("\nSkipped rows:\n");
        for one in &found.unsupported {
            text.push_str(&format!("  {:>5}  {}\n", one.rows, one.reason));
        }
    }
    text
}
