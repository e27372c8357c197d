"""Runs cases on vLLM's own scheduler and KV cache manager, from the published wheel, without torch and without a device.

    python .ci/schedulers/drive_vllm.py cases.jsonl > records.jsonl
    python .ci/schedulers/random_cases.py 1 200 | python .ci/schedulers/drive_vllm.py -

Cases and records are described in `cases.py`. Real are the scheduler, its queues, the KV cache manager down to the list of
free blocks, requests and their block hashes, and the configuration with its checks. Stood in for are torch and what makes
tokens: a request gets its next known token where the model runner would sample one. The model is a decoder with one group
of full attention, without LoRA, speculative decoding, KV connector, pipeline or data parallelism.

Settings, with vLLM's names and, where they are left out, its defaults:

    required    max_num_batched_tokens, max_num_seqs, block_size, num_blocks, max_model_len, async_scheduling
    others      the rest of SETTINGS below, enable_prefix_caching

`num_blocks` counts blocks that requests can use. vLLM takes one more away for good as its null block, so it is given
num_blocks + 1, and that is the number that `watermark` is a fraction of and that vLLM itself reports as its GPU blocks.
`async_scheduling` is True in an engine that is told nothing. Then vLLM uses another scheduler class and calls it for batch
k + 1 before it processes the output of batch k: `finished` of a step is what the batch before it ended.

An engine refuses to start where max_model_len tokens do not fit in the blocks; here only each request must fit.
"""

import dataclasses
import json
import sys
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "options")]
sys.dont_write_bytecode = True

import cases
import common
import standins
import vllm_parser

MSGSPEC = "msgspec==0.22.0"
# What decides is real, with what it computes by: a stand-in would answer without an error, and wrongly.
REAL = (*vllm_parser.REAL, "vllm.sampling_params", "vllm.utils", "vllm.v1.core", "vllm.v1.engine",
        "vllm.v1.kv_cache_interface", "vllm.v1.kv_cache_layout", "vllm.v1.kv_cache_spec_registry",
        "vllm.v1.metrics.stats", "vllm.v1.outputs",
        "vllm.v1.request", "vllm.v1.serial_utils", "vllm.v1.structured_output.request", "vllm.v1.utils", "vllm._version")
REQUIRED = ("max_num_batched_tokens", "max_num_seqs", "block_size", "num_blocks", "max_model_len", "async_scheduling")
SETTINGS = ("max_num_batched_tokens", "max_num_scheduled_tokens", "max_num_seqs", "max_num_active_seqs",
            "enable_chunked_prefill", "long_prefill_token_threshold", "long_prefill_token_threshold_adaptive", "policy",
            "scheduler_reserve_full_isl", "watermark", "prefill_schedule_interval", "async_scheduling")


def load():
    folder = common.wheel("vllm", vllm_parser.VERSION)
    # Only one folder can be named to `install`, so the second is put in front here.
    sys.path.insert(0, str(common.libraries(MSGSPEC)))
    standins.install(folder, "vllm", REAL, (*vllm_parser.INSTALLED, "msgspec"), common.libraries(*vllm_parser.LIBRARIES))
    import vllm.v1.core.sched.async_scheduler
    import vllm.v1.core.sched.scheduler
    from vllm.version import __version__

    return __version__


def check_settings(case):
    """Refuses, by its name, a setting that this version does not have or that the drive cannot follow."""
    from vllm.config import SchedulerConfig

    known = {field.name for field in dataclasses.fields(SchedulerConfig)}
    own = {"block_size", "num_blocks", "max_model_len", "enable_prefix_caching"}
    for name in case["settings"]:
        if name not in own and name not in known:
            cases.refuse(case, f"vLLM {vllm_parser.VERSION} has no setting {name}")
        if name not in own and name not in SETTINGS:
            cases.refuse(case, f"the setting {name} is not driven")
    # A name may only be listed here while the version has it.
    if missing := [name for name in SETTINGS if name not in known]:
        cases.refuse(case, f"vLLM {vllm_parser.VERSION} has no setting {', '.join(missing)}")
    if missing := [name for name in REQUIRED if name not in case["settings"]]:
        cases.refuse(case, f"settings lack {', '.join(missing)}")


def configuration(settings):
    """What the scheduler reads of VllmConfig; any other attribute is an error, and what is derived is derived by vLLM."""
    from vllm.config import CacheConfig, ObservabilityConfig, ParallelConfig, SchedulerConfig, VllmConfig
    from vllm.config.ec_manager_config import EncoderCacheManagerConfig

    class Configuration(SimpleNamespace):
        max_concurrent_batches = VllmConfig.max_concurrent_batches
        max_in_flight_tokens = VllmConfig.max_in_flight_tokens
        num_speculative_tokens = VllmConfig.num_speculative_tokens
        num_lookahead_tokens = VllmConfig.num_lookahead_tokens
        num_prefill_lookahead_tokens = VllmConfig.num_prefill_lookahead_tokens
        num_hash_lookahead_tokens = VllmConfig.num_hash_lookahead_tokens

    length = settings["max_model_len"]
    given = {name: settings[name] for name in SETTINGS if name in settings}
    cache = CacheConfig(block_size=settings["block_size"])
    if "enable_prefix_caching" in settings:
        cache.enable_prefix_caching = settings["enable_prefix_caching"]
    cache.num_gpu_blocks = settings["num_blocks"] + 1
    model = SimpleNamespace(max_model_len=length, uses_mrope=False, is_encoder_decoder=False, runner_type="generate",
                            is_diffusion=False, supports_multimodal_inputs=False, return_sampling_mask=False)
    return Configuration(
        scheduler_config=SchedulerConfig(max_model_len=length, is_encoder_decoder=False, **given), cache_config=cache,
        model_config=model, parallel_config=ParallelConfig(), observability_config=ObservabilityConfig(),
        ec_manager_config=EncoderCacheManagerConfig(), aux_output_config=SimpleNamespace(enabled=False),
        lora_config=None, kv_events_config=None, kv_transfer_config=None, ec_transfer_config=None, speculative_config=None,
        diffusion_config=None, is_mm_encoder_only=False, use_v2_model_runner=True)


