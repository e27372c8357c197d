//! Answers in every format: a text, Markdown, rows for spreadsheets, a picture, a page.

use minijinja::{Value as TemplateValue, context};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answer_diff::AnswerDiff;
use super::audit::{AuditReport, csv as audit_csv};
use super::comparison::ComparisonReport;
use super::diagnose::Diagnosis;
use super::fleet::FleetResult;
use super::format::Format;
use super::formulas::{FormulaEntry, formulas_csv, formulas_text};
use super::help::{GlossaryTerm, glossary_text};
use super::launch::LaunchReport;
use super::machine::MachineReport;
use super::nearest::NearestReport;
use super::page::{self, embedded};
use super::place::PlacementResult;
use super::place::build::csv as placement_csv;
use super::pretty::pretty;
use super::recommend::report::RecommendReport;
use super::result::{EstimateResult, OptimizeResult};
use super::rows::{csv as deployments, front_csv};
use super::sheet;
use super::simulate::{SimulateReport, csv as simulate_csv};
use super::start::StartReport;
use super::static_batch::{StaticReport, csv as static_csv};
use super::svg::SvgPicture;
use super::svg::compare::comparison_picture;
use super::svg::deployment::{estimate_picture, optimize_picture};
use super::svg::fleet::fleet_picture;
use super::svg::palette::SvgTheme;
use super::svg::place::place_picture;
use super::svg::simulate::simulate_picture;
use super::svg::static_batch::static_picture;
use super::svg::sweep::sweep_picture;
use super::svg::tornado::audit_picture;
use super::sweep::{SweepReport, counted, json_line, table as sweep_table};
use super::text::page::{WIDTH, unstyled};
use super::text::{self, screen};
use super::verify::Verified;
use crate::spec::error::Error;
use crate::spec::scenario::Scenario;
use crate::spec::writer::{Writer, fenced};

/// How an answer is shown as text.
#[derive(Clone, Copy, Debug)]
pub struct TextView<'a> {
    /// Longest line, in characters.
    pub width: usize,
    /// Whether everything is shown, not one screen.
    pub detail: bool,
    /// The words that pose the question again, after the program's name; empty where it was not posed by a command.
    pub command: &'a str,
}

impl TextView<'_> {
    /// One screen of the usual width, for doors without a terminal.
    pub const PLAIN: TextView<'static> = TextView { width: WIDTH, detail: false, command: "" };
}

/// An answer that people read.
pub trait Answer: Serialize + DeserializeOwned {
    /// The name of its question, which is that of the subcommand; its JSON carries it as `answer`.
    const QUESTION: &str;

    /// Whether its texts are those of files: no door puts them into its own words.
    const VERBATIM: bool = false;

    /// Its formats beyond those that every answer has.
    const MORE: &'static [Format] = &[];

    /// The text for people.
    fn text(&self, view: &TextView) -> String;

    /// Rows for spreadsheets under a header.
    fn csv(&self) -> String;

    /// A picture, if there is something to draw; `MORE` has the formats of pictures then.
    fn picture(&self) -> Option<SvgPicture> {
        None
    }

    /// The scenario and the one-line plan of its workbook; `MORE` has the format then.
    fn workbook(&self) -> Option<(&Scenario, &str)> {
        None
    }

    /// Its rows as JSON objects; `MORE` has the format then.
    fn json_lines(&self) -> Option<String> {
        None
    }

    /// The context of its page's template, in addition to the JSON of the answer.
    fn page(&self) -> TemplateValue {
        pictures(self.picture())
    }
}

pub const EVERY: [Format; 7] =
    [Format::Table, Format::Json, Format::Yaml, Format::Csv, Format::Markdown, Format::Html, Format::Section];

/// Further formats of an answer that is drawn.
pub const DRAWN: [Format; 2] = [Format::Svg, Format::Png];
/// Further formats of an answer that is drawn and has a workbook.
pub const DRAWN_WITH_WORKBOOK: [Format; 3] = [Format::Svg, Format::Png, Format::Xlsx];
/// Further formats of a sweep, whose rows are made one after another.
pub const DRAWN_WITH_ROWS: [Format; 4] = [Format::Svg, Format::Png, Format::JsonLines, Format::Parquet];

pub fn pictures(picture: Option<SvgPicture>) -> TemplateValue {
    let Some(picture) = picture.filter(|picture| !picture.is_empty()) else {
        return context! { pictures => Vec::<TemplateValue>::new() };
    };
    let panels = picture.panels.iter().map(|panel| embedded(panel, &picture.title));
    context! { pictures => panels.collect::<Vec<_>>(), subtitle => picture.subtitle }
}

/// The answer in a format that is a text, where its JSON is known too; `view` is that of its text. None where there is
/// nothing to draw, and for formats that are no text.
///
/// # Errors
/// The template of its page is faulty.
pub fn rendered<T: Answer>(
    answer: &T,
    value: &Value,
    format: Format,
    view: &TextView,
) -> Result<Option<String>, Error> {
    let text = || unstyled(&answer.text(view));
    Ok(match format {
        Format::Table => Some(text()),
        Format::Json => Some(pretty(value)),
        Format::Yaml => Some(yaml(value)),
        Format::Csv => Some(answer.csv()),
        Format::JsonLines => answer.json_lines(),
        Format::Markdown => Some(markdown(&text())),
        Format::Svg => drawn(answer).map(|picture| picture.svg(SvgTheme::Adaptive)),
        Format::Html => Some(page::document(T::QUESTION, value, answer.page(), text)?),
        Format::Section => Some(page::section(T::QUESTION, value, answer.page(), text)?),
        Format::Parquet | Format::Png | Format::Xlsx => None,
    })
}

pub fn drawn<T: Answer>(answer: &T) -> Option<SvgPicture> {
    answer.picture().filter(|picture| !picture.is_empty())
}

