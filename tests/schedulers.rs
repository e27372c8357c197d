//! Our schedulers against those of the runtimes, call by call: records of the real ones, which `.ci/schedulers` drives
//! without a device, and how they were made.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use mantile::traffic::content::TokenRun;
use mantile::traffic::engine::{EngineEvent, EngineRequest, SchedulerEngine};
use mantile::traffic::llamacpp::host_prompts::HostPromptSettings;
use mantile::traffic::llamacpp::{LlamacppEngine, LlamacppSettings};
use mantile::traffic::sglang::{SglangEngine, SglangPolicy, SglangSettings};
use mantile::traffic::trtllm::{TrtllmCapacity, TrtllmEngine, TrtllmSettings};
use mantile::traffic::vllm::{VllmEngine, VllmSettings};
use serde_json::{Value, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/schedulers");

fn number(value: &Value) -> u32 {
    value
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn vllm_settings(case: &Value) -> VllmSettings {
    let of = &case["settings"];
    let flag = |name: &str, usual: bool| of[name].as_bool().unwrap_or(usual);
    let blocks = number(&of["num_blocks"]);
    // vLLM counts the block that it never gives to a request.
    let reserved = of["watermark"].as_f64().unwrap_or(0.0) * f64::from(blocks + 1);
    VllmSettings {
        token_budget: number(&of["max_num_batched_tokens"]),
        max_sequences: number(&of["max_num_seqs"]),
        blocks,
        block_tokens: number(&of["block_size"]),
        chunked_prefill: flag("enable_chunked_prefill", true),
        long_prompt_threshold: of["long_prefill_token_threshold"]
            .as_u64()
            .map(|most| most as u32)
            .filter(|most| *most > 0),
        prefix_caching: flag("enable_prefix_caching", true),
        whole_prompt_fits: flag("scheduler_reserve_full_isl", true),
        reserved_blocks: reserved as u32,
        asynchronous: flag("async_scheduling", true),
        draft: None,
        prefill_interval: None,
    }
}

/// The request, each token a run of its own: cases share pieces of any length.
fn request(of: &Value) -> EngineRequest {
    let (id, output) = (of["id"].as_u64().unwrap(), number(&of["output"]));
    let one = |id| TokenRun { id, tokens: 1 };
    let mut runs: Vec<TokenRun> = vec![];
    for run in of["prompt"].as_array().unwrap() {
        let (start, count) = (run[0].as_u64().unwrap(), run[1].as_u64().unwrap());
        runs.extend((start..start + count).map(one));
    }
    let prompt = runs.len() as u32;
    runs.extend((0..u64::from(output)).map(|token| one(1_000_000 + id * 100_000 + token)));
    EngineRequest::new(id, runs, prompt, output)
}

/// The steps of vLLM's scheduler, ours, in a case, as the record has them.
fn vllm_steps(case: &Value) -> Vec<Value> {
    let settings = vllm_settings(case);
    let (size, ahead) = (settings.block_tokens, settings.asynchronous);
    steps_of(case, &mut VllmEngine::new(settings), size, ahead, |engine, of| engine.submit(request(of)))
}

fn trtllm_settings(case: &Value) -> TrtllmSettings {
    let of = &case["settings"];
    let flag = |name: &str| of[name].as_bool().unwrap();
    TrtllmSettings {
        token_budget: number(&of["max_num_batched_tokens"]),
        max_requests: number(&of["max_num_seqs"]),
        blocks: number(&of["num_blocks"]),
        block_tokens: number(&of["block_size"]),
        capacity: match of["capacity_scheduler_policy"].as_str() {
            Some("MAX_UTILIZATION") => TrtllmCapacity::MaxUtilization,
            _ => TrtllmCapacity::GuaranteedNoEvict,
        },
        chunked_prefill: flag("enable_chunked_prefill"),
        block_reuse: flag("enable_block_reuse"),
        partial_reuse: flag("enable_partial_reuse"),
        prefix_aware: flag("enable_prefix_aware_scheduling"),
        overlap: flag("overlap"),
        output_limit: None,
        wait_steps: number(&of["batch_wait_timeout_iters"]),
        wait_tokens_ratio: of["batch_wait_max_tokens_ratio"].as_f64().unwrap(),
        draft: None,
    }
}

/// The steps of TensorRT-LLM's scheduler, ours, in a case, as the record has them.
fn trtllm_steps(case: &Value) -> Vec<Value> {
    let settings = trtllm_settings(case);
    let (size, ahead) = (settings.block_tokens, settings.overlap);
    let mut steps = steps_of(case, &mut TrtllmEngine::new(settings), size, ahead, |engine, of| {
        let limit = of["max_new_tokens"].as_u64().map_or(number(&of["output"]), |limit| limit as u32);
        engine.submit_with_limit(request(of), limit);
    });
    // Its loop goes through what has ended as it came, ours in the order of the batch.
    for step in &mut steps {
        step["finished"].as_array_mut().unwrap().sort_by_key(|id| id.as_u64());
    }
    steps
}

/// The steps of an engine with blocks of `size` tokens in a case; `ahead`: a step is made up while the one before it runs.
fn steps_of<E: SchedulerEngine>(
    case: &Value,
    engine: &mut E,
    size: u32,
    ahead: bool,
    submit: impl Fn(&mut E, &Value),
) -> Vec<Value> {
    let mut coming = case["requests"].as_array().unwrap().iter().peekable();
    let (mut found, mut step) = (vec![], 0);
    // Of an asynchronous scheduler, what ended in a step is known after the next call.
    let mut ended: Vec<u64> = vec![];
    loop {
        if engine.is_idle() {
            let Some(next) = coming.peek() else { break };
            step = step.max(next["arrives_before_step"].as_u64().unwrap());
        }
        while let Some(next) = coming.next_if(|next| next["arrives_before_step"] == step) {
            submit(engine, next);
        }
        let (mut preempted, mut cached) = (vec![], vec![]);
        engine.choose(&mut |id, event| match event {
            EngineEvent::Preempted => preempted.push(id),
            EngineEvent::Admitted { cached_tokens } => cached.push(json!([id, cached_tokens])),
            EngineEvent::Loaded { .. }
            | EngineEvent::FirstToken
            | EngineEvent::Finished
            | EngineEvent::Failed => {}
        });
        let scheduled: Vec<Value> = engine.batch().iter().map(|(id, new)| json!([id, new])).collect();
        let (running, waiting) = engine.queued();
        let blocks_used = engine.cache_used() / u64::from(size);
        engine.settle();
        let mut finished = vec![];
        engine.complete(1, &mut |id, event| {
            if event == EngineEvent::Finished {
                finished.push(id);
            }
        });
        if ahead {
            std::mem::swap(&mut ended, &mut finished);
        }
        found.push(json!({
            "step": step, "scheduled": scheduled, "preempted": preempted, "finished": finished, "cached": cached,
            "blocks_used": blocks_used, "running": running, "waiting": waiting,
        }));
        step += 1;
    }
    found
}

fn sglang_settings(case: &Value) -> SglangSettings {
    let of = &case["settings"];
    let flag = |name: &str| of[name].as_bool().unwrap();
    let some = |name: &str| of[name].as_u64().map(|number| number as u32);
    SglangSettings {
        prefill_tokens: number(&of["max_prefill_tokens"]),
        // Off is -1.
        chunk_tokens: some("chunked_prefill_size"),
        max_requests: number(&of["max_running_requests"]),
        cache_tokens: number(&of["max_total_tokens"]),
        page_tokens: number(&of["page_size"]),
        context_tokens: number(&of["context_length"]),
        policy: if of["schedule_policy"] == "lpm" { SglangPolicy::Lpm } else { SglangPolicy::Fcfs },
        conservativeness: of["schedule_conservativeness"].as_f64().unwrap(),
        prefix_caching: !flag("disable_radix_cache"),
        mixed_chunk: flag("enable_mixed_chunk"),
        overlap: flag("overlap"),
        output_limit: None,
        exact_output: flag("ignore_eos"),
        prefill_requests: some("prefill_max_requests"),
        min_free_slots: some("min_free_slots_delay"),
        decodes_after_prefill: number(&of["prefill_decode_interval"]),
        decodes_min_requests: number(&of["prefill_decode_interval_min_bs"]),
        delayed_passes: None,
        receive_interval: 1,
        draft: None,
    }
}

/// A request to SGLang, each piece of its prompt a run: pieces with the same first token have the same tokens. One that
/// ends before its limit has the stop token, the same in all outputs, as its last one.
fn submit(engine: &mut SglangEngine, of: &Value) {
    let (id, output) = (of["id"].as_u64().unwrap(), number(&of["output"]));
    let run = |id: u64, tokens| TokenRun { id, tokens };
    let pieces = of["prompt"].as_array().unwrap().iter();
    let mut runs: Vec<_> = pieces.map(|piece| run(piece[0].as_u64().unwrap(), number(&piece[1]))).collect();
    let prompt = runs.iter().map(|run| run.tokens).sum();
    let limit = of["max_new_tokens"].as_u64().map_or(output, |limit| limit as u32);
    let stops = u32::from(output < engine.output_limit(prompt, limit));
    runs.extend([run(1_000_000 + id * 100_000, output - stops), run(999_999, stops)]);
    engine.submit_with_limit(EngineRequest::new(id, runs, prompt, output), limit);
}

fn kind(engine: &SglangEngine) -> &'static str {
    let (load, batch) = (engine.load(), engine.batch());
    assert_eq!(load.prompts.len() + load.decoding as usize, batch.len());
    for (chunk, (_, new)) in load.prompts.iter().zip(&batch) {
        assert_eq!(chunk.new_tokens, *new);
    }
    match (load.prompts.is_empty(), load.decoding) {
        (true, 0) => "none",
        (true, _) => "decode",
        (false, 0) => "extend",
        (false, _) => "mixed",
    }
}

/// The iterations of SGLang's loop, ours, in a case, as the record has them.
fn sglang_steps(case: &Value) -> Vec<Value> {
    let mut engine = SglangEngine::new(sglang_settings(case));
    let mut coming = case["requests"].as_array().unwrap().iter().peekable();
    let (mut found, mut next_step) = (vec![], 0);
    loop {
        let step = next_step;
        let comes = |request: &Value| request["arrives_before_step"].as_u64().unwrap();
        while let Some(request) = coming.next_if(|request| comes(request) <= step) {
            submit(&mut engine, request);
        }
        let (busy, idle) = (engine.queued() != (0, 0), engine.is_idle());
        next_step = match coming.peek() {
            None if idle => break,
            Some(request) if idle => comes(request).max(step + 1),
            _ => step + 1,
        };
        let (mut retracted, mut cached, mut finished) = (vec![], vec![], vec![]);
        engine.choose(&mut |id, event| match event {
            EngineEvent::Preempted => retracted.push(id),
            EngineEvent::Admitted { cached_tokens } => cached.push(json!([id, cached_tokens])),
            EngineEvent::Loaded { .. } | EngineEvent::FirstToken | EngineEvent::Failed => {}
            EngineEvent::Finished => finished.push(id),
        });
        let scheduled: Vec<Value> = engine.batch().iter().map(|(id, new)| json!([id, new])).collect();
        engine.settle();
        let kind = kind(&engine);
        if !engine.load().is_empty() {
            assert!(engine.equal_steps() > 0);
            engine.complete(1, &mut |id, event| {
                if event == EngineEvent::Finished {
                    finished.push(id);
                }
            });
        }
        let (running, waiting) = engine.queued();
        if busy {
            found.push(json!({
                "step": step, "kind": kind, "scheduled": scheduled, "retracted": retracted, "aborted": [],
                "finished": finished, "cached": cached, "tokens_used": engine.cache_used() + engine.evictable(),
                "tokens_cached": engine.evictable(), "running": running, "waiting": waiting,
                "new_token_ratio": engine.new_token_ratio(),
            }));
        }
    }
    found
}

fn llamacpp_settings(row: &Value) -> LlamacppSettings {
    let of = &row["case"]["settings"];
    let flag = |name: &str| of[name].as_bool().unwrap();
    // MiB; 0 is off, and -1 no limit.
    let mebibytes = of["cache_ram"].as_i64().unwrap();
    let [prompt_bytes, token_bytes] = [0, 1].map(|at| row["record"]["state"][at].as_u64().unwrap());
    LlamacppSettings {
        slots: number(&of["parallel"]),
        batch_tokens: number(&of["batch_size"]),
        context_tokens: number(&of["max_model_len"]),
        unified: flag("kv_unified"),
        joined: flag("cont_batching"),
        prefix_caching: flag("cache_prompt"),
        similarity: of["slot_prompt_similarity"].as_f64().unwrap(),
        host_prompts: (mebibytes != 0).then(|| HostPromptSettings {
            bytes: u64::try_from(mebibytes).ok().map(|mebibytes| mebibytes << 20),
            prompt_bytes,
            token_bytes,
            idle_slots: flag("cache_idle_slots"),
        }),
    }
}

/// The steps of llama.cpp's server, ours, under the requests of a record, whose tokens are known by their bytes.
fn llamacpp_steps(row: &Value) -> Vec<Value> {
    let bytes = |text: &Value| -> Vec<TokenRun> {
        let digits = text.as_str().unwrap().as_bytes().chunks(2);
        let byte = |pair: &[u8]| u64::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.map(|pair| TokenRun { id: byte(pair), tokens: 1 }).collect()
    };
    let planned = row["case"]["requests"].as_array().unwrap();
    let mut coming = row["record"]["requests"].as_array().unwrap().iter().peekable();
    let mut engine = LlamacppEngine::new(llamacpp_settings(row));
    let mut found = vec![];
    while coming.peek().is_some() || !engine.is_idle() {
        let step = found.len() as u64;
        while let Some(next) = coming.next_if(|next| next["arrived"].as_u64().unwrap() <= step) {
            let plan = planned.iter().find(|plan| plan["id"] == next["id"]).unwrap();
            let (mut runs, answer) = (bytes(&next["prompt"]), bytes(&next["answer"]));
            let (id, prompt) = (next["id"].as_u64().unwrap(), runs.len() as u32);
            runs.extend(answer);
            engine.submit(EngineRequest::new(id, runs, prompt, number(&plan["output"])));
        }
        let (mut cached, mut failed, mut finished) = (vec![], vec![], vec![]);
        engine.choose(&mut |id, event| match event {
            EngineEvent::Admitted { cached_tokens } => cached.push(json!([id, cached_tokens])),
            EngineEvent::Failed => failed.push(id),
            _ => {}
        });
        engine.settle();
        let scheduled: Vec<Value> = engine.batch().iter().map(|(id, new)| json!([id, new])).collect();
        let slots = engine.batch_slots();
        engine.complete(1, &mut |id, event| {
            if event == EngineEvent::Finished {
                finished.push(id);
            }
        });
        found.push(json!({
            "step": step, "scheduled": scheduled, "slots": slots, "cached": cached, "finished": finished, "failed": failed,
        }));
    }
    found
}

/// The first difference of a record and our steps.
fn difference(row: &Value, found: &[Value]) -> Option<String> {
    let expected = row["record"]["steps"].as_array().unwrap();
    let name = &row["case"]["name"];
    for (real, ours) in expected.iter().zip(found) {
        for (key, value) in real.as_object().unwrap() {
            if ours[key] != *value {
                return Some(format!("{name}, step {}, {key}: {} for {value}", real["step"], ours[key]));
            }
        }
    }
    (expected.len() != found.len()).then(|| format!("{name}: {} steps for {}", found.len(), expected.len()))
}

fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// The records of a runtime: those of the project, or of `MANTILE_SCHEDULER_RECORDS`, a folder with new ones.
fn records(name: &str) -> String {
    let folder =
        std::env::var_os("MANTILE_SCHEDULER_RECORDS").map_or_else(|| PathBuf::from(FOLDER), PathBuf::from);
    unpacked(&folder.join(name))
}

/// Compares all records of a runtime with our steps. Returns in how many of theirs `what` is not empty.
fn compare(name: &str, what: &str, steps: fn(&Value) -> Vec<Value>) -> usize {
    let text = records(name);
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.len() > 20);
    let differing: Vec<String> = rows.iter().filter_map(|row| difference(row, &steps(row))).collect();
    assert!(differing.is_empty(), "{} of {}:\n{}", differing.len(), rows.len(), differing.join("\n"));
    let all = rows.iter().flat_map(|row| row["record"]["steps"].as_array().unwrap());
    all.filter(|step| !step[what].as_array().unwrap().is_empty()).count()
}

#[test]
fn vllm_chooses_the_same_batches() {
    let preempted = compare("vllm-0.33.0.jsonl.gz", "preempted", |row| vllm_steps(&row["case"]));
    assert!(preempted > 20, "records without preemptions say little");
}

/// Those of its scheduler in Python, with a stand-in for its blocks.
#[test]
fn trtllm_chooses_the_same_batches() {
    let preempted = compare("trtllm-002f3cc.jsonl.gz", "preempted", |row| trtllm_steps(&row["case"]));
    assert!(preempted > 20, "records without preemptions say little");
}

/// Also the memory in use and the ratio by which it is reserved, in both of its loops.
#[test]
fn sglang_chooses_the_same_batches() {
    let retracted = compare("sglang-0.5.23.jsonl.gz", "retracted", |row| sglang_steps(&row["case"]));
    assert!(retracted > 20, "records without retractions say little");
}

/// Also the slots, and what each request finds in its own, with one KV cache and with several, and where that is full.
#[test]
fn llamacpp_chooses_the_same_batches() {
    let failed = compare("llamacpp-0c1e570.jsonl.gz", "failed", llamacpp_steps);
    assert!(failed > 20, "records without errors say little");
}
