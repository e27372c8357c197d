"""Runs SGLang's own scheduler on cases, without a device, and prints the batches that it made.

    python .ci/schedulers/drive_sglang.py [--wheel FOLDER] [--overlap] CASES.jsonl > BATCHES.jsonl

One case a line, `-` for the standard input:

    {"name": "…", "settings": {…}, "requests": [{"id": 0, "arrives_before_step": 3, "prompt": [[start, length], …],
     "output": 17, "max_new_tokens": 32, "ignore_eos": false}, …]}

Settings that are left out are DEFAULTS; "chunked_prefill_size" -1 is off. `prompt` is runs of consecutive token ids, and
output n of request `id` is the token 1,000,000 + 100,000 id + n, so that a later turn can repeat an earlier answer. A
request that says `max_new_tokens` stops by itself after `output` tokens; else it runs into that limit. Each printed step
is an iteration of the event loop while a request was unfinished: see `begin` and `close`.

The event loop, the choice of batches, the prefix cache, the memory pool and the handling of results are SGLang's (see
`sglang_stand_ins.py`). Only what a network or a device would do is not: requests come from the case, a forward pass gives
made-up tokens, and neither takes time. The server's default is `--overlap`.
"""

import argparse
import json
import logging
import sys
from array import array

sys.dont_write_bytecode = True

import sglang_stand_ins as stand_ins  # noqa: E402
from sglang_stand_ins import Settings  # noqa: E402

DEFAULTS = {
    "max_prefill_tokens": 16384, "chunked_prefill_size": 8192, "max_running_requests": 64, "max_total_tokens": 40000,
    "page_size": 1, "schedule_policy": "fcfs", "schedule_conservativeness": 1.0, "disable_radix_cache": False,
    "enable_mixed_chunk": False, "context_length": 8192, "prefill_max_requests": None, "min_free_slots_delay": None,
    "prefill_decode_interval": 0, "prefill_decode_interval_min_bs": 0, "ignore_eos": False, "overlap": False,
}
STOP = 999_999
# So many iterations in a row without a batch, with no request to come, and there will never be one.
STALLED = 1000
# What a server without these features has in their place.
OFF = (
    "abort_on_priority_when_disabled", "enable_fpm", "enable_hicache_storage", "enable_hierarchical_cache",
    "enable_hisparse", "enable_lmcache", "enable_lora", "enable_overlap_mlx", "enable_priority_scheduling",
    "enable_unified_cache_external_linker", "enable_unified_memory", "is_hybrid_swa", "require_mlp_sync",
    "schedule_low_priority_values_first")
NONE = (
    "decode_offload_manager", "dllm_config", "draft_worker", "dynamic_chunk_sizer", "hisparse_coordinator",
    "lora_drainer", "max_queued_requests", "max_new_tokens_limit", "metrics_collector", "sliding_window_size",
    "truncation_align_size")
# Methods of the scheduler that tell, log or wait for a device.
UNHEARD = (
    "_apply_war_barrier", "_maybe_clear_mm_inputs", "_record_step_counters", "launch_batch_sample_if_needed",
    "maybe_send_health_check_signal", "publish_load_snapshot")


def nothing(*_, **__):
    """Stands for calls that only tell others what happened."""


def same(value, **_):
    """Stands for calls that change a batch for features that are off."""
    return value


def expand(runs):
    """The tokens of a prompt given as [first, length] runs."""
    return array("q", (token for first, length in runs for token in range(first, first + length)))


def batch_kind(mode):
    return "decode" if mode.is_decode() else "mixed" if mode.is_mixed() else "extend"


