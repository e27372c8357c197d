//! Every winner can be launched: the rule table of `hardware/runtimes/`, written out here once more rule by rule, for
//! models whose shape is written out too. Shares no code with the planner.

use mantile::plan::parallel::ParallelPlan;
use mantile::report::result::Feasibility;
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::search::candidate::Candidate;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::deployment::Deployment;
use mantile::spec::role::Role;
use mantile::spec::rule::Allowance;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;
use rayon::prelude::*;

use super::ask::{ask, on};

/// Properties of a model that rules distinguish.
struct Model {
    name: &'static str,
    family: &'static str,
    heads: u64,
    kv_heads: u64,
    traits: &'static [Trait],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Trait {
    Experts,
    Latent,
    State,
    Window,
    Vision,
}

const MODELS: [Model; 8] = [
    model("TinyLlama-1.1B-Chat-v1.0", "llama", (32, 4), &[]),
    model("Llama-3.1-8B", "llama", (32, 8), &[]),
    model("gpt-oss-20b", "gpt_oss", (64, 8), &[Trait::Experts, Trait::Window]),
    model("Qwen3-30B-A3B", "qwen3_moe", (32, 4), &[Trait::Experts]),
    model("DeepSeek-V2-Lite", "deepseek_v2", (16, 16), &[Trait::Experts, Trait::Latent]),
    model("Qwen2.5-VL-7B-Instruct", "qwen2_5_vl", (28, 4), &[Trait::Vision]),
    model("gemma-3-12b-it", "gemma3", (16, 8), &[Trait::Window, Trait::Vision]),
    model("granite-4.0-h-tiny", "granitemoehybrid", (12, 4), &[Trait::Experts, Trait::State]),
];

const fn model(
    name: &'static str,
    family: &'static str,
    (heads, kv_heads): (u64, u64),
    traits: &'static [Trait],
) -> Model {
    Model { name, family, heads, kv_heads, traits }
}

/// Hardware, its generation, devices of a host, and the runtimes that are tried on it.
const SYSTEMS: [(&str, &str, u64, &[&str]); 13] = [
    ("3xh100-sxm", "hopper", 3, &["vllm", "sglang", "trtllm", "hf-transformers", "llama.cpp", "mlc-llm"]),
    ("4xh100-sxm", "hopper", 4, &["vllm", "sglang", "trtllm", "mistral.rs"]),
    ("2x2xh100-sxm", "hopper", 2, &["vllm", "sglang", "trtllm", "llama.cpp", "hf-transformers", "mlc-llm"]),
    ("2xrtx-4090", "ada-consumer", 2, &["vllm", "sglang", "trtllm", "llama.cpp", "mistral.rs"]),
    ("4xa100-sxm-80gb", "ampere", 4, &["vllm", "sglang", "trtllm"]),
    ("3xmi300x", "cdna3", 3, &["vllm", "sglang", "atom"]),
    ("mac-studio-m3-ultra-x2", "apple-m3", 1, &["mlx", "exo", "llama.cpp"]),
    ("tpu-7x-4chip", "tpu-7x", 4, &["vllm-tpu"]),
    ("tpu-v6e-4chip", "tpu-v6e", 4, &["vllm-tpu"]),
    ("3xtrainium2", "trainium2", 3, &["vllm-neuron"]),
    ("3xascend-910c", "ascend-910c", 3, &["vllm-ascend"]),
    ("3xgaudi3", "gaudi3", 3, &["vllm-gaudi"]),
    ("3xarc-pro-b60", "battlemage", 3, &["vllm-xpu", "llama.cpp"]),
];

const OBJECTIVES: [&str; 5] = ["throughput", "latency", "perf-per-dollar", "min-chips", "interactive"];

/// A winner.
struct Winner<'a> {
    model: &'a Model,
    runtime: &'a str,
    generation: &'a str,
    host: u64,
    kv: &'a str,
    pools: Vec<(Role, ParallelPlan)>,
}

fn several(degrees: &[u64]) -> bool {
    degrees.iter().filter(|degree| **degree > 1).count() > 1
}

