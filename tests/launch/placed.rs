//! Placements as launch files: each command is known to its runtime and gives its layers back.

use std::collections::BTreeMap;

use std::fs;
use std::process::Command;

use mantile::launch::back::KnownLaunch;
use mantile::launch::command::Word;
use mantile::launch::deployment::{Deployed, LaunchedRuntime, Surroundings, WorkerProgram};
use mantile::launch::layer_split::shares_of_layers;
use mantile::launch::placed::{Placed, PlacedStage};
use mantile::launch::read::{ReadCommand, read};
use mantile::launch::settings::{LaunchModel, SettingValue};
use mantile::launch::settings_file::NamedFiles;
use mantile::launch::shell::commands;
use mantile::report::launch::LaunchReport;
use mantile::report::place::PlacementResult;
use mantile::request::UNCONTROLLED;
use mantile::request::command::{GivenCommand, of_command};
use mantile::request::place::{PlaceRequest, place};
use mantile::serving::terms::Lengths;
use mantile::spec::placing::{PlacementObjective, PlacementScenario};
use mantile::spec::scenario::Scenario;
use mantile::spec::setting::Setting;
use proptest::prelude::*;

use super::{CATALOG, decides, launches};

fn placed(model: &str, hardware: &str, runtime: &str, format: Option<&str>) -> PlacementResult {
    let scenario = PlacementScenario {
        model: Some(model.into()),
        hardware: Some(hardware.into()),
        runtime: Some(runtime.into()),
        weight_format: format.map(str::to_owned),
        ..PlacementScenario::default()
    };
    place(&CATALOG, &PlaceRequest { scenario }, &UNCONTROLLED).unwrap()
}

fn known(runtime: &str) -> KnownLaunch {
    launches().into_iter().find(|(launch, _)| launch.id == runtime).unwrap()
}

/// The last command of a script, as its runtime reads it.
fn read_script(launch: &LaunchReport, worker: &str, runtime: &str) -> ReadCommand {
    let text = &launch.file(&format!("{worker}.sh")).unwrap().text;
    let found = commands(text, &NamedFiles::new(), &BTreeMap::new()).0;
    let last = found.last().unwrap();
    let (launch, table) = known(runtime);
    assert_eq!(last.words[..table.program.len()], table.program, "{text}");
    read((&launch, &table), &last.environment, &last.words[table.program.len()..], &NamedFiles::new())
}

/// A shell reads every script, and every name of the plan is in them.
fn scripts_are_whole(answer: &PlacementResult) {
    let launch = answer.launch.as_ref().unwrap();
    assert!(launch.runs(), "{:?}", launch.unsupported);
    assert!(
        launch.file("README.md").is_some() && launch.files.iter().any(|file| file.path.starts_with("bench"))
    );
    let folder = tempfile::tempdir().unwrap();
    for file in launch.files.iter().filter(|file| file.path.ends_with(".sh")) {
        assert!(file.text.contains(&launch.runtime_version), "{}", file.text);
        if cfg!(unix) {
            let path = folder.path().join("script.sh");
            fs::write(&path, &file.text).unwrap();
            let checked = Command::new("bash").arg("-n").arg(&path).output().unwrap();
            let words = String::from_utf8_lossy(&checked.stderr).into_owned();
            assert!(checked.status.success(), "{}: {words}\n{}", file.path, file.text);
        }
    }
}

fn layers(answer: &PlacementResult) -> Vec<u64> {
    answer.placement.as_ref().unwrap().stages.iter().map(|stage| stage.layers as u64).collect()
}

#[test]
fn a_placement_on_one_host_is_one_command() {
    let answer = placed("Llama-3.3-70B", "rtx-4090-3090", "llama.cpp", Some("q4_k_m"));
    scripts_are_whole(&answer);
    let launch = answer.launch.as_ref().unwrap();
    assert_eq!(launch.workers.len(), 1);
    let found = read_script(launch, "server", "llama.cpp");
    assert!(found.leftovers.is_empty(), "{:?}", found.leftovers);
    assert_eq!(
        found.settings.get(Setting::TensorSplit),
        Some(&SettingValue::Shares(shares_of_layers(&layers(&answer))))
    );
    assert!(launch.file("start.sh").is_some());
    // Read back on like devices, it is the same split.
    let given = Scenario {
        model: Some("Llama-3.3-70B".into()),
        weight_format: Some("q4_k_m".into()),
        hardware: Some("2xrtx-3090".into()),
        ..Scenario::default()
    };
    for text in [&launch.workers[0].command, &launch.file("server.sh").unwrap().text] {
        let result = of_command(&CATALOG, &GivenCommand::of(text, &NamedFiles::new()), &given).unwrap();
        let unread = &result.command.as_ref().unwrap().unread;
        assert!(unread.iter().all(|word| !decides(word)), "{unread:?}");
        let counts = layers(&answer).iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        assert!(result.candidate.notation.contains(&format!("[{counts}]")), "{}", result.candidate.notation);
    }
    assert_eq!(placed("Llama-3.3-70B", "rtx-4090-3090", "llama.cpp", Some("q4_k_m")).launch, answer.launch);
}

