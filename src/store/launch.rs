//! How to start a placement in runtimes that can be told where layers go.
//!
//! Flags as documented (2026-08): <https://docs.vllm.ai/en/latest/configuration/engine_args>,
//! <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>. Knows no hosts' addresses.

use super::rig::Rigged;
use crate::report::place::Placed;
use crate::search::placement::price::Question;
use crate::search::placement::solve::Solved;

/// The commands, where every stage runs in one runtime that takes a split.
pub fn commands(rigged: &Rigged, question: &Question, solved: &Solved, placed: &Placed) -> Vec<String> {
    let mut ids: Vec<&str> = rigged.runtimes.iter().map(|runtime| runtime.id.as_str()).collect();
    ids.dedup();
    let [runtime] = ids[..] else { return vec![] };
    let counts = |by: &str| {
        let counts: Vec<String> =
            solved.stages.iter().map(|stage| (stage.to - stage.from).to_string()).collect();
        counts.join(by)
    };
    let order = || {
        let names: Vec<&str> =
            solved.stages.iter().map(|stage| question.offers[stage.member].name.as_str()).collect();
        names.join(", ")
    };
    let shared = solved.stages.iter().map(|stage| question.offers[stage.member].devices).max().unwrap_or(1);
    let alone = solved.stages.len() < 2;
    // Host memory is stated in other words than layers.
    if placed.stages.iter().any(|stage| stage.offloaded_bytes > 0.0) {
        return vec![];
    }
    let context = question.concurrency * (question.lengths.isl + question.lengths.osl);
    match runtime {
        "llama.cpp" if shared == 1 && !alone => vec![format!(
            "llama-server -m MODEL.gguf -ngl all -sm layer -ts {} -np {} -c {context}   # devices in this order (-dev; those elsewhere by --rpc HOST:PORT): {}",
            counts(","),
            question.concurrency,
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
