"""Draws cases for TensorRT-LLM's scheduler: `random_trtllm_cases.py SEED COUNT`, one case of JSON a line, see `cases.py`.

Prompts are those of `random_cases.py`, with requests that stop before their limit. Half of the cases have memory for a few
requests only.
"""

import json
import random
import sys

sys.dont_write_bytecode = True

import cases  # noqa: E402
import random_cases  # noqa: E402

MOST_OUTPUT = 60


def settings(draw, block_size, requests):
    """Settings under which every request can end."""
    totals = [random_cases.size(one["prompt"]) + one.get("max_new_tokens", one["output"]) for one in requests]
    length, needs = max(totals), [-(-total // block_size) for total in totals]
    # Memory for the next step alone is short, and requests are preempted, where not much more than one fits.
    policy, several = draw.choice((("GUARANTEED_NO_EVICT", 3), ("MAX_UTILIZATION", 1.5)))
    blocks = max(max(needs), int(draw.uniform(1, several) * sum(needs) / len(needs))) + draw.choice((0, 0, 1, 7))
    chunked = draw.random() < 0.6
    budget = draw.choice((2 * block_size, 128, 300, 1024, 8192))
    return {
        "max_num_seqs": draw.choice((1, 2, 4, 8, 64, 64)),
        # Without chunks a prompt must fit in a step; with them, a step has at least a chunk.
        "max_num_batched_tokens": max(budget, 2 * block_size if chunked else length),
        "block_size": block_size,
        "num_blocks": blocks if draw.random() < 0.7 else sum(needs) + draw.randint(0, 50),
        "max_model_len": length,
        "overlap": draw.random() < 0.7,
        "capacity_scheduler_policy": policy,
        "enable_chunked_prefill": chunked,
        "enable_block_reuse": draw.random() < 0.8,
        "enable_partial_reuse": draw.random() < 0.7,
        "enable_prefix_aware_scheduling": draw.random() < 0.85,
        "batch_wait_timeout_iters": draw.choice((0, 0, 0, 3, 10)),
        "batch_wait_max_tokens_ratio": draw.choice((0, 0.3, 0.8)),
    }


def case(seed, number):
    draw = random.Random(f"{seed}-{number}")
    block_size = draw.choice((8, 16, 32, 32, 64))
    found = random_cases.requests_of(draw, random_cases.Prompts(draw, block_size), draw.randint(3, 20))
    stops = draw.random() < 0.3
    for one in found:
        del one["priority"]
        # A prompt may repeat the whole answer of an earlier request, which it must not outgrow.
        one["output"] = min(one["output"], MOST_OUTPUT)
        if stops and draw.random() < 0.5:
            one["max_new_tokens"] = one["output"] + draw.randint(1, MOST_OUTPUT)
    of = settings(draw, block_size, found)
    return cases.check_case({"name": f"{seed}-{number}", "settings": of, "requests": found})


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(count):
        print(json.dumps(case(seed, number), separators=(",", ":")))


if __name__ == "__main__":
    main()
