"""Draws cases for SGLang's scheduler: `random_sglang_cases.py SEED COUNT`, one case of JSON a line, as `cases.py` describes.

More than half have so little memory that requests are retracted. Prompts share prefixes of any length, or go on with an
earlier prompt and its output.
"""

import json
import random
import sys

OWN = 300_000
ANSWERS, ANSWER = 1_000_000, 100_000


def settings(draw, longest, most_output, context):
    page = draw.choice([1, 1, 1, 4, 16, 64])
    tight = draw.randint(max(longest + most_output + 3 * page + 10, 400), 2 * (longest + most_output) + 600)
    total = tight if draw.random() < 0.6 else 60 * (longest + most_output)
    chunk = draw.choice([-1, 128, 256, 512, 1024])
    found = {
        "max_prefill_tokens": draw.choice([16384, 256, 1024]),
        "chunked_prefill_size": max(chunk // page * page, page) if chunk > 0 else chunk,
        "max_running_requests": draw.choice([2, 4, 8, 16, 64]),
        "max_total_tokens": total // page * page,
        "page_size": page,
        "schedule_policy": draw.choice(["fcfs", "fcfs", "lpm"]),
        "schedule_conservativeness": draw.choice([1.0, 1.0, 0.3, 0.1, 1.3]),
        "disable_radix_cache": draw.random() < 0.2,
        "enable_mixed_chunk": draw.random() < 0.3,
        "context_length": context,
        "ignore_eos": draw.random() < 0.3,
        "overlap": draw.random() < 0.5,
        "prefill_decode_interval": 0,
        "prefill_decode_interval_min_bs": 0,
        "prefill_max_requests": None,
        "min_free_slots_delay": None,
    }
    if draw.random() < 0.1:
        found |= {"prefill_decode_interval": draw.choice([1, 3, 10]), "prefill_decode_interval_min_bs": draw.choice([0, 3])}
    if draw.random() < 0.1:
        found["prefill_max_requests"] = draw.choice([1, 3])
    if draw.random() < 0.1:
        found["min_free_slots_delay"] = draw.choice([2, 4])
    return found


def prompt(draw, number, longest, before, prefixes):
    own = OWN + number * 2000
    kind = draw.random()
    if kind < 0.4 or not before:
        return [[own, draw.randint(1, longest)]]
    if kind < 0.75:
        shared = list(draw.choice(prefixes))
        rest = [[own, draw.randint(1, longest - shared[1])]] if draw.random() < 0.9 else []
        return [shared, *rest]
    earlier = draw.choice(before)
    answer = [ANSWERS + earlier["id"] * ANSWER, earlier["output"]]
    return [*earlier["prompt"], answer, [own, draw.randint(1, 50)]]


def case(seed, number):
    draw = random.Random(f"{seed}-{number}")
    context = draw.choice([1024, 2048, 4096])
    longest = min(draw.choice([100, 400, 1200]), context // 2)
    most_output = min(draw.choice([5, 40, 150, 300]), context // 3)
    of = settings(draw, longest, most_output, context)
    most = min(context, of["max_total_tokens"] - of["page_size"] * 2 - 8)
    prefixes = [[10_000 * at + 1, draw.randint(5, max(6, longest // 2))] for at in range(1, 4)]
    requests, step = [], 0
    for at in range(draw.randint(5, 60)):
        step += draw.choice([0, 0, 0, 1, 2, 5]) if draw.random() < 0.95 else draw.randint(20, 300)
        output = draw.randint(1, most_output)
        runs = prompt(draw, at, longest, requests, prefixes)
        if sum(length for _, length in runs) + output + 6 >= most:
            runs = [[OWN + at * 2000, draw.randint(1, longest)]]
        one = {"id": at, "arrives_before_step": step, "prompt": runs, "output": output}
        if draw.random() < 0.2 and not of["ignore_eos"]:
            one["max_new_tokens"] = output + draw.randint(1, most_output)
        requests.append(one)
    return {"name": f"{seed}-{number}", "settings": of, "requests": requests}


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(count):
        print(json.dumps(case(seed, number), separators=(",", ":")))


main()