pub fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).expect("every value of JSON is one of YAML")
}

/// A text as a part of a document: its first line as a heading, the rest unchanged.
pub fn markdown(text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let heading =
        Writer::MarkdownText.write(first).map(|written| written.text().to_owned()).unwrap_or_default();
    format!("## {heading}\n\n{}", fenced(rest.trim_start_matches('\n')))
}

/// Implements [`Answer`] by functions of the answer and the view; a picture comes with its formats, and what only this
/// answer has follows in braces.
macro_rules! answers {
    ($($question:literal $report:ty:
        $text:expr, $csv:expr $(, $picture:expr => $formats:expr)? $(=> { $($own:tt)* })?;
    )*) => {$(
        impl Answer for $report {
            const QUESTION: &str = $question;

            fn text(&self, view: &TextView) -> String {
                let text: fn(&$report, &TextView) -> String = $text;
                text(self, view)
            }
            fn csv(&self) -> String {
                let csv: fn(&$report) -> String = $csv;
                csv(self)
            }
            $(const MORE: &'static [Format] = &$formats;

            fn picture(&self) -> Option<SvgPicture> {
                let picture: fn(&$report) -> SvgPicture = $picture;
                Some(picture(self))
            })?
            $($($own)*)?
        }
    )*};
}

answers! {
    "optimize" OptimizeResult:
        |answer, view| if view.detail { text::table(answer) } else { screen::optimize(answer, view.width) },
        |answer| front_csv(answer),
        |answer| optimize_picture(answer) => DRAWN_WITH_WORKBOOK => {
            fn workbook(&self) -> Option<(&Scenario, &str)> {
                Some((self.scenario.as_ref()?, &self.best.as_ref()?.notation))
            }

            fn page(&self) -> TemplateValue {
                page::context::optimize(self)
            }
        };
    "estimate" EstimateResult:
        |answer, view| if view.detail { text::estimate(answer) } else { screen::estimate(answer, view.width) },
        |answer| deployments(std::slice::from_ref(&answer.candidate), &answer.question),
        |answer| estimate_picture(answer, None) => DRAWN_WITH_WORKBOOK => {
            fn workbook(&self) -> Option<(&Scenario, &str)> {
                Some((self.scenario.as_ref()?, &self.candidate.notation))
            }

            fn page(&self) -> TemplateValue {
                page::context::estimate(self)
            }
        };
    "sweep" SweepReport:
        |answer, view| sweep_table(answer, &counted(&answer.rows), view.width),
        |answer| answer.csv(),
        |answer| sweep_picture(answer, None) => DRAWN_WITH_ROWS => {
            fn json_lines(&self) -> Option<String> {
                Some(self.rows.iter().map(json_line).collect())
            }
        };
    "nearest" NearestReport:
        |answer, _| answer.text(),
        |answer| answer.csv() => {
            fn page(&self) -> TemplateValue {
                context! { sentence => self.sentence() }
            }
        };
    "place" PlacementResult:
        |answer, view| match view.detail {
            true => text::place::table_of(answer),
            false => screen::place(answer, view.command, view.width),
        },
        |answer| placement_csv(answer),
        |answer| place_picture(answer) => DRAWN;
    "recommend" RecommendReport:
        |answer, view| match answer {
            RecommendReport::Models(found) if view.detail => text::models::table(found),
            RecommendReport::Models(found) => screen::models(found, view.command, view.width),
            RecommendReport::Hardware(found) if view.detail => text::recommend::table(found),
            RecommendReport::Hardware(found) => screen::recommend(found, view.command, view.width),
        },
        |answer| answer.csv(),
        |answer| answer.picture() => DRAWN;
    "fleet" FleetResult:
        |answer, view| match view.detail {
            true => text::fleet::table(answer),
            false => screen::fleet(answer, view.command, view.width),
        },
        |answer| answer.csv(),
        |answer| fleet_picture(answer) => DRAWN;
    "compare" ComparisonReport:
        |answer, view| answer.table(view.width), |answer| answer.csv(), |answer| comparison_picture(answer) => DRAWN;
    "static" StaticReport:
        |answer, view| text::static_batch::static_batch(answer, view.detail),
        |answer| static_csv(answer),
        |answer| static_picture(answer) => DRAWN;
    "check" StartReport: |answer, view| text::start::start(answer, view.width), |answer| answer.csv();
    "simulate" SimulateReport: |answer, view| text::simulate::simulate(answer, view.detail), |answer| simulate_csv(answer), |answer| simulate_picture(answer) => DRAWN;
    "audit" AuditReport:
        |answer, view| {
            let most = if view.detail { usize::MAX } else { text::audit::FEW };
            text::audit::audit(answer, most, view.width)
        },
        |answer| audit_csv(answer),
        |answer| audit_picture(answer) => DRAWN;
    "diagnose" Diagnosis: |answer, _| answer.text(), |answer| answer.csv();
    "diff" AnswerDiff: |answer, view| text::answer_diff::table(answer, view.width), |answer| answer.csv();
    "deploy" LaunchReport: |answer, _| text::launch::table(answer), |answer| answer.csv();
    "verify" Verified: |answer, _| text::verify::table(answer), |answer| answer.csv();
    "detect" MachineReport: |answer, view| text::machine::machine(answer, None, view.width), |answer| answer.csv();
    "formulas" Vec<FormulaEntry>: |answer, _| formulas_text(answer), |answer| formulas_csv(answer);
    "glossary" Vec<GlossaryTerm>: |answer, _| glossary_text(answer), |answer| {
        let row = |term: &GlossaryTerm| vec![term.term.to_string(), term.meaning.to_string()];
        sheet::csv(["word", "meaning"], answer.iter().map(row))
    };
}