class Engine:
    """What vLLM's EngineCore does around its scheduler, without the processes and the model."""

    def __init__(self, settings):
        from vllm.v1.core import kv_cache_utils
        from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec

        config = configuration(settings)
        # Sizes of heads and the type only give bytes, which no decision of the scheduler reads.
        spec = FullAttentionSpec(block_size=settings["block_size"], num_kv_heads=1, head_size=1, dtype=None)
        blocks = KVCacheConfig(num_blocks=config.cache_config.num_gpu_blocks, kv_cache_tensors=[],
                               kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)],
                               prefix_cache_retention_interval=config.cache_config.prefix_cache_retention_interval)
        block_size, hash_block_size = kv_cache_utils.resolve_kv_cache_block_sizes(blocks, config)
        grammars = SimpleNamespace(accept_tokens=lambda request, tokens: not request.use_structured_output)
        self.scheduler = config.scheduler_config.get_scheduler_cls()(
            vllm_config=config, kv_cache_config=blocks, structured_output_manager=grammars, block_size=block_size,
            hash_block_size=hash_block_size, include_finished_set=False, log_stats=True)
        self.depth = config.max_concurrent_batches
        self.hasher = None
        if config.cache_config.enable_prefix_caching:
            from vllm.utils.hashing import get_hash_fn_by_name

            function = get_hash_fn_by_name(config.cache_config.prefix_caching_hash_algo)
            kv_cache_utils.init_none_hash(function)
            self.hasher = kv_cache_utils.get_request_block_hasher(hash_block_size, function,
                                                                  config.num_hash_lookahead_tokens)
        self.pool = self.scheduler.kv_cache_manager.block_pool
        self.arrived, self.preempted = 0, []
        preempt = self.scheduler._preempt_request

        def preempt_and_note(request, *rest, **named):
            self.preempted.append(int(request.request_id))
            return preempt(request, *rest, **named)

        # The scheduler's output has the names as a set, and the order decides where they wait.
        self.scheduler._preempt_request = preempt_and_note

    def unfinished(self):
        return self.scheduler.has_unfinished_requests()

    def add(self, request):
        from vllm.sampling_params import SamplingParams
        from vllm.v1.request import Request

        # No two requests arrive at the same moment, so the order of ids as text never decides.
        self.arrived += 1
        self.scheduler.add_request(Request(
            request_id=str(request["id"]), prompt_token_ids=cases.tokens(request["prompt"]),
            sampling_params=SamplingParams(max_tokens=request["output"], ignore_eos=True), pooling_params=None,
            arrival_time=float(self.arrived), priority=request.get("priority", 0), block_hasher=self.hasher))

    def schedule(self):
        self.preempted = []
        output = self.scheduler.schedule(False)
        hits = {new.req_id: new.num_computed_tokens for new in output.scheduled_new_reqs}
        again = output.scheduled_cached_reqs
        hits.update((name, count) for name, count in zip(again.req_ids, again.num_computed_tokens)
                    if name in again.resumed_req_ids)
        # A chunk that ends before the last known token samples nothing, as the model runner decides by the same count.
        samples = [name for name in output.num_scheduled_tokens if not self.scheduler.requests[name].is_prefill_chunk]
        running, waiting = self.scheduler.get_request_counts()
        step = {"scheduled": [[int(name), count] for name, count in output.num_scheduled_tokens.items()],
                "preempted": self.preempted,
                "cached": [[int(name), hits[name]] for name in output.num_scheduled_tokens if name in hits],
                "blocks_used": self.pool.num_gpu_blocks - 1 - self.pool.get_num_free_blocks(),
                "running": running, "waiting": waiting}
        return (output, samples), step

    def update(self, batch):
        from vllm.v1.outputs import ModelRunnerOutput

        output, samples = batch
        names = list(output.num_scheduled_tokens)
        sampled = []
        for name in names:
            # One that ended since this batch was scheduled is not asked; its tokens are dropped by the scheduler.
            request = self.scheduler.requests.get(name)
            count = request.num_output_tokens if request else 0
            sampled.append([cases.output_token(int(name), count)] if name in samples else [])
        result = self.scheduler.update_from_output(output, ModelRunnerOutput(
            req_ids=names, req_id_to_index={name: index for index, name in enumerate(names)}, sampled_token_ids=sampled))
        return [int(one.request_id) for client in result.values() for one in client.outputs if one.finish_reason is not None]


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    version = load()
    for case in cases.read(sys.argv[1]):
        check_settings(case)
        engine = Engine(case["settings"])
        steps = cases.check_record(case, cases.drive(case, engine, engine.depth), engine.depth)
        print(json.dumps({"name": case["name"], "version": version, "steps": steps}, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
