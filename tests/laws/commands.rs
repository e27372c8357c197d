//! Laws of launch commands: advice is never worse than the command, and a context beyond the trained one is launched with
//! what makes it.

use mantile::launch::settings_file::NamedFiles;
use mantile::request::UNCONTROLLED;
use mantile::request::command::{GivenCommand, of_command};
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::spec::deployment::Deployment;
use mantile::spec::evidence::EvidenceRule;
use mantile::spec::notation::PlanText;
use mantile::spec::objective::Direction;
use mantile::spec::plan_space::ServingMode;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use super::super::draw::{between, cases, name};
use super::super::launch::back::starts_what_it_launches;

/// Of a command that runs within the limits, the best plan is never worse in the objective, whatever the command sets.
#[test]
fn advice_is_never_worse_than_the_command() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(33);
    let mut commands = vec![(
        "1xh100".to_owned(),
        "vllm serve openai/gpt-oss-120b --max-model-len 85000 --gpu-memory-utilization 0.97".to_owned(),
    )];
    for _ in 0..cases(8) {
        let model =
            name(&mut random, &["openai/gpt-oss-20b", "Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B"]).unwrap();
        let hardware = name(&mut random, &["1xl40s", "1xh100", "2xl40s", "1xrtx-4090"]).unwrap();
        let share = random.choice(["0.5", "0.8", "0.92", "0.97"]).unwrap();
        let mut text = format!("vllm serve {model} --gpu-memory-utilization {share}");
        for option in
            ["--kv-cache-dtype fp8", "--max-num-seqs 16", "--max-model-len 8192", "--quantization fp8"]
        {
            if random.u8(0..3) == 0 {
                text = format!("{text} {option}");
            }
        }
        commands.push((hardware, text));
    }
    let mut compared = 0;
    for (hardware, text) in commands {
        let given = Scenario { hardware: Some(hardware.clone()), ..Scenario::default() };
        let Ok(answer) = of_command(&catalog, &GivenCommand::of(&text, &NamedFiles::new()), &given) else {
            continue;
        };
        let candidate = &answer.candidate;
        if candidate.metrics.is_none() || !candidate.violations.is_empty() {
            continue;
        }
        let aim = answer.question.optimize[0];
        let best = answer.command.as_ref().and_then(|command| command.best.as_ref());
        let best = best.unwrap_or_else(|| panic!("{hardware} {text}: no best plan"));
        let [now, then] = [candidate, best].map(|one| one.figure(aim.metric).unwrap());
        let worse = if aim.direction == Direction::Maximize { then < now } else { then > now };
        assert!(!worse, "{hardware} {text}: {then} instead of {now}");
        compared += 1;
    }
    assert!(compared > 2, "{compared}");
}

/// A launch of a model with another rope scaling states it, so that it reads back as the same question; a runtime without
/// an option for it has no line, and says why.
#[test]
fn a_longer_context_is_launched_with_what_makes_it() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(32);
    let (mut stated, mut refused) = (0, 0);
    for _ in 0..cases(12) {
        let model = name(&mut random, &["Qwen/Qwen3-8B", "Qwen/Qwen3-32B", "Qwen/Qwen3-4B"]).unwrap();
        let runtime = name(&mut random, &["vllm", "sglang", "trtllm", "llama.cpp"]).unwrap();
        let factor = random.choice([2.0, 3.0, 4.0]).unwrap();
        let scaling =
            json!({ "rope_type": "yarn", "factor": factor, "original_max_position_embeddings": 32768 });
        let key = random.choice(["rope_parameters", "rope_scaling"]).unwrap();
        let scenario = Scenario {
            runtime: Some(runtime.clone()),
            isl: Some(random.u64(42_000..60_000)),
            osl: Some(500),
            concurrency: Some(1),
            set: Some(vec![format!("model.{key}={scaling}")]),
            deployment: Some(Deployment { plan: Some("1 x tp2 @1".into()), ..Deployment::default() }),
            ..Scenario::of(&model, "2xh200")
        };
        let answer = estimate(&catalog, &EstimateRequest::of(scenario.clone()), &UNCONTROLLED);
        let Ok(answer) = answer else { continue };
        let Some(launch) = &answer.launch else { continue };
        if !launch.unsupported.is_empty() {
            assert!(launch.unsupported.iter().any(|why| why.contains("model overrides")), "{launch:?}");
            assert!(!launch.runs() && !["vllm", "sglang"].contains(&runtime.as_str()), "{runtime}");
            refused += 1;
            continue;
        }
        let words = shlex::split(&launch.workers[0].command).unwrap();
        let flag = if runtime == "vllm" { "--hf-overrides" } else { "--json-model-override-args" };
        let at = words.iter().position(|word| word == flag).unwrap_or_else(|| panic!("{flag}: {words:?}"));
        let value: Value = serde_json::from_str(&words[at + 1]).unwrap();
        assert_eq!(value, json!({ key: scaling }), "{words:?}");
        let given =
            Scenario { hardware: scenario.hardware.clone(), isl: scenario.isl, ..Scenario::default() };
        let back =
            of_command(&catalog, &GivenCommand::of(&launch.workers[0].command, &NamedFiles::new()), &given)
                .unwrap();
        let read = back.command.unwrap().scenario.set.unwrap_or_default();
        assert_eq!(read.len(), 1, "{read:?}");
        stated += 1;
        let plain = Scenario { set: None, isl: Some(1000), ..scenario };
        let plain = estimate(&catalog, &EstimateRequest::of(plain), &UNCONTROLLED).unwrap().launch.unwrap();
        assert!(plain.workers.iter().all(|worker| !worker.command.contains(flag)), "{plain:?}");
    }
    assert!(stated > 1 && refused > 0, "{stated} {refused}");
}

