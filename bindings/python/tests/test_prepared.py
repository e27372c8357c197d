"""Prepared plans: single steps with the numbers of `estimate`."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import mantile
import numpy
import pytest

PLANS = [
    {"model": "Llama-3.1-8B", "hardware": "8xh100", "tp": 2, "concurrency": 64},
    {"model": "Qwen3-30B-A3B", "hardware": "2xh100", "tp": 2, "ep": 2, "concurrency": 16},
    {"model": "gpt-oss-120b", "hardware": "1xh100", "runtime": "vllm", "concurrency": 8},
    {"model": "DeepSeek-R1", "hardware": "8xh200", "runtime": "sglang", "tp": 8, "concurrency": 32, "isl": 1000, "prefix": 200},
    {"model": "Llama-3.1-8B", "hardware": "4xh100", "pp": 2, "tp": 2, "concurrency": 7},
    {"model": "Llama-3.1-8B", "hardware": "4xh100", "prefill_tp": 1, "decode_tp": 2, "concurrency": 4},
    {"model": "DeepSeek-R1", "hardware": "8xh200", "tp": 8, "concurrency": 8, "draft": "mtp", "acceptance": 0.7},
]


@pytest.mark.parametrize("asked", PLANS, ids=lambda asked: f"{asked['model']} {len(asked)}")
def test_steps_are_those_of_estimate_to_the_last_digit(asked):
    estimate = mantile.estimate(**asked)
    plan = mantile.prepare(**asked)
    assert plan.notation == estimate.notation
    prefill, decode = (next(one for one in estimate.detail.phases if one.phase == phase) for phase in ("prefill", "decode"))
    isl, osl, prefix = estimate.question.isl, estimate.question.osl, estimate.question.prefix
    new, context = isl - prefix, isl + osl / 2 - 1
    requests = asked["concurrency"]
    assert plan.prefill(new, prefix, breakdown=True).pass_s * 1e3 == prefill.time_ms
    assert plan.decode(requests, context, breakdown=True).pass_s * 1e3 == decode.time_ms
    assert plan.step([(new, prefix)]) == plan.prefill(new, prefix)
    assert plan.step(decode=[context] * requests) == plan.decode(requests, context)
    assert plan.step([(new, prefix)], [context]) > plan.step(decode=[context])


def test_a_step_of_many_lengths():
    plan = mantile.prepare(**PLANS[0])
    assert plan.step(decode=[1000, 3000]) == plan.decode(2, 2000)
    assert plan.step(decode=numpy.array([1000, 3000])) == plan.decode(2, 2000)
    # Chunks of one prompt take no less than the whole.
    whole, chunks = plan.prefill(4096), plan.prefill(2048) + plan.prefill(2048, 2048)
    assert chunks > whole
    # Prompts share one reading of the weights, and their attention is that of each.
    assert plan.prefill(64) < plan.step([(64, 0), (64, 0)]) < 2 * plan.prefill(64)
    assert plan.step([(100, 0), (3000, 2000)]) > plan.prefill(3000, 2000)
    assert plan.step() == 0.0 and plan.decode(0, 10) == 0.0
    for faulty in (lambda: plan.decode(1, -1), lambda: plan.decode(1, float("nan")), lambda: plan.prefill(0), lambda: plan.step([(0, 5)])):
        with pytest.raises(ValueError, match="tokens"):
            faulty()


def test_the_cache_holds_what_estimate_holds():
    plan = mantile.prepare(**PLANS[0])
    memory = mantile.estimate(**{**PLANS[0], "concurrency": 1, "isl": 1, "osl": 1}).memory
    free = memory.usable_bytes - memory.total_bytes + memory.kv_cache_bytes
    per_token = 2 * 32 * 8 * 128 * 2 / 2  # keys and values of 32 layers, 8 heads of 128, bf16, on two devices
    assert plan.kv_tokens == pytest.approx(free / per_token, rel=0.03)
    assert plan.max_num_batched_tokens == 8192
    assert mantile.prepare(**PLANS[0], max_num_seqs=100).max_num_seqs == 100


def test_plans_pickle_and_run_in_threads():
    plan = mantile.prepare(**PLANS[0])
    again = pickle.loads(pickle.dumps(plan))
    assert again.notation == plan.notation and again.decode(8, 100) == plan.decode(8, 100)
    with ThreadPoolExecutor(4) as executor:
        assert {*executor.map(lambda _: plan.decode(8, 100), range(100))} == {plan.decode(8, 100)}
    assert "tp2" in repr(plan) and "StepTime(seconds=" in repr(plan.decode(8, 100, breakdown=True))
    with pytest.raises(mantile.MantileError):
        mantile.prepare(model="Llama-3.1-405B", hardware="1xl40s", tp=1, offload="never")


def test_a_step_takes_microseconds():
    plan = mantile.prepare(**PLANS[0])
    best = min(timed(plan) for _ in range(5))
    # Tests build without optimisation, on machines with other work.
    assert best < 100e-6


def timed(plan, number=200):
    start = time.perf_counter()
    for _ in range(number):
        plan.decode(64, 4000)
    return (time.perf_counter() - start) / number
