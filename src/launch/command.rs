//! A command from settings, by the options of a runtime.

use serde::Serialize;
use serde_json::{Map, Value};

use super::scope::stated;
use super::settings::{SettingValue, Settings, Variable};
use crate::spec::launch::{DefaultStages, GroupStarter, Launch, LaunchOption, OptionPlace, RankStarter};
use crate::spec::option_table::OptionTable;
use crate::spec::setting::Setting;
use crate::spec::writer::{ShellPart, WrittenText};

#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    /// As it is.
    Text(String),
    /// The value of a variable of the script or container, with text before and after it.
    Variable(Variable, [String; 2]),
}

impl Word {
    pub fn shell(&self) -> String {
        WrittenText::words([self.part(Variable::name)]).to_string()
    }

    /// The word for a shell in which variables have these names.
    pub fn part(&self, name: impl Fn(Variable) -> &'static str) -> ShellPart<'_> {
        match self {
            Word::Text(text) => ShellPart { text, variable: None },
            Word::Variable(variable, [text, after]) => {
                ShellPart { text, variable: Some((name(*variable), after)) }
            }
        }
    }
}

/// The name of a variable in a pod of Kubernetes.
pub fn in_pod(variable: Variable) -> &'static str {
    match variable {
        Variable::HostRank => "LWS_WORKER_INDEX",
        Variable::FirstHost => "LWS_LEADER_ADDRESS",
        Variable::Address => "POD_IP",
        other => other.name(),
    }
}

/// One option as written, with the reason for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WrittenOption {
    /// Its words: a flag and its value, a switch, or a positional word.
    pub words: Vec<Word>,
    pub why: String,
}

impl WrittenOption {
    pub fn shell(&self) -> String {
        self.words.iter().map(Word::shell).collect::<Vec<_>>().join(" ")
    }
}

/// One environment variable as written, with the reason for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WrittenVariable {
    pub name: String,
    pub word: Word,
    pub why: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaunchCommand {
    pub environment: Vec<WrittenVariable>,
    /// The words of the program that starts it on all hosts of a group; none where it is started by itself.
    pub starter: Vec<Word>,
    pub program: Vec<String>,
    pub options: Vec<WrittenOption>,
    /// Keys of the runtime's own YAML file, as dotted paths, with their values.
    pub yaml: Vec<(String, Value)>,
    /// Keys of the request that places the model, with their values.
    pub request: Vec<(String, Value)>,
    /// Settings for which the runtime has no option, in words.
    pub missing: Vec<String>,
}

impl LaunchCommand {
    /// The words before the options.
    pub fn start(&self) -> impl Iterator<Item = Word> {
        let program = self.program.iter().map(|word| Word::Text(word.clone()));
        self.starter.iter().cloned().chain(program)
    }

    pub fn words(&self) -> impl Iterator<Item = Word> {
        self.start().chain(self.options.iter().flat_map(|option| option.words.clone()))
    }
}

/// The value of `option` in the runtime's words; `None` where it has none.
fn spelled(option: &LaunchOption, value: &SettingValue) -> Option<Word> {
    let (before, after) = option.around();
    Some(match value {
        SettingValue::Variable(variable) => Word::Variable(*variable, [before.into(), after.into()]),
        SettingValue::Word(word) if !option.values.is_empty() => {
            Word::Text(format!("{before}{}{after}", option.values.get(word)?))
        }
        SettingValue::Real(real) if option.whole => Word::Text(format!("{before}{}{after}", real.ceil())),
        other => Word::Text(format!("{before}{other}{after}")),
    })
}

/// The word with which a runtime chooses by itself.
const AUTO: &str = "auto";

/// A value for JSON and YAML, with its type.
fn typed(value: &SettingValue, word: &Word) -> Value {
    match (value, word) {
        (SettingValue::Count(count), _) => Value::from(*count),
        (SettingValue::Real(real), _) => Value::from(*real),
        (SettingValue::On(on), _) => Value::from(*on),
        (SettingValue::Counts(counts), _) => Value::from(counts.clone()),
        (SettingValue::Shares(shares), _) => Value::from(shares.clone()),
        (_, Word::Text(text)) => Value::from(text.clone()),
        (_, Word::Variable(variable, _)) => Value::from(variable.name()),
    }
}

/// Settings of which an option of another one does the work.
fn instead(setting: Setting) -> &'static [Setting] {
    match setting {
        // Devices that share a model by a split have no degree.
        Setting::Tp | Setting::Ranks | Setting::StageRanks => {
            &[Setting::Tp, Setting::Ranks, Setting::StageRanks, Setting::TensorSplit]
        }
        Setting::Pp => &[Setting::Pp, Setting::TensorSplit],
        Setting::Dp | Setting::AttentionDp => &[Setting::Dp, Setting::AttentionDp],
        Setting::Ep | Setting::ExpertParallel => &[Setting::Ep, Setting::ExpertParallel],
        // It follows from the other degrees.
        Setting::MoeTp => &[Setting::Ep, Setting::ExpertParallel, Setting::Tp],
        Setting::Context | Setting::TotalContext => &[Setting::Context, Setting::TotalContext],
        Setting::HostExperts | Setting::HostExpertLayers => {
            &[Setting::HostExperts, Setting::HostExpertLayers]
        }
        Setting::DraftBranches | Setting::CheckedTokens => &[Setting::DraftTokens],
        Setting::TensorSplit | Setting::StageLayers => &[Setting::TensorSplit, Setting::StageLayers],
        _ => &[],
    }
}

