"""Cases that a runtime's own scheduler and ours both run, the engine's loop around a scheduler, and a check of its record.

A case is one line of JSON:

    {"name": "…", "settings": {…}, "requests": [
      {"id": 0, "arrives_before_step": 3, "prompt": [[start, length], …], "output": 17, "priority": 0}, …]}

`prompt` is runs of consecutive token ids, so that a prefix that two requests share is the same ids in both. Ids below
1,000,000 are for prompts; output n (from 0) of request `id` is the token `output_token(id, n)`, so that a later turn can
repeat an earlier answer. A record is one line too: {"name", "version", "steps": [step, …]}, where a step is one call of the
scheduler while at least one request was unfinished:

    step        number of the call, from 0; numbers are passed over while nothing is unfinished
    scheduled   [id, tokens] in the scheduler's order
    preempted   ids, in the order in which they lost their blocks
    cached      [id, tokens found in the prefix cache] of every request that this call took from the queue, also zero
    blocks_used, running, waiting   right after the call, before any output of it is processed
    finished    ids that ended between this call and the next
"""

import collections
import json
import sys

ANSWERS = 1_000_000
ANSWER = 100_000
# A scheduler that gives nothing this often in a row, with no batch left to wait for, never will.
IDLE = 4


def output_token(request, n):
    return ANSWERS + request * ANSWER + n


def tokens(runs):
    return [token for start, length in runs for token in range(start, start + length)]


def read(path):
    """The cases of a file, `-` for the standard input."""
    with sys.stdin if path == "-" else open(path) as lines:
        for line in lines:
            if line.strip():
                yield check_case(json.loads(line))


def refuse(case, why):
    raise SystemExit(f"case {case['name']}: {why}")


def check_case(case):
    """A case that cannot end, or whose tokens are not its own, says nothing about a scheduler."""
    settings = case["settings"]
    seen = set()
    for request in case["requests"]:
        name = f"request {request['id']}"
        length = sum(run[1] for run in request["prompt"])
        if request["id"] in seen:
            refuse(case, f"{name} is there twice")
        seen.add(request["id"])
        broken = any(start < 0 or count < 1 for start, count in request["prompt"])
        if length < 1 or broken or not 1 <= request["output"] < ANSWER:
            refuse(case, f"{name} needs a prompt and 1 to {ANSWER - 1} tokens of output")
        if length + request["output"] > settings["max_model_len"]:
            refuse(case, f"{name} has more tokens than max_model_len")
        if length + request["output"] > settings["block_size"] * settings["num_blocks"]:
            refuse(case, f"{name} has more tokens than the KV cache")
    steps = [request["arrives_before_step"] for request in case["requests"]]
    if steps != sorted(steps):
        refuse(case, "requests are not in the order of arrives_before_step")
    return case


def drive(case, engine, depth):
    """Runs a case as the engine's loop does and returns its steps.

    `depth` batches may be under way: with 1 a batch's output is processed before the next call of the scheduler, with 2
    after it. `engine` has add(request), schedule() -> (batch, step without its number), update(batch) -> ids that ended,
    and unfinished() -> whether a request waits or runs.
    """
    arrivals = collections.deque(case["requests"])
    under_way, steps, number, idle = collections.deque(), [], 0, 0
    while arrivals or under_way or engine.unfinished():
        if arrivals and not under_way and not engine.unfinished():
            number = max(number, arrivals[0]["arrives_before_step"])
        while arrivals and arrivals[0]["arrives_before_step"] <= number:
            engine.add(arrivals.popleft())
        if engine.unfinished():
            batch, step = engine.schedule()
            steps.append({"step": number, **step, "finished": []})
            number += 1
            under_way.append(batch)
            idle = 0 if step["scheduled"] else idle + 1
            if idle > IDLE:
                refuse(case, f"nothing was scheduled in {idle} calls up to call {number - 1}, and requests are unfinished")
            if len(under_way) < depth:
                continue
        if under_way:
            steps[-1]["finished"] += engine.update(under_way.popleft())
    return steps


class Progress:
    """How far one request is, by a record alone."""

    def __init__(self, request):
        self.prompt = sum(run[1] for run in request["prompt"])
        self.output = request["output"]
        self.known, self.computed, self.cached = self.prompt, 0, 0
        self.running, self.last, self.ended = False, None, None


def check_record(case, steps, depth):
    """Every known token that was not cached is computed once, once more after a preemption, and every request ends."""
    settings = case["settings"]
    state = {request["id"]: Progress(request) for request in case["requests"]}

    def require(true, what):
        if not true:
            refuse(case, f"step {step['step']}: {what}")

    for step in steps:
        for name in step["preempted"]:
            require(state[name].running, f"{name} was preempted and did not run")
            state[name].running, state[name].computed = False, 0
        for name, hit in step["cached"]:
            require(not state[name].running, f"{name} was taken from the queue and ran already")
            require(hit < state[name].known, f"{name} has {hit} tokens cached and only {state[name].known} to know")
            state[name].running, state[name].computed, state[name].cached = True, hit, hit
        for name, count in step["scheduled"]:
            one = state[name]
            require(one.running and count > 0, f"{name} was scheduled and did not run")
            one.computed += count
            require(one.computed <= one.known, f"{name} was scheduled past its tokens")
            if one.computed == one.known:
                one.known, one.last = one.known + 1, step["step"]
        for name in step["finished"]:
            one = state[name]
            require(one.known == one.prompt + one.output, f"{name} ended at {one.known} tokens")
            require(step["step"] == one.last + depth - 1, f"{name} ended in another step than its last token")
            one.ended, one.running = step["step"], False
        budget = settings.get("max_num_scheduled_tokens") or settings["max_num_batched_tokens"]
        require(sum(count for _, count in step["scheduled"]) <= budget, "more tokens than the budget")
        require(step["running"] <= settings["max_num_seqs"], "more requests than max_num_seqs")
        require(step["blocks_used"] <= settings["num_blocks"], "more blocks than there are")
    for name, one in state.items():
        if one.ended is None:
            refuse(case, f"request {name} never ended")
    return steps
