"""Draws cases for llama.cpp's server: `random_llamacpp_cases.py SEED COUNT`, one case of JSON a line, see `cases.py`.

Prompts are those of `random_cases.py`. Half of the cases have one KV memory for all slots, of which some are too small for
the requests that run together, so that the server clears idle slots, halves its batches, and answers with errors.
"""

import json
import random
import sys

sys.dont_write_bytecode = True

import cases  # noqa: E402
import random_cases  # noqa: E402

random_cases.LONGEST_PROMPT = 600
MOST_OUTPUT = 60
# The server rounds the context of a slot up to them.
CONTEXT_STEP = 256


def settings(draw, requests):
    """Settings under which every request can end, where it runs alone."""
    totals = [random_cases.size(one["prompt"]) + one["output"] for one in requests]
    parallel = draw.choice((1, 2, 3, 4, 4, 6, 12))
    unified = draw.random() < 0.5
    context = -(-max(totals) // CONTEXT_STEP) * CONTEXT_STEP
    if unified:
        context += draw.choice((0, 0, 1, 2, 4, 20)) * CONTEXT_STEP
    batch = draw.choice((8, 32, 64, 100, 256, 512, 2048))
    if not unified:
        # With a cache of its own for each slot the server does not start with more slots than tokens of a batch.
        batch = max(batch, parallel)
    return {
        "parallel": parallel,
        "kv_unified": unified,
        "ctx_size": context if unified else context * parallel,
        "max_model_len": context,
        "batch_size": batch,
        "ubatch_size": min(batch, draw.choice((32, 512))),
        "cont_batching": draw.random() < 0.9,
        "cache_prompt": draw.random() < 0.85,
        # MiB: off, a few prompts, one without a limit, and the usual one.
        "cache_ram": draw.choice((0, 1, 1, -1, 8192)),
        "cache_idle_slots": draw.random() < 0.7,
        "slot_prompt_similarity": draw.choice((0, 0.1, 0.1, 0.5)),
        # One block a token, for the checks that all cases share.
        "block_size": 1,
        "num_blocks": context,
    }


def case(seed, number):
    draw = random.Random(f"{seed}-{number}")
    found = random_cases.requests_of(draw, random_cases.Prompts(draw, 16), draw.randint(3, 30))
    for one in found:
        del one["priority"]
        one["output"] = min(one["output"], MOST_OUTPUT)
    return cases.check_case({"name": f"{seed}-{number}", "settings": settings(draw, found), "requests": found})


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(count):
        print(json.dumps(case(seed, number), separators=(",", ":")))


if __name__ == "__main__":
    main()
