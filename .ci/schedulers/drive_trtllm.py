"""Runs cases on TensorRT-LLM's own scheduler in Python, without torch and without a device.

    python .ci/schedulers/drive_trtllm.py CHECKOUT cases.jsonl > records.jsonl
    python .ci/schedulers/random_trtllm_cases.py 1 200 | python .ci/schedulers/drive_trtllm.py CHECKOUT -

CHECKOUT is a folder with NVIDIA/TensorRT-LLM at the commit VERSION, or at least its file
`tensorrt_llm/_torch/pyexecutor/scheduler/scheduler.py`: the package of the registry has no source. Cases and records are
described in `cases.py`. Real is `SimpleUnifiedScheduler` with its capacity and its micro-batch scheduler, what a server
with `use_python_scheduler` runs and, after its own words, one to one what its default in C++ does. Stood in for are
requests and KV blocks (`trtllm_stand_ins.py`). The loop around them follows `_executor_loop` and `_executor_loop_overlap`
of `py_executor.py`, with what `resource_manager.py` does there.

Settings: max_num_seqs is `max_batch_size`, max_num_batched_tokens `max_num_tokens`, block_size `tokens_per_block`, the
others have TensorRT-LLM's names, but `overlap` in place of `disable_overlap_scheduler`. A request that says
`max_new_tokens` stops by itself after `output` tokens. The record of a case in which the server fails has an `error`.
"""

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import cases  # noqa: E402
import trtllm_stand_ins as stand_ins  # noqa: E402

VERSION = "002f3cc"
SETTINGS = {"max_num_seqs", "max_num_batched_tokens", "block_size", "num_blocks", "max_model_len", "overlap",
            "capacity_scheduler_policy", "enable_chunked_prefill", "enable_block_reuse", "enable_partial_reuse",
            "enable_prefix_aware_scheduling", "batch_wait_timeout_iters", "batch_wait_max_tokens_ratio"}


