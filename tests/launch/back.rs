//! Commands read back to plans.

use std::collections::BTreeMap;

use mantile::launch::back::read_launch;
use mantile::launch::manifest::{is_manifest, processes};
use mantile::launch::settings_file::NamedFiles;
use mantile::launch::shell::commands;
use mantile::report::launch::{LaunchFile, LaunchReport};
use mantile::report::result::{EstimateResult, ReportedDeployment};
use mantile::request::UNCONTROLLED;
use mantile::request::command::{GivenCommand, of_command};
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::spec::notation::PlanText;
use mantile::spec::objective::Metric;
use mantile::spec::scenario::Scenario;

use super::{CATALOG, WINNERS, Winner, decides, launches};

/// What is given beside a command: hardware and traffic.
fn given(winner: &Winner) -> Scenario {
    let own_file = ["llama.cpp", "mlx"].contains(&winner.launch().runtime.as_str());
    let best = winner.result.best.as_ref().unwrap();
    Scenario {
        hardware: winner.scenario.hardware.clone(),
        host_memory: winner.scenario.host_memory.clone(),
        model: own_file.then(|| winner.scenario.model.clone()).flatten(),
        weight_format: own_file.then(|| best.weight_format.clone()),
        ..Scenario::default()
    }
}

/// A plan without the loads of its pools.
fn plan(notation: &str) -> PlanText {
    notation.parse::<PlanText>().unwrap().without_loads()
}