impl Winner<'_> {
    fn is(&self, one: Trait) -> bool {
        self.model.traits.contains(&one)
    }

    /// The rules that the winner breaks.
    fn broken(&self) -> Vec<&'static str> {
        let mut broken = Vec::new();
        for (role, plan) in &self.pools {
            broken.extend(self.any_runtime(plan));
            broken.extend(match self.runtime {
                "vllm" => self.vllm(*role, plan),
                "sglang" => self.sglang(*role, plan),
                "trtllm" => self.trtllm(*role, plan),
                "vllm-ascend" => self.ascend(*role, plan),
                _ => self.other(plan),
            });
        }
        let prefill_options = self.pools.iter().filter(|(role, _)| *role == Role::Prefill);
        let backs = || self.pools.iter().filter(|(role, _)| *role == Role::Decode);
        for ((_, front), (_, back)) in
            prefill_options.flat_map(|front| backs().map(move |back| (front, back)))
        {
            if front.tp % back.tp != 0 && back.tp % front.tp != 0 {
                broken.push("tp of one side is no multiple of the other's");
            }
            if front.dcp != back.dcp {
                broken.push("decode context parallelism of prefill and decode workers differs");
            }
            if self.runtime == "sglang" && back.pp != 1 && back.pp != front.pp {
                broken.push("sglang: decode pp");
            }
        }
        broken
    }

    fn any_runtime(&self, plan: &ParallelPlan) -> Vec<&'static str> {
        let ranks = if ["tpu-7x", "ascend-910c"].contains(&self.generation) { 2 } else { 1 };
        let (tp, latent) = (plan.tp * ranks, self.is(Trait::Latent));
        let all_or_none =
            ["vllm", "vllm-ascend", "vllm-gaudi", "vllm-xpu", "vllm-neuron", "vllm-tpu", "atom"];
        let uneven = !self.model.heads.is_multiple_of(tp)
            || (!self.model.kv_heads.is_multiple_of(tp) && !tp.is_multiple_of(self.model.kv_heads));
        [
            (uneven && !latent, "heads do not divide by tp"),
            (plan.sp, "no runtime has sequence parallelism"),
            (plan.dcp > 1 && !self.divides_caches(plan), "decode context parallelism"),
            (plan.ep > 1 && !self.is(Trait::Experts), "ep without experts"),
            (
                all_or_none.contains(&self.runtime) && plan.ep > 1 && plan.ep != plan.tp * plan.dp * plan.cp,
                "expert parallelism is all or none",
            ),
        ]
        .into_iter()
        .filter_map(|(is, rule)| is.then_some(rule))
        .collect()
    }

    /// Whether tensor-parallel ranks may divide the tokens of the KV cache that they have in common.
    fn divides_caches(&self, plan: &ParallelPlan) -> bool {
        let copies =
            if self.is(Trait::Latent) { plan.tp } else { plan.tp / self.model.kv_heads.min(plan.tp) };
        let full = !self.is(Trait::Window) && !self.is(Trait::State);
        let runtime = ["vllm", "sglang"].contains(&self.runtime);
        runtime && full && plan.cp == 1 && plan.tp.is_multiple_of(plan.dcp) && plan.dcp <= copies
    }

    fn vllm(&self, role: Role, plan: &ParallelPlan) -> Vec<&'static str> {
        let mut broken = Vec::new();
        if plan.cp > 1 && (!self.is(Trait::Latent) || self.is(Trait::Vision) || role != Role::Prefill) {
            broken.push("vllm: prefill context parallelism");
        }
        if plan.dcp > 1 && !self.is(Trait::Latent) && role != Role::Aggregated {
            broken.push("vllm: decode context parallelism of disaggregated workers is for MLA");
        }
        if plan.pp > 1 && role == Role::Decode {
            broken.push("vllm: decode pp");
        }
        if plan.pp > 1 && role == Role::Prefill && (self.is(Trait::State) || self.is(Trait::Window)) {
            broken.push("vllm: hybrid caches by NIXL with pp");
        }
        if self.kv == "nvfp4" && !self.generation.starts_with("blackwell") {
            broken.push("vllm: NVFP4 cache");
        }
        broken
    }

    fn sglang(&self, role: Role, plan: &ParallelPlan) -> Vec<&'static str> {
        let implements = ["deepseek_v2", "qwen3_moe"].contains(&self.model.family);
        let mut broken = Vec::new();
        if plan.cp > 1 && (!implements || role != Role::Prefill) {
            broken.push("sglang: prefill context parallelism");
        }
        if plan.dcp > 1 && !self.is(Trait::Latent) {
            broken.push("sglang: decode context parallelism is for MLA");
        }
        broken
    }

    fn trtllm(&self, role: Role, plan: &ParallelPlan) -> Vec<&'static str> {
        let mut broken = Vec::new();
        if plan.dp > 1 && (plan.tp > 1 || plan.cp > 1) {
            broken.push("trtllm: attention DP is 1 or the whole TP");
        }
        if plan.cp > 1 && (role != Role::Decode || !self.is(Trait::Latent)) {
            broken.push("trtllm: Helix");
        }
        broken
    }

    fn ascend(&self, role: Role, plan: &ParallelPlan) -> Vec<&'static str> {
        let mut broken = Vec::new();
        if role == Role::Decode && (plan.cp > 1 || plan.pp > 1) {
            broken.push("vllm-ascend: decode workers");
        }
        broken
    }

    fn other(&self, plan: &ParallelPlan) -> Vec<&'static str> {
        let devices = plan.tp * plan.dp * plan.cp * plan.pp;
        let hosts = devices > self.host;
        let split = match self.runtime {
            "llama.cpp" => {
                let no_tensors = hosts || !["fp16", "bf16"].contains(&self.kv) || self.is(Trait::Latent);
                plan.dp * plan.cp > 1 || several(&[plan.tp, plan.pp]) || (plan.tp > 1 && no_tensors)
            }
            "mistral.rs" => {
                several(&[plan.tp, plan.pp]) || !plan.tp.is_power_of_two() || (plan.pp > 1 && hosts)
            }
            "hf-transformers" => several(&[plan.tp, plan.pp]) || (plan.pp > 1 && hosts),
            "mlx" | "exo" => several(&[plan.tp, plan.pp]) || plan.dp * plan.cp > 1,
            "mlc-llm" => hosts || devices != plan.tp,
            "vllm-neuron" => !devices.is_power_of_two() || plan.pp * plan.cp > 1,
            "vllm-tpu" => {
                !devices.is_power_of_two() || plan.pp * plan.cp > 1 || (self.is(Trait::Latent) && plan.tp > 1)
            }
            "atom" => plan.pp * plan.cp > 1,
            "vllm-gaudi" | "vllm-xpu" => plan.cp > 1,
            other => panic!("no rules of {other}"),
        };
        if split { vec!["what the runtime's own split cannot do"] } else { vec![] }
    }
}

