"""What SGLang's scheduler needs around it, so that its own batch policies run without torch and without a device.

Real, from the published wheel: every module in REAL, so all decisions on batches, cache and memory. Stood in for: torch
(the few tensor operations that the bookkeeping does, over numpy), the settings that a server publishes at its start
(`published`), and all else that those modules import, by the stand-ins that also serve the options' parser.

The prefix cache is the one that a server uses, with its tree in Python: the same tree in Rust, a server's default where
the wheel has it for the machine, needs torch. Slots come from SGLang's plain loops instead of its kernels.
"""

import importlib
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "options"))

import common  # noqa: E402
import standins  # noqa: E402

VERSION = "0.5.23"
LIBRARIES = ("msgspec==0.22.0", "numpy==2.4.1")
MANAGERS = ("min_free_slots_delayer", "prefill_delayer", "schedule_batch", "schedule_policy", "scheduler",
            "scheduler_components.batch_result_processor", "scheduler_components.new_token_ratio_tracker")
CACHE = ("allocation", "allocation_sizing", "allocator", "base_prefix_cache", "cache_init_params", "common",
         "evict_policy", "events", "memory_pool", "prefill_budget", "radix_cache", "unified_cache",
         "unified_radix_cache", "utils")
REAL = (*(f"sglang.srt.managers.{name}" for name in MANAGERS), *(f"sglang.srt.mem_cache.{name}" for name in CACHE),
        "sglang.srt.beam_search.batch_tail", "sglang.srt.disaggregation.utils", "sglang.srt.dllm.mixin.req",
        "sglang.srt.environ", "sglang.srt.model_executor.forward_batch_info", "sglang.srt.sampling.sampling_params",
        "sglang.srt.session.streaming_session", "sglang.srt.utils.common")


class Settings:
    """A group of a server's settings. An unknown one is an error, so that nothing is decided by a stand-in."""

    def __init__(self, **values):
        self.__dict__.update(values)


class Device(str):
    type = property(lambda self: str(self))


def tensor_class(numpy):

    class Tensor(numpy.ndarray):
        """A tensor on the host; slices share memory and fancy indexing copies, in numpy as in torch."""

        device = property(lambda self: Device("cpu"))

        def to(self, *values, dtype=None, copy=False, **_):
            kinds = [value for value in (*values, dtype) if isinstance(value, (type, numpy.dtype))]
            return self.astype(kinds[0], copy=copy or self.dtype != kinds[0]) if kinds else self

        def clone(self):
            return self.copy()

        def cpu(self):
            return self

        pin_memory = cpu

        def numel(self):
            return self.size

        def int(self):
            return self.astype(numpy.int32)

        def long(self):
            return self.astype(numpy.int64)

        def bool(self):
            return self.astype(numpy.bool_)

        def copy_(self, other):
            self[...] = other
            return self

        def clamp_(self, min=None, max=None):
            return self.copy_(numpy.clip(self, min, max))

    return Tensor


class Torch(standins.Module):
    """A stand-in for the rest of torch, but without devices: their mere names mean that one is there."""

    def __getattr__(self, name):
        if name in ("hpu", "npu", "xpu"):
            raise AttributeError(name)
        return super().__getattr__(name)