fn read(text: &str, files: &NamedFiles, given: &Scenario) -> EstimateResult {
    of_command(&CATALOG, &GivenCommand::of(text, files), given)
        .unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

/// A command is one process, and does not say how many of its kind there are.
fn without_replicas(mut plan: PlanText) -> PlanText {
    plan.pools.iter_mut().for_each(|pool| pool.degrees.replicas = None);
    plan
}

fn named_files(launch: &LaunchReport) -> NamedFiles {
    launch.files.iter().map(|file| (file.path.clone(), file.text.clone())).collect()
}

fn same_plan(winner: &Winner, text: &str, how: &str) {
    let best = winner.result.best.as_ref().unwrap();
    let result = read(text, &named_files(winner.launch()), &given(winner));
    let unread = &result.command.as_ref().unwrap().unread;
    assert!(unread.iter().all(|word| !decides(word)), "{}, {how}: {unread:?}\n{text}", winner.name());
    let [found, launched] =
        [&result.candidate.notation, &best.notation].map(|text| without_replicas(plan(text)));
    assert_eq!(found, launched, "{}, {how}\n{text}", winner.name());
}

/// What a file of a launch starts, under the traffic of `given`, without a search for a better plan.
pub fn started(launch: &LaunchReport, text: &str, given: Scenario) -> EstimateResult {
    let (mut files, known) = (named_files(launch), launches());
    let found = match is_manifest(text) {
        true => {
            let (found, own) = processes(text, &files, &BTreeMap::new()).unwrap();
            files.extend(own);
            found
        }
        false => commands(text, &files, &BTreeMap::new()).0,
    };
    let back = read_launch(&known, &found, &files).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    let layers = CATALOG.built(given.model.as_deref().unwrap()).unwrap().1.layer_block.len() as u64;
    let devices = CATALOG.hardware(given.hardware.as_deref().unwrap()).unwrap().devices();
    let scenario = back.scenario(given, Some(layers), Some(devices)).unwrap();
    let answer = estimate(&CATALOG, &EstimateRequest::of(scenario), &UNCONTROLLED);
    answer.unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

/// Checks every file that starts a whole deployment: degrees, formats, host memory and replicas are those of `best`, and
/// under its load so are memory and speed.
/// The number of files.
pub fn starts_what_it_launches(
    launch: &LaunchReport,
    scenario: &Scenario,
    best: &ReportedDeployment,
) -> usize {
    // The format of a quantized checkpoint is in its name; an option only repeats its method.
    let given = Scenario {
        hardware: scenario.hardware.clone(),
        host_memory: scenario.host_memory.clone(),
        model: scenario.model.clone(),
        weight_format: Some(best.weight_format.clone()),
        kv_format: Some(best.kv_format.clone()),
        isl: scenario.isl,
        osl: scenario.osl,
        concurrency: (plan(&best.notation).pools.len() == 1).then_some(best.concurrency as u64),
        ..Scenario::default()
    };
    let files = WHOLE.iter().filter_map(|name| launch.file(name));
    let check = |file: &LaunchFile| {
        let found = started(launch, &file.text, given.clone());
        let whole = format!("{} {}\n{}", scenario.flags(), file.path, file.text);
        assert_eq!(plan(&found.candidate.notation), plan(&best.notation), "{whole}");
        // Those that are prefilled are beyond the sequences of the workers that decode; bytes in host memory are rounded up.
        let exact = plan(&best.notation).pools.len() == 1 && !best.notation.contains("offload");
        if exact {
            same_server(&found, best, &whole);
        }
    };
    files.map(check).count()
}

/// The server that was read back admits the priced load, and has the memory and the speed of the priced one.
fn same_server(found: &EstimateResult, best: &ReportedDeployment, whole: &str) {
    assert_eq!(found.candidate.violations, best.violations, "{whole}");
    // A server also holds one request of the longest context, which is not part of a load.
    let held = |one: &ReportedDeployment| {
        one.memory
            .as_ref()
            .map(|memory| [memory.weights_bytes, memory.activations_bytes, memory.buffers_bytes])
    };
    assert_eq!(held(&found.candidate), held(best), "{whole}");
    for metric in [Metric::Tpot, Metric::Ttft, Metric::OutputTokS] {
        let [now, priced] = [&found.candidate, best].map(|one| one.figure(metric));
        assert_eq!(now, priced, "{metric:?} {whole}");
    }
}

/// Files that start every process of a deployment.
const WHOLE: [&str; 6] =
    ["start.sh", "slurm.sh", "compose.yaml", "kubernetes.yaml", "dynamo.yaml", "llm-d-values.yaml"];

#[test]
fn commands_give_their_plan_back() {
    let winners: Vec<&Winner> = WINNERS.iter().filter(|winner| winner.launch().runs()).collect();
    assert!(winners.len() > 90, "{}", winners.len());
    let refused = WINNERS.iter().filter(|winner| !winner.launch().runs());
    for winner in refused {
        assert!(!winner.launch().unsupported.is_empty(), "{}", winner.name());
    }
    for winner in winners {
        let lines: Vec<&str> = winner.launch().workers.iter().map(|worker| worker.command.as_str()).collect();
        same_plan(winner, &lines.join("\n"), "command lines");
        let scripts = winner
            .launch()
            .workers
            .iter()
            .map(|worker| winner.launch().file(&format!("{}.sh", worker.name)).unwrap().text.clone());
        same_plan(winner, &scripts.collect::<Vec<_>>().join("\n"), "scripts");
        starts_what_it_launches(winner.launch(), &winner.scenario, winner.result.best.as_ref().unwrap());
    }
}

#[test]
fn a_command_of_a_user_is_priced_and_its_faults_are_named() {
    let given = Scenario { hardware: Some("4xh100".into()), concurrency: Some(32), ..Scenario::default() };
    let text = "vllm serve Qwen/Qwen3-32B -tp 2 --max-num-seqs=64 --kv_cache_dtype fp8 --max-model-len 2048 \
                --gpu-memory-utilisation 0.95 --seed 7 --dtype float17";
    let result = read(text, &NamedFiles::new(), &given);
    assert_eq!(result.candidate.plan.decode.plan.tp, 2);
    assert_eq!(result.candidate.kv_format, "fp8");
    let command = result.command.as_ref().unwrap();
    let refused: Vec<(&str, usize)> = command
        .unread
        .iter()
        .filter(|word| decides(word))
        .map(|word| (word.word.as_str(), word.position))
        .collect();
    assert_eq!(refused[0], ("--gpu-memory-utilisation", 9), "{:?}", command.unread);
    assert!(command.unread[0].reason.contains("--gpu-memory-utilization"), "{:?}", command.unread);
    assert_eq!(refused.len(), 2, "{:?}", command.unread);
    let why = &result.candidate.violations;
    assert!(why.iter().any(|why| why.contains("at most 2048")), "{why:?}");
    assert!(command.best.is_some());
    let docker = "docker run --gpus all -p 8000:8000 vllm/vllm-openai:latest --model Qwen/Qwen3-32B --tensor-parallel-size 4";
    assert_eq!(read(docker, &NamedFiles::new(), &given).candidate.plan.decode.plan.tp, 4);
    for (text, key) in [("echo hello", "command"), ("", "command"), ("vllm serve", "command")] {
        assert_eq!(
            of_command(&CATALOG, &GivenCommand::of(text, &NamedFiles::new()), &given).unwrap_err().key,
            key,
            "{text}"
        );
    }
    let nowhere = Scenario::default();
    assert_eq!(
        of_command(&CATALOG, &GivenCommand::of("vllm serve Qwen/Qwen3-32B", &NamedFiles::new()), &nowhere)
            .unwrap_err()
            .key,
        "hardware"
    );
}

/// The plan of a command with a settings file of that text.
fn with_file(command: &str, text: &str) -> EstimateResult {
    let given = Scenario { hardware: Some("8xh100".into()), concurrency: Some(32), ..Scenario::default() };
    read(command, &NamedFiles::from([("server.yaml".to_owned(), text.to_owned())]), &given)
}

#[test]
fn a_settings_file_is_read_with_its_command() {
    let plain = with_file(
        "vllm serve Qwen/Qwen3-32B --config /etc/server.yaml",
        "tensor-parallel-size: 4\nmax_num_seqs: 48\n",
    );
    assert_eq!(plain.candidate.plan.decode.plan.tp, 4);
    assert_eq!(plain.command.unwrap().scenario.max_num_seqs, Some(48));
    // The command line takes precedence over its file.
    let line = with_file("vllm serve Qwen/Qwen3-32B -tp 2 --config server.yaml", "tensor-parallel-size: 4\n");
    assert_eq!(line.candidate.plan.decode.plan.tp, 2);
    let file = with_file(
        "trtllm-serve Qwen/Qwen3-32B --tp_size 2 --config server.yaml",
        "tensor_parallel_size: 4\nmax_batch_size: 48\n",
    );
    assert_eq!(file.candidate.plan.decode.plan.tp, 2);
    assert_eq!(file.command.unwrap().scenario.max_num_seqs, Some(48));
    let faults = |result: EstimateResult| -> Vec<String> {
        let unread = result.command.unwrap().unread;
        unread.into_iter().filter(decides).map(|word| format!("{}: {}", word.word, word.reason)).collect()
    };
    let wrong = faults(with_file("trtllm-serve Qwen/Qwen3-32B --config server.yaml", "max_batch_sise: 4\n"));
    assert!(wrong.len() == 1 && wrong[0].contains("max_batch_size"), "{wrong:?}");
    let given = Scenario { hardware: Some("8xh100".into()), ..Scenario::default() };
    let text = "trtllm-serve Qwen/Qwen3-32B --config other.yaml";
    let absent = of_command(&CATALOG, &GivenCommand::of(text, &NamedFiles::new()), &given).unwrap_err();
    assert!(absent.found.contains("other.yaml"), "{absent}");
}

#[test]
fn environment_variables_of_options_are_read() {
    let given = Scenario {
        model: Some("Qwen3-30B-A3B".into()),
        hardware: Some("rtx-4090".into()),
        weight_format: Some("q4_k_m".into()),
        ..Scenario::default()
    };
    let text = "LLAMA_ARG_N_PARALLEL=3 LLAMA_ARG_N_CPU_MOE=20 llama-server -m model.gguf";
    let result = read(text, &NamedFiles::new(), &given);
    assert_eq!(result.command.as_ref().unwrap().scenario.max_num_seqs, Some(3));
    assert!(result.candidate.notation.contains("host experts 20"), "{}", result.candidate.notation);
}

/// The published way to 131,072 tokens of Qwen3: YaRN by an override of the configuration.
#[test]
fn overrides_of_the_configuration_change_the_model_that_is_priced() {
    let given = Scenario {
        hardware: Some("2xh100".into()),
        isl: Some(60_000),
        osl: Some(500),
        concurrency: Some(1),
        ..Scenario::default()
    };
    let yarn =
        r#"{"rope_parameters":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}}"#;
    let plain = "vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2 --max-model-len 131072";
    let refused = read(plain, &NamedFiles::new(), &given).command.unwrap();
    assert!(refused.will_not_start[0].contains("the model has 40960 positions"), "{refused:?}");
    assert!(refused.corrected.unwrap().ends_with("--max-model-len 40960"));
    let longer = read(&format!("{plain} --hf-overrides '{yarn}'"), &NamedFiles::new(), &given);
    assert!(longer.candidate.metrics.is_some(), "{:?}", longer.candidate.violations);
    let unread = longer.command.unwrap().unread;
    assert!(unread.is_empty(), "{unread:?}");
}

/// vLLM moves the stated bytes of each device's weights, whatever is free, and reads them at every step: twice as many take
/// twice the time, and all of the weights are the most.
#[test]
fn stated_weights_in_host_memory_are_read_at_every_step() {
    let given = Scenario {
        hardware: Some("2xh100".into()),
        isl: Some(500),
        osl: Some(100),
        concurrency: Some(4),
        ..Scenario::default()
    };
    let tpot = |gib: f64| {
        let text = format!("vllm serve Qwen/Qwen3-32B -tp 2 --max-model-len 4096 --cpu-offload-gb {gib}");
        let found = read(&text, &NamedFiles::new(), &given).candidate;
        (found.figure(Metric::Tpot).unwrap(), found.memory.unwrap())
    };
    let (none, _) = tpot(0.0);
    let [(four, held), (eight, _), (forty, most), (fifty, _)] = [4.0, 8.0, 40.0, 50.0].map(tpot);
    assert!((held.offloaded_bytes / f64::from(1 << 30) - 4.0).abs() < 1e-9, "{held:?}");
    assert!(((eight - four) / (four - none) - 1.0).abs() < 0.01, "{none} {four} {eight}");
    assert_eq!(forty, fifty);
    assert!(most.offloaded_bytes <= most.weights_bytes, "{most:?}");
}
