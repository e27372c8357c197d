"""Random questions, each as the body of a request and as the words of the command line.

A key of the scenario and its flag have the same name, so a question is drawn once and written twice. Questions may be
faulty or infeasible: every door must then name the same key, or give the same reasons.
"""

import math
import random
import re

#: Small enough that the slowest door answers in seconds.
MODELS = ["Qwen3-0.6B", "Qwen3-8B", "Llama-3.1-8B", "gpt-oss-20b", "Qwen3-30B-A3B", "Llama-3.3-70B", "gemma-3-27b-it"]
HARDWARE = ["1xh100", "2xl40s", "8xh100-sxm", "1xrtx-4090", "2xmi300x", "1xm3-ultra", "3xa100-sxm", "2x4xh200-sxm"]
OBJECTIVES = ["latency", "throughput", "perf-per-dollar", "min-chips", "interactive", "least-cost", "single-user"]

#: Keys of the scenario with the values to draw from.
KEYS = {
    "objective": OBJECTIVES,
    "isl": [1, 128, 1000, 8192],
    "osl": [1, 64, 500],
    "concurrency": [1, 7, 64, 500],
    "rate": [0.1, 2.0, 30.0],
    "ttft": ["200ms", "2s", "none"],
    "tpot": ["10ms", "50ms", "none"],
    "percentile": ["p50", "p90", "p99"],
    "risk": ["p50", "p90"],
    "prefix": [0, 100],
    "weight_format": ["bf16", "fp8", "any", "q4_k_m", "int4-awq"],
    "kv_format": ["bf16", "fp8"],
    "runtime": ["vllm", "sglang", "llama.cpp", "any"],
    "offload": ["auto", "never", "always"],
    "max_num_seqs": [1, 64],
    "gpu_memory_utilization": [0.5, 0.9],
    "usd_per_device_hour": [0.5, 4.0],
    "electricity_usd_per_kwh": [0.1],
    "host_memory": ["64GB", "1TB"],
    "theoretical": [True],
}
#: Plans by the devices that they need.
PLANS = {
    1: ["1 x tp1 @1", "1 x tp1 @16"],
    2: ["1 x tp2 @8", "2 x tp1 @3", "prefill 1 x tp1 @1, decode 1 x tp1 @4"],
    4: ["1 x tp4 @16", "1 x tp2 pp2 @4"],
}


def flag(key: str, value) -> list[str]:
    word = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
    return [f"--{key.replace('_', '-')}", str(word)]


def scenario(draw: random.Random, most: int) -> tuple[dict, list[str]]:
    model = draw.choice(MODELS) if draw.random() > 0.04 else "no-such-model"
    body = {"model": model, "hardware": draw.choice(HARDWARE)}
    for key in draw.sample(sorted(KEYS), draw.randint(0, most)):
        body[key] = draw.choice(KEYS[key])
    if "percentile" in body and draw.random() > 0.1:
        body["rate"] = draw.choice(KEYS["rate"])
    return body, [word for key, value in body.items() for word in flag(key, value)]


def with_plan(draw: random.Random) -> tuple[dict, list[str]]:
    body, line = scenario(draw, 3)
    devices = math.prod(int(count) for count in re.findall(r"(\d+)x", body["hardware"]))
    plan = draw.choice([plan for needed, plans in PLANS.items() if needed <= devices for plan in plans])
    body["deployment"] = {"plan": plan}
    return body, line + ["--plan", plan]


def question(draw: random.Random) -> tuple[str, dict, list[str]]:
    """Name, body and words of a question."""
    name = draw.choice(["optimize", "optimize", "estimate", "estimate", "explain", "deploy", "recommend", "compare", "sweep", "audit"])
    if name == "optimize":
        body, line = scenario(draw, 5)
        return name, {"scenario": body}, [name, *line]
    if name in ("estimate", "deploy", "audit"):
        body, line = with_plan(draw)
        return name, {"scenario": body}, [name, *line]
    if name == "explain":
        body, line = with_plan(draw)
        number = draw.choice(["ttft", "tpot", "output_tok_s"])
        return name, {"scenario": body, "number": number}, [name, *line, "--number", number]
    if name == "recommend":
        model, users = draw.choice(MODELS), draw.choice([1, 8])
        only = draw.choice(["nvidia-l40s", "nvidia-rtx-4090"])
        line = [name, "--model", model, "--users", str(users), "--only", only]
        return name, {"scenario": {"model": model}, "users": users, "only": [only]}, line
    if name == "compare":
        hardware = draw.sample(HARDWARE[:4], 2)
        model = draw.choice(MODELS)
        line = [name, "--model", model, "--hardware", ",".join(hardware)]
        return name, {"hardware": hardware, "scenario": {"model": model}}, line
    body, line = scenario(draw, 1)
    vary = draw.choice(["isl=100,1000", "tp=1,2", "concurrency=1,8"])
    return name, {"scenario": body, "vary": [vary]}, [name, *line, "--vary", vary]


def questions(count: int, seed: int) -> list[tuple[str, dict, list[str]]]:
    draw = random.Random(seed)
    return [question(draw) for _ in range(count)]