#[test]
fn devices_of_further_hosts_are_lent_by_a_process_there() {
    let answer = placed("Llama-3.3-70B", "rtx-5090-m4-max", "llama.cpp", Some("q4_k_m"));
    scripts_are_whole(&answer);
    let launch = answer.launch.as_ref().unwrap();
    assert_eq!(answer.placement.as_ref().unwrap().stages.len(), 2);
    let names: Vec<&str> = launch.workers.iter().map(|worker| worker.name.as_str()).collect();
    assert_eq!(names, ["server", "rpc"]);
    assert!(launch.workers[0].command.contains("--rpc \"${RPC_SERVERS}\""), "{}", launch.workers[0].command);
    for (worker, runtime) in [("server", "llama.cpp"), ("rpc", "llama.cpp-rpc")] {
        let found = read_script(launch, worker, runtime);
        assert!(found.leftovers.is_empty(), "{:?}", found.leftovers);
    }
    assert!(launch.file("start.sh").is_none(), "one script cannot start both hosts");
    // Both scripts as one text are still one server.
    let both: String = launch
        .files
        .iter()
        .filter(|file| file.path.ends_with("r.sh") || file.path == "rpc.sh")
        .map(|file| file.text.clone())
        .collect();
    let given = Scenario {
        model: Some("Llama-3.3-70B".into()),
        weight_format: Some("q4_k_m".into()),
        hardware: Some("2xrtx-5090".into()),
        ..Scenario::default()
    };
    let result = of_command(&CATALOG, &GivenCommand::of(&both, &NamedFiles::new()), &given).unwrap();
    assert!(result.command.unwrap().unread.iter().all(|word| !decides(word)));
}

#[test]
fn experts_in_host_memory_stay_there_by_layer() {
    let answer = placed("DeepSeek-V3", "rtx-4090-workstation", "llama.cpp", Some("q4_k_m"));
    scripts_are_whole(&answer);
    let found = read_script(answer.launch.as_ref().unwrap(), "server", "llama.cpp");
    let stages = &answer.placement.as_ref().unwrap().stages;
    let out: Vec<String> = stages
        .iter()
        .filter_map(|stage| stage.experts_out)
        .flat_map(|(first, last)| (first..=last).map(|layer| layer.to_string()))
        .collect();
    assert_eq!(found.settings.word(Setting::HostExpertLayers), Some(out.join("|").as_str()));
}

#[test]
fn vllm_takes_the_layers_of_each_stage() {
    let answer = placed("gpt-oss-120b", "pcie-four-cards", "vllm", None);
    scripts_are_whole(&answer);
    let found = read_script(answer.launch.as_ref().unwrap(), "server", "vllm");
    assert!(found.leftovers.is_empty(), "{:?}", found.leftovers);
    assert_eq!(found.settings.get(Setting::StageLayers), Some(&SettingValue::Counts(layers(&answer))));
    assert_eq!(found.settings.count(Setting::Pp), Some(layers(&answer).len() as u64));
}

#[test]
fn exo_gets_the_layers_by_a_request() {
    let scenario = PlacementScenario {
        model: Some("gpt-oss-120b".into()),
        hardware: Some("mac-five".into()),
        runtime: Some("exo".into()),
        objective: PlacementObjective::Throughput,
        concurrency: Some(8),
        ..PlacementScenario::default()
    };
    let answer = place(&CATALOG, &PlaceRequest { scenario }, &UNCONTROLLED).unwrap();
    scripts_are_whole(&answer);
    let launch = answer.launch.as_ref().unwrap();
    let stages = layers(&answer);
    assert_eq!(launch.workers[0].replicas, stages.len() as u64, "a process on each host");
    assert!(read_script(launch, "node", "exo").leftovers.is_empty());
    let script = &launch.file("place.sh").unwrap().text;
    assert!(stages.len() > 1, "{stages:?}");
    let counts = stages.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    assert!(script.contains(&format!("[{counts}]")), "{script}");
}

/// MLX divides layers evenly over the hosts of a group, or shares them: nothing else.
#[test]
fn mlx_runs_even_stages_and_says_so() {
    let shared = placed("DeepSeek-V3", "mac-studio-m3-ultra-x4-rdma", "mlx", Some("mlx-4bit"));
    assert_eq!(shared.placement.as_ref().unwrap().stages[0].devices, 4);
    scripts_are_whole(&shared);
    let command = &shared.launch.as_ref().unwrap().workers[0].command;
    assert!(command.starts_with("mlx.launch --hostfile \"${HOSTFILE}\" -- mlx_lm.server "), "{command}");
    let uneven = placed("DeepSeek-V3", "mac-five", "mlx", Some("mlx-4bit"));
    let stages = layers(&uneven);
    assert!(stages.iter().all(|count| *count == stages[0]), "{stages:?}");
    assert!(uneven.launch.unwrap().runs());
    let better = uneven.theoretical.expect("uneven stages are faster");
    let first = better.placement.stages[0].layers;
    assert!(better.placement.stages.iter().any(|stage| stage.layers != first), "{better:?}");
    assert!(better.why.iter().any(|why| why.contains("even stages")), "{better:?}");
}

