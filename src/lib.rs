//! Finds the best way to serve a language model on given accelerators: how fast, at what cost, and why.
//!
//! JSON files state a model, a cluster and an objective. [`graph`] turns the model into an operator
//! graph, [`plan`] lays the graph over devices, all in integers; what cannot be is an
//! [`plan::infeasible::Infeasible`] value with numbers. From there on there are only formulas:
//! [`cost`] prices an operator, [`serving`] composes operators into steps and steps into what users
//! and owners feel. Formulas are written once, over [`quantity::num::Qty`]. The search reads them as
//! `f64`; the winner is read again as [`quantity::ledger::Traced`], which yields the drill-down, the
//! unit check and the list of sources. [`search`] sees `serving` as one function and returns the
//! optimum, the Pareto front, or the reasons that there is none.
//!
//! # Floors
//!
//! A module imports from floors below it and from itself; `tests/tidy.rs` holds it to that.
//!
//! | floor | module | is |
//! |---|---|---|
//! | 8 | [`cli`], [`store`] | files, terminal, network: the only input and output |
//! | 7 | [`report`], [`validate`] | outcomes as text, JSON, CSV; predictions held against measurements |
//! | 6 | [`search`], [`calibrate`] | candidates, bounds, front, optimum; constants from measurements |
//! | 5 | [`serving`] | operators → step → TTFT, TPOT, throughput, dollars, watts |
//! | 4 | [`cost`] | one operator, one exchange, one memory |
//! | 3 | [`plan`] | graph × degrees → sharded graph with exchanges, or why not |
//! | 2 | [`graph`] | configuration → operators, tensors, counts |
//! | 1 | [`spec`] | what the user states |
//! | 0 | [`quantity`] | units, data with sources, the readings of a formula |
//!
//! Floors 0 to 7 know no path, clock, terminal or socket. Formulas compare no values: `Qty` has no
//! order, so a trace shows everything that any reading did. `graph` and `plan` hold no floating
//! point. `search` knows nothing of transformers.
//!
//! # Where to add what
//!
//! | to add | one place | what tells you the rest |
//! |---|---|---|
//! | a model of a known family | `models/<org>--<name>.json` | `tests/models.rs` globs it |
//! | an architecture | `graph/arch/<family>.rs` and its line in [`graph::arch::ARCHITECTURES`] | the error that names unread keys; the count test |
//! | a device, link, system | `hardware/{devices,links,systems}/<id>.json` | `mantile-opt schema device`; the shipped-files test |
//! | unlike devices | `hardware/rigs/<id>.json` | `mantile-opt schema rig`; the placement tests |
//! | a number format | `hardware/formats/<id>.json` | the error that names a missing peak |
//! | a runtime | `hardware/runtimes/<id>.json` | `mantile-opt schema runtime` |
//! | an operator | a variant of [`graph::operator::Operator`] and `cost/<operator>.rs` | exhaustive matches |
//! | a collective algorithm | a variant of [`plan::algorithm::Algorithm`] | its `way` and the bandwidth-bound test |
//! | an objective or workload | `objectives/`, `objectives/workloads/` | `mantile-opt schema objective` |
//! | a metric | an entry of [`spec::objective::METRICS`] | tables, CSV and glossary follow the list |
//!
//! # How the answer is proved
//!
//! Latencies never fall as load grows. So between two loads of one shape nothing is better than the
//! ideal of both, and where even that ideal is beaten nothing in between is evaluated
//! ([`search::aggregated`], [`search::split`]). Instances of several shapes fill the devices by an
//! exact knapsack ([`search::packing`]), and so do unlike workers that prefill, decode or do both
//! ([`search::ratio`]), which an integer programme checks row by row. Layers go onto unlike devices by dynamic programmes
//! ([`search::placement`]). Tests compare the outcome with brute force.

pub mod calibrate;
pub mod cli;
pub mod cost;
pub mod graph;
pub mod plan;
pub mod quantity;
pub mod report;
pub mod search;
pub mod serving;
pub mod spec;
pub mod store;
pub mod validate;
