"""Compares the reader of launch commands with the runtimes' own parsers on the random lines that a test wrote.

    python .ci/options/compare_reader.py target/launch-random.jsonl

A line has the runtime, the words after its program, whether the reader refuses them, and the numbers that it took by
the first spelling of their option. Both must refuse the same lines, and have the same numbers in the others. Exits
non-zero where they differ. TensorRT-LLM builds its parser with click from declarations that no package holds: the same
library builds it here from the table of its options.
"""

import contextlib
import io
import json
import shlex
import subprocess
import sys


def vllm():
    import vllm_parser

    parser, serve, folder = vllm_parser.load()
    limited = vllm_parser.fields(folder)
    from vllm.entrypoints.common.cli_args import validate_parsed_serve_args

    def parse(words):
        args = parser.parse_args(["serve", *words])
        validate_parsed_serve_args(args)
        vllm_parser.check_limits(args, limited)
        return args

    return serve, parse


def sglang():
    import sglang_parser

    parser = sglang_parser.load()
    return parser, parser.parse_args


CLICK = "click==8.4.0"


def trtllm():
    import common

    sys.path.insert(0, str(common.libraries(CLICK)))
    import click

    tables = (json.loads(path.read_text()) for path in common.TABLES.glob("trtllm-*.json"))
    (table,) = (table for table in tables if table["runtime"] == "trtllm")
    types = {"int": click.INT, "float": click.FLOAT, "str": click.STRING}
    command = click.Command("serve", params=[click.Argument(["model"])])
    for row in table["options"]:
        flags, off = row["flags"], row.get("off", [])
        if row["kind"] == "switch":
            on = [f"{flags[0]}/{off[0]}"] if off else flags
            command.params.append(click.Option(on, is_flag=True))
        else:
            kind = click.Choice(row["choices"]) if "choices" in row else types[row["kind"]]
            command.params.append(click.Option(flags, type=kind, multiple=row.get("repeats", False)))
    return command, lambda words: command.make_context("serve", list(words))


def number_of(parser, args, flag):
    """The value that the parser took for an option."""
    if hasattr(args, "params"):
        (name,) = (option.name for option in parser.params if flag in option.opts)
        return args.params[name]
    return getattr(args, parser._option_string_actions[flag].dest)


def compare(parser, parse, line):
    """Why the reader and the parser differ; None where they agree."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            args = parse(line["words"])
    except (SystemExit, Exception) as error:
        return None if line["refused"] else f"the parser refuses it, the reader does not: {error}"
    if line["refused"]:
        return "the reader refuses it, the parser does not"
    for flag, number in line["numbers"].items():
        value = number_of(parser, args, flag)
        if value is None or isinstance(value, (str, bool)) or float(value) != float(number):
            return f"{flag}: the parser has {value}, the reader {number}"
    return None


def main():
    # The stand-ins of one runtime's libraries are in the way of another's: each has a process of its own.
    if len(sys.argv) == 2:
        return max(subprocess.run([sys.executable, __file__, sys.argv[1], runtime]).returncode for runtime in LOAD)
    with open(sys.argv[1]) as file:
        lines = [line for line in map(json.loads, file) if line["runtime"] == sys.argv[2]]
    parser, parse = LOAD[sys.argv[2]]()
    differ = 0
    for line in lines:
        why = compare(parser, parse, line)
        if why:
            differ += 1
            print(f"{sys.argv[2]} {shlex.join(line['words'])}\n  {why}", file=sys.stderr)
    print(f"{sys.argv[2]}: {len(lines) - differ} passed, {differ} failed")
    return 1 if differ or not lines else 0


LOAD = {"vllm": vllm, "sglang": sglang, "trtllm": trtllm}

if __name__ == "__main__":
    sys.exit(main())