/// What a launch writes is read as the deployment that it launches, degrees and numbers of replicas, whichever of its
/// files is read.
#[test]
fn every_file_of_a_launch_is_read_as_what_it_launches() {
    let catalog = Catalog::default();
    let mut random = fastrand::Rng::with_seed(42);
    let (mut read, mut disaggregated, mut replicated) = (0, 0, 0);
    // One answer each that is disaggregated and that is replicated, and what comes.
    let certain = [("sglang", "Llama-3.3-70B", "8xh100"), ("vllm", "Qwen3-32B", "2x8xh100")];
    let certain = certain.map(|(runtime, model, hardware)| Scenario {
        runtime: Some(runtime.into()),
        evidence: Some(EvidenceRule::Any),
        mode: (runtime == "sglang").then_some(ServingMode::Disaggregated),
        ..Scenario::of(model, hardware)
    });
    for scenario in certain.into_iter().chain((0..cases(12)).map(|_| drawn(&mut random))) {
        let request = OptimizeRequest {
            scenario: scenario.clone(),
            max_front_points: Some(0.into()),
            ..OptimizeRequest::default()
        };
        let Ok(answer) = optimize(&catalog, &request, &UNCONTROLLED) else { continue };
        let (Some(best), Some(launch)) = (answer.best, answer.launch) else { continue };
        if !launch.runs() {
            continue;
        }
        let plan: PlanText = best.notation.parse().unwrap();
        disaggregated += usize::from(plan.pools.len() > 1);
        replicated += usize::from(plan.pools.iter().any(|pool| pool.degrees.replicas > Some(1)));
        read += starts_what_it_launches(&launch, &scenario, &best);
    }
    assert!(read > 10 && disaggregated > 0 && replicated > 0, "{read} {disaggregated} {replicated}");
}

/// A question whose answers are replicated, disaggregated and over hosts.
fn drawn(random: &mut fastrand::Rng) -> Scenario {
    let models =
        ["Llama-3.1-8B", "Llama-3.3-70B", "Qwen3-30B-A3B", "gpt-oss-120b", "DeepSeek-V3", "Qwen3-32B"];
    let hardware = [
        "8xh100",
        "2x8xh100",
        "4x8xh200",
        "4xl40s",
        "8xmi300x",
        "2xrtx-4090",
        "8x8xh100",
        "1xm3-ultra",
        "16xh100",
    ];
    let objective = name(random, &["throughput", "latency", "interactive", "perf-per-dollar", "least-cost"]);
    Scenario {
        runtime: name(random, &["vllm", "sglang", "trtllm", "llama.cpp", "any"]),
        isl: Some(between(random, 100.0, 30_000.0) as u64),
        osl: Some(between(random, 20.0, 3_000.0) as u64),
        concurrency: random.bool().then(|| between(random, 1.0, 2_000.0) as u64),
        objective,
        ..Scenario::of(random.choice(models).unwrap(), random.choice(hardware).unwrap())
    }
}
