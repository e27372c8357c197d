//! The values that the templates of launch files see.

use serde::Serialize;
use serde_json::{Map, Value};

use super::command::{LaunchCommand, Word, WrittenOption};
use super::deployment::{Deployed, PoolLaunch, Surroundings};
use super::program_check::ProgramCheck;
use super::settings::Variable;
use super::slots::{ReplicaSlot, first_port, first_transfer_port, ports, slots};
use crate::spec::launch::RankStarter;

/// Folder of a model in a container.
pub const MODEL_FOLDER: &str = "/model";
/// Folder of settings files in a container.
pub const SETTINGS_FOLDER: &str = "/etc/mantile";

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariableText {
    pub name: String,
    /// Its value.
    pub word: Word,
    /// The reason for it.
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommandText {
    /// The program with what starts it.
    pub program: Vec<Word>,
    pub program_words: Vec<String>,
    pub options: Vec<WrittenOption>,
    pub environment: Vec<VariableText>,
    /// Text of its YAML file, if it has one.
    pub yaml: Option<String>,
    pub variables: Vec<String>,
}

impl CommandText {
    /// The forms of a command. In a container its YAML file and a model of the user, whose path there is `model`, lie in
    /// folders of their own.
    pub fn new(command: &LaunchCommand, yaml_name: &str, model: Option<&str>) -> CommandText {
        let moved = |word: &Word| match (word, model) {
            (Word::Text(text), Some(_)) if text == yaml_name => {
                Word::Text(format!("{SETTINGS_FOLDER}/{yaml_name}"))
            }
            (Word::Variable(Variable::Model, [before, after]), Some(model)) => {
                Word::Text(format!("{before}{model}{after}"))
            }
            (other, _) => other.clone(),
        };
        let mut variables = Vec::new();
        for word in command.words().chain(command.environment.iter().map(|one| one.word.clone())) {
            if let Word::Variable(variable, _) = word {
                variables.push(variable.name().to_owned());
            }
        }
        let options = command.options.iter().map(|option| WrittenOption {
            words: option.words.iter().map(moved).collect(),
            why: option.why.clone(),
        });
        let environment = command.environment.iter().map(|one| VariableText {
            name: one.name.clone(),
            word: moved(&one.word),
            why: one.why.clone(),
        });
        CommandText {
            program: command.start().collect(),
            program_words: command.program.clone(),
            options: options.collect(),
            environment: environment.collect(),
            yaml: (!command.yaml.is_empty()).then(|| yaml(&command.yaml)),
            variables,
        }
    }

    /// The command in one line.
    pub fn line(&self) -> String {
        let environment = self.environment.iter().map(|one| format!("{}={}", one.name, one.word.shell()));
        let program = self.program.iter().map(Word::shell);
        let options = self.options.iter().map(WrittenOption::shell);
        environment.chain(program).chain(options).collect::<Vec<_>>().join(" ")
    }
}

/// Dotted paths as nested objects.
pub fn nested(entries: &[(String, Value)]) -> Map<String, Value> {
    let mut all = Map::new();
    for (path, value) in entries {
        match path.split_once('.') {
            None => {
                all.insert(path.clone(), value.clone());
            }
            Some((outer, inner)) => {
                let object = all.entry(outer).or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(object) = object {
                    object.extend(nested(&[(inner.to_owned(), value.clone())]));
                }
            }
        }
    }
    all
}

fn yaml(entries: &[(String, Value)]) -> String {
    serde_saphyr::to_string(&nested(entries)).expect("every value of JSON is one of YAML")
}

#[derive(Clone, Debug, Serialize)]
pub struct WorkerText {
    pub name: String,
    /// `aggregated`, `prefill` or `decode`.
    pub role: String,
    pub replicas: u64,
    pub devices: u64,
    pub devices_per_host: u64,
    pub hosts: u64,
    /// Degrees above 1.
    pub label: String,
    /// Port of its first replica in scripts.
    pub port: u64,
    pub ports: u64,
    /// Port for transfers of its first replica.
    pub transfer_port: u64,
    pub script: CommandText,
    /// The same on further hosts.
    pub script_follower: Option<CommandText>,
    pub container: CommandText,
    /// The same on further hosts.
    pub container_follower: Option<CommandText>,
    /// Data-parallel ranks of a host, where they are counted by host.
    pub local_dp: u64,
    /// Words that start its script on every device of all hosts: in a job of a scheduler, and without one.
    pub start_ranks: Option<[Vec<String>; 2]>,
    /// The check of its program.
    pub needs: Option<ProgramCheck>,
    pub slots: Vec<SlotText>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SlotText {
    #[serde(flatten)]
    pub slot: ReplicaSlot,
    pub device_ids: Vec<String>,
}

/// The words that start a script on every device of all hosts of a worker: in a job of a scheduler, and without one.
fn start_ranks(deployed: &Deployed, worker: &PoolLaunch) -> Option<[Vec<String>; 2]> {
    let ranks = deployed.launch.ranks.as_ref().filter(|_| worker.hosts > 1)?;
    let line = |words| RankStarter::counted(words, worker.hosts, worker.devices).collect();
    Some([line(&ranks.command), line(&ranks.other)])
}

/// The check of the program of a worker.
fn needs(deployed: &Deployed, worker: &PoolLaunch) -> Option<ProgramCheck> {
    let (launch, table) = (deployed.launch, deployed.table);
    let install = format!("install {} {}, see {}", launch.id, table.version, launch.source);
    let command = deployed.leader(worker, Surroundings::Script);
    let words: Vec<String> = command.start().map(|word| word.shell()).collect();
    ProgramCheck::of(words.iter().map(String::as_str), &install)
}

/// The pools of a deployment, and its number of hosts; `model` is the path of a model of the user in a container.
pub fn workers(deployed: &Deployed, model: &str) -> (Vec<WorkerText>, u64) {
    let (slots, hosts) = slots(deployed);
    let pool = |(at, worker): (usize, &PoolLaunch)| {
        let yaml_name = format!("{}.yaml", worker.name);
        let text = |command: &LaunchCommand, surroundings| {
            let model = (surroundings == Surroundings::Container).then_some(model);
            CommandText::new(command, &yaml_name, model)
        };
        let of = |surroundings| text(&deployed.leader(worker, surroundings), surroundings);
        let follower = |surroundings| {
            let command = deployed.follower(worker, surroundings);
            command.map(|command| text(&command, surroundings))
        };
        let own = slots.iter().filter(|slot| slot.worker == worker.name);
        WorkerText {
            name: worker.name.clone(),
            role: worker.role.name().to_owned(),
            replicas: worker.replicas,
            devices: worker.devices,
            devices_per_host: worker.devices.div_ceil(worker.hosts),
            hosts: worker.hosts,
            label: worker.label.clone(),
            port: first_port(deployed, at),
            ports: ports(deployed, worker),
            transfer_port: first_transfer_port(deployed, at),
            script: of(Surroundings::Script),
            script_follower: follower(Surroundings::Script),
            container: of(Surroundings::Container),
            container_follower: follower(Surroundings::Container),
            local_dp: worker.local_dp(),
            start_ranks: start_ranks(deployed, worker),
            needs: needs(deployed, worker),
            slots: own
                .map(|slot| SlotText { slot: slot.clone(), device_ids: worker.device_ids(slot) })
                .collect(),
        }
    };
    (deployed.workers.iter().enumerate().map(pool).collect(), hosts)
}
