//! The subcommands: one list of what each poses, of the defaults that it takes, and of its flags.

use serde_json::Value;

#[cfg(feature = "bench")]
use super::bench;
use super::defaults::{AppliedDefaults, UserDefaults};
use super::exit::ExitStatus;
#[cfg(feature = "mcp")]
use super::mcp;
#[cfg(feature = "site")]
use super::site;
use super::{
    CliError, audit, calibrate, catalog, check, compare, config, deploy, detect, diagnose, diff, estimate,
    explain, fleet, inspect, nearest, optimize, place, recommend, reference, simulate, static_batch, sweep,
    validate, verify,
};
#[cfg(feature = "runs")]
use super::{drift, runs};
#[cfg(feature = "serve")]
use super::{mock, serve};
use crate::report::rendered::Answer;
use crate::request::place::PlaceRequest;
use crate::request::reference::GlossaryRequest;
use crate::request::{Question, value};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

pub trait Subcommand {
    /// Answers it and writes the answer.
    ///
    /// # Errors
    /// A flag or a file is faulty, or the output cannot be written.
    fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError>;

    /// Name and JSON of the question that it poses.
    fn question(&self, _catalog: &Catalog) -> Result<(&'static str, Value), Error> {
        let fix = "omit --bundle, --permalink or --interactive, or use a command that answers a question";
        Err(Error::new("command", "one that answers no question", "a command with an answer", fix))
    }

    /// The places of the user's defaults and of those that its output names, where defaults apply.
    fn defaults(&mut self) -> Option<(&mut UserDefaults, &mut AppliedDefaults)> {
        None
    }

    /// The limit of the search, in seconds.
    fn time_limit(&self) -> Option<f64> {
        None
    }

    /// Whether it reads only what is in the program.
    fn is_embedded(&self) -> bool {
        false
    }
}

fn posed<Q: Question>(question: &Q) -> (&'static str, Value) {
    (Q::Answer::QUESTION, value(question))
}