def torch_over(numpy):
    """The module `torch`, as far as the scheduler's bookkeeping goes: integer vectors and one table, over numpy."""
    Tensor = tensor_class(numpy)

    def made(function):
        """`function` with its result as a tensor and without the arguments that say where it lies."""

        def call(*values, device=None, pin_memory=None, **named):
            return numpy.asarray(function(*values, **named)).view(Tensor)

        return call

    torch = Torch("torch")
    torch.__path__ = []
    torch.Tensor, torch.device, torch.dtype = Tensor, Device, numpy.dtype
    torch.int64 = torch.long = numpy.int64
    torch.int32, torch.bool, torch.uint64, torch.float32 = numpy.int32, numpy.bool_, numpy.uint64, numpy.float32
    torch.finfo = lambda _: Settings(min=-1.0, max=1.0)
    torch.is_tensor, torch.iinfo = lambda value: isinstance(value, Tensor), numpy.iinfo
    torch.tensor = made(lambda values, dtype=None: numpy.array(values, dtype=dtype))
    torch.cat = made(lambda parts, dim=0: numpy.concatenate([numpy.asarray(part) for part in parts], axis=dim))
    torch.sort = lambda values: (made(numpy.sort)(values), made(numpy.argsort)(values))
    torch.searchsorted = made(lambda edges, values, right=False: numpy.searchsorted(
        edges, values, side="right" if right else "left"))
    torch.clamp = made(lambda values, min=None, max=None: numpy.clip(values, min, max))
    torch.from_numpy = made(lambda values: values)
    for name in ("all", "arange", "cumsum", "empty", "full", "full_like", "sum", "unique", "where", "zeros",
                 "zeros_like"):
        setattr(torch, name, made(getattr(numpy, name)))
    torch.cuda = standins.Module("torch.cuda")
    torch.cuda.is_available = lambda: False
    torch.version = standins.Module("torch.version")
    torch.version.cuda = torch.version.hip = torch.version.musa = None
    return torch


def published(case):
    """The settings that the scheduler reads, by group, with the defaults of a server for one device."""
    features = Settings(
        enable_encoder_swa_bounded_replay=False, return_hidden_states_mode=None, enable_return_hidden_states=False)
    mamba = Settings(enable_mamba_extra_buffer=False, enable_mamba_extra_buffer_lazy=False)
    return {
        "schedule": Settings(
            schedule_policy=case["schedule_policy"], schedule_conservativeness=case["schedule_conservativeness"],
            page_size=case["page_size"], prefill_max_requests=case["prefill_max_requests"], retraction_policy="length",
            schedule_low_priority_values_first=False, enable_mixed_chunk=case["enable_mixed_chunk"],
            chunked_prefill_size=case["chunked_prefill_size"], prefill_decode_interval=case["prefill_decode_interval"],
            prefill_decode_interval_min_bs=case["prefill_decode_interval_min_bs"], enable_prefill_delayer=False,
            disable_priority_preemption=False),
        "memory": Settings(
            radix_eviction_policy="lru", enable_flexkv=False, enable_hisparse=False, hicache_host_memory_mode="cache"),
        "disagg": Settings(
            disaggregation_mode="null", disaggregation_decode_enable_offload_kvcache=False,
            disaggregation_decode_retraction_backup="none"),
        "exec": Settings(features=features, mamba=mamba),
        "parallel": Settings(
            dcp_enabled=False, tp_size=1, pp_size=1, pp_rank=0, pp_max_micro_batch_size=case["max_running_requests"]),
        "spec": Settings(speculative_algorithm=None),
        "serving": Settings(strip_thinking_cache=False),
        "observability": Settings(enable_metrics=False, extra_metric_labels=None),
        "platform": Settings(is_cuda=False),
        "context": Settings(is_config_namespace_published=lambda _: False),
    }


def context(groups):
    """The module through which the scheduler reads its settings; `groups` is filled for each case."""
    module = standins.Module("sglang.srt.runtime_context")
    for name in ("schedule", "memory", "disagg", "exec", "parallel", "spec", "serving", "observability", "platform",
                 "context"):
        setattr(module, f"get_{name}", lambda name=name: groups[name])
    # Backends in torch alone: the same slots as from the kernels, in plain indexing.
    module.attention_backends = lambda: ("torch_native", "torch_native")
    return module


def load(folder, groups):
    """Makes the real modules importable and gives a function that imports one by its name below `sglang.srt`."""
    folder = Path(folder) if folder else common.wheel("sglang", VERSION)
    standins.install(folder, "sglang", REAL, ("msgspec", "numpy"), common.libraries(*LIBRARIES))
    sys.modules["torch"] = torch_over(importlib.import_module("numpy"))
    sys.modules["sglang.srt.runtime_context"] = context(groups)
    # The package of helpers gives the functions of its main module; the rest is for devices and servers.
    helpers = vars(importlib.import_module("sglang.srt.utils.common"))
    functions = {name: value for name, value in helpers.items() if callable(value) and not isinstance(value, type)}
    vars(sys.modules["sglang.srt.utils"]).update(functions)
    return lambda name: importlib.import_module(f"sglang.srt.{name}")
