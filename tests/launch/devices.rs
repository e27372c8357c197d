//! The GPUs of pods, containers and tasks are the ranks that their commands start, in every file of random plans.

use std::collections::BTreeMap;

use mantile::launch::settings_file::NamedFiles;
use mantile::launch::shell::commands;
use mantile::report::launch::LaunchReport;
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::spec::deployment::Deployment;
use mantile::spec::scenario::Scenario;
use serde_json::Value;

use super::CATALOG;
use crate::draw::{cases, name};

/// Options of the runtimes whose product is the number of ranks of a process group. Ranks of decode context parallelism
/// and of experts are among them; those of SGLang's attention data parallelism too.
const DEGREES: [&[&str]; 4] = [
    &["--tensor-parallel-size", "--tp-size", "--tp", "-tp"],
    &["--pipeline-parallel-size", "--pp-size", "--pp", "-pp"],
    &["--data-parallel-size", "--dp-size", "--dp", "-dp"],
    &["--prefill-context-parallel-size"],
];

/// Ranks that a command starts.
fn ranks(words: &[String]) -> u64 {
    let inside = words.iter().any(|word| word == "--enable-dp-attention");
    let degree = |names: &&[&str]| {
        let stated = words.iter().enumerate().find_map(|(at, word)| {
            let (flag, value) =
                word.split_once('=').unwrap_or((word, words.get(at + 1).map_or("", |next| next)));
            // TensorRT-LLM writes underscores.
            names
                .contains(&flag.replace('_', "-").as_str())
                .then(|| value.parse::<u64>().unwrap_or_else(|_| panic!("{word} {value}")))
        });
        let is_dp = names.contains(&"--dp-size");
        if is_dp && inside { 1 } else { stated.unwrap_or(1) }
    };
    DEGREES.iter().map(degree).product()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|word| word.as_str().unwrap_or_default().to_owned()).collect()
}

/// GPUs of a container, of any vendor.
fn limit(container: &Value) -> u64 {
    let limits = container["resources"]["limits"].as_object();
    let gpus = limits.into_iter().flatten().filter(|(key, _)| key.contains('/') && !key.starts_with("rdma/"));
    gpus.map(|(_, count)| count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap()).sum()
}

/// The words of a container: its command, its arguments, and those of a script in them.
fn words(container: &Value) -> Vec<String> {
    let all = [texts(&container["command"]), texts(&container["args"])].concat();
    all.iter()
        .flat_map(|word| if word.contains('\n') { script_words(word) } else { vec![word.clone()] })
        .collect()
}

fn script_words(script: &str) -> Vec<String> {
    script.lines().flat_map(|line| shlex::split(line.trim()).unwrap_or_default()).collect()
}

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

/// GPUs and ranks of one kind of pod.
type Counted = (u64, u64);

fn of_kubernetes(text: &str) -> Vec<Counted> {
    let mut all = Vec::new();
    for document in documents(text) {
        let spec = &document["spec"];
        let replicas = spec["replicas"].as_u64().unwrap_or(1);
        let container = |template: &Value| template["spec"]["containers"][0].clone();
        match document["kind"].as_str() {
            Some("Deployment") => {
                let one = container(&spec["template"]);
                if limit(&one) > 0 {
                    all.push((replicas * limit(&one), replicas * ranks(&words(&one))));
                }
            }
            Some("LeaderWorkerSet") => {
                let group = &spec["leaderWorkerTemplate"];
                let size = group["size"].as_u64().unwrap();
                let (leader, worker) =
                    (container(&group["leaderTemplate"]), container(&group["workerTemplate"]));
                let gpus = limit(&leader) + (size - 1) * limit(&worker);
                all.push((replicas * gpus, replicas * ranks(&words(&leader))));
            }
            Some("DynamoGraphDeployment") => {
                for part in spec["components"].as_array().unwrap() {
                    let one = container(&part["podTemplate"]);
                    let (count, nodes) = (&part["replicas"], &part["multinode"]["nodeCount"]);
                    let (count, nodes) = (count.as_u64().unwrap_or(1), nodes.as_u64().unwrap_or(1));
                    if part["type"] != "frontend" {
                        all.push((count * nodes * limit(&one), count * ranks(&words(&one))));
                    }
                }
            }
            _ => {}
        }
    }
    all
}

fn of_llm_d(text: &str) -> Vec<Counted> {
    let values = documents(text).remove(0);
    let roles = ["prefill", "decode"].map(|role| values[role].clone());
    let created = roles.into_iter().filter(|role| role["create"] == true);
    let one = |role: Value| {
        let count = role["replicas"].as_u64().unwrap();
        let devices = role["parallelism"]["tensor"].as_u64().unwrap();
        (count * devices, count * ranks(&words(&role["containers"][0])))
    };
    created.map(one).collect()
}

/// Devices of the services by their ids, and ranks. None where the file names no devices.
fn of_compose(text: &str) -> Option<Vec<Counted>> {
    let file = documents(text).remove(0);
    let services = file["services"].as_object().unwrap().iter().filter(|(name, _)| *name != "router");
    let mut taken: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for (_, service) in services {
        let reserved = texts(&service["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"]);
        let visible = ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"];
        let visible = visible.iter().find_map(|name| service["environment"][*name].as_str());
        let ids = match visible {
            Some(ids) if reserved.is_empty() => ids.split(',').map(str::to_owned).collect(),
            _ => reserved,
        };
        if ids.is_empty() {
            return None;
        }
        assert!(ids.iter().all(|id| !taken.contains(id)), "a device twice: {text}");
        taken.extend(ids.clone());
        all.push((ids.len() as u64, ranks(&words(service))));
    }
    Some(all)
}

