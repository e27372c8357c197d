//! Formats of the answers whose types belong to requests.

use serde_json::Value;

use super::calibrate::corrections::{self, FittedCorrection};
use super::calibrate::gates::{self, GateResult};
use super::calibrate::{CalibrateReport, LatencyFit, memory_ratios};
use super::catalog::CatalogReport;
use super::explain::ExplainReport;
use super::inspect::InspectReport;
use super::permalink::Permalink;
use super::validate::ValidateReport;
use super::wording::of_schema;
#[cfg(feature = "xlsx")]
use super::workbook::workbook;
use crate::report::catalog::{CatalogLine, entry, key_rows, list};
use crate::report::diff::Difference;
use crate::report::evidence::{KINDS, kind_cells};
use crate::report::explain::{explained, leaves};
use crate::report::format::Format;
use crate::report::inspect::compare::text as differences;
use crate::report::inspect::{role, text as structure};
use crate::report::left_out::{HEADER as LEFT_OUT, cells as left_out_cells};
use crate::report::rendered::{Answer, TextView, drawn, rendered};
use crate::report::sheet;
use crate::report::svg::SvgPicture;
#[cfg(feature = "png")]
use crate::report::svg::palette::SvgTheme;
use crate::report::table::table;
use crate::report::text::parallel::{PARALLEL_COLUMNS, parallel, parallel_rows};
use crate::report::validation::{groups_csv, text as errors};
use crate::spec::error::Error;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
#[cfg(feature = "png")]
use crate::store::png::png;

/// The answer `value` of type `T` in a format; none where there is nothing to draw, or it has no such format.
///
/// # Errors
/// It is not an answer of that type, or its plan cannot run.
pub(super) fn formatted<T: Answer>(
    catalog: &Catalog,
    value: &Value,
    format: Format,
) -> Result<Option<Vec<u8>>, Error> {
    let answer: T = from_json(&value.to_string(), "an answer")
        .map_err(|fault| of_schema(fault, T::QUESTION, "answer"))?;
    match format {
        Format::Xlsx => workbook_of(catalog, &answer),
        Format::Png => drawn(&answer).map(|picture| pixels(&picture)).transpose(),
        _ => Ok(rendered(&answer, value, format, &TextView::PLAIN)?.map(String::into_bytes)),
    }
}

#[cfg(feature = "xlsx")]
fn workbook_of<T: Answer>(catalog: &Catalog, answer: &T) -> Result<Option<Vec<u8>>, Error> {
    answer.workbook().map(|(scenario, plan)| workbook(catalog, scenario, plan)).transpose()
}

#[cfg(not(feature = "xlsx"))]
fn workbook_of<T: Answer>(_: &Catalog, _: &T) -> Result<Option<Vec<u8>>, Error> {
    Ok(None)
}

/// A picture as PNG.
///
/// # Errors
/// This machine has no font, or the program was built without the feature.
#[cfg(feature = "png")]
pub fn pixels(picture: &SvgPicture) -> Result<Vec<u8>, Error> {
    png(&picture.svg(SvgTheme::Light))
}

#[cfg(not(feature = "png"))]
pub fn pixels(_: &SvgPicture) -> Result<Vec<u8>, Error> {
    let fix = "write an .svg file, or build the program with the feature `png`";
    Err(Error::new("format", "png, which this build cannot draw", "svg", fix))
}

impl Answer for ExplainReport {
    const QUESTION: &str = "explain";

    fn text(&self, _view: &TextView) -> String {
        match self {
            ExplainReport::Explained(number) => explained(number),
            ExplainReport::Infeasible { infeasible } => format!("{infeasible}\n"),
        }
    }
    fn csv(&self) -> String {
        match self {
            ExplainReport::Explained(number) => leaves(&number.inputs),
            ExplainReport::Infeasible { .. } => leaves(&[]),
        }
    }
}

impl Answer for InspectReport {
    const QUESTION: &str = "inspect";

    fn text(&self, _view: &TextView) -> String {
        match self {
            InspectReport::Model(inspected) => structure(inspected),
            InspectReport::Comparison(comparison) => differences(comparison),
            InspectReport::Parallel(graph) => parallel(graph),
        }
    }
    fn csv(&self) -> String {
        match self {
            InspectReport::Model(inspected) => {
                let rows = inspected.inspection.tensors.iter().map(|tensor| {
                    let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
                    vec![tensor.name.clone(), shape.join("x"), role(tensor), tensor.buffer.to_string()]
                });
                sheet::csv(["tensor", "shape", "role", "buffer"], rows)
            }
            InspectReport::Comparison(found) => {
                let header = ["key", found.a.as_str(), found.b.as_str(), "ratio"];
                sheet::csv(header, found.differences.iter().cloned().map(Difference::cells))
            }
            InspectReport::Parallel(graph) => sheet::csv(PARALLEL_COLUMNS, parallel_rows(graph)),
        }
    }
}