fn written(deployed: &Deployed, worker: usize) -> (Vec<String>, Vec<(String, String)>) {
    let command = deployed.leader(&deployed.workers[worker], Surroundings::Script);
    let text = |word: &Word| match word {
        Word::Text(text) => text.clone(),
        Word::Variable(variable, _) => format!("${{{}}}", variable.name()),
    };
    let words = command.options.iter().flat_map(|option| option.words.iter().map(text)).collect();
    (words, command.environment.iter().map(|one| (one.name.clone(), text(&one.word))).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any layers on any hosts: the command has them, every host has a process, or the launch says what is missing.
    #[test]
    fn stages_are_read_back(stages in prop::collection::vec((1u64..40, 0usize..3, 1usize..3), 1..6), concurrency in 1u64..32) {
        let stage = |(at, (layers, host, devices)): (usize, &(u64, usize, usize))| PlacedStage {
            name: format!("device {at}"),
            layers: *layers,
            hosts: vec![*host; *devices],
        };
        let placed = Placed {
            stages: stages.iter().enumerate().map(stage).collect(),
            host_experts: vec![],
            lengths: Lengths { isl: 100, osl: 10, prefix: 0 },
            max_context: None,
            concurrency,
            token_budget: 512,
            memory_share: 0.9,
            has_idle: false,
            weights: "q4_k_m".into(),
            kv: "bf16".into(),
        };
        let counts: Vec<u64> = stages.iter().map(|(layers, ..)| *layers).collect();
        let mut hosts: Vec<usize> = stages.iter().map(|(_, host, _)| *host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let model =
            LaunchModel { id: None, served_name: None, made_at_start: false, refused: None, overrides: None, has_code: false, states_kv: false };
        let (own, remote) = (known("llama.cpp"), known("llama.cpp-rpc"));
        let runtime = LaunchedRuntime { own: (&own.0, &own.1), remote: Some((&remote.0, &remote.1)) };
        let deployed = Deployed::placed(runtime, &placed, &model);
        let shared = stages.iter().any(|(.., devices)| *devices > 1);
        let expressible = !shared || stages.len() == 1;
        prop_assert_eq!(deployed.missing().is_empty(), expressible, "{:?}", deployed.missing());
        prop_assert_eq!(deployed.workers.len(), hosts.len(), "a process on every host");
        for (at, worker) in deployed.workers.iter().enumerate() {
            let (launch, table) = if worker.program == WorkerProgram::Server { &own } else { &remote };
            let (words, environment) = written(&deployed, at);
            let found = read((launch, table), &environment, &words, &NamedFiles::new());
            prop_assert!(found.leftovers.is_empty(), "{:?} of {words:?}", found.leftovers);
            if at == 0 && expressible && counts.len() > 1 {
                prop_assert_eq!(found.settings.get(Setting::TensorSplit), Some(&SettingValue::Shares(shares_of_layers(&counts))));
            }
        }
    }
}

/// Like hosts lend their devices as unlike ones do: a process on each further host, and one server that names them.
#[test]
fn like_hosts_lend_their_devices() {
    let of = |hardware: &str, plan: &str| super::golden::launch("Llama-3.3-70B", hardware, "llama.cpp", plan);
    for (hardware, plan, devices) in [
        ("2x1xrtx-3090", "1 x pp2 @1, weights gguf-q4_k_m", vec![1, 1]),
        ("3x2xrtx-3090", "1 x pp6 @1, weights gguf-q4_k_m", vec![2, 2, 2]),
    ] {
        let launch = of(hardware, plan);
        assert!(launch.runs(), "{hardware}: {:?}", launch.unsupported);
        let found: Vec<u64> = launch.workers.iter().map(|worker| worker.devices).collect();
        assert_eq!(found, devices, "{hardware}");
        let names: Vec<&str> = launch.workers.iter().map(|worker| worker.name.as_str()).collect();
        assert_eq!(names, ["server", "rpc", "rpc-2"][..devices.len()], "{hardware}");
        assert!(launch.workers.iter().skip(1).all(|one| one.command.starts_with("rpc-server")), "{hardware}");
        let server = &launch.workers[0].command;
        assert!(server.contains("--rpc") && server.contains("-sm layer"), "{server}");
        let stages = server.split(" -ts ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        let layers: Vec<u64> = stages.split(',').map(|share| share.parse().unwrap()).collect();
        assert_eq!(layers.len(), devices.iter().sum::<u64>() as usize, "{server}");
        assert!(
            launch.file("kubernetes.yaml").is_none() && launch.file("compose.yaml").is_none(),
            "{hardware}"
        );
        let script = &launch.file("server.sh").unwrap().text;
        assert!(script.contains("RPC_SERVERS:?") && script.contains("of rpc"), "{script}");
    }
    let two = of("4x1xrtx-3090", "2 x pp2 @1, weights gguf-q4_k_m");
    assert!(two.unsupported.iter().any(|one| one.starts_with("replicas over several hosts")), "{two:?}");
}
