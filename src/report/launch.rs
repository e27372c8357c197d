//! The launch of a deployment as reported: commands with a reason for every option, and the files that run them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cost::CostReport;
use super::next_run::NextRun;
use super::result::ReportedDeployment;
use super::sheet;
use crate::spec::option_effect::WordEffect;
use crate::spec::scenario::Scenario;

/// How a deployment is launched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchReport {
    /// Id of the runtime.
    pub runtime: String,
    /// Version of the runtime whose options these are; empty where the runtime has no launch.
    pub runtime_version: String,
    /// Container image, where one is known for the devices.
    pub image: Option<String>,
    /// The workers of each pool.
    pub workers: Vec<LaunchWorker>,
    /// The command of the router in front of several workers.
    pub router: Option<String>,
    /// The cost of the deployment, in an answer of `deploy`; absent without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostReport>,
    /// Why nothing is launched: what the deployment misses, so that it cannot run. Empty if it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub infeasible: Vec<String>,
    /// Settings that the runtime cannot express, with the nearest that it can; there are no files then.
    pub unsupported: Vec<String>,
    /// Remarks for the person who launches.
    pub notes: Vec<String>,
    /// Options of a measured server of this kind that the commands do not have; absent where none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedFlags>,
    /// The run that would narrow its intervals most for its cost; absent where that is none on one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_run: Option<NextRun>,
    /// The files, as `--emit` writes them.
    pub files: Vec<LaunchFile>,
}

/// Options of a measured server, which the prediction does not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedFlags {
    /// Its model.
    pub model: String,
    /// The options and environment variables, each with what it changes.
    pub flags: Vec<LaunchFlag>,
    /// The script that starts it.
    pub source: String,
}

/// The processes of one pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchWorker {
    /// Its name: `server`, `prefill` or `decode`, with a number where one is not enough.
    pub name: String,
    /// Number of replicas or workers.
    pub replicas: u64,
    /// Devices of each.
    pub devices: u64,
    /// Hosts of each.
    pub hosts: u64,
    /// The command, on the first host of each.
    pub command: String,
    /// Its options, each with the reason for it.
    pub options: Vec<LaunchFlag>,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// Content of the runtime's own YAML file.
    pub yaml: Map<String, Value>,
}

/// An option of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchFlag {
    /// The flag with its value, as a shell reads it.
    pub words: String,
    /// The reason that it is there.
    pub why: String,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchFile {
    /// Its path below the folder of the launch.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A launch command that was read back.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommandReport {
    /// Id of the runtime that it starts.
    pub runtime: String,
    /// Version of the runtime whose options it was read by.
    pub runtime_version: String,
    /// The problem with what the command sets.
    pub scenario: Scenario,
    /// Where its processes were found.
    pub processes: Vec<String>,
    /// The runtime's reasons why the server does not start; empty if it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub will_not_start: Vec<String>,
    /// The command with the smallest change that starts, which is priced; absent where the command starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<String>,
    /// Words that set nothing, each with the reason.
    pub unread: Vec<UnreadWord>,
    /// Remarks.
    pub notes: Vec<String>,
    /// The best plan for the same hardware and traffic; null if there is none.
    pub best: Option<Box<ReportedDeployment>>,
    /// Single changes that help, the most helpful first.
    pub changes: Vec<FlagChange>,
}

/// A word of a command that sets nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreadWord {
    /// Where the command is.
    pub place: String,
    /// Number of the word after the program, from 1.
    pub position: usize,
    /// The word.
    pub word: String,
    /// The reason.
    pub reason: String,
    /// Whether it matters.
    pub effect: WordEffect,
}

/// A change of one option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlagChange {
    /// The options to write instead.
    pub flags: String,
    /// The metric that improves most.
    pub metric: String,
    /// Its value as the command is.
    pub now: f64,
    /// Its value with the change.
    pub then: f64,
}

impl LaunchReport {
    /// No launch, since a deployment on `runtime` cannot run.
    pub fn refused(runtime: &str, infeasible: Vec<String>) -> LaunchReport {
        LaunchReport { runtime: runtime.to_owned(), infeasible, ..LaunchReport::default() }
    }

    /// A row for each worker.
    pub fn csv(&self) -> String {
        let row = |worker: &LaunchWorker| {
            let counts = [worker.replicas, worker.devices, worker.hosts].map(|count| count.to_string());
            [vec![worker.name.clone()], counts.to_vec(), vec![worker.command.clone()]].concat()
        };
        sheet::csv(["worker", "replicas", "devices", "hosts", "command"], self.workers.iter().map(row))
    }

    /// Whether the deployment can be launched as reported.
    pub fn runs(&self) -> bool {
        self.infeasible.is_empty() && self.unsupported.is_empty() && !self.workers.is_empty()
    }

    /// A file by its path.
    pub fn file(&self, path: &str) -> Option<&LaunchFile> {
        self.files.iter().find(|file| file.path == path)
    }
}
