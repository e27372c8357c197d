//! Every question as one typed function: `(catalog, request, control) → report`.
//!
//! [`REQUESTS`] lists them with the schemas of request and report. The command line is one reading of this table;
//! a server, a page or a workbook is another. Nothing here reads a clock, a terminal, a socket or a command line:
//! files come in as values, and names are resolved by the [`Catalog`].

pub mod audit;
pub mod build_candidate;
pub mod bundle;
pub mod calibrate;
pub mod catalog;
pub mod check;
mod checked;
pub mod command;
pub mod compare;
pub mod deploy;
pub mod detect;
pub mod diagnose;
pub mod diff;
#[cfg(feature = "runs")]
pub mod drift;
pub mod estimate;
pub mod explain;
pub mod explained_placement;
pub mod fleet;
pub mod given_files;
pub mod given_plan;
pub mod inputs;
pub mod inspect;
pub mod launch;
pub mod nearest;
pub mod optimize;
pub mod overrides;
pub mod permalink;
pub mod place;
pub mod priced_plan;
pub mod recommend;
pub mod reference;
pub mod remedy;
pub mod rendered;
#[cfg(feature = "runs")]
pub mod retrain;
#[cfg(feature = "runs")]
pub mod runs;
pub mod saved_answer;
pub mod simulate;
pub mod simulated_capacity;
mod simulated_draws;
mod simulated_figures;
pub mod simulated_operation;
pub mod simulated_run;
pub mod simulated_tiers;
pub mod start_attention;
mod start_check;
mod start_faults;
mod start_memory;
mod start_pages;
pub mod static_batch;
pub mod stepped_down;
pub mod sweep;
pub mod timeline;
pub(crate) mod traced_traffic;
pub mod validate;
pub mod verify;
pub mod wording;
#[cfg(feature = "xlsx")]
pub mod workbook;

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rayon::prelude::*;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::report::format::Format;
use crate::report::proof::StoppedBy;
use crate::report::rendered::{Answer, EVERY};
use crate::search::run::{Control, UNWATCHED};
use crate::spec::error::Error;
use crate::spec::text::from_json;
use crate::store::catalog::Catalog;
use wording::Door;

/// Progress and cancellation of a request.
pub struct RequestControl<'a> {
    /// Progress, and whether to stop.
    pub search: Control<'a>,
    /// The reason of an early stop; `None` while nothing stopped the search.
    pub stopped_by: &'a (dyn Fn() -> Option<StoppedBy> + Sync),
}

/// Thins progress for doors that send it: a hundred notes say enough.
#[derive(Debug, Default)]
pub struct ProgressSteps(AtomicUsize);

impl ProgressSteps {
    /// Whether `done` of `all` reaches the next hundredth.
    pub fn reaches(&self, done: usize, all: usize) -> bool {
        let step = done.saturating_mul(100) / all.max(1);
        self.0.fetch_max(step, Relaxed) < step
    }
}

/// No progress and no cancellation.
pub const UNCONTROLLED: RequestControl<'static> = RequestControl { search: UNWATCHED, stopped_by: &|| None };

impl RequestControl<'_> {
    /// The result of `work` for every item, in parallel, with progress.
    pub fn each<T: Sync, U: Send>(&self, items: &[T], work: impl Fn(&T) -> U + Sync) -> Vec<U> {
        let done = AtomicUsize::new(0);
        let one = |item: &T| {
            let made = work(item);
            (self.search.progress)(done.fetch_add(1, Relaxed) + 1, items.len());
            made
        };
        items.par_iter().with_max_len(1).map(one).collect()
    }
}

/// A question of the program: its request, posed to a catalogue, has one kind of answer.
pub trait Question: DeserializeOwned + Serialize + JsonSchema {
    /// The answer, which has the name of the question.
    type Answer: Answer + JsonSchema;

    /// The answer in one line.
    const ABOUT: &'static str;

    /// The answer.
    ///
    /// # Errors
    /// The request is faulty; the error names the key.
    fn answer(&self, catalog: &Catalog, control: &RequestControl) -> Result<Self::Answer, Error>;
}