impl Answer for ValidateReport {
    const QUESTION: &str = "validate";

    fn text(&self, _view: &TextView) -> String {
        match self {
            ValidateReport::Validation(found) => errors(found),
            ValidateReport::LeftOut(found) => table(&LEFT_OUT, found.iter().map(left_out_cells)),
            ValidateReport::Kinds(found) => table(&KINDS, found.iter().map(kind_cells)),
        }
    }
    fn csv(&self) -> String {
        match self {
            ValidateReport::Validation(found) => groups_csv(found),
            ValidateReport::LeftOut(found) => sheet::csv(LEFT_OUT, found.iter().map(left_out_cells)),
            ValidateReport::Kinds(found) => sheet::csv(KINDS, found.iter().map(kind_cells)),
        }
    }
}

impl Answer for CalibrateReport {
    const QUESTION: &str = "calibrate";

    fn text(&self, _view: &TextView) -> String {
        let fit = match self {
            CalibrateReport::Latency(fit) => fit.text(),
            CalibrateReport::Memory(fit) => {
                let cells: Vec<Vec<String>> = fit.memory.iter().map(|(name, one)| one.cells(name)).collect();
                let rows = table(&memory_ratios::HEADER, &cells);
                format!("Memory except the KV cache, measured / predicted\n\n{rows}")
            }
            CalibrateReport::Corrections(fit) => fit.text(),
        };
        let gates = self.gates().map(|gates| {
            let cells = gates.iter().map(GateResult::cells);
            format!("\n{}", table(&gates::HEADER, cells))
        });
        fit + &gates.unwrap_or_default()
    }
    fn csv(&self) -> String {
        if let Some(gates) = self.gates() {
            return sheet::csv(gates::HEADER, gates.iter().map(GateResult::cells));
        }
        match self {
            CalibrateReport::Latency(fit) => sheet::csv(LEFT_OUT, fit.errors.iter().map(left_out_cells)),
            CalibrateReport::Memory(fit) => {
                sheet::csv(memory_ratios::HEADER, fit.memory.iter().map(|(name, one)| one.cells(name)))
            }
            CalibrateReport::Corrections(fit) => {
                sheet::csv(corrections::HEADER, fit.factors.iter().flat_map(FittedCorrection::rows))
            }
        }
    }
}

impl LatencyFit {
    fn text(&self) -> String {
        let kept = match &self.constants_undetermined[..] {
            [] => String::new(),
            names => format!("Not determined by these rows, unchanged: {}\n", names.join(", ")),
        };
        let beyond = match self.beyond_kernels.len() {
            0 => String::new(),
            rows => format!(
                "Left out: {rows} rows of series that were served faster than kernels compute, so that some prompts \
                 were not computed\n"
            ),
        };
        format!(
            "{} rows of {}; {} unknowns\n{beyond}{kept}\n{}\nAbsolute errors in %: median and p90. Choices under a TPOT \
             SLO: the share in % that meets\nthe SLO as measured, and the mean throughput regret in %. In 80 %: the \
             share of rows between p10 and\np90 of the other held-out groups.\n",
            self.rows,
            self.runtimes.join(", "),
            self.unknowns,
            table(&LEFT_OUT, self.errors.iter().map(left_out_cells)),
        )
    }
}

impl Answer for CatalogReport {
    const QUESTION: &str = "catalog";
    const VERBATIM: bool = true;

    fn text(&self, _view: &TextView) -> String {
        match self {
            CatalogReport::Entries(lines) => list(lines),
            CatalogReport::Entry(value) => entry(value),
        }
    }
    fn csv(&self) -> String {
        match self {
            CatalogReport::Entries(lines) => {
                let row = |line: &CatalogLine| {
                    let CatalogLine { id, name, aliases, summary, .. } = line.clone();
                    vec![id, name, aliases.join(" "), summary]
                };
                sheet::csv(["id", "name", "aliases", "summary"], lines.iter().map(row))
            }
            CatalogReport::Entry(value) => Answer::csv(value),
        }
    }
}

impl Answer for Permalink {
    const QUESTION: &str = "permalink";

    fn text(&self, _view: &TextView) -> String {
        format!("{}\n", self.link)
    }
    fn csv(&self) -> String {
        sheet::csv(["link"], [vec![self.link.clone()]])
    }
}

/// A schema: its keys, one line each.
impl Answer for Value {
    const QUESTION: &str = "schema";
    const VERBATIM: bool = true;

    fn text(&self, _view: &TextView) -> String {
        entry(self)
    }
    fn csv(&self) -> String {
        sheet::csv(["key", "value"], key_rows(self))
    }
}