class Recorder:
    """What a network and a device do, replaced, and a record of the batches; SGLang's scheduler is the next base class."""

    def drive(self, case):
        self.case, self.steps, self.step, self.quiet, self.record = case, [], 0, 0, None
        self.coming = sorted(case["requests"], key=lambda request: request["arrives_before_step"])
        self.live, self.output = {}, {}
        (self.event_loop_overlap if self.enable_overlap else self.event_loop_normal)()
        self.close()
        return self.steps

    def ingest_requests(self, stop_at_pause=False):
        """The start of an iteration: closes the record of the one before it and takes the requests that arrive."""
        self.close()
        while self.coming and self.coming[0]["arrives_before_step"] <= self.step:
            self.receive(self.coming.pop(0))
        self.begin()
        if self.busy or self.result_queue:
            self.step += 1
        elif self.coming:
            # This iteration finds the server idle; those up to the next arrival would be the same.
            self.step = max(self.step + 1, self.coming[0]["arrives_before_step"])
        else:
            self.gracefully_exit = True
        return []

    def begin(self):
        """Opens the record of an iteration.

        `scheduled` are the requests of its batch and their tokens, in its order; `cached` those that it starts, or
        starts again after a retraction, with the tokens that the prefix cache had. `kind` is "none" without a batch.
        """
        self.busy = bool(self.live)
        self.record = {"step": self.step, "kind": "none", "scheduled": [], "retracted": [], "aborted": [],
                       "finished": [], "cached": []}

    def receive(self, request):
        """Puts a request into the queue as the handler of requests does, with its limit on new tokens."""
        prompt, output = expand(request["prompt"]), request["output"]
        limit = request.get("max_new_tokens", output)
        params = self.Params(max_new_tokens=limit, stop_token_ids={STOP},
                             ignore_eos=request.get("ignore_eos", self.case["settings"]["ignore_eos"]))
        params.normalize(None)
        if len(prompt) >= self.max_req_input_len:
            raise ValueError(f"request {request['id']}: the prompt is too long for the server")
        req = self.Req(str(request["id"]), "", prompt, params)
        self.init_req_max_new_tokens(req)
        self.live[request["id"]], self.output[request["id"]] = req, output
        self._add_request_to_queue(req)

    def _add_request_to_queue(self, req, is_retracted=False):
        if is_retracted:
            self.record["retracted"].append(int(req.rid))
        super()._add_request_to_queue(req, is_retracted)

    def run_batch(self, batch, pp_proxy_tensors=None):
        """Records a batch instead of running it."""
        self.forward_ct += 1
        decodes = batch.forward_mode.is_decode()
        lengths = [1] * batch.batch_size() if decodes else batch.extend_lens
        self.record["kind"] = batch_kind(batch.forward_mode)
        self.record["scheduled"] = [[int(req.rid), length] for req, length in zip(batch.reqs, lengths)]
        decoding = set(batch.reqs if decodes else batch.decoding_reqs or ())
        self.record["cached"] = [
            [int(req.rid), hit] for req, hit in zip(batch.reqs, batch.prefix_lens or ())
            if req not in decoding and req.extend_batch_idx == 1]
        return Settings(
            copy_done=None, auxiliary_host_output=None, routed_experts_output=None, indexer_topk_output=None,
            logits_output=None, extend_input_len_per_req=None, extend_logprob_start_len_per_req=None,
            can_run_cuda_graph=False, num_correct_drafts_per_req_cpu=None, grammar_advanced=False,
            get_num_generated_tokens=lambda size: size)

    def process_batch_result(self, batch, result):
        """Gives each request its next token, lets SGLang handle the result and notes who finished by it."""
        result.next_token_ids = self.torch.tensor([self.next_token(req) for req in batch.reqs])
        super().process_batch_result(batch, result)
        for req in batch.reqs:
            if req.finished() and self.live.pop(int(req.rid), None):
                self.record["finished"].append(int(req.rid))

    def next_token(self, req):
        number = int(req.rid)
        done, last = len(req.output_ids), self.output[number] - 1
        stops = done == last and self.output[number] < req.sampling_params.max_new_tokens
        return STOP if stops else 1_000_000 + number * 100_000 + done

    def send_abort_output(self, abort_req, req):
        self.record["aborted"].append(int(req.rid))
        self.live.pop(int(req.rid))

    def on_idle(self):
        """Of the housekeeping of an idle server, what changes later batches."""
        if not self.live:
            self.new_token_ratio_tracker.reset()

    def close(self):
        """Completes the record of an iteration with how things stand at its end.

        That is after the result of its own batch, with overlap after that of the batch before. `tokens_used` are the
        tokens of the pool that are not free, whole pages; of them `tokens_cached` are only kept for later requests
        and can be evicted. `running` are the requests that are neither waiting nor finished.
        """
        if not self.record or not self.busy:
            return
        pool, waiting = self.token_to_kv_pool_allocator, len(self.waiting_queue)
        self.record |= {
            "tokens_used": pool.size - pool.available_size(),
            "tokens_cached": self.tree_cache.evictable_size(), "running": len(self.live) - waiting,
            "waiting": waiting, "new_token_ratio": self.new_token_ratio_tracker.current}
        self.steps.append(self.record)
        self.quiet = 0 if self.record["scheduled"] else self.quiet + 1
        if self.quiet == STALLED and not self.coming:
            raise RuntimeError(f"stalled with requests {sorted(self.live)}")


def driven_class(real):
    """SGLang's scheduler as a class whose loop can be run on a case."""
    members = dict.fromkeys(UNHEARD, nothing) | {
        "torch": sys.modules["torch"], "Req": real("managers.schedule_batch").Req,
        "Params": real("sampling.sampling_params").SamplingParams}
    return type("Driven", (Recorder, real("managers.scheduler").Scheduler), members)


