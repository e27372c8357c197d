//! Answers as CSV, SVG and HTML, by the name of their request: for doors that hold an answer in JSON.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::audit::{AuditReport, csv as audit_csv};
use super::comparison::ComparisonReport;
use super::diagnose::Diagnosis;
use super::fleet::FleetResult;
use super::fleet::routes::csv as fleet_csv;
use super::nearest::NearestReport;
use super::place::PlacementResult;
use super::place::build::{COLUMNS as PLACED, rows as placed_rows};
use super::recommend::report::RecommendReport;
use super::result::{EstimateResult, OptimizeResult};
use super::rows::csv as deployments;
use super::static_batch::{StaticReport, csv as static_csv};
use super::svg::SvgPicture;
use super::svg::compare::comparison_picture;
use super::svg::deployment::{estimate_picture, optimize_picture};
use super::svg::fleet::fleet_picture;
use super::svg::palette::SvgTheme;
use super::svg::place::place_picture;
use super::svg::static_batch::static_picture;
use super::svg::sweep::sweep_picture;
use super::svg::tornado::audit_picture;
use super::sweep::{SweepReport, cells, columns};
use super::{page, sheet};
use crate::spec::error::Error;
use crate::spec::text::from_json;

/// A format that some answers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderedFormat {
    /// Rows for spreadsheets.
    Csv,
    /// A picture.
    Svg,
    /// A report file: a page that needs nothing else.
    Html,
    /// A part of a page.
    Section,
}

/// An answer with rows and a picture.
trait Rendered: DeserializeOwned {
    fn csv(&self) -> Option<String>;
    fn picture(&self) -> Option<SvgPicture>;
}

/// Implements [`Rendered`] by two functions of the answer.
macro_rules! rendered_by {
    ($($report:ty: $csv:expr, $picture:expr;)*) => {$(
        impl Rendered for $report {
            fn csv(&self) -> Option<String> {
                let csv: fn(&$report) -> Option<String> = $csv;
                csv(self)
            }
            fn picture(&self) -> Option<SvgPicture> {
                let picture: fn(&$report) -> Option<SvgPicture> = $picture;
                picture(self)
            }
        }
    )*};
}

rendered_by! {
    OptimizeResult:
        |answer| Some(deployments(&answer.front, &answer.question)),
        |answer| Some(optimize_picture(answer));
    EstimateResult:
        |answer| Some(deployments(std::slice::from_ref(&answer.candidate), &answer.question)),
        |answer| Some(estimate_picture(answer, None));
    PlacementResult:
        |answer| Some(sheet::csv(PLACED, placed_rows(answer))),
        |answer| Some(place_picture(answer));
    SweepReport:
        |answer| {
            let names = columns(&answer.vary);
            Some(sheet::csv(names.iter().map(|(name, _)| name.as_str()), answer.rows.iter().map(cells)))
        },
        |answer| Some(sweep_picture(answer, None));
    ComparisonReport: |answer| Some(answer.csv()), |answer| Some(comparison_picture(answer));
    RecommendReport: |answer| Some(answer.csv()), |answer| Some(answer.picture());
    FleetResult: |answer| Some(fleet_csv(answer)), |answer| Some(fleet_picture(answer));
    StaticReport: |answer| Some(static_csv(answer)), |answer| Some(static_picture(answer));
    Diagnosis: |answer| Some(answer.csv()), |_| None;
    NearestReport: |answer| Some(answer.csv()), |_| None;
    AuditReport: |answer| Some(audit_csv(answer)), |answer| Some(audit_picture(answer));
}

/// The answer to the request `name` in a format; none where it has no such format.
///
/// # Errors
/// The answer is not one of that request.
pub fn rendered(name: &str, answer: &Value, format: RenderedFormat) -> Result<Option<String>, Error> {
    match format {
        RenderedFormat::Html => return page::document(name, answer),
        RenderedFormat::Section => return page::section(name, answer),
        RenderedFormat::Csv | RenderedFormat::Svg => {}
    }
    let of = match name {
        "optimize" => as_format::<OptimizeResult>,
        "estimate" => as_format::<EstimateResult>,
        "place" => as_format::<PlacementResult>,
        "sweep" => as_format::<SweepReport>,
        "compare" => as_format::<ComparisonReport>,
        "recommend" => as_format::<RecommendReport>,
        "fleet" => as_format::<FleetResult>,
        "static" => as_format::<StaticReport>,
        "audit" => as_format::<AuditReport>,
        "diagnose" => as_format::<Diagnosis>,
        "nearest" => as_format::<NearestReport>,
        _ => return Ok(None),
    };
    of(answer, format)
}

fn as_format<T: Rendered>(answer: &Value, format: RenderedFormat) -> Result<Option<String>, Error> {
    let report: T = from_json(&answer.to_string(), "an answer")?;
    let drawn = || report.picture().filter(|picture| !picture.is_empty());
    Ok(match format {
        RenderedFormat::Csv => report.csv(),
        RenderedFormat::Svg => drawn().map(|picture| picture.svg(SvgTheme::Adaptive)),
        RenderedFormat::Html | RenderedFormat::Section => None,
    })
}