/// A question as doors read it.
pub struct RequestEntry {
    /// Name, which is that of the subcommand.
    pub name: &'static str,
    /// Its answer, in one line.
    pub about: &'static str,
    /// JSON Schema of the request.
    pub request: fn() -> Schema,
    /// JSON Schema of the answer.
    pub report: fn() -> Schema,
    /// The answer to a request in JSON.
    ///
    /// # Errors
    /// The request is faulty; the error names the key.
    pub answer: fn(&Catalog, &Value, &RequestControl) -> Result<Value, Error>,
    /// The same, with the error in words of a door.
    ///
    /// # Errors
    /// The request is faulty; the error names the key.
    pub answer_at: fn(Door, &Catalog, &Value, &RequestControl) -> Result<Value, Error>,
    more: &'static [Format],
    format: fn(&Catalog, &Value, Format) -> Result<Option<Vec<u8>>, Error>,
}

impl RequestEntry {
    const fn of<Q: Question>() -> RequestEntry {
        RequestEntry {
            name: Q::Answer::QUESTION,
            about: Q::ABOUT,
            request: || given_files::with_files(schema_for!(Q)),
            report: || wording::named_schema::<Q::Answer>(),
            answer: |catalog, request, control| at::<Q>(Door::Json, catalog, request, control),
            answer_at: at::<Q>,
            more: Q::Answer::MORE,
            format: rendered::formatted::<Q::Answer>,
        }
    }

    /// The formats of its answers.
    pub fn formats(&self) -> impl Iterator<Item = Format> {
        EVERY.into_iter().chain(self.more.iter().copied())
    }

    /// An answer in a format; none where there is nothing to draw, or the question has no such format.
    ///
    /// # Errors
    /// The answer is not one of this question, or its plan cannot run.
    pub fn formatted(
        &self,
        catalog: &Catalog,
        answer: &Value,
        format: Format,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.formatted_at(Door::Json, catalog, answer, format)
    }

    /// The same, with the error in words of a door.
    ///
    /// # Errors
    /// The answer is not one of this question, or its plan cannot run.
    pub fn formatted_at(
        &self,
        door: Door,
        catalog: &Catalog,
        answer: &Value,
        format: Format,
    ) -> Result<Option<Vec<u8>>, Error> {
        (self.format)(catalog, answer, format).map_err(|fault| door.fault(fault))
    }
}

/// The questions: implements [`Question`] for their requests, and lists them.
macro_rules! questions {
    ($($request:ty => $answer:ty, $ask:path, $about:literal;)*) => {
        $(impl Question for $request {
            type Answer = $answer;

            const ABOUT: &'static str = $about;

            fn answer(&self, catalog: &Catalog, control: &RequestControl) -> Result<$answer, Error> {
                $ask(catalog, self, control)
            }
        })*

        /// Every question, in the order of the help.
        pub static REQUESTS: &[RequestEntry] = &[$(RequestEntry::of::<$request>()),*];
    };
}