/// Devices that the tasks of each script see, and the ranks of its command once for each replica.
fn of_slurm(launch: &LaunchReport, text: &str) -> Vec<Counted> {
    let mut tasks: BTreeMap<String, (u64, Vec<String>)> = BTreeMap::new();
    let mut seen: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("on \"$HOST_") && line.contains("REPLICA=")) {
        let all = shlex::split(line).unwrap();
        let value =
            |name: &str| all.iter().find_map(|word| word.strip_prefix(name)).unwrap_or_default().to_owned();
        let ids =
            all.iter().find(|word| word.contains("VISIBLE_DEVICES=")).unwrap_or_else(|| panic!("{line}"));
        let ids: Vec<&str> = ids.split_once('=').unwrap().1.split(',').collect();
        for id in &ids {
            let place = format!("{} {id}", all[1]);
            assert!(!seen.contains(&place), "device {place} twice: {text}");
            seen.push(place);
        }
        let script = all.last().unwrap().trim_start_matches("./").to_owned();
        let entry = tasks.entry(script).or_default();
        entry.0 += ids.len() as u64;
        let replica = value("REPLICA=");
        if !entry.1.contains(&replica) {
            entry.1.push(replica);
        }
    }
    let one = |(script, (gpus, replicas)): (String, (u64, Vec<String>))| {
        let text = &launch.file(&script).unwrap().text;
        let command = commands(text, &NamedFiles::new(), &BTreeMap::new()).0.last().unwrap().words.clone();
        (gpus, replicas.len() as u64 * ranks(&command))
    };
    tasks.into_iter().map(one).collect()
}

/// A plan in the notation of `--plan`, for `hardware` of so many devices.
fn plan(random: &mut fastrand::Rng, devices: u64) -> String {
    let worker = |random: &mut fastrand::Rng, most: u64| {
        let pick = |random: &mut fastrand::Rng, most: u64| {
            let fitting: Vec<u64> = [1, 2, 4, 8, 16].into_iter().filter(|one| *one <= most).collect();
            random.choice(fitting).unwrap()
        };
        let tp = pick(random, most.min(8));
        let pp = pick(random, (most / tp).min(4));
        let dp = pick(random, most / tp / pp);
        let each = tp * pp * dp;
        let degrees = [("tp", tp), ("pp", pp), ("dp", dp)];
        let text: Vec<String> = degrees
            .iter()
            .filter(|(_, count)| *count > 1)
            .map(|(name, count)| format!("{name}{count}"))
            .collect();
        let text = if text.is_empty() { "tp1".to_owned() } else { text.join(" ") };
        let count = random.u64(1..=(most / each).clamp(1, 4));
        (format!("{count} x {text}"), each)
    };
    if devices > 1 && random.u8(0..3) == 0 {
        let (prefill, _) = worker(random, devices / 2);
        let (decode, _) = worker(random, devices / 2);
        return format!("prefill {prefill} @1, decode {decode} @16");
    }
    let (text, each) = worker(random, devices);
    format!("{text} @{}", 16 * each)
}

#[test]
fn the_gpus_of_every_file_are_the_ranks_of_its_commands() {
    const HARDWARE: [(&str, u64); 6] =
        [("8xh100", 8), ("2x8xh200", 16), ("4xl40s", 4), ("8xmi300x", 8), ("2x4xh100", 8), ("2x2xl40s", 4)];
    let mut random = fastrand::Rng::with_seed(34);
    let mut files: BTreeMap<&str, u64> = BTreeMap::new();
    for _ in 0..cases(60) {
        let (hardware, devices) = random.choice(HARDWARE).unwrap();
        let plan = plan(&mut random, devices);
        let scenario = Scenario {
            runtime: name(&mut random, &["vllm", "sglang", "trtllm"]),
            deployment: Some(Deployment { plan: Some(plan.clone()), ..Deployment::default() }),
            ..Scenario::of(
                &name(&mut random, &["Qwen3-8B", "Qwen3-30B-A3B", "Llama-3.1-8B"]).unwrap(),
                hardware,
            )
        };
        let Ok(answer) = estimate(&CATALOG, &EstimateRequest::of(scenario.clone()), &UNCONTROLLED) else {
            continue;
        };
        let Some(launch) = answer.launch.filter(LaunchReport::runs) else { continue };
        for file in &launch.files {
            let (kind, found) = match file.path.as_str() {
                "kubernetes.yaml" => ("kubernetes", of_kubernetes(&file.text)),
                "dynamo.yaml" => ("dynamo", of_kubernetes(&file.text)),
                "llm-d-values.yaml" => ("llm-d", of_llm_d(&file.text)),
                "slurm.sh" => ("slurm", of_slurm(&launch, &file.text)),
                "compose.yaml" => match of_compose(&file.text) {
                    Some(found) => ("compose", found),
                    None => panic!("{plan}: containers without devices of their own\n{}", file.text),
                },
                _ => continue,
            };
            let about = format!("{} {plan}: {}", scenario.flags(), file.path);
            // One `srun` starts all ranks of a replica, which it counts itself.
            if found.is_empty() && file.text.contains("--mpi=pmix") {
                continue;
            }
            assert!(!found.is_empty(), "{about}: no pod\n{}", file.text);
            for (gpus, ranks) in &found {
                assert_eq!(gpus, ranks, "{about}\n{}", file.text);
            }
            let all: u64 = found.iter().map(|(gpus, _)| gpus).sum();
            assert_eq!(all, answer.candidate.devices, "{about}: the plan\n{}", file.text);
            *files.entry(kind).or_default() += 1;
        }
    }
    let fewest = files.values().min().copied().unwrap_or_default();
    assert!(files.len() == 5 && fewest > 2, "{files:?}");
    println!("{files:?}");
}
