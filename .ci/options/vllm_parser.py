"""The parser of `vllm serve` from the published wheel, with torch and all that is not configuration stood in for."""

import ast
import importlib
from pathlib import Path
from typing import Annotated

import common
import standins

VERSION = "0.33.0"
LIBRARIES = ("pydantic==2.14.3", "regex==2026.11.15")
INSTALLED = ("pydantic", "pydantic_core", "regex", "typing_extensions", "typing_inspection", "annotated_types")
REAL = ("vllm.config", "vllm.engine.arg_utils", "vllm.entrypoints.common.cli_args", "vllm.envs", "vllm.version",
        "vllm.entrypoints.launchers.utils.constants", "vllm.tool_parsers.tool_strict_level", "vllm.utils.argparse_utils", "vllm.v1.attention.backends.registry",
        "vllm.model_executor.layers.quantization.utils.quant_utils")
# Where older versions declare the same, newest first.
OLDER = {"vllm.entrypoints.common.cli_args": ("vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args"),
         "vllm.entrypoints.launchers.utils.constants": ("vllm.entrypoints.constants",),
         "vllm.utils.argparse_utils": ("vllm.utils",)}


def place(folder, module):
    """The name under which the unpacked wheel has a module, its own or an older one."""
    for name in (module, *OLDER.get(module, ())):
        path = folder / name.replace(".", "/")
        if path.with_suffix(".py").exists() or path.is_dir():
            return name
    return module


def load(folder=None, version=VERSION):
    """The parser, with the subcommand `serve`, and the parser of `serve`. `folder`: an unpacked wheel, else its own."""
    folder = Path(folder) if folder else common.wheel("vllm", version)
    real = tuple(place(folder, module) for module in REAL)
    standins.install(folder, "vllm", real, INSTALLED, common.libraries(*LIBRARIES))
    import vllm.platforms

    vllm.platforms.current_platform.device_type = "cuda"
    arguments = importlib.import_module(place(folder, "vllm.entrypoints.common.cli_args"))
    words = importlib.import_module(place(folder, "vllm.utils.argparse_utils"))

    parser = words.FlexibleArgumentParser(prog="vllm")
    serve = parser.add_subparsers(dest="subparser").add_parser("serve")
    return parser, arguments.make_arg_parser(serve), folder


def fields(folder):
    """The field of vLLM's configuration that each option sets: {option: field}, read from the source."""
    import vllm.config

    nodes = list(ast.walk(ast.parse((folder / "vllm" / "engine" / "arg_utils.py").read_text())))
    classes, found = {}, {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if getattr(node.value.func, "id", "") == "get_kwargs":
                classes[node.targets[0].id] = getattr(vllm.config, node.value.args[0].id)
    for node in nodes:
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            given = (part for word in node.keywords if word.arg is None for part in ast.walk(word.value))
            for part in given:
                if isinstance(part, ast.Subscript) and getattr(part.value, "id", "") in classes:
                    fields_of = getattr(classes[part.value.id], "__pydantic_fields__", {})
                    if part.slice.value in fields_of:
                        found[node.args[0].value] = fields_of[part.slice.value]
    return found


def check_limits(args, limited):
    """Raises where a number is outside of what the field of the configuration allows."""
    from pydantic import TypeAdapter, ValidationError

    for option, field in limited.items():
        value = getattr(args, option.lstrip("-").replace("-", "_"), None)
        if field.metadata and isinstance(value, (int, float)):
            try:
                TypeAdapter(Annotated[field.annotation, *field.metadata]).validate_python(value)
            except ValidationError as error:
                raise ValueError(f"argument {option}: {error.errors()[0]['msg']}, not {value}") from None
