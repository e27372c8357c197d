//! How a runtime is started: its program, its container image, and the option that carries each setting. The same rows
//! write launch commands and read them back.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figure::{Bytes, Figure};
use super::option_effect::OptionEffects;
use super::setting::Setting;
use super::start::StartRules;

/// The launch of a runtime, in the version of its option table.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Id of the launch; the file name without `.json`.
    pub id: String,
    /// Ids of the runtimes that are started so: a runtime and its vendor builds.
    pub runtimes: Vec<String>,
    /// Id of its option table.
    pub table: String,
    /// Container images, the first whose vendor matches.
    #[serde(default)]
    pub images: Vec<ContainerImage>,
    /// Words that start the same program as those of the option table.
    #[serde(default)]
    pub other_programs: Vec<Vec<String>>,
    /// The file in which it takes a model, where this is none of a hub's checkpoints.
    pub model_file: Option<ModelPath>,
    /// The names of devices as it takes them in an order, in words.
    pub devices: Option<String>,
    /// Id of the launch of the process that lends it the devices of a further host.
    pub remote: Option<String>,
    /// The program that starts the process on all hosts of a group.
    pub starter: Option<GroupStarter>,
    /// The programs that start the process once for each device of a worker over several hosts.
    pub ranks: Option<RankStarter>,
    /// Environment variables that its measurements had set, on devices of certain vendors.
    #[serde(default)]
    pub environment: Vec<LaunchVariable>,
    /// The request that places a model on running processes, where those of all hosts find each other.
    pub request: Option<PlacingRequest>,
    /// Source of the program, its port and its path.
    pub source: String,
    /// Port that it listens on by default.
    pub port: u16,
    /// Path that answers when the server is ready.
    pub health: String,
    /// Its pipeline stages where no option sets them; absent where it always needs the option.
    pub stages: Option<DefaultStages>,
    /// First port of transfers of KV caches.
    #[serde(default)]
    pub transfer_port: Option<u16>,
    /// Router in front of like replicas.
    pub router: Option<Router>,
    /// Router in front of prefill and decode workers.
    pub disaggregated_router: Option<Router>,
    /// Module with which Dynamo starts the runtime, and its words for the runtime's flags.
    pub dynamo: Option<DynamoWorker>,
    /// Whether a settings file takes precedence over the command's own options.
    #[serde(default)]
    pub file_overrides: bool,
    /// The runtime's own words where a stated context is longer than the model's and it does not start; absent where it
    /// starts.
    pub context_beyond_model: Option<String>,
    /// Defaults of commands that do not state them.
    #[serde(default)]
    pub defaults: Vec<LaunchDefault>,
    /// Memory that a server sets aside when it starts, and what it checks then.
    #[serde(default)]
    pub start: StartRules,
    /// Image of llm-d's sidecar, where llm-d serves the runtime.
    pub llm_d_sidecar: Option<String>,
    /// Metrics that say how many requests its servers have, where they have such.
    pub scaling: Option<ScalingMetrics>,
    /// Benchmark commands that pose the problem to the running server, as templates.
    #[serde(default)]
    pub benchmarks: Vec<Benchmark>,
    /// The options of each setting, in the order of a command.
    pub settings: Vec<LaunchOption>,
    /// The effect of options that no setting carries.
    #[serde(default)]
    pub effects: OptionEffects,
}

/// Gauges of a server, by which replicas are added and removed.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScalingMetrics {
    /// Requests that run.
    pub running: String,
    /// Requests that wait.
    pub waiting: String,
    /// The option without which the server has no metrics.
    pub option: Option<String>,
    /// Source.
    pub source: String,
}

/// A default of the newest versions on devices of a size, where measured servers had another.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchDefault {
    /// The setting.
    pub setting: Setting,
    /// Devices with at least this memory.
    pub from: Figure<Bytes>,
    /// Its value.
    pub value: u64,
}

/// A model as a file or folder that the user provides.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPath {
    /// Its description, with `{model}` and `{format}` in their places.
    pub hint: String,
    /// Whether it is one file, not a folder.
    pub one_file: bool,
}

