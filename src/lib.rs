//! Finds the best way to serve a language model on given accelerators: how fast, at what cost, and why.
//!
//! ```
#![doc = include_str!("../examples/estimate.rs")]
//! ```
//!
//! `examples/` holds more: the optimum, the Pareto front, an explanation, a model and a device of one's own. Every
//! question is a typed function `(catalog, request, control) → report`; [`REQUESTS`] lists them with their
//! JSON Schemas. The feature `cli`, on by default, adds the command line, the terminal and the network; with
//! `default-features = false` the library has none of them and compiles to WebAssembly.
//!
//! JSON files describe a model, a cluster and an objective. `graph` turns the model into an operator graph; `plan`
//! shards the graph over devices, in integers only; an impossible plan is an `plan::infeasible::Infeasible` value
//! with its numbers. All further steps are formulas: `cost` evaluates an operator, `serving` composes operators
//! into steps, and steps into latency, throughput, cost and power. Formulas are written once, over
//! `quantity::num::Qty`. The search evaluates them as `f64`; the winner is evaluated again as
//! `quantity::ledger::Traced`, which yields the drill-down, the unit check and the list of sources. `search` uses
//! `serving` as one function and returns the optimum, the Pareto front, or the reasons for infeasibility.
//!
//! # Layers
//!
//! A module imports only from lower layers and from itself; `tests/tidy.rs` checks it.
//!
//! | layer | module | content |
//! |---|---|---|
//! | 10 | `bench` | measurements of a server |
//! | 10 | `cli` | command line and terminal: flags → request, report → text |
//! | 9 | `request` | every question as a typed function |
//! | 8 | `store` | catalogue, files, network: names → problems |
//! | 7 | `report`, `validate`, `launch` | outcomes as text, JSON, CSV, SVG, workbooks; predictions compared with measurements; launch files and the way back |
//! | 6 | `search`, `calibrate` | candidates, bounds, front, optimum; constants from measurements |
//! | 5 | `serving` | operators → step → TTFT, TPOT, throughput, cost, power |
//! | 4 | `cost` | one operator, one collective, one memory |
//! | 3 | `plan` | graph × degrees → sharded graph with collectives, or the reason against it |
//! | 2 | `graph` | configuration → operators, tensors, counts |
//! | 1 | `spec` | user inputs |
//! | 0 | `quantity` | units, data with sources, evaluation of formulas as numbers or traces |
//!
//! Layers 0 to 7 and 9 use no path, clock, terminal or socket. `Qty` has no order: a formula compares by `exceeds`, which
//! the trace records, so a trace contains every term and every choice of every evaluation. `graph` and `plan` contain no
//! floating point. `search` is independent of transformers.
//!
//! # How to extend
//!
//! | to add | place | guide to the rest |
//! |---|---|---|
//! | a model of a known family | `models/<org>--<name>.json` | `tests/models.rs` globs it |
//! | an architecture | `graph/arch/<family>.rs` and its line in `graph::arch::ARCHITECTURES` | the error that names unread keys; the count test |
//! | a device, link, system | `hardware/{devices,links,systems}/<id>.json` | `mantile-opt schema device`; the shipped-files test |
//! | heterogeneous devices | `hardware/rigs/<id>.json` | `mantile-opt schema rig`; the placement tests |
//! | a number format | `hardware/formats/<id>.json` | the error that names a missing peak |
//! | a runtime | `hardware/runtimes/<id>.json` | `mantile-opt schema runtime` |
//! | an operator | a variant of `graph::operator::Operator` and `cost/<operator>.rs` | exhaustive matches |
//! | a collective algorithm | a variant of `plan::algorithm::Algorithm` | its `way` and the bandwidth-bound test |
//! | an objective or workload | `objectives/`, `objectives/workloads/` | `mantile-opt schema objective` |
//! | a metric | a row of `spec/metric_table.rs`, listed in `spec::objective::METRICS` | reports, CSV, `explain` and glossary are made from it |
//!
//! # Proof of optimality
//!
//! Latencies never decrease as load grows. So between two loads of one configuration nothing is better than the ideal
//! of both; where even that ideal is dominated, nothing in between is evaluated (`search::aggregated`,
//! `search::split`). Replicas of several configurations fill the devices by an exact knapsack (`search::packing`),
//! and so do mixed prefill, decode and aggregated pools (`search::ratio`), cross-checked row by row by a MIP. Layers
//! are placed on heterogeneous devices by dynamic programs (`search::placement`). Tests compare the results with
//! brute force.

// Without the command line, what it alone uses has no user.
#![cfg_attr(not(feature = "cli"), allow(dead_code))]
// Inside the crate a document says what a name does not.
#![cfg_attr(feature = "internals", allow(missing_docs))]