fn workers(candidate: &Candidate) -> Vec<(Role, ParallelPlan)> {
    candidate.pools.iter().map(|pool| (pool.role, pool.plan)).collect()
}

/// Whether each pool has like workers.
fn like(pools: &[(Role, ParallelPlan)]) -> bool {
    matches!(pools, [(Role::Aggregated, _)] | [(Role::Prefill, _), (Role::Decode, _)])
}

#[test]
fn no_winner_breaks_a_rule_of_its_runtime() {
    let mut cases = Vec::new();
    for model in &MODELS {
        for (hardware, generation, host, runtimes) in &SYSTEMS {
            for runtime in *runtimes {
                cases.extend(OBJECTIVES.map(|aim| (model, *hardware, *generation, *host, *runtime, aim)));
            }
        }
    }
    let checked = cases.par_iter().map(|(model, hardware, generation, host, runtime, aim)| {
        let scenario = Scenario {
            runtime: Some((*runtime).into()),
            objective: Some((*aim).into()),
            // Every other question lets unlike workers share a pool.
            allow: (*aim == "throughput").then(|| vec![Allowance::CustomRouter]),
            ttft: Some("none".into()),
            tpot: Some("none".into()),
            ..on(model.name, hardware)
        };
        let Ok(mut problem) = ask(&scenario) else { return 0 };
        problem.axes.clear();
        let Some(best) = run(&problem, &UNWATCHED).best else { return 0 };
        let pools = workers(&best.candidate);
        let kv = problem.formats[best.candidate.formats].kv.as_str();
        let winner = Winner { model, runtime, generation, host: *host, kv, pools };
        let what = || format!("{} on {hardware} by {runtime} for {aim}: {:?}", model.name, winner.pools);
        assert!(winner.broken().is_empty(), "{}: {:?}", what(), winner.broken());
        assert!(*aim == "throughput" || like(&winner.pools), "{} needs a router with weights", what());
        1
    });
    let winners: u64 = checked.sum();
    assert!(winners >= 500, "only {winners} winners");
}

