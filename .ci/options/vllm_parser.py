"""The parser of `vllm serve` from the published wheel, with torch and all that is not configuration stood in for."""

from pathlib import Path

import common
import standins

VERSION = "0.33.0"
LIBRARIES = ("pydantic==2.14.3", "regex==2026.11.15")
INSTALLED = ("pydantic", "pydantic_core", "regex", "typing_extensions", "typing_inspection", "annotated_types")
REAL = ("vllm.config", "vllm.engine.arg_utils", "vllm.entrypoints.common.cli_args", "vllm.envs", "vllm.version",
        "vllm.entrypoints.launchers.utils.constants", "vllm.tool_parsers.tool_strict_level", "vllm.utils.argparse_utils", "vllm.v1.attention.backends.registry",
        "vllm.model_executor.layers.quantization.utils.quant_utils")


def load(folder=None):
    """The parser, with the subcommand `serve`, and the parser of `serve`. `folder`: an unpacked wheel, else its own."""
    folder = Path(folder) if folder else common.wheel("vllm", VERSION)
    standins.install(folder, "vllm", REAL, INSTALLED, common.libraries(*LIBRARIES))
    import vllm.platforms

    vllm.platforms.current_platform.device_type = "cuda"
    from vllm.entrypoints.common.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser(prog="vllm")
    serve = parser.add_subparsers(dest="subparser").add_parser("serve")
    return parser, make_arg_parser(serve), folder