def memory_of(real, settings):
    """The memory pools and the prefix cache, as a server for a model with full attention alone makes them."""
    allocators, page, size = real("mem_cache.allocator"), settings["page_size"], settings["max_total_tokens"]
    common = {"dtype": None, "device": "cpu", "kvcache": None, "need_sort": False}
    if page == 1:
        pool = allocators.TokenToKVPoolAllocator(size, **common)
    else:
        pool = allocators.PagedTokenToKVPoolAllocator(size, page_size=page, **common)
    rows = real("mem_cache.memory_pool").ReqToTokenPool(
        settings["max_running_requests"], settings["context_length"] + 4, "cpu", False)
    parts = real("mem_cache.unified_cache.component_type").ComponentType
    tree = real("mem_cache.unified_radix_cache").UnifiedRadixCache(real("mem_cache.cache_init_params").CacheInitParams(
        disable=settings["disable_radix_cache"], req_to_token_pool=rows, token_to_kv_pool_allocator=pool,
        page_size=page, tree_components=(parts.FULL,), tree_core_backend="python"))
    return pool, rows, tree


def fill(scheduler, real, settings):
    """Sets what the scheduler's start would, as far as batches depend on it, and runs the parts of it that count."""
    scheduler.__dict__.update(dict.fromkeys(OFF, False) | dict.fromkeys(NONE))
    pool, rows, tree = memory_of(real, settings)
    longest = min(settings["context_length"], settings["max_total_tokens"]) - 1
    scheduler.__dict__.update(
        token_to_kv_pool_allocator=pool, req_to_token_pool=rows, tree_cache=tree, page_size=settings["page_size"],
        max_total_num_tokens=settings["max_total_tokens"], max_prefill_tokens=settings["max_prefill_tokens"],
        max_running_requests=settings["max_running_requests"], max_req_len=longest, max_req_input_len=longest - 5,
        schedule_policy=settings["schedule_policy"], enable_overlap=settings["overlap"], is_generation=True,
        gracefully_exit=False, device="cpu", processed_tokens_counter=0, priority_scheduling_preemption_threshold=10,
        disaggregation_mode=real("disaggregation.utils").DisaggregationMode.NULL,
        spec_algorithm=Settings(is_none=lambda: True, supports_grammar_overlap=lambda: False),
        model_config=Settings(is_multimodal=False, is_encoder_decoder=False, vocab_size=1 << 40,
                              self_opened_think_start_ids=None, think_end_ids=None),
        dp_attn_adapter=Settings(maybe_prepare_mlp_sync_batch=same, maybe_convert_decode_to_extend=same),
        ngram_embedding_manager=Settings(prepare_for_forward=same),
        grammar_manager=Settings(has_waiting_grammars=lambda: False),
        beam_coordinator=Settings(pending_member_rows=lambda _: 0),
        tp_worker=Settings(model_runner=Settings(attn_backend=Settings(), prefill_aware_swa=False)),
        load_publisher=Settings(publish_load_stat=nothing),
        load_inquirer=Settings(get_loads=nothing, _get_num_pending_tokens=nothing),
        output_streamer=Settings(stream_output=nothing),
        metrics_reporter=Settings(
            enable_metrics=False, num_generated_tokens=0, forward_ct_decode=0, num_retracted_reqs=0,
            report_prefill_stats=nothing, report_decode_stats=nothing, log_batch_result_stats=nothing,
            update_device_timer=nothing))
    slots = real("managers.min_free_slots_delayer")
    free = slots.resolve_min_free_slots(settings["min_free_slots_delay"], settings["max_running_requests"])
    scheduler.min_free_slots_delayer = slots.MinFreeSlotsDelayer(free) if free else None
    scheduler.init_running_status()
    scheduler.init_chunked_prefill()
    scheduler.init_schedule_policy()
    processor = real("managers.scheduler_components.batch_result_processor").SchedulerBatchResultProcessor
    fields = {name: getattr(scheduler, name, None) for name in processor.__dataclass_fields__}
    scheduler.batch_result_processor = processor(**fields)
    return scheduler


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("cases")
    options.add_argument("--wheel", help="an unpacked wheel, else one is downloaded once")
    options.add_argument("--overlap", action="store_true", help="the loop that overlaps scheduling with the device")
    options = options.parse_args()
    logging.disable(logging.CRITICAL)
    groups = {}
    real = stand_ins.load(options.wheel, groups)
    Driven = driven_class(real)
    with sys.stdin if options.cases == "-" else open(options.cases) as lines:
        for case in map(json.loads, lines):
            case["settings"] = DEFAULTS | {"overlap": options.overlap} | case.get("settings", {})
            settings = case["settings"]
            # As a server does when it sizes its pools.
            settings["max_total_tokens"] -= settings["max_total_tokens"] % settings["page_size"]
            settings["max_running_requests"] = min(settings["max_running_requests"], settings["max_total_tokens"] // 2)
            groups.update(stand_ins.published(case["settings"]))
            driven, row = Driven.__new__(Driven), {"name": case["name"], "version": stand_ins.VERSION}
            try:
                row["steps"] = fill(driven, real, case["settings"]).drive(case)
            except (RuntimeError, ValueError) as error:
                # The pool can hold too little, and a prompt be too long: that too is an answer.
                row |= {"steps": getattr(driven, "steps", []), "error": str(error).splitlines()[0]}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
