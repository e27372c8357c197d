"""Gives a command line to the real parser of `vllm serve`: exits non-zero, with the parser's words, where it refuses.

    python .ci/options/parse_vllm.py vllm serve MODEL --tensor-parallel-size 4
    python .ci/options/parse_vllm.py - < one command line per line

How far it reaches: unknown options, values of the wrong kind, choices, JSON arguments with unknown or wrong keys, and
what vLLM checks before it loads a model. Not: what depends on the model or the devices (`--quantization` and
`--attention-backend` take any text here), nor the contents of `--config` and `--speculative-config`.
"""

import sys

import common
import vllm_parser


def main():
    words = sys.argv[1:]
    folder = words[1] if words[:1] == ["--wheel"] else None
    parser, _, _ = vllm_parser.load(folder)
    from vllm.entrypoints.common.cli_args import validate_parsed_serve_args

    def check(command):
        validate_parsed_serve_args(parser.parse_args(["serve", *command]))

    return common.check_commands(words[2:] if folder else words, [["vllm", "serve"]], check)


if __name__ == "__main__":
    sys.exit(main())
