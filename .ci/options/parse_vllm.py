"""Gives a command line to the real parser of `vllm serve`: exits non-zero, with the parser's words, where it refuses.

    python .ci/options/parse_vllm.py vllm serve MODEL --tensor-parallel-size 4
    python .ci/options/parse_vllm.py - < one command line per line

How far it reaches: unknown options, values of the wrong kind, choices, numbers out of range, JSON arguments with unknown
or wrong keys, and what vLLM checks of the server's options before it loads a model. Not: names that it takes as any text
(`--quantization`, `--attention-backend`, `--kv-cache-dtype`, parsers), the contents of `--config` and of
`--speculative-config`, rules between options, and what depends on the model or the devices.
"""

import sys

import common
import vllm_parser


def main():
    words = sys.argv[1:]
    given = words[:1] == ["--wheel"]
    parser, _, folder = vllm_parser.load(words[1] if given else None)
    limited = vllm_parser.fields(folder)
    from vllm.entrypoints.common.cli_args import validate_parsed_serve_args

    def check(command):
        args = parser.parse_args(["serve", *command])
        validate_parsed_serve_args(args)
        vllm_parser.check_limits(args, limited)

    return common.check_commands(words[2:] if given else words, [["vllm", "serve"]], check)


if __name__ == "__main__":
    sys.exit(main())