/// A script that places a model on running processes by a request. Its template sees `model_id`, `model_hint`, `port`,
/// and the settings whose place is the request, in `request`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacingRequest {
    /// Template of the script after its head.
    pub script: String,
    /// Source.
    pub source: String,
}

/// A program that starts a command on all hosts of a group.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupStarter {
    /// Its words before the file that lists the hosts.
    pub program: Vec<String>,
    /// Its words between that file and the command.
    pub before_command: Vec<String>,
    /// The file, in words.
    pub file: String,
    /// Whether the first host has the last layers.
    #[serde(default)]
    pub last_first: bool,
    /// Source.
    pub source: String,
}

/// Programs that start a process once for each device of all hosts. In their words `{hosts}`, `{devices}` and
/// `{devices_per_host}` have the numbers of the worker.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RankStarter {
    /// Its words in a job of a scheduler.
    pub command: Vec<String>,
    /// Those of another one without a scheduler.
    pub other: Vec<String>,
    /// Words between these and the program.
    pub program: Vec<String>,
    /// Source.
    pub source: String,
}

impl RankStarter {
    /// Words with the numbers of a worker of `devices` over `hosts`.
    pub fn counted(words: &[String], hosts: u64, devices: u64) -> impl Iterator<Item = String> {
        let numbers =
            [("{hosts}", hosts), ("{devices}", devices), ("{devices_per_host}", devices.div_ceil(hosts))];
        words.iter().map(move |word| {
            numbers.iter().fold(word.clone(), |word, (name, number)| word.replace(name, &number.to_string()))
        })
    }
}

/// An environment variable of a launch.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchVariable {
    /// Vendors of the devices.
    pub vendors: Vec<String>,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The reason that it is there, for people.
    pub why: String,
    /// Source.
    pub source: String,
}

/// A router. Its templates see `host`, `port`, and the URLs `servers`, or `prefill` and `decode`, as shell words.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// Its package with version.
    pub package: String,
    /// Container image; the runtime's own if absent.
    pub image: Option<String>,
    /// Command that installs it in the image, if needed.
    pub install: Option<String>,
    /// Template of its command.
    pub command: String,
    /// Templates of its files.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Source.
    pub source: String,
}

/// A worker of Dynamo.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DynamoWorker {
    /// Its framework's name in a graph.
    pub framework: String,
    /// Container image; absent where no graph is written.
    pub image: Option<String>,
    /// Words of its command.
    pub program: Vec<String>,
    /// Flags that take the place of the runtime's, by the runtime's flag; an empty one drops it.
    #[serde(default)]
    pub flags: BTreeMap<String, String>,
    /// Source.
    pub source: String,
}

/// A benchmark command.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Benchmark {
    /// Its program.
    pub name: String,
    /// Whether it loads the model itself and does not measure the running server.
    #[serde(default)]
    pub loads_model: bool,
    /// Template of the command.
    pub command: String,
    /// Source.
    pub source: String,
}

/// A container image with the runtime.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerImage {
    /// Vendors of the devices.
    pub vendors: Vec<String>,
    /// Its name and tag.
    pub image: String,
    /// Kubernetes resource of one device.
    pub resource: String,
    /// Environment variable with the devices that a process sees.
    pub visible_devices: Option<String>,
    /// Source.
    pub source: String,
}

/// The option of one setting.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchOption {
    /// The setting.
    pub setting: Setting,
    /// Its place in the launch.
    pub place: OptionPlace,
    /// The runtime's words for ids of formats and other names. A value that is not listed here has no option.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// Other words of the runtime for the same ids, which are read and never written.
    #[serde(default)]
    pub also: BTreeMap<String, String>,
    /// Values that leave the setting to the server, or to the checkpoint.
    #[serde(default)]
    pub open: Vec<String>,
    /// Whether it is another spelling, which is read and never written.
    #[serde(default)]
    pub read_only: bool,
    /// The scope of its number, where it is not that of one scheduler.
    #[serde(default)]
    pub scope: OptionScope,
    /// Whether the runtime takes whole numbers alone: others are rounded up.
    #[serde(default)]
    pub whole: bool,
    /// Text around the value, with `{}` in its place.
    pub template: Option<String>,
    /// The reason that the option is there, for people.
    pub why: String,
}