/// The words of a program that starts a command on all hosts.
fn started(starter: &GroupStarter) -> Vec<Word> {
    let texts = |words: &[String]| words.iter().cloned().map(Word::Text).collect::<Vec<_>>();
    let file = Word::Variable(Variable::HostFile, Default::default());
    [texts(&starter.program), vec![file], texts(&starter.before_command)].concat()
}

/// The words that start a command on every device of all hosts.
fn on_ranks(starter: &RankStarter, settings: &Settings) -> Vec<Word> {
    let number = |setting| settings.count(setting).unwrap_or(1);
    let (hosts, devices) = (number(Setting::Hosts), number(Setting::HostedRanks));
    let before = RankStarter::counted(&starter.command, hosts, devices);
    before.chain(starter.program.iter().cloned()).map(Word::Text).collect()
}

/// Whether the runtime does so without an option: stages as it divides layers by itself.
fn is_usual(launch: &Launch, setting: Setting, value: &SettingValue) -> bool {
    let SettingValue::Counts(layers) = value else { return false };
    let usual = |rule: &DefaultStages| {
        rule.rule.layers(layers.iter().sum(), layers.len() as u64).as_ref() == Some(layers)
    };
    setting == Setting::StageLayers && launch.stages.as_ref().is_some_and(usual)
}

/// Settings of a plan for which the runtime has no option, in words.
fn missing(launch: &Launch, settings: &Settings) -> Vec<String> {
    let has = |known: Setting| launch.settings.iter().any(|option| option.setting == known);
    let lacks = |(setting, value): &&(Setting, SettingValue)| {
        let other = instead(*setting).iter().any(|other| has(*other));
        setting.is_plan() && !has(*setting) && !other && !is_usual(launch, *setting, value)
    };
    let words = |(setting, value): &(Setting, SettingValue)| {
        let nearest = match setting {
            Setting::StageLayers => "its nearest is even stages",
            _ => "it has no option for it",
        };
        format!("{} {value}: {nearest}", setting.words())
    };
    settings.iter().filter(lacks).map(words).collect()
}

/// The command of a process with `settings`. Defaults of the runtime are written out: they change between versions.
pub fn command(launch: &Launch, table: &OptionTable, settings: &Settings) -> LaunchCommand {
    let mut command = LaunchCommand { program: table.program.clone(), ..LaunchCommand::default() };
    let usual = |(setting, value): &(Setting, &SettingValue)| is_usual(launch, *setting, value);
    command.missing = missing(launch, settings);
    let mut objects: Vec<(String, Map<String, Value>, String)> = Vec::new();
    for option in launch.settings.iter().filter(|option| !option.read_only) {
        let found = settings.get(option.setting).map(|value| (option.setting, value));
        let Some((_, value)) = found.filter(|found| !usual(found)) else { continue };
        let value = &stated(option, value, settings);
        let Some(word) = spelled(option, value) else {
            let known: Vec<&str> = option.values.keys().map(String::as_str).collect();
            let nearest = format!("its options know {}", known.join(", "));
            command.missing.push(format!("{} {value}: {nearest}", option.setting.words()));
            continue;
        };
        let by_itself = word == Word::Text(AUTO.to_owned());
        let words = match &option.place {
            OptionPlace::Positional => vec![word],
            OptionPlace::Switch(flag) if *value == SettingValue::On(true) => vec![Word::Text(flag.clone())],
            OptionPlace::OffSwitch(flag) if *value == SettingValue::On(false) => {
                vec![Word::Text(flag.clone())]
            }
            OptionPlace::Switch(_) | OptionPlace::OffSwitch(_) => continue,
            _ if by_itself => continue,
            OptionPlace::Flag(flag) => vec![Word::Text(flag.clone()), word],
            OptionPlace::Environment(name) => {
                command.environment.push(WrittenVariable {
                    name: name.clone(),
                    word,
                    why: option.why.clone(),
                });
                continue;
            }
            OptionPlace::Yaml(path) => {
                command.yaml.push((path.clone(), typed(value, &word)));
                continue;
            }
            OptionPlace::Hosts => {
                command.starter = launch.starter.as_ref().map(started).unwrap_or_default();
                continue;
            }
            OptionPlace::Ranks => {
                command.starter = launch.ranks.as_ref().map_or(vec![], |ranks| on_ranks(ranks, settings));
                continue;
            }
            OptionPlace::Request(key) => {
                command.request.push((key.clone(), typed(value, &word)));
                continue;
            }
            OptionPlace::Json { flag, key } => {
                let entry = (key.clone(), typed(value, &word));
                match objects.iter_mut().find(|(known, ..)| known == flag) {
                    Some((_, object, _)) => object.extend([entry]),
                    None => objects.push((flag.clone(), Map::from_iter([entry]), option.why.clone())),
                }
                continue;
            }
        };
        command.options.push(WrittenOption { words, why: option.why.clone() });
    }
    for (flag, object, why) in objects {
        let words = vec![Word::Text(flag), Word::Text(Value::Object(object).to_string())];
        command.options.push(WrittenOption { words, why });
    }
    command.missing.dedup();
    command
}