/// The enum of the subcommands, and what each is to the rest of the command line. A row has the question of the flags,
/// the places of the defaults, `time_limit` where it has that flag, and `embedded` where it reads no catalogue.
macro_rules! subcommands {
    ($(
        $(#[$doc:meta])* $([$feature:literal])? $name:ident($command:ty):
            [$(|$this:ident, $catalog:pat_param| $question:expr)?]
            [$($($defaults:ident).+ => $($applied:ident).+)?] [$($limit:ident)?] [$($embedded:ident)?];
    )*) => {
        #[derive(Debug, clap::Subcommand)]
        pub enum Command {
            $($(#[$doc])* $(#[cfg(feature = $feature)])? $name(Box<$command>),)*
        }

        impl Command {
            pub(super) fn as_subcommand(&mut self) -> &mut dyn Subcommand {
                match self {
                    $($(#[cfg(feature = $feature)])? Command::$name(command) => &mut **command,)*
                }
            }
        }

        $($(#[cfg(feature = $feature)])? impl Subcommand for $command {
            fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
                <$command>::run(self, catalog)
            }
            $(fn question(&self, $catalog: &Catalog) -> Result<(&'static str, Value), Error> {
                let $this = self;
                Ok(posed(&$question))
            })?
            $(fn defaults(&mut self) -> Option<(&mut UserDefaults, &mut AppliedDefaults)> {
                Some((&mut self.$($defaults).+, &mut self.$($applied).+))
            })?
            $(fn $limit(&self) -> Option<f64> {
                self.$limit
            })?
            $(fn is_embedded(&self) -> bool {
                stringify!($embedded) == "embedded"
            })?
        })*
    };
}

subcommands! {
    /// Find the best deployment and the Pareto front (default command)
    Optimize(optimize::Optimize):
        [|it, _| it.request()?] [problem.defaults => output.applied] [time_limit] [];
    /// Evaluate one given deployment: the same metrics as `optimize`
    Estimate(estimate::Estimate): [|it, _| it.request()?] [planned.problem.defaults => output.applied] [] [];
    /// Evaluate a static batch on given degrees, without a scheduler, layer type by layer type
    Static(static_batch::Static): [|it, _| it.request()?] [planned.problem.defaults => output.applied] [] [];
    /// Check whether the server of a launch command starts: options, context, rules, memory; with the smallest corrections
    Check(check::Check): [|it, _| it.request()?] [problem.defaults => output.applied] [] [];
    /// Simulate a deployment under traffic: percentiles, queues, cache hits, request by request
    Simulate(simulate::Simulate): [|it, _| it.request()?] [planned.problem.defaults => output.applied] [] [];
    /// Write the commands and files that launch a deployment; starts nothing
    Deploy(deploy::Deploy): [|it, _| it.request()?] [planned.problem.defaults => output.applied] [] [];
    /// Place layers on heterogeneous devices, provably optimal
    Place(place::PlaceArgs):
        [|this, catalog| PlaceRequest { scenario: this.scenario(catalog) }] [defaults => output.applied] [time_limit] [];
    /// Explain one number, down to its source data
    Explain(explain::Explain): [|it, _| it.request()?] [planned.problem.defaults => output.applied] [] [];
    /// List the assumptions of a prediction by their effect, and what is left out
    Audit(audit::Audit): [|it, _| it.request()?] [planned.problem.defaults => output.applied] [] [];
    /// Measured numbers compared with the prediction and the roofline
    Diagnose(diagnose::Diagnose): [|it, _| it.request()?] [planned.problem.defaults => output.applied] [] [];
    /// Published measurements that are nearest to a deployment, each with its own prediction
    Nearest(nearest::Nearest): [|it, _| it.request()?] [planned.problem.defaults => output.applied] [] [];
    /// Compare two answers: the inputs that differ, and the part of each metric's change that each explains
    Diff(diff::DiffArgs): [|it, _| it.request()?] [] [] [];
    /// Sweep: the metrics of every combination of varied keys, as table, CSV or JSON Lines
    Sweep(sweep::Sweep): [|it, _| it.request()?] [problem.defaults => applied] [time_limit] [];
    /// Merge the shards of a sweep into one file
    Merge(sweep::Merge): [] [] [] [];
    /// Compare saved answers, scenarios or systems side by side
    Compare(compare::Compare): [|it, _| it.request()?] [problem.defaults => output.applied] [] [];
    /// Recommend hardware to buy or rent for a model, or models for a given machine
    Recommend(recommend::Recommend): [|it, _| it.request()] [defaults => output.applied] [] [];
    /// Size a fleet: the cheapest mix of systems for a traffic mix, with an optimality certificate
    Fleet(fleet::FleetArgs): [|it, _| it.request()?] [defaults => output.applied] [] [];
    /// Inspect a model: layers, operators, tensors, KV cache, parameter counts
    Inspect(inspect::Inspect): [|it, _| it.request()] [] [] [];
    /// Recheck a saved result: every row, the objective, a sample of the pruned candidates, the search
    Verify(verify::Verify): [|it, _| it.request()?] [] [] [];
    /// Compare predictions with a table of measurements
    Validate(validate::Validate): [|it, _| it.request()?] [] [] [];
    /// Refit a runtime's calibration constants to measurements
    Calibrate(calibrate::Calibrate): [|it, _| it.request()?] [] [] [];
    /// Measure a server: latencies and throughput under stated loads, next to their prediction
    ["bench"] Bench(bench::Bench): [] [planned.problem.defaults => applied] [] [];
    /// Stored runs: list, compare, export, import, verify, sign; versions of calibrations
    ["runs"] Runs(runs::Runs): [] [] [] [];
    /// Errors of the predictions of stored runs, with alarms; retraining
    ["runs"] Drift(drift::DriftArgs): [] [] [] [];
    /// Serve every request over HTTP
    ["serve"] Serve(serve::Serve): [] [] [] [];
    /// Serve OpenAI's interface at the predicted speed, by simulation: for tests without a GPU
    ["serve"] Mock(mock::Mock): [] [planned.problem.defaults => applied] [] [];
    /// The page as files that need no server
    ["site"] Site(site::Site): [] [] [] [];
    /// Serve every request to an assistant, over the Model Context Protocol
    ["mcp"] Mcp(mcp::Mcp): [] [] [] [];
    /// List the catalogue: models, devices, systems, formats …
    Catalog(catalog::ListCatalog): [|it, _| it.request()?] [] [] [];
    /// Detect this machine: GPUs, processor, memory bandwidth, and write it to a file for --hardware
    Detect(detect::DetectArgs): [|it, _| it.request()] [] [] [];
    /// Show your defaults (hardware, prices, SLOs) and the source of each
    Config(config::Config): [] [defaults => output.applied] [] [];
    /// Print the JSON Schema of a file or a result
    Schema(reference::SchemaArgs): [|it, _| it.request()] [] [] [embedded];
    /// List every formula with its unit, reason and citation
    Formulas(reference::FormulasArgs): [|it, _| it.request()] [] [] [embedded];
    /// Explain the terms in the output
    Glossary(reference::GlossaryArgs): [|_it, _| GlossaryRequest {}] [] [] [embedded];
    /// Print completions for a shell
    Completions(reference::Completions): [] [] [] [embedded];
    /// Print the manual page in roff
    Man(reference::ManualPage): [] [] [] [embedded];
}