questions! {
    optimize::OptimizeRequest => crate::report::result::OptimizeResult, optimize::optimize,
        "the best deployment and the Pareto front";
    estimate::EstimateRequest => crate::report::result::EstimateResult, estimate::estimate,
        "the metrics of one given deployment";
    static_batch::StaticRequest => crate::report::static_batch::StaticReport, static_batch::static_batch,
        "a static batch on given degrees, without a scheduler";
    check::CheckRequest => crate::report::start::StartReport, check::check,
        "whether the server of a launch command starts";
    simulate::SimulateRequest => crate::report::simulate::SimulateReport, simulate::simulate,
        "a deployment under traffic, request by request";
    deploy::DeployRequest => crate::report::launch::LaunchReport, deploy::deploy,
        "the commands and files that launch a deployment";
    place::PlaceRequest => crate::report::place::PlacementResult, place::place,
        "layers on heterogeneous devices";
    explain::ExplainRequest => explain::ExplainReport, explain::explain,
        "one number as formulas, figures and sources";
    audit::AuditRequest => crate::report::audit::AuditReport, audit::audit,
        "the assumptions of a prediction, by their effect";
    diagnose::DiagnoseRequest => crate::report::diagnose::Diagnosis, diagnose::diagnose,
        "measured numbers compared with the prediction and the roofline";
    nearest::NearestRequest => crate::report::nearest::NearestReport, nearest::nearest,
        "the published measurements that are nearest to a deployment, each with its own prediction";
    diff::DiffRequest => crate::report::answer_diff::AnswerDiff, diff::diff,
        "two answers compared, with the part that each input explains";
    sweep::SweepRequest => crate::report::sweep::SweepReport, sweep::sweep,
        "the metrics of every combination of varied keys";
    compare::CompareRequest => crate::report::comparison::ComparisonReport, compare::compare,
        "answers or systems side by side";
    recommend::RecommendRequest => crate::report::recommend::report::RecommendReport, recommend::recommend,
        "hardware for a model, or models for a machine";
    fleet::FleetRequest => crate::report::fleet::FleetResult, fleet::fleet,
        "the cheapest mix of systems for a traffic mix";
    reference::FormulasRequest => Vec<crate::report::formulas::FormulaEntry>, reference::formulas,
        "every formula with its unit, reason and citation";
    inspect::InspectRequest => inspect::InspectReport, inspect::inspect,
        "the structure of a model, or the differences of two";
    verify::VerifyRequest => crate::report::verify::Verified, verify::verify,
        "the checks of a saved result";
    validate::ValidateRequest => validate::ValidateReport, validate::validate,
        "predictions compared with measurements";
    calibrate::CalibrateRequest => calibrate::CalibrateReport, calibrate::calibrate,
        "runtime profiles fitted to measurements";
    catalog::CatalogRequest => catalog::CatalogReport, catalog::catalog,
        "the entries of the catalogue";
    detect::DetectRequest => crate::report::machine::MachineReport, detect::detect,
        "this machine as a file that --hardware reads";
    permalink::PermalinkRequest => permalink::Permalink, permalink::permalink,
        "a scenario as a short text for URLs, or the scenario of one";
    reference::SchemaRequest => Value, reference::schema,
        "the JSON Schema of a file or a result";
    reference::GlossaryRequest => Vec<crate::report::help::GlossaryTerm>, reference::glossary,
        "the terms of the reports";
}

/// The entry called `name`.
///
/// # Errors
/// There is none.
pub fn entry(name: &str) -> Result<&'static RequestEntry, Error> {
    REQUESTS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = REQUESTS.iter().map(|entry| entry.name).collect();
        Error::new("request", format!("`{name}`"), format!("one of {}", names.join(", ")), "correct the name")
    })
}

/// A request in JSON, and its catalogue with the files that it carries.
fn posed<'a, Q: Question>(catalog: &'a Catalog, request: &Value) -> Result<(Cow<'a, Catalog>, Q), Error> {
    let given = given_files::taken(catalog, request)?;
    let (catalog, request) = match given {
        Some((catalog, rest)) => (Cow::Owned(catalog), Cow::Owned(rest)),
        None => (Cow::Borrowed(catalog), Cow::Borrowed(request)),
    };
    let request = from_json(&request.to_string(), "a request")
        .map_err(|fault| wording::of_schema(fault, Q::Answer::QUESTION, "request"))?;
    Ok((catalog, request))
}

/// Reads a request, answers it, and writes the answer; a fault is in words of `door`.
fn at<Q: Question>(
    door: Door,
    catalog: &Catalog,
    request: &Value,
    control: &RequestControl,
) -> Result<Value, Error> {
    let answered = || {
        let (catalog, request) = posed::<Q>(catalog, request)?;
        request.answer(&catalog, control)
    };
    Ok(wording::worded(&answered().map_err(|fault| door.fault(fault))?))
}

/// A report as a JSON value.
pub fn value<T: Serialize>(report: &T) -> Value {
    serde_json::to_value(report).expect("reports have only text keys")
}
