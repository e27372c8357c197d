//! Launch commands of a placement, for runtimes with explicit layer placement.
//!
//! Flags as documented (2026-08): <https://docs.vllm.ai/en/latest/configuration/engine_args>,
//! <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md> (`-ot` keeps tensors on a device by
//! name). Host addresses are unknown here.

use super::rig::ResolvedRig;
use crate::report::place::{PlacementReport, StageReport};
use crate::search::placement::price::{MemberPrices, PlacementProblem, PlacementWork};
use crate::search::placement::solve::SolvedPlacement;

/// The commands, where every stage runs in one runtime that accepts layers per stage.
pub fn commands(
    rigged: &ResolvedRig,
    problem: &PlacementProblem,
    solved: &SolvedPlacement,
    placed: &PlacementReport,
) -> Vec<String> {
    let mut ids: Vec<&str> = rigged.runtimes.iter().map(|runtime| runtime.id.as_str()).collect();
    ids.dedup();
    let [runtime] = ids[..] else { return vec![] };
    // No runtime accepts stages of several devices by flags.
    if solved.copies.iter().any(|copies| !copies.is_empty()) {
        return vec![];
    }
    let counts = |by: &str| {
        let counts: Vec<String> =
            solved.stages.iter().map(|stage| (stage.to - stage.from).to_string()).collect();
        counts.join(by)
    };
    let order = || {
        let names: Vec<&str> =
            solved.stages.iter().map(|stage| problem.members[stage.member].name.as_str()).collect();
        names.join(", ")
    };
    let shared = solved.stages.iter().map(|stage| problem.members[stage.member].devices).max().unwrap_or(1);
    let alone = solved.stages.len() < 2;
    // Experts can stay in host memory per layer; other parts only as whole layers.
    let out = |stage: &StageReport| stage.offloaded_bytes > 0.0;
    let chain = MemberPrices::new(problem).chain(PlacementWork::Token(solved.batches.1)).chain;
    let told = solved.stages.iter().all(|stage| {
        let experts: u64 = chain.members[stage.member].experts[stage.from..stage.to].iter().sum();
        chain.over(stage) <= experts
    });
    let experts: Vec<String> = placed
        .stages
        .iter()
        .filter(|stage| out(stage))
        .filter_map(|stage| stage.experts_out)
        .flat_map(|(first, last)| (first..=last).map(|layer| layer.to_string()))
        .collect();
    if placed.stages.iter().any(out) && !(told && runtime == "llama.cpp") {
        return vec![];
    }
    let stay = if experts.is_empty() {
        String::new()
    } else {
        format!(" -ot 'blk\\.({})\\.ffn_.*_exps.*=CPU'", experts.join("|"))
    };
    let context = problem.concurrency * (problem.lengths.isl + problem.lengths.osl);
    match runtime {
        "llama.cpp" if shared == 1 && alone && !stay.is_empty() => vec![format!(
            "llama-server -m MODEL.gguf -ngl all{stay} -np {} -c {context}",
            problem.concurrency,
        )],
        "llama.cpp" if shared == 1 && !alone => vec![format!(
            "llama-server -m MODEL.gguf -ngl all -sm layer -ts {}{stay} -np {} -c {context}   # devices in this order (-dev; remote ones by --rpc HOST:PORT): {}",
            counts(","),
            problem.concurrency,
            order()
        )],
        "vllm" if shared == 1 && !alone => vec![format!(
            "VLLM_PP_LAYER_PARTITION={} vllm serve {} --pipeline-parallel-size {}   # devices in this order (CUDA_VISIBLE_DEVICES): {}",
            counts(","),
            rigged.model.name,
            solved.stages.len(),
            order()
        )],
        _ => vec![],
    }
}
