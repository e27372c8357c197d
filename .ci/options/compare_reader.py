"""Compares the reader of launch commands with the runtimes' own parsers on the random lines that a test wrote.

    python .ci/options/compare_reader.py target/launch-random.jsonl

A line has the runtime, the words after its program, whether the reader refuses them, and the numbers that it took by
the first spelling of their option. Both must refuse the same lines, and have the same numbers in the others. Exits
non-zero where they differ.
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


def compare(parser, parse, line):
    """Why the reader and the parser differ; None where they agree."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            args = parse(line["words"])
    except (SystemExit, Exception) as error:
        return None if line["refused"] else f"the parser refuses it, the reader does not: {error}"
    if line["refused"]:
        return "the reader refuses it, the parser does not"
    options = parser._option_string_actions
    for flag, number in line["numbers"].items():
        value = getattr(args, options[flag].dest)
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


LOAD = {"vllm": vllm, "sglang": sglang}

if __name__ == "__main__":
    sys.exit(main())