#[cfg(all(any(feature = "serve", feature = "mcp"), feature = "internals"))]
pub mod admission;
#[cfg(all(any(feature = "serve", feature = "mcp"), not(feature = "internals")))]
mod admission;
#[cfg(all(feature = "bench", feature = "internals"))]
pub mod bench;
#[cfg(all(feature = "bench", not(feature = "internals")))]
mod bench;
#[cfg(feature = "internals")]
pub mod calibrate;
#[cfg(not(feature = "internals"))]
mod calibrate;
#[cfg(all(feature = "cli", feature = "internals"))]
pub mod cli;
#[cfg(all(feature = "cli", not(feature = "internals")))]
mod cli;
#[cfg(feature = "internals")]
pub mod cost;
#[cfg(not(feature = "internals"))]
mod cost;
#[cfg(feature = "internals")]
pub mod graph;
#[cfg(not(feature = "internals"))]
mod graph;
#[cfg(all(feature = "serve", feature = "internals"))]
pub mod http;
#[cfg(all(feature = "serve", not(feature = "internals")))]
mod http;
#[cfg(feature = "internals")]
pub mod launch;
#[cfg(not(feature = "internals"))]
mod launch;
#[cfg(all(feature = "mcp", feature = "internals"))]
pub mod mcp;
#[cfg(all(feature = "mcp", not(feature = "internals")))]
mod mcp;
#[cfg(feature = "internals")]
pub mod plan;
#[cfg(not(feature = "internals"))]
mod plan;
#[cfg(feature = "internals")]
pub mod quantity;
#[cfg(not(feature = "internals"))]
mod quantity;
#[cfg(feature = "internals")]
pub mod report;
#[cfg(not(feature = "internals"))]
mod report;
#[cfg(feature = "internals")]
pub mod request;
#[cfg(not(feature = "internals"))]
mod request;
#[cfg(feature = "internals")]
pub mod search;
#[cfg(not(feature = "internals"))]
mod search;
#[cfg(feature = "internals")]
pub mod serving;
#[cfg(not(feature = "internals"))]
mod serving;
#[cfg(all(feature = "site", feature = "internals"))]
pub mod site;
#[cfg(all(feature = "site", not(feature = "internals")))]
mod site;
#[cfg(feature = "internals")]
pub mod spec;
#[cfg(not(feature = "internals"))]
mod spec;
#[cfg(feature = "internals")]
pub mod store;
#[cfg(not(feature = "internals"))]
mod store;
#[cfg(feature = "internals")]
pub mod traffic;
#[cfg(not(feature = "internals"))]
mod traffic;
#[cfg(feature = "internals")]
pub mod validate;
#[cfg(not(feature = "internals"))]
mod validate;

#[cfg(feature = "cli")]
pub use cli::threads::worker_pool;
#[cfg(feature = "cli")]
pub use cli::{main, main_of};
pub use report::answer_diff::AnswerDiff;
pub use report::audit::AuditReport;
pub use report::comparison::ComparisonReport;
pub use report::cost::CostReport;
pub use report::diagnose::Diagnosis;
pub use report::fleet::FleetResult;
pub use report::format::{FORMATS, Format, FormatEntry};
pub use report::formulas::FormulaEntry;
pub use report::help::GlossaryTerm;
pub use report::inputs::ReportInputs;
pub use report::launch::{CommandReport, LaunchReport};
pub use report::machine::MachineReport;
pub use report::nearest::NearestReport;
pub use report::place::{PlacementReport, PlacementResult, StageReport};
pub use report::pool::PoolReport;
pub use report::pretty::pretty;
pub use report::proof::{Proof, StoppedBy};
pub use report::recommend::report::RecommendReport;
pub use report::rendered::{Answer, TextView};
pub use report::result::{
    EstimateResult, MemoryReport, MetricsReport, OptimizeResult, Plan, ReportedDeployment,
};
pub use report::start::{StartCorrection, StartReport};
pub use report::static_batch::StaticReport;
pub use report::sweep::SweepReport;
pub use report::verify::{CheckResult, Verified};
pub use request::audit::AuditRequest;
pub use request::calibrate::{CalibrateReport, CalibrateRequest};
pub use request::catalog::{CatalogReport, CatalogRequest};
pub use request::check::CheckRequest;
pub use request::compare::CompareRequest;
pub use request::deploy::DeployRequest;
pub use request::detect::DetectRequest;
pub use request::diagnose::DiagnoseRequest;
pub use request::diff::DiffRequest;
pub use request::estimate::{EstimateRequest, estimate};
pub use request::explain::{ExplainReport, ExplainRequest, Number, explain};
pub use request::fleet::FleetRequest;
pub use request::inspect::{InspectReport, InspectRequest};
pub use request::nearest::NearestRequest;
pub use request::optimize::{OptimizeRequest, optimize};
pub use request::permalink::{Permalink, PermalinkRequest};
pub use request::place::PlaceRequest;
pub use request::priced_plan::{PricedPlan, PricedStep};
pub use request::recommend::RecommendRequest;
pub use request::reference::{FormulasRequest, GlossaryRequest, SchemaRequest};
pub use request::static_batch::StaticRequest;
pub use request::sweep::merge::merge_reports;
pub use request::sweep::{SweepRequest, sweep_fingerprint};
pub use request::validate::{ValidateReport, ValidateRequest};
pub use request::verify::VerifyRequest;
pub use request::wording::Door;
pub use request::{ProgressSteps, Question, REQUESTS, RequestControl, RequestEntry, UNCONTROLLED, entry};
pub use search::outcome::Status;
pub use search::run::Control;
pub use spec::cluster::System;
pub use spec::degree::{Degree, Degrees};
pub use spec::deployment::Deployment;
pub use spec::device::Device;
pub use spec::error::Error;
pub use spec::format::NumberFormat;
pub use spec::link::Link;
pub use spec::model::file::ModelFile;
pub use spec::objective::{LatencyLimits, Metric, Objective, ObjectiveTerm, Workload};
pub use spec::offload::{OffloadPart, OffloadPolicy};
pub use spec::placing::{PlacementObjective, PlacementScenario};
pub use spec::price::PriceBasis;
pub use spec::rig::Rig;
pub use spec::role::Role;
pub use spec::rule::Allowance;
pub use spec::runtime::Runtime;
pub use spec::scenario::Scenario;
pub use spec::text::from_json;
pub use store::catalog::Catalog;
#[cfg(feature = "cli")]
pub use store::detect::probe::ThisMachine;
pub use store::kind::CatalogKind;

pub mod prelude;