class Engine:
    """What PyExecutor does around its scheduler."""

    def __init__(self, scheduler, settings):
        self.of, self.Batch = settings, scheduler.ScheduledRequests
        self.blocks = stand_ins.BlockManager(settings["num_blocks"], settings["block_size"],
                                             settings["enable_block_reuse"], settings["enable_partial_reuse"])
        chunks = ("FIRST_COME_FIRST_SERVED", settings["block_size"]) if settings["enable_chunked_prefill"] else None
        self.scheduler = scheduler.SimpleUnifiedScheduler(
            settings["max_num_seqs"], settings["max_num_batched_tokens"], self.blocks, None,
            stand_ins.Policy[settings["capacity_scheduler_policy"]], chunks,
            enable_prefix_aware_scheduling=settings["enable_prefix_aware_scheduling"])
        self.queue, self.active, self.paused, self.newest, self.waited = [], [], [], None, 0

    def unfinished(self):
        return bool(self.queue or self.active)

    def add(self, request):
        limit = request.get("max_new_tokens", request["output"])
        one = stand_ins.Request(request["id"], cases.tokens(request["prompt"]), limit)
        one.output, one.end = request["output"], len(one.tokens) + request["output"]
        self.queue.append(one)

    def schedule(self):
        self.proceed()
        taken = self.of["max_num_seqs"] - len(self.active)
        self.active += self.queue[:taken]
        del self.queue[:taken]
        found = self.scheduler.schedule_request(self.active, set())
        context, self.paused = found.context_requests, list(found.paused_requests)
        if context and found.generation_requests and self.waits(context, found.generation_requests):
            context = []
        batch = self.Batch()
        for request in context:
            batch.append_context_request(request)
        for request in found.generation_requests:
            batch.append_generation_request(request)
        for request in self.paused:
            self.blocks.remove_sequence(request)
        added = self.prepare(batch) if batch.batch_size else []
        self.newest = batch
        running = sum(request.request_id in self.blocks.sequences for request in self.active)
        return batch, {
            "scheduled": [[request.request_id, request.context_chunk_size] for request in batch.context_requests]
            + [[request.request_id, 1] for request in batch.generation_requests],
            "preempted": [request.request_id for request in self.paused],
            "cached": [[request.request_id, request.prepopulated] for request in added],
            "blocks_used": self.blocks.count - len(self.blocks.free), "running": running,
            "waiting": len(self.queue) + len(self.active) - running}

    def waits(self, context, generation):
        """`_waiting_requests`: prompts wait for others, so that a step has many tokens."""
        most, ratio = self.of["batch_wait_timeout_iters"], self.of["batch_wait_max_tokens_ratio"]
        if most == 0 and ratio == 0:
            return False
        new = len(generation)
        for request in context:
            reused = request.estimated_reusable_tokens if request.is_first_context_chunk else 0
            new += max(1, request.context_chunk_size - reused)
        waits = self.waited < most and new < ratio * self.of["max_num_batched_tokens"]
        self.waited = self.waited + 1 if waits else 0
        return waits

    def prepare(self, batch):
        """`prepare_resources`, and `fit_token_budget` after it. Returns the requests that got their first blocks."""
        added = [request for request in batch.context_requests if request.is_first_context_chunk]
        self.blocks.add_sequence_batch(added)
        for request in batch.generation_requests:
            self.blocks.add_token(request.request_id)
        batch.reset_context_requests()
        context, size = batch.context_requests, self.of["block_size"]
        excess = (sum(request.context_chunk_size for request in context) + len(batch.generation_requests)
                  - self.of["max_num_batched_tokens"])
        for request in reversed(context if self.of["enable_chunked_prefill"] else []):
            if excess <= 0:
                break
            at, chunk = request.context_current_position, request.context_chunk_size
            end = (at + chunk - excess) // size * size
            shorter = min(chunk, max(size - at % size, end - at))
            request.context_chunk_size = shorter
            excess -= chunk - shorter
        if excess > 0:
            raise stand_ins.Failure("more tokens than max_num_tokens")
        batch.reset_context_requests(context)
        return added

    def proceed(self):
        """`_pause_requests` and `_update_request_states` of the newest batch."""
        for request in self.paused:
            # One that has ended while it was paused is not computed again.
            if request.state_value != stand_ins.COMPLETE:
                request.pause()
        batch, self.newest, self.paused = self.newest, None, []
        if batch is None:
            return
        for request in batch.all_requests():
            if request.state_value == stand_ins.COMPLETE:
                continue
            if request.is_context_init_state:
                request.move_to_next_context_chunk()
                if request.context_remaining_length:
                    continue
                request.state_value = stand_ins.GENERATION
            if self.of["overlap"] and request.will_complete_next_iteration():
                request.state_value = stand_ins.TO_COMPLETE

    def update(self, batch):
        if not self.of["overlap"]:
            self.proceed()
        for request in batch.context_requests_last_chunk + batch.generation_requests:
            if request.state_value != stand_ins.COMPLETE:
                count = request.output - (request.end - len(request.tokens))
                request.tokens.append(cases.output_token(request.request_id, count))
                if len(request.tokens) == request.end:
                    request.state_value = stand_ins.COMPLETE
        self.proceed()
        for request in batch.context_requests:
            self.blocks.store_context_blocks(request)
        ended = [request for request in self.active if request.state_value == stand_ins.COMPLETE]
        self.active = [request for request in self.active if request.state_value != stand_ins.COMPLETE]
        for request in ended:
            self.blocks.remove_sequence(request)
        return [request.request_id for request in ended]


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    scheduler = stand_ins.load(sys.argv[1])
    for case in cases.read(sys.argv[2]):
        if set(case["settings"]) != SETTINGS:
            cases.refuse(case, f"settings are {', '.join(sorted(SETTINGS))}")
        depth = 2 if case["settings"]["overlap"] else 1
        try:
            steps = cases.drive(case, Engine(scheduler, case["settings"]), depth)
        except (stand_ins.Failure, SystemExit) as error:
            # It also waits for good where a prompt under way is behind one that has no memory for all of it.
            print(json.dumps({"name": case["name"], "version": VERSION, "error": str(error)}), flush=True)
            continue
        # A request that stops by itself is in a step too many, of which it does not see the token.
        if not any("max_new_tokens" in request for request in case["requests"]):
            cases.check_record(case, steps, depth)
        print(json.dumps({"name": case["name"], "version": VERSION, "steps": steps}, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
