"""The parser of `python -m sglang.launch_server` from the published wheel, with all but the options stood in for."""

import argparse
from pathlib import Path

import common
import standins

VERSION = "0.5.23"
PROGRAMS = [["python", "-m", "sglang.launch_server"], ["python3", "-m", "sglang.launch_server"], ["sglang", "serve"]]
LIBRARIES = ("msgspec==0.22.0",)
REAL = ("sglang.srt.server_args", "sglang.srt.arg_groups", "sglang.srt.environ", "sglang.srt.utils.common",
        "sglang.srt.lora.lora_registry", "sglang.srt.model_executor.cuda_graph_config",
        "sglang.srt.parser.reasoning_parser_names", "sglang.srt.function_call.parser_names",
        "sglang.kernels.ops.kv_canary.consts")


def load(folder=None, version=VERSION):
    """The parser. `folder`: an unpacked wheel, else one of its own."""
    folder = Path(folder) if folder else common.wheel("sglang", version)
    standins.install(folder, "sglang", REAL, ("msgspec",), common.libraries(*LIBRARIES))
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser(prog="sglang serve")
    ServerArgs.add_cli_args(parser)
    return parser
