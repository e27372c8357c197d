//! Finds the best way to serve a language model on given accelerators: how fast, at what cost, and why.
//!
//! ```
#![doc = include_str!("../examples/estimate.rs")]
//! ```
//!
//! `examples/` holds more: the optimum, the Pareto front, an explanation, a model and a device of one's own. Every
//! question is a typed function `(catalog, request, control) → report`; [`request::REQUESTS`] lists them with their
//! JSON Schemas. The feature `cli`, on by default, adds the command line, the terminal and the network; with
//! `default-features = false` the library has none of them and compiles to WebAssembly.
//!
//! JSON files describe a model, a cluster and an objective. [`graph`] turns the model into an operator graph; [`plan`]
//! shards the graph over devices, in integers only; an impossible plan is an [`plan::infeasible::Infeasible`] value
//! with its numbers. All further steps are formulas: [`cost`] evaluates an operator, [`serving`] composes operators
//! into steps, and steps into latency, throughput, cost and power. Formulas are written once, over
//! [`quantity::num::Qty`]. The search evaluates them as `f64`; the winner is evaluated again as
//! [`quantity::ledger::Traced`], which yields the drill-down, the unit check and the list of sources. [`search`] uses
//! `serving` as one function and returns the optimum, the Pareto front, or the reasons for infeasibility.
//!
//! # Layers
//!
//! A module imports only from lower layers and from itself; `tests/tidy.rs` checks it.
//!
//! | layer | module | content |
//! |---|---|---|
//! | 10 | `cli` | command line and terminal: flags → request, report → text |
//! | 9 | [`request`] | every question as a typed function |
//! | 8 | [`store`] | catalogue, files, network: names → problems |
//! | 7 | [`report`], [`validate`], [`launch`] | outcomes as text, JSON, CSV, SVG, workbooks; predictions compared with measurements; launch files and the way back |
//! | 6 | [`search`], [`calibrate`] | candidates, bounds, front, optimum; constants from measurements |
//! | 5 | [`serving`] | operators → step → TTFT, TPOT, throughput, cost, power |
//! | 4 | [`cost`] | one operator, one collective, one memory |
//! | 3 | [`plan`] | graph × degrees → sharded graph with collectives, or the reason against it |
//! | 2 | [`graph`] | configuration → operators, tensors, counts |
//! | 1 | [`spec`] | user inputs |
//! | 0 | [`quantity`] | units, data with sources, evaluation of formulas as numbers or traces |
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
//! | an architecture | `graph/arch/<family>.rs` and its line in [`graph::arch::ARCHITECTURES`] | the error that names unread keys; the count test |
//! | a device, link, system | `hardware/{devices,links,systems}/<id>.json` | `mantile-opt schema device`; the shipped-files test |
//! | heterogeneous devices | `hardware/rigs/<id>.json` | `mantile-opt schema rig`; the placement tests |
//! | a number format | `hardware/formats/<id>.json` | the error that names a missing peak |
//! | a runtime | `hardware/runtimes/<id>.json` | `mantile-opt schema runtime` |
//! | an operator | a variant of [`graph::operator::Operator`] and `cost/<operator>.rs` | exhaustive matches |
//! | a collective algorithm | a variant of [`plan::algorithm::Algorithm`] | its `way` and the bandwidth-bound test |
//! | an objective or workload | `objectives/`, `objectives/workloads/` | `mantile-opt schema objective` |
//! | a metric | a row of `spec/metric_table.rs`, listed in [`spec::objective::METRICS`] | reports, CSV, `explain` and glossary are made from it |
//!
//! # Proof of optimality
//!
//! Latencies never decrease as load grows. So between two loads of one configuration nothing is better than the ideal
//! of both; where even that ideal is dominated, nothing in between is evaluated ([`search::aggregated`],
//! [`search::split`]). Replicas of several configurations fill the devices by an exact knapsack ([`search::packing`]),
//! and so do mixed prefill, decode and aggregated pools ([`search::ratio`]), cross-checked row by row by a MIP. Layers
//! are placed on heterogeneous devices by dynamic programs ([`search::placement`]). Tests compare the results with
//! brute force.

#[cfg(any(feature = "serve", feature = "mcp"))]
pub mod admission;
pub mod calibrate;
#[cfg(feature = "cli")]
pub mod cli;
pub mod cost;
pub mod graph;
#[cfg(feature = "serve")]
pub mod http;
pub mod launch;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod plan;
pub mod prelude;
pub mod quantity;
pub mod report;
pub mod request;
pub mod search;
pub mod serving;
#[cfg(feature = "site")]
pub mod site;
pub mod spec;
pub mod store;
pub mod validate;
