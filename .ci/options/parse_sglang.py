"""Gives a command line to the real parser of SGLang's server: exits non-zero, with the parser's words, where it refuses.

    python .ci/options/parse_sglang.py python -m sglang.launch_server --model-path MODEL --tp-size 4
    python .ci/options/parse_sglang.py - < one command line per line

How far it reaches: unknown options, missing ones, values of the wrong kind, choices. Not: rules between options and what
depends on the model or the devices, which SGLang checks when it resolves its arguments; nor the contents of `--config`.
"""

import sys

import common
import sglang_parser


def main():
    words = sys.argv[1:]
    given = words[:1] == ["--wheel"]
    parser = sglang_parser.load(words[1] if given else None)
    return common.check_commands(words[2:] if given else words, sglang_parser.PROGRAMS, parser.parse_args)


if __name__ == "__main__":
    sys.exit(main())