/// The first rule that an estimate names.
fn named(scenario: &Scenario, plan: &str) -> Option<String> {
    let problem = ask(scenario).unwrap();
    let candidate = mantile::request::build_candidate::candidate(&problem, &plan.parse().unwrap()).unwrap();
    let found = mantile::report::answer::forbidden(&problem, &candidate);
    found.first().map(|reason| reason.kind().to_owned())
}

#[test]
fn a_given_plan_that_breaks_a_rule_is_named_with_it() {
    let by = |runtime: &str, model: &str, hardware: &str| Scenario {
        runtime: Some(runtime.into()),
        ..on(model, hardware)
    };
    let alone = by("vllm", "Llama-3.1-8B", "1xl4");
    let vllm = by("vllm", "Llama-3.1-8B", "4xh100-sxm");
    assert_eq!(named(&vllm, "tp4"), None);
    assert_eq!(named(&vllm, "cp2").as_deref(), Some("pcp-mla-only"));
    assert_eq!(named(&vllm, "tp2 sp").as_deref(), Some("no-sequence-parallel"));
    assert_eq!(named(&vllm, "prefill tp1, decode pp2").as_deref(), Some("decode-pp"));
    let old = Scenario { runtime_version: Some("0.19.0".into()), ..vllm.clone() };
    assert_eq!(named(&old, "tp2 sp"), None, "sequence parallelism went in 0.33");
    let lifted = Scenario { theoretical: Some(true), ..vllm };
    assert_eq!(named(&lifted, "cp2"), None);
    assert_eq!(named(&alone, "tp1 @4, offload kv").as_deref(), Some("not_supported"));
    let llama = by("llama.cpp", "Llama-3.1-8B", "2x2xh100-sxm");
    assert_eq!(named(&llama, "pp4"), None);
    assert_eq!(named(&llama, "tp4").as_deref(), Some("tensor-split-in-one-host"));
    assert_eq!(named(&llama, "tp2 pp2").as_deref(), Some("one-split-mode"));
    assert_eq!(named(&llama, "prefill tp1, decode tp1").as_deref(), Some("not_supported"));
}

/// What a runtime cannot run is reported, with and without a launch; nothing of it is computed.
#[test]
fn every_plan_on_every_runtime_is_answered() {
    let catalog = Catalog::default();
    let plans = [
        "tp3",
        "cp2",
        "tp2 sp",
        "ep2",
        "prefill tp1, decode pp2",
        "tp1, offload layers",
        "tp1, offload experts",
        "tp1, offload kv",
        "tp1 @4, host layers 3",
        "tp1 @4, host experts 3",
    ];
    for runtime in catalog.entries(CatalogKind::Runtimes).keys() {
        for (model, plan) in plans.iter().flat_map(|plan| [("Llama-3.1-8B", plan), ("Qwen3-30B-A3B", plan)]) {
            let deployment = Deployment { plan: Some((*plan).to_owned()), ..Deployment::default() };
            let scenario = Scenario {
                runtime: Some(runtime.clone()),
                deployment: Some(deployment),
                ..on(model, "rtx-4090-x2-epyc-9354")
            };
            // A fault that names its key is an answer too.
            if let Ok(found) = estimate(&catalog, &EstimateRequest::of(scenario), &UNCONTROLLED) {
                let runs = found.candidate.metrics.is_some();
                let illegal = found.candidate.feasibility == Feasibility::Illegal;
                assert!(!(runs && illegal), "{runtime}, {model}, {plan}");
                assert!(
                    runs || !found.candidate.violations.is_empty(),
                    "{runtime}, {model}, {plan}: no reason"
                );
            }
        }
    }
}

#[test]
fn lifted_rules_never_give_less_and_the_answer_says_so_first() {
    for objective in ["throughput", "latency"] {
        let requested = Scenario { objective: Some(objective.into()), ..on("Llama-3.1-8B", "2xh100-sxm") };
        let best = |scenario: &Scenario| {
            let mut problem = ask(scenario).unwrap();
            problem.axes.clear();
            let best = run(&problem, &UNWATCHED).best.unwrap();
            (best.point, problem)
        };
        let (ruled, problem) = best(&requested);
        let (lifted, _) = best(&Scenario { theoretical: Some(true), ..requested.clone() });
        assert!(!problem.is_better(&ruled, &lifted), "{objective}");
        let routed = Scenario { allow: Some(vec![Allowance::CustomRouter]), ..requested };
        let (routed, _) = best(&routed);
        assert!(!problem.is_better(&ruled, &routed), "{objective}: more choice is never worse");
    }
}