impl LaunchOption {
    /// The text before and after its value.
    pub fn around(&self) -> (&str, &str) {
        self.template.as_deref().and_then(|around| around.split_once("{}")).unwrap_or_default()
    }
}

/// The part of a server that a number of an option counts. Settings count one scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionScope {
    /// One scheduler: an attention data-parallel rank.
    #[default]
    Rank,
    /// All attention data-parallel ranks of a replica: each of them takes its part, rounded down, and at least one.
    Replica,
    /// One of the batches that fill a pipeline: a scheduler has as many of them as there are stages.
    MicroBatch,
}

/// How a runtime divides layers over pipeline stages where no option says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StagesRule {
    /// Evenly; nothing where the number does not divide.
    Even,
    /// Evenly; the first stages have one layer more where the number does not divide.
    FirstMore,
    /// The same with the last stages.
    LastMore,
    /// The same with the stages before the last one, which has the head.
    BeforeLastMore,
}

impl StagesRule {
    /// The layers of each of `stages`.
    pub fn layers(self, layers: u64, stages: u64) -> Option<Vec<u64>> {
        let more = layers.checked_rem(stages)?;
        let has_more = |stage: u64| match self {
            StagesRule::Even => false,
            StagesRule::FirstMore => stage < more,
            StagesRule::LastMore => stage >= stages - more,
            StagesRule::BeforeLastMore => stage + 1 < stages && stage + 1 >= stages - more,
        };
        let known = self != StagesRule::Even || more == 0;
        known.then(|| (0..stages).map(|stage| layers / stages + u64::from(has_more(stage))).collect())
    }
}

/// The pipeline stages of a runtime without an option for them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultStages {
    /// The rule.
    pub rule: StagesRule,
    /// Source.
    pub source: String,
}

/// The place of an option in a launch.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OptionPlace {
    /// The first word after the program.
    Positional,
    /// A flag with a value.
    Flag(String),
    /// A flag without a value, for a setting that is on.
    Switch(String),
    /// A flag without a value, for a setting that is off.
    OffSwitch(String),
    /// An environment variable.
    Environment(String),
    /// A key in the runtime's own YAML file, as a dotted path.
    Yaml(String),
    /// The number of hosts in the file of the program that starts a group.
    Hosts,
    /// The numbers of the program that starts the process on every device of all hosts.
    Ranks,
    /// A key of the request that places the model on running processes.
    Request(String),
    /// A key of the JSON object that a flag takes.
    Json {
        /// The flag.
        flag: String,
        /// The key.
        key: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `get_pp_indices` of SGLang: the extra layers are those of the last partitions.
    fn sglang(layers: u64, pp: u64) -> Vec<u64> {
        let (base, remainder) = (layers / pp, layers % pp);
        (0..pp).map(|rank| if rank >= pp - remainder { base + 1 } else { base }).collect()
    }

    /// `get_pp_indices` of vLLM: `partitions[-i] += 1` for i from 2.
    fn vllm(layers: u64, pp: u64) -> Vec<u64> {
        let mut partitions = vec![layers / pp; pp as usize];
        for at in 2..layers % pp + 2 {
            partitions[(pp - at) as usize] += 1;
        }
        partitions
    }

    /// `torch.tensor_split` of TensorRT-LLM.
    fn trtllm(layers: u64, pp: u64) -> Vec<u64> {
        (0..pp).map(|rank| layers / pp + u64::from(rank < layers % pp)).collect()
    }

    #[test]
    fn stages_are_those_of_the_runtimes() {
        for layers in 1..130 {
            for pp in 1..=16.min(layers) {
                let of = |rule: StagesRule| rule.layers(layers, pp);
                assert_eq!(of(StagesRule::LastMore), Some(sglang(layers, pp)));
                assert_eq!(of(StagesRule::BeforeLastMore), Some(vllm(layers, pp)));
                assert_eq!(of(StagesRule::FirstMore), Some(trtllm(layers, pp)));
                assert_eq!(of(StagesRule::Even).is_some(), layers % pp == 0);
            }
        }
        assert_eq!(StagesRule::Even.layers(8, 0), None);
    }
}
