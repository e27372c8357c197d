//! The two published interfaces: their documented examples, and laws that tie their numbers to those of the requests.

use mantile::request::{UNCONTROLLED, entry};
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use super::Running;

fn post(server: &Running, path: &str, body: &Value) -> (u16, Value) {
    let (status, _, text) =
        server.send("POST", path, &[("content-type", "application/json")], &body.to_string());
    (status, serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{fault}: {text}")))
}

fn get(server: &Running, path: &str) -> (u16, Value) {
    let (status, _, text) = server.send("GET", path, &[], "");
    (status, serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{fault}: {text}")))
}

/// The documented example of `/config/system-metrics`.
fn system_metrics() -> Value {
    json!({
        "model_id": "llama_3.3_70b", "hardware_config": "nvidia_nvl72_rack", "batch_size": 1, "input_seq": 2048,
        "output_seq": 128,
        "layers": {
            "attention": {"tensor_parallel": 8, "context_parallel": 1, "dtype": "bf16"},
            "feedforward": {"tensor_parallel": 8, "sequence_parallel": 1, "dtype": "bf16"},
            "norm": {"tensor_parallel": 1, "dtype": "bf16"},
            "embedding": {"tensor_parallel": 1, "dtype": "bf16"},
        },
    })
}

fn layer_metrics(layer_type: &str) -> Value {
    json!({
        "model_id": "llama_3.3_70b", "hardware_config": "nvidia_nvl72_rack", "layer_type": layer_type,
        "batch_size": 1, "seq_length": 2048, "dtype": "bf16", "tensor_parallel": 8, "context_parallel": 1,
        "sequence_parallel": 1,
    })
}

/// The documented example of `/v1/estimate`.
fn estimate() -> Value {
    json!({
        "model_id": "llama-3.1-70b-instruct", "runtime_id": "vllm-0.6.4-cuda12.4",
        "hardware": {"hardware_id": "dual-4090-epyc"},
        "workload": {"context_tokens": 8192, "output_tokens": 512, "concurrency": 8},
        "objective": "throughput",
    })
}

#[test]
fn the_published_ids_are_listed_and_found() {
    let server = Running::start();
    let (_, hardware) = get(&server, "/hardware");
    let configs = hardware["configs"].as_array().unwrap();
    for id in ["nvidia_gb200_single", "nvidia_h100_80gb", "nvidia_nvl72_rack"] {
        assert!(configs.contains(&json!(id)), "{id}");
    }
    let (_, models) = get(&server, "/models");
    let ids: Vec<&str> = models["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["model_id"].as_str().unwrap())
        .collect();
    for id in
        ["llama_3.3_70b", "tinyllama_1.1b", "kimi_k2", "qwen3_235b_moe", "deepseek_v3.1_671b", "llava_1.5_7b"]
    {
        assert!(ids.contains(&id), "{id}");
    }
    // Whatever is listed is found.
    for id in ids {
        assert_eq!(get(&server, &format!("/models/{id}")).0, 200, "{id}");
    }
    for id in configs {
        assert_eq!(get(&server, &format!("/hardware/{}", id.as_str().unwrap())).0, 200, "{id}");
    }
    for path in
        ["/models/no-such-model", "/hardware/no-such-system", "/api/layers?model_id=none", "/api/layers"]
    {
        assert_eq!(get(&server, path).0, 422, "{path}");
    }
    for (method, path) in [("POST", "/config/load"), ("POST", "/estimate"), ("GET", "/estimate")] {
        let (status, _, text) = server.send(method, path, &[], "");
        assert!(status == 410 && text.contains("/config/system-metrics"), "{text}");
    }
}

#[test]
fn layers_have_counts_and_only_legal_degrees() {
    let server = Running::start();
    let (status, answer) = get(&server, "/api/layers?model_id=llama_3.3_70b");
    assert_eq!(status, 200, "{answer}");
    let layers = answer["layers"].as_array().unwrap();
    let of = |name: &str| layers.iter().find(|layer| layer["type"] == name).unwrap();
    for (name, count) in [("attention", 80), ("feedforward", 80), ("embedding", 2)] {
        assert_eq!(of(name)["count"], count, "{name}");
    }
    let degrees = of("attention")["available_parallelism"]["tensor_parallel"].as_array().unwrap();
    // 64 heads and 8 KV heads: every degree that is offered runs, and a degree that is not is refused.
    for tp in 1..=16 {
        let mut body = layer_metrics("attention");
        body["tensor_parallel"] = json!(tp);
        let (status, answer) = post(&server, "/config/layer-metrics", &body);
        assert_eq!(status == 200, degrees.contains(&json!(tp)), "tp {tp}: {answer}");
    }
    assert!(degrees.contains(&json!(8)) && !degrees.contains(&json!(7)), "{degrees:?}");
}

/// The published example of a composer, literally: attention on 4 chips, feed-forward on 8, norm and embedding on one.
#[test]
fn the_composer_example_needs_the_chips_of_its_widest_layer_type() {
    let server = Running::start();
    let mut body = system_metrics();
    body["layers"]["attention"]["tensor_parallel"] = json!(4);
    let (status, answer) = post(&server, "/config/system-metrics", &body);
    assert_eq!(status, 200, "{answer}");
    for phase in ["prefill", "decode"] {
        let phase = &answer[phase];
        assert_eq!((&phase["chips"], &phase["min_chips"]), (&json!(8), &json!(8)), "max(4, 8)");
        let reason = phase["min_chips_reason"].as_str().unwrap();
        assert!(reason.starts_with("8, the most of attention 4, feed-forward 8"), "{reason}");
        let least =
            ["attention", "feedforward", "norm", "embedding"].map(|name| &phase["layers"][name]["min_chips"]);
        assert_eq!(least, [&json!(4), &json!(8), &json!(1), &json!(1)]);
    }
}

#[test]
fn metrics_of_layers_are_those_of_the_whole_and_of_the_static_batch() {
    let server = Running::start();
    let (status, whole) = post(&server, "/config/system-metrics", &system_metrics());
    assert_eq!(status, 200, "{whole}");
    for phase in ["prefill", "decode"] {
        let of = |key: &str| whole[phase][key].as_f64().unwrap();
        let layers = whole[phase]["layers"].as_object().unwrap();
        let sum = |key: &str| layers.values().map(|layer| layer[key].as_f64().unwrap()).sum::<f64>();
        assert!((sum("flops") / of("flops") - 1.0).abs() < 1e-9, "{phase}");
        assert!((sum("weights_bytes") / of("weights_bytes") - 1.0).abs() < 1e-9, "{phase}");
        assert!((sum("communication_bytes") / of("communication_bytes") - 1.0).abs() < 1e-9, "{phase}");
        // The host and launches belong to no layer type.
        assert!(sum("latency_ms") <= of("latency_ms") * (1.0 + 1e-9), "{phase}");
        assert_eq!(whole[phase]["chips"], 8);
    }
    // 70.55 G parameters in bf16: embedding and head whole, the rest over eight.
    let weights = whole["prefill"]["weights_bytes"].as_f64().unwrap();
    let vocabulary = 2.0 * 2.0 * 128_256.0 * 8192.0;
    let expected = vocabulary + (2.0 * 70_553_706_496.0 - vocabulary) / 8.0;
    assert!((weights / expected - 1.0).abs() < 1e-3, "{weights} {expected}");
    let request = json!({
        "scenario": {
            "model": "llama_3.3_70b", "hardware": "nvidia_nvl72_rack", "isl": 2048, "osl": 128, "weight_format": "bf16",
            "deployment": {"both": {"tp": 8, "cp": 1, "vocab_tp": 1}},
        },
        "batch": 1,
    });
    let answer = (entry("static").unwrap().answer)(&Catalog::default(), &request, &UNCONTROLLED).unwrap();
    for (published, ours) in [("ttft_ms", "ttft_ms"), ("tpot_ms", "tpot_ms"), ("e2e_ms", "e2e_ms")] {
        assert_eq!(whole[published], answer[ours], "{published}");
    }
    // The shape of older clients: a request for each phase.
    let phase = |tokens: &str, count: u64| {
        json!({
            "model_id": "llama_3.3_70b", "hardware_id": "nvidia_nvl72_rack", "batch_size": 1, tokens: count,
            "layers": system_metrics()["layers"],
        })
    };
    let body = json!({"prefill_req": phase("seq_len", 2048), "decode_req": phase("context_len", 2048)});
    let (status, phases) = post(&server, "/config/system-metrics", &body);
    assert_eq!(status, 200, "{phases}");
    assert_eq!(phases["prefill"]["latency_ms"], whole["prefill"]["latency_ms"]);
    for layer in ["attention", "feedforward", "norm", "embedding"] {
        let (status, one) = post(&server, "/config/layer-metrics", &layer_metrics(layer));
        assert_eq!(status, 200, "{one}");
        assert!(one["prefill"]["bound"].is_string(), "{one}");
    }
    // A device is taken as often as the degrees need.
    let mut body = layer_metrics("feedforward");
    body["hardware_config"] = json!("nvidia_h100_80gb");
    assert_eq!(post(&server, "/config/layer-metrics", &body).0, 200);
    body["dtype"] = json!("no-such-format");
    assert_eq!(post(&server, "/config/layer-metrics", &body).0, 422);
}

#[test]
fn the_estimate_of_the_documented_example_obeys_physics() {
    let server = Running::start();
    let (status, answer) = post(&server, "/v1/estimate", &estimate());
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["feasibility"], "with_offload");
    assert_eq!(post(&server, "/api/estimator/v1/estimate", &estimate()).1, answer, "both prefixes");
    let of = |key: &str, quantile: &str| answer["estimates"][key][quantile].as_f64().unwrap();
    for key in ["decode_toks_sec", "prefill_toks_sec"] {
        assert!(of(key, "p10") <= of(key, "p50") && of(key, "p50") <= of(key, "p90"), "{key}");
    }
    assert!(of("ttft_ms", "prediction_p10") <= of("ttft_ms", "p50"));
    assert!(of("ttft_ms", "p50") <= of("ttft_ms", "prediction_p90"));
    assert_eq!(
        answer["estimates"]["ttft_ms"].as_object().unwrap().len(),
        4,
        "a name for each kind of quantile"
    );
    assert!(
        of("ttft_ms", "p95") > 0.0
            && of("vram_peak_gb", "p50") <= 2.0 * 24.0 * 1.0737
            && of("ram_peak_gb", "p50") > 0.0
    );
    // 8.2 GB over the host links of both cards at every step allow 8 x 2 x 31.5 / 8.2 tokens a second at most.
    assert!(of("decode_toks_sec", "p50") < 8.0 * 2.0 * 31.5 / 8.2, "{answer}");
    assert!(answer["bottlenecks"].as_array().unwrap().contains(&json!("pcie_bandwidth")), "{answer}");
    assert!(answer["bottlenecks"].as_array().unwrap().contains(&json!("vram_capacity")), "{answer}");
    let shares = answer["bottleneck_shares"].as_array().unwrap();
    let sum: f64 = shares.iter().map(|share| share["percent"].as_f64().unwrap()).sum();
    assert!((sum - 100.0).abs() < 1e-6, "{shares:?}");
    let best = &answer["recommended_configs"][0];
    assert_eq!(
        (best["quant"].as_str().unwrap(), &best["tensor_parallel"]),
        ("int4-awq", &json!(2)),
        "{best}"
    );
    assert!(best["commands"][0].as_str().unwrap().contains("--cpu-offload-gb"), "it can be launched: {best}");
    // The same with the figures of the profile inline.
    let inline = json!({
        "gpus": [{"sku": "RTX 4090", "count": 2, "vram_gb": 24, "mem_bw_gbps": 1008, "fp16_tflops": 82,
                  "pcie_gen": 4, "pcie_lanes": 16}],
        "interconnect": {"type": "pcie", "bw_gbps": 31.5, "latency_us": 2.5},
        "cpu": {"sku": "EPYC 9354", "cores": 32, "mem_bw_gbps": 205, "numa_nodes": 2},
        "ram_gb": 256, "storage": {"type": "nvme", "read_gbps": 7},
    });
    let mut body = estimate();
    body["hardware"] = inline;
    let (status, with_figures) = post(&server, "/v1/estimate", &body);
    assert_eq!(status, 200, "{with_figures}");
    assert_eq!(with_figures["feasibility"], "with_offload");
    assert_eq!(without_effect(&with_figures), ["storage.read_gbps", "cpu.cores", "cpu.numa_nodes"]);
    // Half the memory bandwidth is never faster.
    body["hardware"]["gpus"][0]["mem_bw_gbps"] = json!(504);
    let (_, slower) = post(&server, "/v1/estimate", &body);
    let decode = |answer: &Value| answer["estimates"]["decode_toks_sec"]["p50"].as_f64().unwrap();
    assert!(decode(&slower) <= decode(&with_figures), "{slower}");
    for (key, value) in
        [("sku", json!("no such card")), ("vram_gb", json!(-1)), ("mem_bw_gbps", json!(1e300))]
    {
        let mut body = body.clone();
        body["hardware"]["gpus"][0][key] = value;
        assert_eq!(post(&server, "/v1/estimate", &body).0, 422, "{key}");
    }
}

/// The figures of a profile that an answer says to change no number.
fn without_effect(answer: &Value) -> Vec<String> {
    let explanations = answer["explanations"].as_array().unwrap().iter().filter_map(Value::as_str);
    let found =
        explanations.filter_map(|text| text.split_once(" of the profile change").map(|(keys, _)| keys));
    found.flat_map(|keys| keys.split(", ").map(str::to_owned)).collect()
}

/// Each figure of a profile changes a number, or the answer says that it does not.
#[test]
fn every_figure_of_a_profile_acts_or_is_named() {
    let server = Running::start();
    let figures = [
        ("/gpus/0", "vram_gb", json!(20)),
        ("/gpus/0", "mem_bw_gbps", json!(300)),
        ("/gpus/0", "fp16_tflops", json!(40)),
        ("/interconnect", "bw_gbps", json!(3)),
        ("/interconnect", "latency_us", json!(900)),
        ("/cpu", "cores", json!(4)),
        ("/cpu", "mem_bw_gbps", json!(20)),
        ("/cpu", "numa_nodes", json!(8)),
        ("/storage", "read_gbps", json!(0.5)),
    ];
    for hardware in [
        json!({"gpus": [{"sku": "RTX 4090", "count": 2}]}),
        json!({"hardware_id": "dual-4090-epyc"}),
        json!({"gpus": [{"sku": "RTX 4090"}]}),
    ] {
        for (place, key, value) in &figures {
            let part = place.split('/').nth(1).unwrap();
            if part == "gpus" && hardware["gpus"].is_null() {
                continue;
            }
            // One runtime reads layers in host memory over the link, the other computes them on the host.
            let [streamed, computed] = ["vllm", "llama.cpp"].map(|runtime| {
                let mut body = estimate();
                body["runtime_id"] = json!(runtime);
                body["quant"] = Value::Null;
                body["hardware"] = hardware.clone();
                body["hardware"]["ram_gb"] = json!(256);
                let (status, before) = post(&server, "/v1/estimate", &body);
                assert_eq!(status, 200, "{before}");
                match part {
                    "gpus" => body["hardware"]["gpus"][0][key] = value.clone(),
                    _ => body["hardware"][part] = json!({ *key: value }),
                }
                let (status, after) = post(&server, "/v1/estimate", &body);
                assert_eq!(status, 200, "{after}");
                let named = without_effect(&after).iter().any(|one| one.ends_with(key));
                (after["estimates"] != before["estimates"], named)
            });
            let shown = format!("{part}.{key}: {hardware}");
            assert_eq!(streamed.1, computed.1, "{shown}");
            assert_ne!(
                streamed.0 || computed.0,
                streamed.1,
                "{shown} acts, or the answer says that it does not"
            );
        }
    }
}

#[test]
fn an_estimate_is_in_device_memory_or_impossible_where_it_should_be() {
    let server = Running::start();
    let of = |model: &str, hardware: &str, quant: Option<&str>| {
        let mut body = estimate();
        body["model_id"] = json!(model);
        body["hardware"] = json!({"hardware_id": hardware});
        body["quant"] = json!(quant);
        post(&server, "/v1/estimate", &body).1
    };
    assert_eq!(of("llama-3.1-8b", "nvidia_h100_80gb", None)["feasibility"], "in_vram");
    let small = of("llama-3.1-70b-instruct", "dual-4090-epyc", Some("awq-int4"));
    assert_eq!(small["feasibility"], "with_offload", "{small}");
    let impossible = of("deepseek_v3.1_671b", "rtx-3090-x1", None);
    assert_eq!(impossible["feasibility"], "insufficient_memory", "{impossible}");
    assert!(impossible["estimates"].is_null() && !impossible["explanations"].as_array().unwrap().is_empty());
    assert!(impossible["reason_codes"].as_array().unwrap().contains(&json!("out_of_memory")), "{impossible}");
}

#[test]
fn measured_runs_are_compared_with_their_predictions() {
    let server = Running::start();
    let (_, before) = get(&server, "/v1/calibrate");
    assert_eq!((&before["accepted"], &before["refit_due"]), (&json!(0), &json!(false)));
    let run = |decode: f64| {
        json!({
            "run_id": "uuid", "timestamp_utc": "2026-02-07T21:00:00Z", "model_id": "llama-3.1-70b-instruct",
            "runtime_id": "vllm-0.6.4-cuda12.4", "hardware_id": "dual-4090-epyc", "quant": "awq-int4",
            "context_tokens": 8192, "output_tokens": 512, "concurrency": 8,
            "parallelism": {"tensor_parallel": 2, "pipeline_parallel": 1},
            "metrics": {"ttft_ms_p50": 420, "ttft_ms_p95": 690, "prefill_toks_sec": 1650, "decode_toks_sec": decode,
                        "latency_ms_p50": 940, "latency_ms_p95": 1870, "vram_peak_gb": 45.8, "ram_peak_gb": 71.0,
                        "pcie_tx_gbps": 19.1, "gpu_util_pct": 87},
            "env": {"driver": "550.120", "os": "ubuntu-24.04", "container_hash": "sha256:..."},
        })
    };
    // The documented run breaks the bandwidth of its links: its prediction is far below it, and the alarm is on.
    let (status, answer) = post(&server, "/v1/calibrate", &run(168.0));
    assert_eq!((status, &answer["accepted"]), (200, &json!(true)), "{answer}");
    let decode = answer["errors"]["decode"].as_f64().unwrap();
    assert!(decode < -0.5, "{answer}");
    assert_eq!(answer["status"]["refit_due"], true);
    let predicted = 168.0 * (1.0 + decode);
    let (_, exact) = post(&server, "/v1/calibrate", &run(predicted));
    assert!(exact["errors"]["decode"].as_f64().unwrap().abs() < 1e-12, "{exact}");
    let (_, after) = get(&server, "/api/estimator/v1/calibrate");
    let median = after["drift"][0]["median_error"].as_f64().unwrap();
    assert!((median - decode.abs() / 2.0).abs() < 1e-12, "the median of two errors is their mean: {after}");
    assert_eq!(post(&server, "/v1/calibrate", &run(-1.0)).0, 422);
}

#[test]
fn the_catalogue_of_the_estimator_has_what_its_examples_name() {
    let server = Running::start();
    for (path, key, name) in [
        ("models", "models", "llama_3.3_70b"),
        ("runtimes", "runtimes", "vllm-0.6.4-cuda12.4"),
        ("quantizations", "quantizations", "awq-int4"),
        ("quantizations", "quantizations", "gptq-int4"),
        ("hardware-profiles", "hardware_profiles", "dual-4090-epyc"),
    ] {
        let (status, answer) = get(&server, &format!("/v1/catalog/{path}"));
        let rows = answer[key].as_array().unwrap();
        let named = |row: &&Value| row["aliases"].as_array().unwrap().contains(&json!(name));
        assert!(status == 200 && rows.iter().any(|row| named(&row)), "{path} {name}");
    }
}

#[test]
fn an_estimate_has_its_cost_and_the_hours_count() {
    let server = Running::start();
    let mut body = estimate();
    let cost = |body: &Value| post(&server, "/v1/estimate", body).1["estimates"]["cost"].clone();
    let all_day = cost(&body);
    body["hours_per_day"] = json!(8.0);
    let some = cost(&body);
    for (found, hours) in [(&all_day, 24.0), (&some, 8.0)] {
        let of = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{key}: {found}"));
        assert!((of("usd_per_day") / (of("usd_per_hour") * hours) - 1.0).abs() < 1e-9, "{found}");
        assert!((of("tok_per_usd") * of("usd_per_mtok") / 1e6 - 1.0).abs() < 1e-9, "{found}");
        assert!(of("usd_per_month") > of("usd_per_day"), "{found}");
    }
}

#[test]
fn the_largest_model_is_an_objective() {
    let server = Running::start();
    let mut body = estimate();
    body.as_object_mut().unwrap().remove("model_id");
    body["objective"] = json!("max_model_size");
    let (status, answer) = post(&server, "/v1/estimate", &body);
    assert_eq!(status, 200, "{answer}");
    assert!(answer["estimates"].is_object() && answer["model_id"].is_string(), "{answer}");
    // It is no smaller than any that runs.
    let parameters = |name: &str| Catalog::default().built(name).unwrap().1.parameters().unique;
    let largest = parameters(answer["model_id"].as_str().unwrap());
    for model in ["Llama-3.1-8B", "Qwen3-32B", "Llama-3.3-70B", "gpt-oss-120b"] {
        body["model_id"] = json!(model);
        body["objective"] = json!("throughput");
        let (_, one) = post(&server, "/v1/estimate", &body);
        let in_memory = one["feasibility"] == "in_vram";
        assert!(!in_memory || parameters(model) <= largest, "{model} runs: {answer}");
    }
    body["objective"] = json!("max_model_size");
    assert_eq!(post(&server, "/v1/estimate", &body).0, 422, "a model that is named is not chosen");
}
